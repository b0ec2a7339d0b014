//! CTA, cluster and grid barriers, and what waits for ever.

use crate::common::{fail, kernel, load, run};
use simt::{Launch, LaunchError};

/// Sums `%g` over the CTA in shared memory, with `barrier` between the steps.
fn sum(barrier: &str) -> String {
    kernel(&format!(
        ".shared .align 8 .b8 s[512];
         mov.u32 %r0, s; mad.lo.u32 %r1, %t, 8, %r0;
         cvt.u64.u32 %d0, %g; st.shared.u64 [%r1], %d0;
         mov.u32 %r2, 32;
         step: {barrier};
         setp.ge.u32 %p0, %t, %r2; @%p0 bra skip;
         mad.lo.u32 %r3, %r2, 8, %r1; ld.shared.u64 %d1, [%r3]; ld.shared.u64 %d0, [%r1];
         add.u64 %d0, %d0, %d1; st.shared.u64 [%r1], %d0;
         skip: shr.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra step;
         {barrier};
         ld.shared.u64 %d0, [%r0]; st.global.u64 [%mine], %d0; ret;"
    ))
}

#[test]
fn every_spelling_of_a_full_barrier() {
    let spellings = [
        "bar.sync 0",
        "bar.sync 3, 64",
        "barrier.sync 15",
        "barrier.cta.sync.aligned 1, 64",
        "bar.sync %r0",
    ];
    for barrier in &spellings[..4] {
        let out = load(&sum(barrier)).run(3, 64, 192).unwrap();
        for (thread, &word) in out.iter().enumerate() {
            let cta = thread as u64 / 64;
            assert_eq!(word, 64 * 64 * cta + 64 * 63 / 2, "{barrier}");
        }
    }
}

#[test]
fn reductions() {
    let out = run(
        48,
        "rem.u32 %r0, %t, 3; setp.eq.u32 %p0, %r0, 0;
         bar.red.popc.u32 %r1, 0, %p0;
         bar.red.and.pred %p1, 0, %p0;
         barrier.cta.red.or.pred %p2, 0, !%p0;
         selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 1, 0, %p2;
         shl.b32 %r2, %r2, 8; shl.b32 %r3, %r3, 16; or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3;
         cvt.u64.u32 %d0, %r1; st.global.u64 [%mine], %d0; ret;",
    );
    assert_eq!(out, [0x1_0010; 48]);
}

#[test]
fn producers_arrive_and_consumers_wait() {
    let out = run(
        64,
        "setp.ge.u32 %p0, %t, 32; @%p0 bra consumer;
         cvt.u64.u32 %d0, %t; st.global.u64 [%mine], %d0;
         bar.arrive 2, 64; ret;
         consumer: bar.sync 2, 64;
         ld.global.u64 %d0, [%mine+-256]; add.u64 %d0, %d0, 7; st.global.u64 [%mine], %d0; ret;",
    );
    assert_eq!(out[32..], (7..39).collect::<Vec<u64>>());
}

#[test]
fn exited_threads_count_as_arrived() {
    let out = run(
        96,
        "setp.ge.u32 %p0, %t, 64; @%p0 exit;
         setp.eq.u32 %p1, %t, 5; @%p1 ret;
         bar.sync 0;
         mov.u64 %d0, 1; st.global.u64 [%mine], %d0; ret;",
    );
    assert_eq!(out.iter().sum::<u64>(), 63);
}

#[test]
fn lanes_may_come_to_a_barrier_one_by_one() {
    let out = run(
        32,
        "setp.lt.u32 %p0, %t, 8; @%p0 bra other;
         bar.sync 0; bra end;
         other: bar.sync 0;
         end: mov.u64 %d0, 1; st.global.u64 [%mine], %d0; ret;",
    );
    assert_eq!(out, [1; 32]);
}

#[test]
fn a_deadlock_says_who_waits_where() {
    let error = fail(
        64,
        "setp.lt.u32 %p0, %t, 32; @%p0 bra low;
         bar.sync 1; ret;
         low: bar.sync 2; ret;",
    );
    let LaunchError::Deadlock {
        kernel, waiting, ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((kernel.as_str(), waiting.len()), ("k", 2));
    assert_eq!(
        (waiting[0].what.as_str(), waiting[0].at.thread),
        ("barrier 2", [0, 0, 0])
    );
    assert_eq!(
        (waiting[1].what.as_str(), waiting[1].warp),
        ("barrier 1", 1)
    );
    assert!(waiting[0].at.line > waiting[1].at.line);
}

#[test]
fn a_warp_barrier_without_its_lanes_is_a_deadlock() {
    let error = fail(
        32,
        "setp.lt.u32 %p0, %t, 16; @%p0 bra low;
         bar.warp.sync -1; ret;
         low: bar.sync 0; bar.warp.sync -1; ret;",
    );
    assert!(
        matches!(error, LaunchError::Deadlock { ref waiting, .. } if waiting.len() == 2),
        "{error}"
    );
}

#[test]
fn clusters_share_their_shared_memory() {
    let body = "
         .shared .align 4 .b32 word;
         mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, word;
         mad.lo.u32 %r2, %b, 100, 7; st.shared.u32 [%r1], %r2;
         barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
         xor.b32 %r3, %r0, 1; mapa.shared::cluster.u32 %r4, %r1, %r3;
         ld.shared::cluster.u32 %r5, [%r4];
         cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1; mapa.u64 %d2, %d1, %r3;
         ld.u32 %r6, [%d2]; add.u32 %r5, %r5, %r6;
         cvt.u64.u32 %d0, %r5; st.global.u64 [%mine], %d0;
         barrier.cluster.arrive; barrier.cluster.wait; ret;";
    let mut rig = load(&kernel(body));
    let launch = |params| Launch {
        cluster: [2, 1, 1],
        ..Launch::new([6, 1, 1], [1, 1, 1], params)
    };
    let (out, _) = rig.run_with(6, launch).unwrap();
    assert_eq!(out, [214, 14, 614, 414, 1014, 814]);
}

#[test]
fn addresses_tell_whose_shared_memory_they_are_in() {
    // Its own address, that of the other CTA, a generic one of each, and its own by way of `mapa`.
    let body = "
         .shared .align 4 .b32 word;
         mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, word; xor.b32 %r3, %r0, 1;
         getctarank.shared::cluster.u32 %r2, %r1;
         mapa.shared::cluster.u32 %r4, %r1, %r3; getctarank.shared::cluster.u32 %r5, %r4;
         mad.lo.u32 %r2, %r2, 10, %r5;
         cvt.u64.u32 %d1, %r1; cvta.shared.u64 %d1, %d1; getctarank.u64 %r5, %d1;
         mad.lo.u32 %r2, %r2, 10, %r5;
         mapa.u64 %d2, %d1, %r3; getctarank.u64 %r5, %d2; mad.lo.u32 %r2, %r2, 10, %r5;
         mapa.shared::cluster.u32 %r4, %r1, %r0; getctarank.shared::cluster.u32 %r5, %r4;
         mad.lo.u32 %r2, %r2, 10, %r5;
         cvt.u64.u32 %d0, %r2; st.global.u64 [%mine], %d0;
         barrier.cluster.arrive; barrier.cluster.wait; ret;";
    let mut rig = load(&kernel(body));
    let launch = |params| Launch {
        cluster: [2, 1, 1],
        ..Launch::new([4, 1, 1], [1, 1, 1], params)
    };
    let (out, _) = rig.run_with(4, launch).unwrap();
    assert_eq!(out, [1010, 10101, 1010, 10101]);
}

#[test]
fn grid_barriers_of_cooperative_launches() {
    // What cooperative groups do: the first CTA adds what makes the top bit flip.
    let body = "
         st.global.u32 [%mine], %g;
         mov.u32 %r0, %envreg1; mov.u32 %r1, %envreg2; mov.b64 %d0, {%r1, %r0};
         bar.sync 0;
         setp.ne.u32 %p0, %t, 0; @%p0 bra joined;
         setp.eq.u32 %p1, %b, 0; mov.u32 %r2, %nctaid.x; sub.u32 %r3, 0x80000001, %r2;
         selp.b32 %r4, %r3, 1, %p1;
         membar.gl; atom.global.add.u32 %r5, [%d0+4], %r4;
         spin: ld.volatile.global.u32 %r6, [%d0+4]; xor.b32 %r6, %r6, %r5;
         setp.ge.s32 %p2, %r6, 0; @%p2 bra spin;
         joined: bar.sync 0;
         mov.u32 %r7, %nctaid.x; sub.u32 %r7, %r7, 1; sub.u32 %r7, %r7, %b;
         mad.wide.u32 %d1, %r7, 256, %out; ld.global.u32 %r8, [%d1];
         cvt.u64.u32 %d2, %r8; shl.b64 %d2, %d2, 32; ld.global.u64 %d3, [%mine];
         add.u64 %d2, %d2, %d3; st.global.u64 [%mine], %d2; ret;";
    let mut rig = load(&kernel(body));
    let launch = |params| Launch {
        cooperative: true,
        ..Launch::new([40, 1, 1], [32, 1, 1], params)
    };
    let (out, _) = rig.run_with(40 * 32, launch).unwrap();
    for (thread, &word) in out.iter().enumerate() {
        // CTAs read only what the mirrored CTA's first thread wrote before the barrier, which
        // may by then have its upper half set too.
        let mirrored = (39 - thread as u64 / 32) * 32;
        assert_eq!(word >> 32 & 0xffff_ffff, mirrored, "thread {thread}");
    }
    let too_many = |params| Launch {
        cooperative: true,
        ..Launch::new([40000, 1, 1], [1024, 1, 1], params)
    };
    assert!(matches!(
        rig.run_with(1, too_many),
        Err(LaunchError::CooperativeTooLarge(_))
    ));
}

#[test]
fn mbarriers_count_arrivals_and_bytes() {
    let out = run(
        32,
        ".shared .align 8 .b64 bar; .shared .align 16 .b8 buffer[64];
         mov.u32 %r0, bar; mov.u32 %r1, buffer;
         setp.ne.u32 %p0, %t, 0; @%p0 bra ready;
         mbarrier.init.shared.b64 [%r0], 32;
         ready: bar.sync 0;
         @%p0 bra plain;
         mbarrier.arrive.expect_tx.shared.b64 %d0, [%r0], 64;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%out], 64, [%r0];
         bra wait;
         plain: mbarrier.arrive.shared.b64 %d0, [%r0];
         wait: mbarrier.try_wait.shared.b64 %p1, [%r0], %d0; @!%p1 bra wait;
         mbarrier.test_wait.parity.shared.b64 %p2, [%r0], 0; @!%p2 trap;
         mbarrier.test_wait.parity.shared.b64 %p2, [%r0], 1; @%p2 trap;
         mov.u64 %d1, 3; st.global.u64 [%mine], %d1; ret;",
    );
    assert_eq!(out, [3; 32]);
}
