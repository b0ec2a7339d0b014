//! What the log says that checking costs: time to rewrite, and device memory.

use report::log::{Event, Launch as Logged, Module, Writer};
use runtime::{Checker, Mode, Options, Prove, ShadowSize};
use simt::{Device, DeviceConfig, Launch};
use simulated::CheckedSim;

use crate::common::{Rig, launch, load};

/// Bytes of global memory of the program.
const BYTES: u64 = 4096;
/// Bytes of its variable.
const VARIABLE: u64 = 512;

/// Every thread stores a word and passes a fence, so that the fence rule has something to count.
const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 8 .b8 mine[512];\n\
    .visible .entry k(.param .u64 data) { .reg .b64 %data, %at; .reg .b32 %t;\n\
    ld.param.u64 %data, [data]; mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 8; add.u64 %at, %data, %at;\n\
    st.global.u32 [%at], %t; fence.acq_rel.gpu; ret; }";

/// The module and the only launch.
fn run(options: Options) -> (Option<Module>, Logged) {
    let device = Device::new(DeviceConfig {
        memory: 1 << 24,
        ..DeviceConfig::default()
    });
    let checker = Checker::new(options, Writer::Memory(Vec::new()));
    let mut sim = CheckedSim::new(device.unwrap(), Some(checker));
    let id = sim.load(TEXT, "test").unwrap();
    let data = driver::Device::alloc(sim.device_mut(), BYTES).unwrap();
    sim.checker_mut().unwrap().allocated(data, BYTES, "test");
    let launch = Launch::new([1, 1, 1], [256, 1, 1], data.to_le_bytes().to_vec());
    sim.launch(id, "k", &launch).unwrap();
    let (mut module, mut logged) = (None, None);
    for event in sim.checker().unwrap().events() {
        match event {
            Event::Module(recorded) => module = Some(Module::clone(recorded)),
            Event::Launch(recorded) => logged = Some(Logged::clone(recorded)),
            _ => {}
        }
    }
    (module, logged.unwrap())
}

fn fast() -> Options {
    Options {
        mode: Mode::Fast,
        shadow: ShadowSize::Bytes(1 << 20),
        // A launch that is proved needs none of it.
        prove: Prove::Off,
        ..Options::default()
    }
}

#[test]
fn a_checked_launch_reports_what_it_has_taken() {
    let (module, launch) = run(fast());
    assert!(launch.checked, "{:?}", launch.why_not);
    assert!(module.unwrap().rewrite_seconds > 0.0);
    assert_eq!(launch.program_bytes, BYTES + VARIABLE);
    // The fence rule wants stamps beside the cells and witnesses that were asked for.
    let most = 2 << 20;
    assert!(
        launch.shadow_bytes > 1 << 19 && launch.shadow_bytes <= most,
        "{}",
        launch.shadow_bytes
    );
    let precise = Options {
        mode: Mode::Precise,
        as_gpu: true,
        ..fast()
    };
    let (_, journal) = run(precise);
    // There are no stamps.
    assert!(journal.shadow_bytes < launch.shadow_bytes);
    assert!(journal.shadow_bytes > 1 << 19);
}

#[test]
fn an_unchecked_launch_has_no_shadow() {
    let unchecked = Options {
        check: false,
        ..fast()
    };
    let (module, launch) = run(unchecked);
    assert_eq!(module, None);
    assert_eq!(launch.program_bytes, BYTES + VARIABLE);
    assert_eq!(launch.shadow_bytes, 0);
}

/// The accesses of a large module are megabytes, which only a race makes anybody read.
#[test]
fn the_log_has_the_accesses_of_a_module_from_its_first_race_on() {
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry k(.param .u64 at) {\n\
        .reg .b64 %at; .reg .b32 %tid;\n\
        ld.param.u64 %at, [at]; mov.u32 %tid, %tid.x;\n\
        st.global.u32 [%at], %tid;\n\
        st.global.u32 [%at+4], 1;\n\
        ret; }";
    for as_gpu in [false, true] {
        let options = Options {
            as_gpu,
            ..Options::default()
        };
        let mut rig = load(text, options);
        let at = rig.memory(&[0, 0]);
        let sites = |rig: &Rig| -> Vec<usize> {
            let events = rig.events().iter();
            let counts = events.filter_map(|event| match event {
                Event::Sites { sites, .. } => Some(sites.len()),
                _ => None,
            });
            counts.collect()
        };
        rig.launch(&launch(1, 1, &[at]));
        assert_eq!(sites(&rig), [0; 0]);
        rig.launch(&launch(1, 64, &[at]));
        assert!(!rig.races().is_empty());
        assert_eq!(sites(&rig), [2]);
        let first = |wanted: fn(&Event) -> bool| rig.events().iter().position(wanted);
        let described = first(|event| matches!(event, Event::Sites { .. }));
        assert!(described < first(|event| matches!(event, Event::Race(_))));
        rig.launch(&launch(1, 64, &[at]));
        assert_eq!(sites(&rig), [2]);
    }
}
