//! Launches that nobody can end: what waits for what, in every mode.

use crate::kernel::run_as;

/// Every way to judge a launch on the simulated device.
const MODES: [&[&str]; 5] = [
    &[],
    &["--mode", "fast"],
    &["--as-gpu"],
    &["--sim-threads", "2"],
    &["--schedules", "3"],
];

#[test]
fn a_deadlock_is_an_error_that_says_who_waits_where() {
    let halves = "mov.u32 %n, %tid.x; setp.lt.u32 %p, %n, 32; @%p bra low;\n\
                  bar.sync 1; ret;\nlow:\nbar.sync 2;";
    for mode in ["precise", "fast"] {
        let ran = run_as("--grid 1 --block 64", halves, &["--mode", mode]);
        let first = "lanes 0xffffffff of warp 0 wait for barrier 2 in k at ptx line 11";
        let second = "lanes 0xffffffff of warp 1 wait for barrier 1 in k at ptx line 9";
        let help = "help: let all threads that a barrier waits for come to it";
        let summary = "0 races, 1 deadlock";
        ran.ends(
            66,
            &["error[CR007]: a launch of k", first, second, help, summary],
        );
        assert_eq!(ran.json["failures"][0]["deadlock"], true);
        assert_eq!(ran.json["summary"]["outcome"], "races");
        let one = halves.replace("bar.sync 2", "bar.sync 1");
        run_as("--grid 1 --block 64", &one, &["--mode", mode]).ends(0, &["0 races"]);
    }
}

#[test]
fn a_loop_without_end_needs_memory_to_look_at() {
    let body = "spin: bra spin;";
    run_as("--grid 1 --block 32", body, &[])
        .ends(66, &["deadlock", "help: let the loop look at memory"]);
    let body = "spin: ld.volatile.global.u32 %v, [%lock]; setp.ne.u32 %p, %v, 0; @%p bra spin;";
    run_as("--grid 1 --block 32", body, &[]).ends(0, &["0 races"]);
}

#[test]
fn a_mask_may_name_lanes_that_have_exited_and_no_others_that_never_come() {
    let low = |others: &str| {
        format!(
            "mov.u32 %n, %tid.x; setp.lt.u32 %p, %n, 16; @%p bra low;\n{others}\nlow:\n\
             shfl.sync.bfly.b32 %v, %n, 1, 31, -1;\nbar.sync 0;"
        )
    };
    let warp = "--grid 1 --block 32";
    run_as(warp, &low("ret;"), &[]).ends(0, &["0 errors"]);
    let ran = run_as(warp, &low("bar.sync 0; ret;"), &[]);
    let low = "lanes 0x0000ffff of warp 0 wait for the other lanes of shfl.sync.bfly";
    ran.ends(
        66,
        &[
            "error[CR007]",
            low,
            "lanes 0xffff0000 of warp 0 wait for barrier 0",
        ],
    );
}

#[test]
fn a_spin_that_nobody_ends_is_a_deadlock_in_every_mode() {
    // Block 1 is to set the flag and does not; block 0 waits at a barrier for the thread that polls.
    let body = "setp.eq.u32 %p, %n, 1; @%p bra done; mov.u32 %n, %tid.x; setp.ne.u32 %p, %n, 0; @%p bra meet;\n\
                spin: ld.acquire.gpu.global.u32 %v, [%lock+4];\nsetp.eq.u32 %p, %v, 0; @%p bra spin;\n\
                meet: bar.sync 0;\ndone:";
    for mode in MODES {
        let ran = run_as("--grid 2 --block 64", body, mode);
        ran.ends(
            66,
            &[
                "error[CR007]: a launch of k",
                "ptx line 9: thread (0,0,0) of block (0,0,0) is waiting for 4 bytes of global memory to change (now 0x0)",
                "offset 4 in allocation #2 of 8 bytes, made by --arg 1",
                "63 threads of block (0,0,0) are waiting at `__syncthreads()`, to which 63 of 64 threads have come",
                "note: block (1,0,0) has exited",
                "help: no thread that is left writes there",
                "deadlock",
            ],
        );
        let failure = &ran.json["failures"][0];
        assert_eq!(failure["deadlock"], true);
        let stuck = &failure["stuck"];
        assert_eq!(stuck["exited_blocks"], 1, "{stuck}");
        let kinds: Vec<_> = stuck["waits"].as_array().unwrap().iter().collect();
        let memory = kinds.iter().find(|wait| wait["kind"] == "memory").unwrap();
        assert_eq!(memory["value"], "0x0", "{memory}");
        assert_eq!(memory["address"]["allocation"]["offset"], 4, "{memory}");
        assert!(
            kinds.iter().any(|wait| wait["kind"] == "barrier"),
            "{stuck}"
        );
    }
}

#[test]
fn many_threads_that_poll_are_proved_to_be_stuck_whatever_checks_them() {
    // 256 threads take a lock in turn, and the first one keeps it.
    let body = "take: atom.acquire.gpu.global.cas.b32 %v, [%lock], 0, 1;\nsetp.ne.u32 %p, %v, 0; @%p bra take;\n\
                ld.global.u32 %v, [%data]; add.u32 %v, %v, 1; st.global.u32 [%data], %v;";
    for mode in MODES {
        let ran = run_as("--grid 4 --block 64", body, mode);
        ran.ends(
            66,
            &["waiting for 4 bytes of global memory to change (now 0x1)"],
        );
        assert_eq!(
            ran.json["failures"][0]["stuck"]["waits"][0]["kind"],
            "memory"
        );
    }
}

#[test]
fn an_mbarrier_that_is_polled_for_ever_is_a_deadlock() {
    let body = ".shared .align 8 .b64 bar; mov.u32 %n, %tid.x; setp.ne.u32 %p, %n, 0; @%p bra met;\n\
                mbarrier.init.shared.b64 [bar], 1;\n.reg .b64 %state;\n\
                mbarrier.arrive.expect_tx.shared.b64 %state, [bar], 64;\n\
                met: bar.sync 0;\nspin: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;\n@!%p bra spin;";
    for mode in MODES {
        let ran = run_as("--grid 1 --block 64", body, mode);
        let lacks = "waiting for a phase of the mbarrier at offset 0x0 of shared memory to end, which lacks 64 bytes";
        ran.ends(66, &["deadlock", lacks, "help: let as many threads arrive"]);
    }
}

#[test]
fn a_spin_that_ends_is_no_deadlock_in_any_mode() {
    // Block 1 works for long before it sets the flag.
    let body = "setp.eq.u32 %p, %n, 1; @%p bra work;\n\
                spin: ld.acquire.gpu.global.u32 %v, [%lock]; setp.eq.u32 %p, %v, 0; @%p bra spin; bra done;\n\
                work: mov.u32 %v, 0; more: add.u32 %v, %v, 1; setp.lt.u32 %p, %v, 400000; @%p bra more;\n\
                st.release.gpu.global.u32 [%lock], 1;\ndone:";
    for mode in MODES {
        let ran = run_as("--grid 2 --block 32", body, mode);
        ran.ends(0, &["0 races"]);
    }
}

#[test]
fn threads_that_pass_by_a_barrier_are_an_error() {
    let body = "mov.u32 %n, %tid.x; setp.ge.u32 %p, %n, 40; @%p bra behind;\nbar.sync 0;\nbehind:\n\
                mad.wide.u32 %data, %n, 0, %data; ld.global.u32 %v, [%data];";
    let ran = run_as("--grid 1 --block 64", body, &[]);
    ran.ends(
        66,
        &["error[CR007]: synchronisation error: threads pass by a barrier"],
    );
    assert_eq!(ran.json["races"][0]["kind"], "skipped-barrier");
    for mode in [["--mode", "fast"].as_slice(), &["--as-gpu"]] {
        let ran = run_as("--grid 1 --block 64", body, mode);
        ran.ends(0, &["misuse of barriers (CR007) not judged in 1 launch"]);
        assert_eq!(ran.json["coverage"]["unjudged"]["barriers"], 1);
    }
    // One that returns early is left alone by devices.
    let early = body.replace("bra behind", "ret");
    let ran = run_as("--grid 1 --block 64", &early, &[]);
    let waited =
        "thread (0,0,0) block (0,0,0) waited here, and other threads of the block never came";
    ran.ends(0, &["warning[CR007]", waited]);
}

#[test]
fn what_fast_mode_does_not_know_of_copies_is_counted() {
    // The copy may still run when the word is read.
    let body = ".shared .align 4 .b32 word; mov.u32 %n, word;\n\
                cp.async.ca.shared.global [%n], [%data], 4;\nld.shared.u32 %v, [word];\n\
                cp.async.wait_all;";
    let ran = run_as("--grid 1 --block 1", body, &[]);
    ran.ends(66, &["error[CR010]"]);
    let ran = run_as("--grid 1 --block 1", body, &["--mode", "fast"]);
    let said = "waits for asynchronous copies (CR010) not judged in 1 launch";
    ran.ends(0, &["0 races", said]);
    assert_eq!(ran.json["coverage"]["unjudged"]["copies"], 1);
    let ran = run_as("--grid 1 --block 1", body, &["--mode", "fast", "--strict"]);
    let because =
        "incomplete: --strict: waits for asynchronous copies (CR010) not judged in 1 launch";
    ran.ends(75, &[because]);
}
