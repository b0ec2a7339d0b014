//! Lanes that part, meet again, and wait for each other.

use crate::common::{kernel, load, run};
use simt::{Launch, Limits, Schedule};

#[test]
fn lanes_meet_behind_a_branch() {
    let out = run(
        32,
        "setp.lt.u32 %p0, %t, 10;
         @%p0 bra low;
         activemask.b32 %r0;
         bra join;
         low: activemask.b32 %r0;
         join: activemask.b32 %r1;
         mov.b64 %d0, {%r0, %r1};
         st.global.u64 [%mine], %d0;
         ret;",
    );
    for (lane, &word) in out.iter().enumerate() {
        let mask = if lane < 10 { 0x3ff } else { 0xffff_fc00u64 };
        assert_eq!(word, mask | 0xffff_ffff << 32, "lane {lane}");
    }
}

#[test]
fn loops_of_different_length() {
    let out = run(
        32,
        "mov.u32 %r0, 0; mov.u32 %r1, 0;
         loop: setp.ge.u32 %p0, %r0, %t;
         @%p0 bra done;
         add.u32 %r1, %r1, %r0; add.u32 %r0, %r0, 1;
         bra loop;
         done: activemask.b32 %r2; setp.ne.u32 %p1, %r2, -1; @%p1 trap;
         cvt.u64.u32 %d0, %r1; st.global.u64 [%mine], %d0; ret;",
    );
    assert_eq!(
        out,
        (0..32u64)
            .map(|n| n * n.saturating_sub(1) / 2)
            .collect::<Vec<_>>()
    );
}

/// Every lane takes a lock that the others spin for.
const LOCK: &str = "
    add.u64 %d1, %out, 256;
    spin: atom.global.cas.b32 %r0, [%out], 0, 1;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra spin;
    ld.global.u64 %d0, [%d1]; add.u64 %d0, %d0, 1; st.global.u64 [%d1], %d0;
    membar.gl;
    atom.global.exch.b32 %r1, [%out], 0;
    ret;";

#[test]
fn a_lock_between_lanes_is_released() {
    let mut rig = load(&kernel(LOCK));
    assert_eq!(rig.run(1, 32, 64).unwrap()[32], 32);
    assert_eq!(rig.run(7, 96, 64).unwrap()[32], 7 * 96);
    for seed in 0..4 {
        let (out, _) = rig
            .run_with(64, |params| Launch {
                schedule: Schedule::Seeded(seed),
                ..Launch::new([3, 1, 1], [64, 1, 1], params)
            })
            .unwrap();
        assert_eq!(out[32], 192);
    }
}

#[test]
fn a_branch_inside_the_spin_loop_does_not_starve_the_holder() {
    let out = run(
        32,
        "spin: and.b32 %r2, %t, 1; setp.eq.u32 %p1, %r2, 0;
         @%p1 bra even; add.u32 %r3, %r3, 1;
         even: atom.global.cas.b32 %r0, [%out], 0, 1;
         setp.ne.u32 %p0, %r0, 0;
         @%p0 bra spin;
         atom.global.add.u32 %r4, [%out+4], 1;
         atom.global.exch.b32 %r1, [%out], 0;
         ret;",
    );
    assert_eq!(out[0], 32 << 32);
}

#[test]
fn ctas_that_wait_for_each_other() {
    let mut rig = load(&kernel(
        "atom.global.add.u32 %r0, [%out], 1;
         wait: ld.volatile.global.u32 %r1, [%out];
         setp.lt.u32 %p0, %r1, 200;
         @%p0 bra wait; ret;",
    ));
    assert_eq!(rig.run(200, 1, 1).unwrap()[0], 200);
    let launch = |params| Launch {
        schedule: Schedule::Seeded(5),
        limits: Limits {
            max_warp_instructions: Some(10_000_000),
            timeout: None,
            ..Limits::default()
        },
        ..Launch::new([200, 1, 1], [1, 1, 1], params)
    };
    assert_eq!(rig.run_with(1, launch).unwrap().0[0], 200);
}

#[test]
fn shuffles_wait_for_all_members() {
    // The odd lanes come later, from another path; lane 31 has left for good.
    let out = run(
        32,
        "setp.eq.u32 %p0, %t, 31; @%p0 ret;
         and.b32 %r0, %t, 1; setp.eq.u32 %p1, %r0, 0; @%p1 bra meet;
         mov.u32 %r1, 100; again: sub.u32 %r1, %r1, 1; setp.ne.u32 %p2, %r1, 0; @%p2 bra again;
         meet: shfl.sync.bfly.b32 %r2|%p3, %t, 1, 0x1f, -1;
         cvt.u64.u32 %d0, %r2; st.global.u64 [%mine], %d0; ret;",
    );
    let want: Vec<u64> = (0..30).map(|lane| lane ^ 1).collect();
    assert_eq!(out[..30], want);
}

#[test]
fn warp_barriers_join_lanes_from_different_places() {
    let out = run(
        32,
        "setp.lt.u32 %p0, %t, 16; @%p0 bra writer;
         bar.warp.sync 0xffffffff;
         ld.global.u64 %d0, [%mine+-128]; add.u64 %d0, %d0, 1; st.global.u64 [%mine], %d0; ret;
         writer: cvt.u64.u32 %d0, %t; st.global.u64 [%mine], %d0;
         bar.warp.sync 0xffffffff; ret;",
    );
    assert_eq!(out[16..], (1..17).collect::<Vec<u64>>());
}

#[test]
fn indexed_branches_part_the_lanes() {
    let out = run(
        8,
        "list: .branchtargets a, b, c;
         rem.u32 %r0, %t, 3;
         brx.idx %r0, list;
         a: mov.u64 %d0, 10; bra end;
         b: mov.u64 %d0, 20; bra end;
         c: mov.u64 %d0, 30;
         end: st.global.u64 [%mine], %d0; ret;",
    );
    assert_eq!(out, [10, 20, 30, 10, 20, 30, 10, 20]);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    // Which thread wrote last depends on the schedule.
    let body = "st.global.u32 [%out], %g; atom.global.add.u32 %r0, [%out+8], 1;
                cvt.u64.u32 %d0, %r0; st.global.u64 [%mine+16], %d0; ret;";
    let mut rig = load(&kernel(body));
    let mut run = |seed| {
        let launch = |params| Launch {
            schedule: Schedule::Seeded(seed),
            ..Launch::new([4, 1, 1], [64, 1, 1], params)
        };
        rig.run_with(258, launch).unwrap()
    };
    let runs: Vec<_> = (0..8).map(&mut run).collect();
    assert_eq!(run(3), runs[3]);
    assert!(
        runs.iter().any(|run| run.0 != runs[0].0),
        "all seeds gave the same order"
    );
}

/// One warp counts while the lanes of another one look for the end of that now and then.
#[test]
fn whoever_sleeps_leaves_out_turns() {
    let polls = |nanoseconds: [u32; 2]| {
        let [even, odd] = nanoseconds;
        let text = format!(
            "mov.u32 %r0, 0;
             setp.ge.u32 %p0, %t, 32;
             @%p0 bra other;
             count: add.u32 %r0, %r0, 1; setp.lt.u32 %p1, %r0, 100000;
             @%p1 bra count;
             st.volatile.global.u32 [%out], 1;
             ret;
             other: and.b32 %r2, %t, 1; setp.eq.u32 %p2, %r2, 0; selp.u32 %r2, {even}, {odd}, %p2;
             wait: add.u32 %r0, %r0, 1; nanosleep.u32 %r2;
             ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0;
             @%p1 bra wait;
             cvt.u64.u32 %d0, %r0; st.global.u64 [%mine], %d0; ret;"
        );
        run(64, &text)[63]
    };
    // The count takes 37 turns.
    assert!(polls([0, 0]) > 30);
    assert_eq!(polls([6400, 6400]), 1);
    // Lanes that sleep together wake together.
    assert_eq!(polls([0, 6400]), 1);
    assert_eq!(polls([0, u32::MAX]), 1);
}

#[test]
fn lanes_that_leave_a_function_earlier_wait_for_the_others() {
    let text = format!(
        ".func (.param .b32 steps) f(.param .b32 count) {{
            .reg .b32 %n, %m; .reg .pred %p;
            ld.param.b32 %n, [count]; mov.u32 %m, 0;
            setp.lt.u32 %p, %n, 8; @%p bra few;
            again: add.u32 %m, %m, 1; setp.lt.u32 %p, %m, %n; @%p bra again;
            st.param.b32 [steps], %m; ret;
            few: st.param.b32 [steps], %n; ret; }}
         {}",
        kernel(
            "{ .param .b32 count, steps; st.param.b32 [count], %t;
             call (steps), f, (count); ld.param.b32 %r0, [steps]; }
             activemask.b32 %r1; mov.b64 %d0, {%r0, %r1}; st.global.u64 [%mine], %d0; ret;"
        )
    );
    let out = load(&text).run(1, 32, 32).unwrap();
    let all = (0..32).map(|lane| lane | 0xffff_ffff << 32);
    assert_eq!(out, all.collect::<Vec<_>>());
}

/// One warp makes strong loads or atomics at ever other places while a word says that it is busy; how
/// often another one looks at that word until it is free.
#[test]
fn ordered_loads_and_atomics_that_get_on_do_not_end_a_turn() {
    for op in [
        "ld.acquire.gpu.global.u64 %d2, [%d1]",
        "atom.acquire.gpu.global.add.u64 %d2, [%d1], 1",
        "atom.acquire.gpu.global.cas.b64 %d2, [%d1], 7, 8",
    ] {
        let text = format!(
            "setp.ge.u32 %p0, %t, 32; mov.u32 %r0, 0; mov.u64 %d1, %out; @%p0 bra other;
             st.relaxed.gpu.global.u32 [%out], 1;
             work: add.u64 %d1, %d1, 8; {op}; add.u32 %r0, %r0, 1; setp.lt.u32 %p1, %r0, 200;
             @%p1 bra work;
             st.release.gpu.global.u32 [%out], 0; ret;
             other: add.u32 %r0, %r0, 1; ld.acquire.gpu.global.u32 %r1, [%out];
             setp.ne.u32 %p1, %r1, 0; @%p1 bra other;
             cvt.u64.u32 %d0, %r0; st.global.u64 [%out+2048], %d0; ret;"
        );
        let out = load(&kernel(&text)).run(1, 64, 257).unwrap();
        assert_eq!(out[256], 1, "{op}");
    }
}

/// A warp waits for the next one, which has its turn after it.
#[test]
fn a_warp_that_spins_ends_its_turn_soon() {
    let shared = ".reg .b64 %s; .shared .align 8 .b64 bar; mov.u32 %r2, bar;";
    for (wait, more) in [
        ("ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0", ""),
        ("ld.acquire.gpu.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0", ""),
        ("atom.global.add.u32 %r1, [%out], 0; setp.eq.u32 %p1, %r1, 0", ""),
        ("atom.global.cas.b32 %r1, [%out], 7, 8; setp.eq.u32 %p1, %r1, 0", ""),
        // One place after the other, by turns.
        (
            "and.b32 %r3, %r0, 1; mad.wide.u32 %d1, %r3, 8, %out; ld.volatile.global.u32 %r1, [%d1+16];
             fence.acq_rel.gpu; setp.eq.u32 %p1, %r1, 0; ld.volatile.global.u32 %r1, [%out];
             setp.eq.and.u32 %p1, %r1, 0, %p1",
            "",
        ),
        (
            "mbarrier.test_wait.parity.shared.b64 %p1, [%r2], 0; not.pred %p1, %p1",
            "mbarrier.arrive.shared.b64 %s, [%r2];",
        ),
    ] {
        let text = format!(
            "{shared} setp.ge.u32 %p0, %t, 32; mov.u32 %r0, 0; setp.eq.u32 %p3, %t, 0;
             @%p3 mbarrier.init.shared.b64 [%r2], 32;
             @%p0 bra other;
             spin: add.u32 %r0, %r0, 1; {wait}; @%p1 bra spin;
             cvt.u64.u32 %d0, %r0; st.global.u64 [%out+64], %d0; ret;
             other: {more} st.volatile.global.u32 [%out], 1; ret;"
        );
        let out = load(&kernel(&text)).run(1, 64, 9).unwrap();
        assert!((2..70).contains(&out[8]), "{} times: {wait}", out[8]);
    }
}

/// Who comes first is drawn again at about every second atomic.
#[test]
fn seeds_interleave_atomics() {
    let body = "mov.u32 %r0, 0; mov.u64 %d1, %out; mad.wide.u32 %d1, %g, 160, %d1;
                again: atom.global.add.u32 %r1, [%out], 1; cvt.u64.u32 %d0, %r1; st.global.u64 [%d1+8], %d0;
                add.u64 %d1, %d1, 8; add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 20; @%p0 bra again; ret;";
    let mut rig = load(&kernel(body));
    // Who had each ticket; and how often the next one was another warp's.
    let mut run = |seed| {
        let launch = |params| Launch {
            schedule: Schedule::Seeded(seed),
            ..Launch::new([8, 1, 1], [1, 1, 1], params)
        };
        let (out, _) = rig.run_with(161, launch).unwrap();
        let mut order = [0; 160];
        for (at, ticket) in out[1..].iter().enumerate() {
            order[*ticket as usize] = at / 20;
        }
        order
    };
    let orders: std::collections::BTreeSet<_> = (0..64).map(&mut run).collect();
    let changes = orders
        .iter()
        .map(|order| order.windows(2).filter(|pair| pair[0] != pair[1]).count());
    let changes = changes.sum::<usize>() / orders.len();
    assert_eq!(orders.len(), 64);
    assert!(changes > 60, "{changes} changes of warp in 160 atomics");
}
