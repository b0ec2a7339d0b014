//! How programs go wrong: always a verdict with a place, never a panic.

use crate::common::{fail, kernel, load};
use simt::{Launch, LaunchError, Limits, Schedule};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn illegal(body: &str) -> (u64, u32, bool, [u32; 3]) {
    match fail(64, body) {
        LaunchError::IllegalAddress {
            at,
            address,
            bytes,
            write,
            ..
        } => {
            assert_eq!(at.kernel, "k");
            assert!(at.line > 8, "{at}");
            (address, bytes, write, at.thread)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn null_and_stray_pointers() {
    assert_eq!(
        illegal("mov.u64 %d0, 0; ld.global.u32 %r0, [%d0]; ret;"),
        (0, 4, false, [0, 0, 0])
    );
    let (address, bytes, write, thread) = illegal(
        "setp.ne.u32 %p0, %t, 37; @%p0 ret; mov.u64 %d0, 4096; st.v2.u64 [%d0+16], {%d0, %d0}; ret;",
    );
    assert_eq!(
        (address, bytes, write, thread),
        (4112, 16, true, [37, 0, 0])
    );
}

#[test]
fn bounds_are_those_of_the_allocation() {
    // The output has 64 words; thread 63 goes one too far.
    let (_, bytes, write, thread) = illegal("st.global.u64 [%mine+8], %mine; ret;");
    assert_eq!((bytes, write, thread), (8, true, [63, 0, 0]));
    let (address, _, write, thread) = illegal("atom.add.u32 %r0, [%mine+512], 1; ret;");
    assert!(write && thread == [0, 0, 0] && address != 0);
}

#[test]
fn freed_memory_faults() {
    let mut rig = load(&kernel(
        "ld.global.u64 %d0, [%out]; ld.global.u64 %d0, [%d0]; ret;",
    ));
    let freed = rig.device.memory_mut().alloc(64).unwrap();
    let out = rig.device.memory_mut().alloc(8).unwrap();
    rig.device
        .memory_mut()
        .write(out, &freed.to_le_bytes())
        .unwrap();
    let launch = Launch::new([1; 3], [1; 3], out.to_le_bytes().to_vec());
    assert!(rig.device.launch(rig.module, "k", &launch).is_ok());
    rig.device.memory_mut().free(freed).unwrap();
    let error = rig.device.launch(rig.module, "k", &launch).unwrap_err();
    assert!(matches!(error, LaunchError::IllegalAddress { address, .. } if address == freed));
}

#[test]
fn shared_and_local_memory_have_bounds() {
    let (address, ..) = illegal(".shared .b32 x; mov.u32 %r0, x; ld.shared.u32 %r1, [%r0+4]; ret;");
    assert_eq!(address, 4);
    illegal(".local .b32 x[4]; mov.u64 %d0, x; st.local.u32 [%d0+16777216], %t; ret;");
    illegal("ld.shared::cluster.u32 %r1, [0x2000000]; ret;");
}

#[test]
fn misaligned_accesses() {
    let error = fail(1, "ld.global.u32 %r0, [%out+2]; ret;");
    assert!(
        matches!(error, LaunchError::Misaligned { bytes: 4, .. }),
        "{error}"
    );
    let error = fail(1, "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%out+8]; ret;");
    assert!(
        matches!(error, LaunchError::Misaligned { bytes: 16, .. }),
        "{error}"
    );
}

#[test]
fn traps_and_calls_of_nothing() {
    let error = fail(64, "setp.eq.u32 %p0, %t, 40; @%p0 trap; ret;");
    assert!(
        matches!(error, LaunchError::Trap { ref at } if at.thread == [40, 0, 0]),
        "{error}"
    );
    let error = fail(
        1,
        "proto: .callprototype _ (); mov.u64 %d0, 64; call %d0, (), proto; ret;",
    );
    assert!(
        matches!(
            error,
            LaunchError::InvalidProgramCounter { address: 64, .. }
        ),
        "{error}"
    );
}

#[test]
fn endless_recursion_and_endless_loops() {
    let text = format!(
        ".func f() {{ .local .b32 x[64]; call f, (); ret; }}\n{}",
        kernel("call f, (); ret;")
    );
    let error = load(&text).run(1, 1, 1).unwrap_err();
    assert!(
        matches!(error, LaunchError::StackOverflow { .. }),
        "{error}"
    );
    let mut rig = load(&kernel("loop: add.u32 %r0, %r0, 1; bra loop;"));
    let limits = [
        Limits {
            max_warp_instructions: Some(100_000),
            ..Limits::default()
        },
        Limits {
            timeout: Some(Duration::from_millis(50)),
            ..Limits::default()
        },
    ];
    for limits in limits {
        for schedule in [Schedule::RoundRobin, Schedule::Seeded(1)] {
            let launch = |params| Launch {
                limits,
                schedule,
                ..Launch::new([2, 1, 1], [64, 1, 1], params)
            };
            let error = rig.run_with(1, launch).unwrap_err();
            assert!(
                matches!(error, LaunchError::Timeout { ref running, .. } if !running.is_empty())
            );
        }
    }
}

#[test]
fn whoever_launched_it_may_end_it() {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let mut rig = load(&kernel(
        "mov.u32 %r0, %ctaid.x; setp.ne.u32 %p0, %r0, 0; loop: @%p0 bra loop; ret;",
    ));
    for schedule in [Schedule::RoundRobin, Schedule::Seeded(1)] {
        ASKED.store(0, Ordering::Relaxed);
        let launch = |params| Launch {
            limits: Limits {
                // The first CTA has ended by then.
                go_on: Some(|progress| {
                    assert_eq!(progress.ctas, 3);
                    ASKED.fetch_add(1, Ordering::Relaxed) < 5000
                }),
                ..Limits::default()
            },
            schedule,
            ..Launch::new([3, 1, 1], [32, 1, 1], params)
        };
        let error = rig.run_with(1, launch).unwrap_err();
        let LaunchError::Interrupted { progress, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((progress.done, progress.ctas), (1, 3));
        // It is asked before each turn and within it, and not once more after it has said no.
        assert_eq!(ASKED.load(Ordering::Relaxed), 5001);
        let text = error.to_string();
        assert!(text.contains("1 of its 3 blocks had ended"), "{text}");
    }
}

#[test]
fn unknown_instructions_fail_only_the_launch_that_would_run_them() {
    let text = format!(
        ".func bad() {{ .reg .b32 %r; frobnicate.b32 %r, 1; ret; }}
         .visible .entry other() {{ call bad, (); ret; }}\n{}",
        kernel("ret;")
    );
    let (module, _) = ptx::parse(&format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n{text}"
    ));
    let mut device = simt::Device::new(simt::DeviceConfig::default()).unwrap();
    let id = device.load(&module).unwrap();
    device
        .launch(id, "k", &Launch::new([1; 3], [1; 3], vec![0; 8]))
        .unwrap();
    let error = device
        .launch(id, "other", &Launch::new([1; 3], [1; 3], vec![]))
        .unwrap_err();
    match error {
        LaunchError::Unsupported { what, line, .. } => {
            assert_eq!((what.as_str(), line), ("frobnicate.b32", 4));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn impossible_launches_are_refused() {
    let mut rig = load(".visible .entry k(.param .u64 out) .maxntid 128 { ret; }");
    let mut run = |change: &dyn Fn(&mut Launch)| {
        rig.run_with(1, |params| {
            let mut launch = Launch::new([1; 3], [1; 3], params);
            change(&mut launch);
            launch
        })
    };
    assert!(run(&|_| {}).is_ok());
    assert!(matches!(
        run(&|l| l.grid[1] = 0),
        Err(LaunchError::InvalidConfiguration(_))
    ));
    assert!(matches!(
        run(&|l| l.grid[1] = 65536),
        Err(LaunchError::InvalidConfiguration(_))
    ));
    assert!(matches!(
        run(&|l| l.block = [1024, 2, 1]),
        Err(LaunchError::InvalidConfiguration(_))
    ));
    assert!(matches!(
        run(&|l| l.block = [129, 1, 1]),
        Err(LaunchError::OutOfResources(_))
    ));
    assert!(matches!(
        run(&|l| l.dynamic_shared = 300_000),
        Err(LaunchError::InvalidConfiguration(_))
    ));
    assert!(matches!(
        run(&|l| l.params.clear()),
        Err(LaunchError::InvalidConfiguration(_))
    ));
    assert!(matches!(
        run(&|l| l.cluster = [2, 1, 1]),
        Err(LaunchError::InvalidConfiguration(_))
    ));
}

#[test]
fn failed_assertions_name_their_source() {
    let text = format!(
        ".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
         .global .align 1 .b8 message[6] = {{120, 32, 61, 61, 32, 0}};
         .global .align 1 .b8 file[5] = {{97, 46, 99, 117}};
         {}",
        kernel(
            "{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
             mov.u64 %d0, message; cvta.global.u64 %d0, %d0; st.param.b64 [p0], %d0;
             mov.u64 %d1, file; cvta.global.u64 %d1, %d1; st.param.b64 [p1], %d1;
             st.param.b32 [p2], 17; st.param.b64 [p3], %d1; st.param.b64 [p4], 1;
             call.uni __assertfail, (p0, p1, p2, p3, p4); }
             ret;"
        )
    );
    let error = load(&text).run(1, 1, 1).unwrap_err();
    match error {
        LaunchError::Assert {
            message,
            file,
            line,
            function,
            ..
        } => {
            assert_eq!((message.as_str(), &*file, line), ("x == ", "a.cu", 17));
            assert_eq!(&*function, "a.cu");
        }
        other => panic!("{other}"),
    }
}
