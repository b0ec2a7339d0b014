//! Programs that launch in every form are checked, and compute what they compute without.

use std::collections::BTreeMap;

use crate::common::text;
use crate::common::{self, program::Program};
use report::log::Race;
use runtime::{Mode, Options, Prove};

/// What `fine` leaves: 128 words that were 1, with 3 added three times.
const SUM: &str = "1280\n";

#[test]
fn every_form_of_launch_is_checked() {
    let program = Program::new();
    let file = program.workdir.path("kernels.ptx");
    // The text in the program, between its quotes.
    let source = include_str!("c/kernels.h");
    let start = source.find("static const char ptx[] =").expect("the text");
    let lines = source[start..].lines().skip(1);
    let quoted = lines.take_while(|line| line.trim_start().starts_with('"'));
    let ptx: String = quoted
        .map(|line| {
            let inner = line.trim().trim_end_matches(';').trim_matches('"');
            inner.replace("\\n", "\n")
        })
        .collect();
    std::fs::write(&file, ptx).expect("a writable folder");
    let file = file.display().to_string();
    for form in [
        "plain",
        "extra",
        "ex",
        "cooperative",
        "multi-device",
        "launch",
        "grid",
        "grid-async",
        "per-thread",
        "library",
        "function",
        "enumerate",
        "file",
        "link",
        "capture",
        "nodes",
    ] {
        for mode in [Mode::Precise, Mode::Fast] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let ran = program.run(&[form, &file], &options, "");
            assert_eq!(
                (ran.stdout.as_str(), ran.stderr.as_str()),
                (SUM, ""),
                "{form}"
            );
            assert_eq!(ran.code, Some(0), "{form}");
            assert_eq!(ran.racing(), ["racy"], "{form} {mode:?}: {:?}", ran.notes);
            for kernel in ["racy", "fine"] {
                assert_eq!(ran.checked(kernel), [true; 3], "{form} {mode:?} {kernel}");
            }
        }
    }
}

/// A function that is launched in steps keeps them, and what is missing is the program's affair.
#[test]
fn launches_in_steps_are_the_same_without_checks() {
    let program = Program::new();
    for (form, prints) in [
        ("launch", SUM),
        ("grid", SUM),
        ("grid-async", SUM),
        ("no-shape", "1\n"),
    ] {
        let mut alone = program.workdir.command(&program.program, &program.driver);
        let output = common::succeed(alone.arg(form));
        assert_eq!(text(&output.stdout), prints, "{form}");
        let ran = program.run(&[form], &Options::default(), "");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), prints), "{form}");
    }
}

/// How often each function of the driver is called, by the program and by us, per launch of a kernel that
/// was launched before, into a stream that is waited for after each launch.
#[test]
fn a_launch_costs_few_calls_of_the_driver_and_waits_for_none() {
    let program = Program::new();
    let ways =
        [Prove::On, Prove::Off].map(|prove| [Mode::Precise, Mode::Fast].map(|mode| (mode, prove)));
    for (mode, prove) in ways.into_iter().flatten() {
        let options = Options {
            mode,
            prove,
            ..Options::default()
        };
        let list = program.workdir.path("calls");
        let _ = std::fs::remove_file(&list);
        let calls = [("CUDARUN_SIM_CALLS", list.to_str().expect("a path"))];
        let ran = program.run_with(&["steady"], &options, &calls);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
        assert_eq!(ran.checked("fine"), [true; 110]);
        let listed = std::fs::read_to_string(&list).expect("a list of calls");
        let calls = listed
            .lines()
            .map(|line| line.split_once(' ').expect("a call"));
        let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
        let started = calls.skip_while(|(_, name)| *name != "cuProfilerStart");
        let program_thread = started.clone().next().expect("a call").0;
        let measured = started.take_while(|(_, name)| *name != "cuProfilerStop");
        for (thread, name) in measured.skip(1) {
            let of = match thread == program_thread {
                true => &mut theirs,
                false => &mut ours,
            };
            *of.entry(name).or_insert(0) += 1;
        }
        // Our own thread may have come first to look for launches that have ended.
        for (name, per_launch) in [("cuEventQuery", 1), ("cuEventElapsedTime_v2", 1)] {
            let both = [ours.remove(name), theirs.remove(name)];
            let calls: i32 = both.into_iter().flatten().sum();
            assert_eq!(calls, 100 * per_launch, "{name} {mode:?}");
        }
        // Where the program has waited for something, we look which context is the current one.
        let contexts = theirs.remove("cuCtxGetCurrent").unwrap_or(0);
        assert!((100..=200).contains(&contexts), "{contexts} {mode:?}");
        let expected = [
            ("cuEventRecord", 3),
            ("cuLaunchKernel", 1),
            ("cuMemcpyDtoHAsync_v2", 1),
            ("cuMemcpyHtoDAsync_v2", 1),
            ("cuStreamGetCaptureInfo_v2", 1),
            // The program's own.
            ("cuStreamSynchronize", 1),
        ];
        let expected = expected.map(|(name, per_launch)| (name, 100 * per_launch));
        let mut expected = BTreeMap::from(expected);
        // A launch that is proved has nothing to send and nothing to fetch.
        if prove == Prove::On {
            expected.retain(|name, _| !name.starts_with("cuMemcpy"));
        }
        assert_eq!(theirs, expected, "{mode:?} {prove:?}");
        let known = [
            "cuCtxGetCurrent",
            "cuCtxPushCurrent_v2",
            "cuCtxPopCurrent_v2",
        ];
        assert!(ours.keys().all(|name| known.contains(name)), "{ours:?}");
    }
}

#[test]
fn launches_that_nobody_waits_for_are_reported() {
    let program = Program::new();
    let ran = program.run(&["no-wait"], &Options::default(), "");
    assert_eq!(ran.racing(), ["racy"]);
    assert_eq!(ran.launches.len(), 6);
    let ran = program.run(&["_exit"], &Options::default(), "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), SUM));
    assert_eq!(ran.launches.len(), 6);
}

#[test]
fn threads_contexts_and_forks_are_kept_apart() {
    let program = Program::new();
    let options = Options::default();
    let ran = program.run(&["threads"], &options, "");
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.stdout, "3200\n".repeat(4));
    assert_eq!(ran.racing(), ["racy"]);
    assert_eq!(ran.checked("racy"), [true; 32]);
    assert_eq!(ran.checked("fine"), [true; 32]);
    let ran = program.run(&["contexts"], &options, "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), SUM));
    assert_eq!(ran.checked("racy"), [true; 6]);
    assert_eq!(ran.racing(), ["racy"]);
    // One launch more, between two calls of which only the second destroys the context.
    let ran = program.run(&["detach"], &options, "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), SUM));
    assert_eq!(ran.checked("racy"), [true; 7]);
    let failed = ran.launches.iter().filter(|of| of.error.is_some());
    assert_eq!(failed.count(), 0);
    let ran = program.run(&["fork"], &options, "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), SUM));
    assert_eq!(ran.launches.len(), 6);
}

#[test]
fn devices_are_kept_apart() {
    let program = Program::of("tests/c/devices.c");
    let two = [("CUDARUN_SIM_DEVICES", "2")];
    for form in ["switch", "threads", "library"] {
        for mode in [Mode::Precise, Mode::Fast] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let ran = program.run_with(&[form], &options, &two);
            let said = (ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(said, ("1280 1280\n", ""), "{form} {mode:?}");
            assert_eq!(ran.code, Some(0), "{form} {mode:?}");
            assert_eq!(ran.racing(), ["racy"], "{form} {mode:?}");
            for kernel in ["racy", "fine"] {
                assert_eq!(ran.checked(kernel), [true; 7], "{form} {mode:?} {kernel}");
            }
        }
    }
    let many = program.run_with(
        &["switch"],
        &Options::default(),
        &[("CUDARUN_SIM_DEVICES", "9")],
    );
    assert!(many.stderr.contains("not a number from 1 to 8"));
}

/// The size of the shadow is that of the context's own device, or of the part of it that is there, and where
/// it is shared the report says so.
#[test]
fn a_small_device_has_a_small_shadow() {
    let program = Program::of("tests/c/devices.c");
    let shadows = |memory| {
        let more = [
            ("CUDARUN_SIM_DEVICES", "2"),
            ("CUDARUN_SIM_MEMORY", memory),
            ("CUDARUN_SIM_MPS", "1"),
        ];
        let ran = program.run_with(&["switch"], &Options::default(), &more);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{memory}");
        assert_eq!(ran.checked("fine"), [true; 7], "{memory}");
        let noted = ran.notes.iter().filter(|note| note.contains("by MPS"));
        assert_eq!(noted.count(), 2, "once per context: {:?}", ran.notes);
        let mut sizes: Vec<u64> = ran.launches.iter().map(|of| of.shadow_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    // An eighth, and no more than fits: a power of two of cells of 40 bytes.
    for (memory, [small, large]) in [("512,64", [64, 512]), ("128,256", [128, 256])] {
        let fits = |bytes: &u64, mib: u64| *bytes <= mib << 17 && *bytes > mib << 16;
        let found = shadows(memory);
        assert_eq!(found.len(), 2, "{memory}: {found:?}");
        assert!(
            fits(&found[0], small) && fits(&found[1], large),
            "{found:?}"
        );
    }
    let alone = program.run_with(
        &["switch"],
        &Options::default(),
        &[("CUDARUN_SIM_DEVICES", "2")],
    );
    assert!(!alone.notes.iter().any(|note| note.contains("by MPS")));
}

/// A pointer that has gone astray meets nothing where there is nothing without us, and memory that the
/// program maps itself is its own.
#[test]
fn our_memory_lies_apart_from_the_programs() {
    let program = Program::new();
    let astray = |fail: &str| program.run(&["stray"], &Options::default(), fail);
    let ran = astray("");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "700\n"));
    // Where the driver cannot reserve addresses, the shadow is where the driver puts it.
    let none: Vec<String> = (1..200)
        .map(|n| format!("cuMemAddressReserve#{n}=801"))
        .collect();
    let ran = astray(&none.join(","));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "0\n"));
    assert_eq!(ran.checked("fine"), [true; 1]);
    for mode in [Mode::Precise, Mode::Fast] {
        let options = Options {
            mode,
            ..Options::default()
        };
        let ran = program.run(&["mapped"], &options, "");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), SUM), "{mode:?}");
        assert_eq!(ran.racing(), ["racy"], "{mode:?}");
        let made = |race: &Race| race.allocation.as_ref().map(|of| of.api.clone());
        let made: Vec<_> = ran.races.iter().filter_map(made).collect();
        assert!(
            !made.is_empty() && made.iter().all(|api| api == "cuMemMap"),
            "{made:?}"
        );
        let all: u64 = ran.launches.iter().map(|of| of.counters.outside).sum();
        assert_eq!(all, 0, "{mode:?}");
    }
    // No context keeps it, so it goes when its context goes.
    let list = program.workdir.path("mapped");
    let calls = [("CUDARUN_SIM_CALLS", list.to_str().expect("a path"))];
    let ran = program.run_with(&["contexts"], &Options::default(), &calls);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), SUM));
    let listed = std::fs::read_to_string(&list).expect("a list of calls");
    let count = |name: &str| listed.lines().filter(|line| line.ends_with(name)).count();
    let mapped = count(" cuMemMap");
    assert!(mapped >= 4, "two contexts: {mapped}");
    let gone = [" cuMemUnmap", " cuMemAddressFree", " cuMemRelease"].map(count);
    assert_eq!(gone, [mapped; 3]);
    // The program's own memory comes before the shadow's.
    let ran = program.run(&["mapped"], &Options::default(), "cuMemCreate#1=2");
    assert_eq!(ran.code, Some(1));
}

/// Cells take the addresses of one byte for different bytes, so the run is incomplete.
#[test]
fn memory_with_two_addresses_makes_the_run_incomplete() {
    let program = Program::new();
    let missed = |form: &str| {
        let ran = program.run(&[form], &Options::default(), "");
        assert_eq!((ran.code, ran.racing()), (Some(0), vec!["racy".to_owned()]));
        assert!(ran.launches.iter().all(|of| of.checked), "{form}");
        ran.missed
    };
    assert_eq!(
        missed("aliases"),
        [
            "from launch #1 (fine) on, memory was mapped at two addresses: races between accesses by different addresses of one byte are not found"
        ]
    );
    // The second mapping is removed before the first launch.
    assert_eq!(missed("no-aliases"), [""; 0]);
    // Each memory has one mapping.
    assert_eq!(missed("mapped"), [""; 0]);
}

/// Whatever of our own calls fails, the program computes what it computes, and says what it says.
#[test]
fn no_failure_of_ours_reaches_the_program() {
    let program = Program::new();
    // What the checker asks of the driver beside the program; each one fails once, then twice in a
    // row, then from the first time on.
    for (call, code) in [
        // The program's own is the second.
        ("cuStreamCreate", 2),
        ("cuMemHostAlloc", 2),
        ("cuMemHostGetDevicePointer_v2", 1),
        ("cuMemsetD8Async", 700),
        ("cuMemcpyHtoDAsync_v2", 700),
        ("cuMemcpyDtoHAsync_v2", 700),
        ("cuEventCreate", 2),
        ("cuEventRecord", 400),
        ("cuEventQuery", 700),
        ("cuEventElapsedTime_v2", 500),
        ("cuCtxPushCurrent_v2", 201),
        ("cuCtxGetDevice", 201),
        ("cuDeviceTotalMem_v2", 101),
        ("cuDeviceGetName", 101),
        ("cuFuncGetAttribute", 1),
        ("cuStreamGetCaptureInfo_v2", 401),
        ("cuThreadExchangeStreamCaptureMode", 1),
    ] {
        for times in [1..=1, 2..=3, 1..=200] {
            let all = times.filter(|&n| call != "cuStreamCreate" || n == 1);
            let fail: Vec<String> = all.map(|n| format!("{call}#{n}={code}")).collect();
            if fail.is_empty() {
                continue;
            }
            let ran = program.run(&["plain"], &Options::default(), &fail.join(","));
            let what = format!("{} {:?}\n{}", fail[0], ran.notes, ran.stderr);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), SUM), "{what}");
            assert!(ran.racing().iter().all(|kernel| kernel == "racy"), "{what}");
        }
    }
}

/// The program's own calls fail as without us.
#[test]
fn the_programs_own_failures_are_its_own() {
    let program = Program::new();
    for (fail, says) in [
        ("cuInit#1=100", "cuInit(0) = 100"),
        (
            "cuCtxCreate_v2#1=2",
            "cuCtxCreate_v2(&context, 0, device) = 2",
        ),
        ("cuLaunchKernel#2=719", "params, 0) = 719"),
        ("cuCtxSynchronize#1=700", "cuCtxSynchronize() = 700"),
        ("cuModuleGetFunction#1=500", "\"racy\") = 500"),
    ] {
        let ran = program.run(&["plain"], &Options::default(), fail);
        assert_eq!(ran.code, Some(1), "{fail}: {}", ran.stdout);
        assert!(ran.stdout.contains(says), "{fail}: {}", ran.stdout);
    }
}

/// A launch that may have fitted without checks.
#[test]
fn a_launch_that_is_too_large_with_checks_is_reported() {
    let program = Program::new();
    for (form, fail) in [
        ("cooperative", "cuLaunchCooperativeKernel#1=720"),
        ("plain", "cuLaunchKernel#1=701"),
    ] {
        let ran = program.run(&[form], &Options::default(), fail);
        assert_eq!(ran.code, Some(1), "{form}");
        let noted = |note: &&String| note.contains("refuses a launch of racy");
        assert_eq!(ran.notes.iter().filter(noted).count(), 1, "{:?}", ran.notes);
    }
    let ran = program.run(&["plain"], &Options::default(), "cuLaunchKernel#1=1");
    assert!(ran.notes.is_empty(), "{:?}", ran.notes);
}

/// Whichever allocation fails, of the checker's or the program's, once there are cells to give back.
#[test]
fn memory_that_the_program_needs_is_given_back() {
    let program = Program::new();
    let mut given = 0;
    // The first is ours, and two are the program's before its first launch.
    for n in 4..16 {
        let fail = format!("cuMemAlloc_v2#{n}=2");
        let ran = program.run(&["late"], &Options::default(), &fail);
        let (code, printed) = (ran.code, ran.stdout.as_str());
        assert_eq!((code, printed), (Some(0), SUM), "{fail} {:?}", ran.notes);
        given += u32::from(
            ran.notes
                .iter()
                .any(|note| note.contains("half of the shadow memory was given back")),
        );
    }
    assert_eq!(given, 1);
}

/// Where checks need so many registers that a large block does not fit any more, they get fewer.
#[test]
fn every_block_that_fits_without_checks_fits_with_them() {
    let program = Program::new();
    for form in ["plain", "library"] {
        for registers in ["64", "128", "255"] {
            let most = [("CUDARUN_SIM_REGISTERS", registers)];
            let ran = program.run_with(&[form, "large"], &Options::default(), &most);
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (Some(0), "20480\n"),
                "{form}"
            );
            assert_eq!(ran.racing(), ["racy"]);
            assert_eq!(ran.checked("fine"), [true; 3]);
        }
    }
}

/// A module that does not load with its checks runs as it is, and a program that has no memory left
/// gets some of the shadow's.
#[test]
fn what_cannot_be_checked_runs_as_it_is() {
    let program = Program::new();
    // A launch that is proved needs nothing of it.
    let options = Options {
        prove: Prove::Off,
        ..Options::default()
    };
    // With few registers, with as many as the compiler likes, and without optimisation.
    let fail = "cuModuleLoadDataEx#1=218,cuModuleLoadDataEx#2=218,cuModuleLoadDataEx#3=218";
    let ran = program.run(&["plain"], &options, fail);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), SUM));
    assert_eq!(ran.checked("fine"), [false; 3]);
    let why = ran.launches[0].why_not.as_deref().unwrap_or_default();
    assert!(why.contains("does not load with checks"), "{why}");
    // Without shadow memory nothing is checked, and everything runs: the first call is ours, for what
    // every launch needs, and the next two are the program's.
    let fail = |calls: std::ops::Range<u32>| {
        let all: Vec<String> = calls.map(|n| format!("cuMemAlloc_v2#{n}=2")).collect();
        program.run(&["plain"], &options, &all.join(","))
    };
    let create = (1..200).map(|n| format!("cuMemCreate#{n}=2,cuMemAlloc_v2#{}=2", n + 5));
    let create: Vec<String> = create.collect();
    let create = program.run(&["plain"], &options, &create.join(","));
    for (ran, says) in [
        (fail(1..2), "the context has no room for checks"),
        (fail(4..200), "no memory for race records"),
        (create, "no shadow memory"),
    ] {
        let why = ran
            .launches
            .iter()
            .find_map(|launch| launch.why_not.as_deref());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), SUM), "{says}");
        assert!(why.is_some_and(|why| why.contains(says)), "{says}: {why:?}");
        assert_eq!(ran.checked("fine"), [false; 3], "{says}");
    }
}

#[test]
fn kernels_of_graphs_are_checked_however_they_came_into_them() {
    let program = Program::of("tests/c/graphs.c");
    // How often `fine` and `racy` run; each time the former adds 3 to 128 words that were 1.
    for (form, fine, racy) in [
        ("set", 2, 2),
        ("set-v1", 2, 2),
        ("node", 2, 2),
        ("node-v1", 2, 2),
        ("extra", 2, 2),
        ("kern", 2, 2),
        ("exec-set", 2, 2),
        ("exec-set-v1", 2, 2),
        ("exec-node", 2, 2),
        ("with-params", 2, 2),
        ("get", 2, 1),
        ("destroyed", 2, 2),
        ("disabled", 2, 1),
        ("clone", 2, 2),
        ("find", 3, 1),
        ("child", 4, 4),
        ("child-node", 4, 4),
        ("child-exec", 2, 2),
        ("update", 2, 2),
        ("update-v1", 2, 2),
        // More nodes than there are places, one graph after the other.
        ("many", 140, 140),
        ("many-updates", 140, 140),
        ("again", 3, 3),
        ("captured", 3, 2),
        ("to-graph", 2, 2),
    ] {
        let sum = format!("{}\n", 128 + 128 * 3 * fine);
        for mode in [Mode::Precise, Mode::Fast] {
            let options = Options {
                mode,
                ..Options::default()
            };
            let ran = program.run(&[form], &options, "");
            let said = (ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(said, (sum.as_str(), ""), "{form}");
            assert_eq!(ran.code, Some(0), "{form}");
            assert_eq!(ran.racing(), ["racy"], "{form} {mode:?}: {:?}", ran.notes);
            assert_eq!(ran.checked("fine"), vec![true; fine], "{form} {mode:?}");
            assert_eq!(ran.checked("racy"), vec![true; racy], "{form} {mode:?}");
        }
    }
}
