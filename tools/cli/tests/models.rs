//! `--model` and `--as-gpu`, and what reports say of locks.

use crate::kernel::{run, run_as};

/// A counter under a lock by compare-and-swap at line 9 and an exchange, with a fence behind the
/// one and before the other.
fn counter(access: &str, enter: &str, leave: &str) -> String {
    format!(
        "take: \n\
         atom.relaxed.gpu.global.cas.b32 %v, [%lock], 0, 1;\n\
         setp.ne.u32 %p, %v, 0; @%p bra take;\n\
         {enter}\n\
         ld{access}.global.u32 %v, [%data]; add.u32 %v, %v, 1;\n\
         st{access}.global.u32 [%data], %v;\n\
         {leave}\n\
         atom.relaxed.gpu.global.exch.b32 %v, [%lock], 0;"
    )
}

const FENCE: &str = "fence.acq_rel.gpu;";

#[test]
fn a_race_under_a_lock_says_what_the_lock_lacks() {
    run(&counter("", FENCE, FENCE), &[]).ends(0, &["0 races"]);
    let enter = "no fence after the lock is taken at k.ptx:9";
    let leave = "no fence before the lock is released at k.ptx:15";
    let ran = run(&counter("", "", FENCE), &[]);
    ran.ends(
        66,
        &[
            "error[CR006]",
            enter,
            "put `__threadfence()` after the lock is taken at k.ptx:9",
        ],
    );
    assert!(!ran.text.contains(leave));
    let ran = run(&counter("", FENCE, ""), &[]);
    ran.ends(
        66,
        &["error[CR006]", leave, "second thread holds the lock at 0x"],
    );
    assert!(!ran.text.contains(enter));
    run(&counter("", "", ""), &[]).ends(66, &["error[CR006]", enter, leave]);
    let narrow = run(&counter("", "fence.acq_rel.cta;", FENCE), &[]);
    narrow.ends(
        66,
        &[
            "error[CR005]",
            "the fence after the lock is taken at k.ptx:9 is of block scope",
        ],
    );
    let lock = &narrow.json["races"][0]["accesses"][0]["locks"][0];
    assert_eq!(
        (&lock["exit"], &lock["released"]),
        (&"gpu".into(), &"k.ptx:15".into())
    );
    let cta = counter("", FENCE, FENCE).replace("relaxed.gpu", "relaxed.cta");
    run(&cta, &[]).ends(
        66,
        &[
            "error[CR005]",
            // One scope is the cause of the races of the lock's word and of those under the lock.
            "use device scope for the atomic at k.ptx:9, and the atomic at k.ptx:15",
            "the first thread holds the lock at 0x",
            "same cause: write at k.ptx:13 and read at k.ptx:12",
            "SUMMARY: cudarun-check: 1 race (1 error)",
        ],
    );
}

#[test]
fn the_model_says_what_a_strong_conflict_is() {
    let strong = "CR011]: inter-block unordered strong conflict on global memory";
    let body = counter(".volatile", "", "");
    run(&body, &[]).ends(0, &["warning[", strong, "both threads hold the same lock"]);
    let fails = run(&body, &["--fail-on", "warning"]);
    fails.ends(66, &["warning["]);
    let ptx = run(&body, &["--model", "ptx", "--fail-on", "warning"]);
    ptx.ends(0, &["SUMMARY: cudarun-check: 0 races\n"]);
    run(&body, &["--model", "scoped"]).ends(66, &["error[", strong]);
    // A thread that observes need not acquire, but a critical section has both fences.
    let scoped = |access: &str| run(&counter(access, "", FENCE), &["--model", "scoped"]);
    scoped("").ends(0, &["0 races"]);
    let enter = "put `__threadfence()` after the lock is taken at k.ptx:9";
    scoped(".volatile").ends(66, &["error[", strong, enter]);
    let both = counter(".volatile", FENCE, FENCE);
    run(&both, &["--model", "scoped"]).ends(0, &["0 races"]);
}

#[test]
fn a_journal_has_no_locks_but_the_text_shows_them() {
    let as_gpu = |enter: &str, leave: &str| {
        let body = counter(".volatile", enter, leave);
        run(&body, &["--as-gpu"])
    };
    let enter = "after the lock is taken at line 9 of the PTX";
    let leave = "before the lock is released at line 15 of the PTX";
    let both = format!("help: put `__threadfence()` {enter}, and {leave}\n");
    as_gpu("", "").ends(0, &["warning[CR011]", &both]);
    as_gpu(FENCE, FENCE).ends(0, &["0 races"]);
    // Each block takes a lock of its own.
    let apart = counter(".volatile", FENCE, FENCE);
    let apart = format!("mad.wide.u32 %lock, %n, 4, %lock;\n{apart}");
    run(&apart, &["--as-gpu"]).ends(0, &["help: hold the same lock around both accesses\n"]);
}

#[test]
fn an_order_of_locks_alone_is_a_warning_that_names_the_locks() {
    let take = "atom.acquire.gpu.global.cas.b32 %v, [%lock], 0, 1;\nsetp.ne.u32 %p, %v, 0;";
    let give = "st.release.gpu.global.u32 [%lock], 0;";
    let body = format!(
        "setp.eq.u32 %p, %n, 1; @%p bra wait;\n\
         take: {take} @%p bra take;\n\
         st.global.u32 [%data], 1;\n\
         {give}\n\
         st.relaxed.gpu.global.u32 [%data+4], 1; ret;\n\
         wait: ld.relaxed.gpu.global.u32 %v, [%data+4]; setp.eq.u32 %p, %v, 0; @%p bra wait;\n\
         again: {take} @%p bra again;\n\
         {give}\n\
         ld.global.u32 %v, [%data];"
    );
    let words = [
        "warning[CR012]: inter-block lock-order-dependent accesses to global memory",
        "the first thread holds the lock taken at k.ptx:9, the second no lock",
        "the first thread holds the lock at 0x",
        "around the second access too",
    ];
    let ran = run(&body, &[]);
    ran.ends(0, &words);
    let race = &ran.json["races"][0];
    assert_eq!(
        (&race["level"], &race["certainty"]),
        (&"warning".into(), &"possible".into())
    );
    assert_eq!(race["accesses"][1]["locks"], serde_json::json!([]));
    run(&body, &["--fail-on", "warning"]).ends(66, &words);
    run(&body, &["--model", "ptx"]).ends(0, &["0 races"]);
}

#[test]
fn an_order_of_fences_alone_is_a_warning() {
    // The last block to count adds up; block 1 starts late, so its fence is the last in every schedule.
    let last = |behind: &str, before: &str| {
        format!(
            "mul.lo.u32 %v, %n, 2000;\n\
             late: setp.eq.u32 %p, %v, 0; sub.u32 %v, %v, 1; @!%p bra late;\n\
             setp.eq.u32 %p, %n, 0; @%p st.global.u32 [%data], 1;\n\
             {before}\n\
             atom.global.add.u32 %v, [%lock], 1;\n\
             {behind}\n\
             setp.eq.u32 %p, %v, 0; @%p ret;\n\
             ld.global.u32 %v, [%data];"
        )
    };
    let fence = "membar.gl;";
    let words = [
        "[CR012]: inter-block fence-order-dependent accesses to global memory: a write and a read",
        "ordered only by the order of `fence.sc` (`__threadfence()`) in this run",
    ];
    let ran = run(&last("", fence), &[]);
    ran.ends(0, &["warning", words[0], words[1], "has not acquired"]);
    assert_eq!(ran.json["races"][0]["certainty"], "possible");
    run(&last("", fence), &["--mode", "precise", "--as-gpu"]).ends(0, &words);
    run(&last("", fence), &["--model", "ptx"]).ends(0, &["0 races"]);
    // There a thread that observes a release need not acquire, but it has to be one.
    run(&last("", fence), &["--model", "scoped"]).ends(0, &["0 races"]);
    let ran = run(&last(fence, ""), &["--model", "scoped"]);
    ran.ends(66, &["error", words[0], words[1]]);
    run(&last(fence, ""), &["--model", "ptx"]).ends(0, &["0 races"]);
    for options in [&[][..], &["--model", "scoped"], &["--as-gpu"]] {
        run(&last(fence, fence), options).ends(0, &["0 races"]);
    }
}

#[test]
fn a_journal_tells_a_missing_acquire_from_a_handover() {
    let handover = |load: &str| {
        format!(
            "setp.ne.u32 %p, %n, 0; @%p bra wait;\n\
             st.global.u32 [%data], 7; st.release.gpu.global.u32 [%lock], 1; bra done;\n\
             wait: {load}.gpu.global.u32 %v, [%lock]; setp.eq.u32 %p, %v, 0; @%p bra wait;\n\
             ld.global.u32 %v, [%data];\ndone:"
        )
    };
    run(&handover("ld.acquire"), &["--as-gpu"]).ends(0, &["0 races"]);
    let racy = run(&handover("ld.relaxed"), &["--as-gpu"]);
    racy.ends(66, &["CR006", "acquire"]);
    assert_eq!(racy.json["summary"]["races"], 1);
}

#[test]
fn lockstep_orders_two_instructions_of_a_warp_and_nothing_else() {
    let by_lane_0 = "mov.u32 %n, %tid.x; setp.eq.u32 %p, %n, 0;\n@%p st.global.u32 [%data], 1;";
    let two = format!("{by_lane_0}\nld.global.u32 %v, [%data];");
    let one = "mov.u32 %n, %tid.x;\nst.global.u32 [%data], %n;";
    let (warp, warps) = ("--grid 1 --block 32", "--grid 1 --block 64");
    for (launch, body, without, with) in [
        (warp, two.as_str(), (66, "error[CR"), (0, "warning[CR")),
        (warp, one, (66, "error[CR"), (66, "error[CR")),
        (warps, two.as_str(), (66, "error[CR"), (66, "error[CR")),
    ] {
        for mode in ["precise", "fast"] {
            let mode = ["--mode", mode];
            run_as(launch, body, &mode).ends(without.0, &[without.1]);
            let ran = run_as(launch, body, &[&mode[..], &["--assume-lockstep"]].concat());
            ran.ends(with.0, &[with.1]);
            assert_eq!(
                ran.text.contains("by the lockstep"),
                with.0 == 0,
                "{}",
                ran.text
            );
        }
    }
}

#[test]
fn the_report_says_what_has_judged_a_kernels_launches() {
    let (plain, fenced) = ("st.global.u32 [%data], 1;", "fence.acq_rel.gpu;");
    let fenced = format!("{fenced} {plain}");
    let read = "ld.global.u32 %v, [%data];";
    for (body, options, judge) in [
        (plain, &[][..], "happens_before"),
        (&*fenced, &[], "happens_before"),
        (plain, &["--as-gpu"], "cells"),
        (&fenced, &["--as-gpu"], "journal"),
        (&fenced, &["--mode", "fast"], "cells"),
        (plain, &["--mode", "full"], "happens_before"),
        (read, &[], "proof"),
        (read, &["--as-gpu"], "proof"),
        (read, &["--prove", "off"], "happens_before"),
        (read, &["--mode", "full"], "happens_before"),
        (read, &["--mode", "full", "--prove", "on"], "proof"),
    ] {
        let ran = run(body, options);
        let judges = &ran.json["coverage"]["kernels"][0]["judged_by"];
        for one in ["happens_before", "journal", "cells", "proof"] {
            let expected = u64::from(one == judge);
            assert_eq!(judges[one], expected, "{body} {options:?}: {judges}");
        }
    }
}

#[test]
fn coverage_says_where_strong_conflicts_and_predictive_races_were_not_judged() {
    let all = "unordered strong conflicts (CR011) and lock-order-dependent accesses (CR012) not judged in 1 launch";
    let locks = "order by locks (CR012, CR011 under locks) not judged in 1 launch";
    let versions = "data read under versions that `atom.cas` or `atom.exch` writes (CR011) not judged in 1 launch";
    let flag = "st.volatile.global.u32 [%data], 1;";
    let lock = counter(".volatile", FENCE, FENCE);
    let plain = "st.global.u32 [%data], 1;";
    // Block 0 writes under an odd version, and block 1 reads until two looks agree.
    let sequence = |odd: &str| {
        format!(
            ".reg .b32 %a, %b; setp.ne.u32 %p, %n, 0; @%p bra read;\n\
             {odd}; membar.gl; st.volatile.global.u32 [%data], 7;\n\
             membar.gl; st.volatile.global.u32 [%lock], 2; ret;\n\
             read: ld.volatile.global.u32 %a, [%lock]; membar.gl;\n\
             ld.volatile.global.u32 %v, [%data]; membar.gl;\n\
             ld.volatile.global.u32 %b, [%lock]; setp.ne.u32 %p, %a, %b; @%p bra read;"
        )
    };
    let stored = sequence("st.volatile.global.u32 [%lock], 1");
    let swapped = sequence("atom.global.cas.b32 %v, [%lock], 0, 1");
    for (body, options, wanted) in [
        (flag, &["--mode", "fast"][..], [1, 0, 0]),
        (&lock, &["--mode", "fast"], [1, 0, 0]),
        (&lock, &["--as-gpu"], [0, 1, 0]),
        (&stored, &["--as-gpu"], [0, 0, 0]),
        (&swapped, &["--as-gpu"], [0, 1, 1]),
        (&swapped, &[], [0, 0, 0]),
        // Without an order to follow, a kernel keeps no journal.
        (flag, &["--as-gpu"], [1, 0, 0]),
        (flag, &[], [0, 0, 0]),
        (&lock, &[], [0, 0, 0]),
        (&lock, &["--mode", "full"], [0, 0, 0]),
        (&lock, &["--mode", "fast", "--model", "ptx"], [0, 0, 0]),
        (plain, &["--mode", "fast"], [0, 0, 0]),
    ] {
        let ran = run(body, options);
        let said = [all, locks, versions].map(|what| u64::from(ran.text.contains(what)));
        assert_eq!(said, wanted, "{body} {options:?}: {}", ran.text);
        let counted = &ran.json["coverage"]["unjudged"];
        let counted = ["everything", "locks", "versions"].map(|what| counted[what].as_u64());
        assert_eq!(counted, said.map(Some), "{options:?}");
    }
}

#[test]
fn who_asks_for_the_scoped_model_learns_where_it_was_not_judged() {
    let flag = "st.volatile.global.u32 [%data], 1;";
    let why = "unordered strong conflicts (CR011) and lock-order-dependent accesses (CR012) not judged in 1 launch";
    let scoped = ["--model", "scoped"];
    run(flag, &scoped).ends(66, &["error[CR011]"]);
    for mode in [&["--as-gpu"][..], &["--mode", "fast"]] {
        run(flag, mode).ends(0, &["0 races", why]);
        let ran = run(flag, &[mode, &scoped].concat());
        ran.ends(75, &[&format!("incomplete: --model scoped: {why}")]);
        let ran = run(flag, &[mode, &["--strict"]].concat());
        ran.ends(75, &[&format!("incomplete: --strict: {why}")]);
    }
}

#[test]
fn fast_mode_says_that_it_does_not_know_sizes_and_read_only_data() {
    let sizes = ".reg .b64 %w; mov.u64 %w, 1; setp.eq.u32 %p, %n, 0; @%p bra wide;\n\
                 ld.volatile.global.u32 %v, [%data]; ret; wide: st.volatile.global.u64 [%data], %w;";
    let read_only = "st.global.u32 [%data], 1; ld.global.nc.u32 %v, [%data];";
    for (body, grid, rule, said) in [
        (
            sizes,
            2,
            "error[CR008]",
            "strong accesses that overlap in part (CR008)",
        ),
        (
            read_only,
            1,
            "error[CR009]",
            "writes to read-only data (CR009)",
        ),
    ] {
        let grid = format!("--grid {grid} --block 1");
        for mode in [&[][..], &["--as-gpu"]] {
            run_as(&grid, body, mode).ends(66, &[rule]);
        }
        let said = format!("{said} not judged in 1 launch");
        run_as(&grid, body, &["--mode", "fast"]).ends(0, &["0 races", &said]);
        let strict = ["--mode", "fast", "--strict"];
        run_as(&grid, body, &strict).ends(75, &[&said]);
    }
    // Arguments prove that nothing is written that is read there.
    let apart = "st.global.u32 [%data], 1; ld.global.nc.u32 %v, [%lock];";
    let ran = run(apart, &["--mode", "fast"]);
    assert!(!ran.text.contains("CR009"), "{}", ran.text);
}

#[test]
fn what_fast_mode_leaves_open_precise_mode_decides() {
    let as_second = "setp.eq.u32 %p, %n, 1; @%p bra reader;";
    // The reader does not acquire, which this model does not ask for.
    let handover = format!(
        "{as_second} st.global.u32 [%data], 7; fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%lock], 1; ret;\n\
         reader: ld.relaxed.gpu.global.u32 %v, [%lock]; setp.eq.u32 %p, %v, 0; @%p bra reader;\n\
         ld.global.u32 %v, [%data];"
    );
    let narrow = format!(
        "{as_second} st.relaxed.gpu.global.u32 [%data], 1; ret;\n\
         reader: ld.relaxed.cluster.global.u32 %v, [%data];"
    );
    let help = "help: run the program with `--device sim --mode precise`, which decides: the kernel has operations that may order the two accesses";
    for (body, model, code, said) in [
        (handover, "scoped", 0, "0 races"),
        (narrow, "ptx", 66, "error[CR005]"),
    ] {
        let fast = ["--model", model, "--mode", "fast"];
        let unjudged = if model == "scoped" { 75 } else { 0 };
        run(&body, &fast).ends(unjudged, &["possible", "not decided", help]);
        let decided = ["--model", model, "--device", "sim", "--mode", "precise"];
        run(&body, &decided).ends(code, &[said]);
    }
}
