//! Events, logs and a source file to make reports of.

use std::path::Path;

use report::log::{
    Allocation, Event, Frame, Kernel, Launch, Level, Module, Op, Race, Semantics, Site, Thread,
};
use report::model::ExitStatus;
use report::source::Sources;
use report::text::{self, Style};
use report::{Context, Log, Report};

pub(crate) const SOURCE: &str =
    "__global__ void count(int *x) {\n    x[0]++;\n    int y = x[1];\n}\n";

/// A folder with the source file that the logs speak of.
pub(crate) fn sources() -> (tempfile::TempDir, Sources) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("count.cu"), SOURCE).unwrap();
    let sources = Sources::new(vec![folder.path().to_owned()]);
    (folder, sources)
}

pub(crate) fn site(id: u32, op: Op, line: u32) -> Site {
    Site {
        id,
        function: "_Z5countPi".into(),
        text: if op == Op::Load {
            "ld.global.u32 %r1, [%rd1];"
        } else {
            "st.global.u32 [%rd1], %r1;"
        }
        .into(),
        ptx_line: 10 + id,
        op,
        bytes: 4,
        ty: "u32".into(),
        sem: Semantics::Weak,
        frames: vec![Frame {
            file: "count.cu".into(),
            line,
            column: 5,
            function: None,
        }],
        ..Site::default()
    }
}

pub(crate) fn kernel() -> Kernel {
    Kernel {
        name: "_Z5countPi".into(),
        instrumented: true,
        accesses: 3,
        checked: 3,
        shared: 2,
        ..Kernel::default()
    }
}

pub(crate) fn race(launch: u64, previous_site: u32, site: u32, count: u64) -> Event {
    let thread = |x| Thread {
        block: [x, 0, 0],
        thread: [7, 0, 0],
    };
    Event::Race(Box::new(Race {
        launch,
        decided: true,
        level: Level::Grid,
        site,
        previous_site,
        count,
        address: 0x2000_0000_0104,
        allocation: Some(Allocation {
            id: 2,
            base: 0x2000_0000_0100,
            bytes: 1024,
            api: "cudaMalloc".into(),
            place: None,
        }),
        thread: thread(1),
        previous_thread: Some(thread(0)),
        ..Race::default()
    }))
}

pub(crate) fn launch(number: u64) -> Launch {
    Launch {
        launch: number,
        module: 1,
        kernel: "_Z5countPi".into(),
        grid: [2, 1, 1],
        block: [32, 1, 1],
        checked: true,
        warp_instructions: 100,
        thread_instructions: 3200,
        sectors: 8,
        seconds: 0.5,
        ..Launch::default()
    }
}

/// One process with the given races in its only launch.
pub(crate) fn log(seed: Option<u64>, races: Vec<Event>) -> Log {
    let mut events = vec![
        Event::Start {
            pid: 41,
            argv: vec!["./app".into()],
            device: "simulated sm_90".into(),
            seed,
            checking: true,
        },
        Event::Module(Box::new(Module {
            module: 1,
            origin: "count.cu".into(),
            kernels: vec![kernel()],
            ..Module::default()
        })),
        Event::Sites {
            module: 1,
            sites: vec![
                site(1, Op::Load, 2),
                site(2, Op::Store, 2),
                site(3, Op::Load, 3),
            ],
        },
    ];
    events.extend(races);
    events.push(Event::Launch(Box::new(launch(1))));
    Log {
        events,
        ..Log::default()
    }
}

pub(crate) fn context() -> Context {
    Context {
        version: "0.1.0".into(),
        argv: vec!["./count".into()],
        exit: ExitStatus {
            code: Some(0),
            signal: None,
        },
        schedules: 1,
        ..Context::default()
    }
}

pub(crate) fn render(report: &Report, sources: &Sources) -> String {
    text::render(report, sources, Style::default())
}

pub(crate) fn assert_valid(report: &Report) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let value: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(&Report::from_json(&report.to_json()).unwrap(), report);
}
