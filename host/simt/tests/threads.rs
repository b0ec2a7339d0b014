//! CTAs on several threads of the host: memory, counts and failures are those of one thread.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use crate::common::{Rig, kernel, load};
use proptest::prelude::*;
use simt::{Launch, LaunchError, LaunchStats, Limits, Progress, Schedule, Sink, Threads};

const WORDS: usize = 1 << 12;

/// Bodies whose results do not depend on the order of CTAs, each with what stands in front of it.
const FREE: [(&str, &str); 10] = [
    // Loads and stores of 8 bytes, and a loop whose length is the CTA's.
    (
        "",
        "mov.u32 %r0, 0; mov.u64 %d0, 0; again: mad.wide.u32 %d0, %r0, %g, %d0; add.u32 %r0, %r0, 1;
         setp.lt.u32 %p0, %r0, %b; @%p0 bra again; st.global.u64 [%mine], %d0; ret;",
    ),
    // Bytes of one word that threads of several CTAs write.
    (
        "",
        "mul.lo.u32 %r0, %g, 167; and.b32 %r0, %r0, 8191; cvt.u64.u32 %d0, %r0; add.u64 %d0, %out, %d0;
         st.global.u8 [%d0], %g; ret;",
    ),
    // Sums over all CTAs, of one word and of two.
    (
        "",
        "red.global.add.u32 [%out], %g; and.b32 %r0, %g, 7; mad.wide.u32 %d0, %r0, 8, %out;
         cvt.u64.u32 %d1, %g; shl.b64 %d1, %d1, 30; red.global.add.u64 [%d0+8], %d1; ret;",
    ),
    // Halves and the largest.
    (
        "",
        "rem.u32 %r0, %g, 61; mad.wide.u32 %d0, %r0, 4, %out; mul.lo.u32 %r1, %g, 0x9e3779b1;
         red.global.max.s32 [%d0], %r1; ret;",
    ),
    // Who of a CTA comes first is told by shared memory.
    (
        ".shared .align 4 .b32 count; .shared .align 4 .b32 list[512];",
        "mov.u32 %r9, count; setp.eq.u32 %p0, %t, 0; @%p0 st.shared.u32 [%r9], 0; bar.sync 0;
         atom.shared.add.u32 %r0, [%r9], 1; mov.u32 %r1, list; mad.lo.u32 %r1, %r0, 4, %r1;
         st.shared.u32 [%r1], %t; bar.sync 0; mov.u32 %r2, list; mad.lo.u32 %r2, %t, 4, %r2;
         ld.shared.u32 %r3, [%r2]; st.global.u32 [%mine], %r3; st.global.u32 [%mine+4], %r0; ret;",
    ),
    // Many barriers, so that CTAs do not end within their first share.
    (
        ".shared .align 4 .b32 word[512];",
        "mov.u32 %r0, 0; mov.u32 %r1, word; mad.lo.u32 %r2, %t, 4, %r1; mov.u32 %r3, %g;
         again: st.shared.u32 [%r2], %r3; bar.sync 0; xor.b32 %r4, %t, 1; mad.lo.u32 %r4, %r4, 4, %r1;
         min.u32 %r4, %r4, %r2; ld.shared.u32 %r5, [%r4]; bar.sync 0; mad.lo.u32 %r3, %r3, 5, %r5;
         add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 150; @%p0 bra again;
         st.global.u32 [%mine], %r3; ret;",
    ),
    // Local memory, calls and divergence.
    (
        ".func (.param .b32 r) twice (.param .b32 x) {
            .reg .b32 %q<4>; .reg .pred %z; .local .align 4 .b32 kept[4]; ld.param.b32 %q0, [x];
            st.local.u32 [kept+4], %q0; add.u32 %q1, %q0, %q0; setp.gt.u32 %z, %q1, 1000; @%z bra big;
            ld.local.u32 %q2, [kept+4]; add.u32 %q1, %q1, %q2; big: st.param.b32 [r], %q1; ret; }",
        "rem.u32 %r1, %g, 5; again: { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
         call.uni (b), twice, (a); ld.param.b32 %r1, [b]; } setp.lt.u32 %p0, %r1, %t; @%p0 bra more;
         st.global.u32 [%mine], %r1; ret; more: add.u32 %r1, %r1, 7; bra again;",
    ),
    // A sum as compilers write it, with a result that nobody reads.
    (
        "",
        "and.b32 %r0, %g, 3; mad.wide.u32 %d0, %r0, 4, %out; atom.global.add.u32 %r1, [%d0], %t; ret;",
    ),
    // A fence alone tells nobody anything.
    ("", "st.global.u64 [%mine], %mine; membar.gl; ld.global.u32 %r0, [%mine]; st.global.u32 [%mine+4], %r0; ret;"),
    ("", "ret;"),
];

/// Bodies that several threads may not run: results depend on who came first, or when.
const ORDERED: [&str; 8] = [
    "atom.global.add.u32 %r0, [%out], 1; st.global.u32 [%mine+8], %r0; ret;",
    "st.volatile.global.u32 [%out], %g; ret;",
    "cvt.rn.f32.u32 %f0, %g; rcp.approx.f32 %f0, %f0; red.global.add.f32 [%out], %f0; ret;",
    "red.global.add.u32 [%out], %g; red.global.max.u32 [%out], %t; ret;",
    "red.global.inc.u32 [%out], %g; ret;",
    "mov.u64 %d0, %clock64; st.global.u64 [%mine], %d0; ret;",
    "mov.u32 %r0, %smid; st.global.u32 [%mine], %r0; ret;",
    "red.add.u64 [%out], %mine; red.min.u64 [%out], %mine; ret;",
];

fn threads(most: u32) -> Threads {
    Threads {
        most,
        after: 0,
        ..Threads::default()
    }
}

fn free((before, body): (&str, &str)) -> String {
    text(before, body)
}

fn text(before: &str, body: &str) -> String {
    format!("{before}\n{}", kernel(body))
}

fn run(
    rig: &mut Rig,
    [grid, block]: [u32; 2],
    most: u32,
) -> Result<(Vec<u64>, LaunchStats), LaunchError> {
    rig.run_with(WORDS, |params| Launch {
        threads: threads(most),
        ..Launch::new([grid, 1, 1], [block, 1, 1], params)
    })
}

/// The same from fresh memory with 1, 2, 4 and 7 threads.
fn agree(text: &str, shape: [u32; 2]) {
    let alone = run(&mut load(text), shape, 1);
    for most in [2, 4, 7] {
        assert_eq!(
            run(&mut load(text), shape, most),
            alone,
            "{most} threads, {shape:?}: {text}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn results_are_those_of_one_thread(which in 0..FREE.len(), grid in 1u32..40, block in 1u32..100) {
        agree(&free(FREE[which]), [grid, block]);
    }

    #[test]
    fn what_depends_on_the_order_stays_on_one_thread(which in 0..ORDERED.len(), grid in 1u32..40, block in 1u32..64) {
        agree(&text("", ORDERED[which]), [grid, block]);
    }
}

#[test]
fn several_threads_do_run() {
    // A launch can tell only by its text that it would have had one thread: so let it race.
    let text = kernel(
        "setp.ne.u32 %p0, %b, 0; @%p0 bra second; mov.u32 %r0, 0;
         again: add.u32 %r0, %r0, 1; ld.global.u32 %r1, [%out]; setp.ne.u32 %p1, %r1, 0; @%p1 bra done;
         setp.lt.u32 %p2, %r0, 400000000; @%p2 bra again; done: st.global.u32 [%out+8], %r1; ret;
         second: st.global.u32 [%out], 1; ret;",
    );
    // CTA 0 waits for CTA 1, without giving up its thread: on one thread it has turns, and more
    // instructions.
    let (_, alone) = run(&mut load(&text), [2, 1], 1).unwrap();
    let (words, together) = run(&mut load(&text), [2, 1], 2).unwrap();
    assert_eq!(words[1], 1);
    assert!(
        together.warp_instructions < alone.warp_instructions,
        "{together:?}, alone {alone:?}"
    );
}

/// A launch of some length on two threads, which ask `go_on`.
fn asking(go_on: fn(Progress) -> bool) -> impl FnOnce(Vec<u8>) -> Launch {
    move |params| Launch {
        threads: threads(2),
        limits: Limits {
            go_on: Some(go_on),
            ..Limits::default()
        },
        ..Launch::new([100, 1, 1], [40, 1, 1], params)
    }
}

#[test]
fn the_same_threads_run_all_launches() {
    static SEEN: Mutex<Option<HashSet<ThreadId>>> = Mutex::new(None);
    let note = |_| {
        let mut seen = SEEN.lock().unwrap();
        seen.get_or_insert_default().insert(thread::current().id());
        true
    };
    let mut rig = load(&free(FREE[0]));
    // Until the second thread has had its part, and some more.
    let seen = || SEEN.lock().unwrap().as_ref().map_or(0, HashSet::len);
    let met = (0..10_000).find(|_| {
        rig.run_with(WORDS, asking(note)).unwrap();
        seen() > 1
    });
    assert_ne!(met, None);
    for _ in 0..20 {
        rig.run_with(WORDS, asking(note)).unwrap();
    }
    assert_eq!(seen(), 2);
}

#[test]
fn a_panic_comes_through() {
    // Only the thread that is not the caller's.
    let panics = |_| {
        let other = thread::current()
            .name()
            .is_some_and(|name| name.starts_with("simt "));
        assert!(!other, "on purpose");
        true
    };
    let mut rig = load(&free(FREE[0]));
    let come = (0..10_000).find_map(|_| {
        let launch = || rig.run_with(WORDS, asking(panics));
        catch_unwind(AssertUnwindSafe(launch)).err()
    });
    let come = come.and_then(|panic| panic.downcast::<&str>().ok());
    assert_eq!(come.as_deref(), Some(&"on purpose"));
    // And the device goes on.
    let alone = run(&mut load(&free(FREE[0])), [50, 40], 1);
    assert_eq!(run(&mut rig, [50, 40], 2), alone);
}

#[test]
fn printing_stays_in_order() {
    let text = format!(
        ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
         .global .align 1 .b8 format[4] = {{37, 100, 10, 0}};\n{}",
        kernel(
            ".local .align 8 .b32 arguments[2]; st.local.u32 [arguments], %g;
             mov.u64 %d0, format; cvta.global.u64 %d0, %d0; mov.u64 %d1, arguments; cvta.local.u64 %d1, %d1;
             { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d0; st.param.b64 [a], %d1;
               call.uni (r), vprintf, (f, a); } ret;"
        )
    );
    let printed = |most| {
        let (sink, printed) = Sink::buffer();
        let launch = |params| Launch {
            printf: sink,
            threads: threads(most),
            ..Launch::new([64, 1, 1], [32, 1, 1], params)
        };
        load(&text).run_with(WORDS, launch).unwrap();
        let text = printed.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    };
    assert_eq!(printed(1).lines().count(), 2048);
    assert_eq!(printed(1), printed(4));
}

#[test]
fn the_first_failure_is_reported() {
    for body in [
        // From CTA 5 on, every third.
        "sub.u32 %r0, %b, 5; rem.u32 %r0, %r0, 3; setp.lt.u32 %p0, %b, 5; @%p0 ret;
         setp.ne.u32 %p1, %r0, 0; @%p1 ret; st.global.u32 [%out+0x10000000], %g; ret;",
        // The later ones fail sooner.
        "sub.u32 %r0, 100, %b; mul.lo.u32 %r0, %r0, 300; mov.u32 %r1, 0; setp.lt.u32 %p0, %b, 3; @%p0 ret;
         again: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r0; @%p1 bra again; trap;",
        // In a later round: CTAs with odd numbers, behind 600 barriers.
        "and.b32 %r0, %b, 1; setp.eq.u32 %p0, %r0, 0; mov.u32 %r1, 0;
         again: bar.sync 0; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 600; @%p1 bra again;
         @%p0 ret; ld.global.u32 %r2, [%out+0x10000000]; ret;",
        // CTA 2 in its second round, CTA 30 in its first.
        "mov.u32 %r0, 300; setp.eq.u32 %p0, %b, 2; @%p0 bra on; mov.u32 %r0, 1; setp.ne.u32 %p0, %b, 30;
         @%p0 ret; on: mov.u32 %r1, 0; again: bar.sync 0; add.u32 %r1, %r1, 1;
         setp.lt.u32 %p1, %r1, %r0; @%p1 bra again; trap;",
    ] {
        let alone = run(&mut load(&kernel(body)), [60, 40], 1).unwrap_err();
        for _ in 0..8 {
            for most in [2, 3, 8] {
                let error = run(&mut load(&kernel(body)), [60, 40], most).unwrap_err();
                assert_eq!(error, alone, "{most} threads: {body}");
            }
        }
    }
}

#[test]
fn threads_that_wait_forever_are_reported() {
    // A barrier for 64 threads, of which 32 come, in CTAs 3, 10, 17 and so on.
    let text = kernel(
        "sub.u32 %r0, %b, 3; rem.u32 %r0, %r0, 7; setp.ne.u32 %p0, %r0, 0; @%p0 ret;
         bar.sync 1, 64; st.global.u32 [%mine], 1; ret;",
    );
    let alone = run(&mut load(&text), [200, 32], 1).unwrap_err();
    let LaunchError::Deadlock { waiting, .. } = &alone else {
        panic!("{alone}");
    };
    assert!(waiting.len() > 20, "{alone:?}");
    for most in [2, 5] {
        assert_eq!(run(&mut load(&text), [200, 32], most).unwrap_err(), alone);
    }
}

#[test]
fn threads_that_wait_forever_are_reported_in_full() {
    // CTAs with so much shared memory that each thread holds only few of those that wait, and comes to
    // its end before it would have been joined.
    let text = kernel("bar.sync 1, 64; ret;");
    let waiting = |most| {
        let launch = |params| Launch {
            dynamic_shared: 200 << 10,
            threads: Threads {
                most,
                ..Threads::default()
            },
            ..Launch::new([200, 1, 1], [32, 1, 1], params)
        };
        let error = load(&text).run_with(WORDS, launch).unwrap_err();
        let LaunchError::Deadlock { mut waiting, .. } = error else {
            panic!("{error}");
        };
        // How many are resident depends on the number of threads.
        waiting.truncate(64);
        waiting
    };
    let alone = waiting(1);
    for most in [2, 4, 7] {
        assert_eq!(waiting(most), alone, "{most} threads");
    }
}

#[test]
fn time_is_up_for_all_threads() {
    let text = kernel("again: add.u32 %r0, %r0, 1; bra again;");
    let launch = |params| Launch {
        threads: threads(3),
        limits: Limits {
            timeout: Some(std::time::Duration::from_millis(50)),
            ..Limits::default()
        },
        ..Launch::new([90, 1, 1], [64, 1, 1], params)
    };
    let error = load(&text).run_with(1, launch).unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::Timeout {
                warp_instructions: 1..,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn schedules_and_limits_stay_on_one_thread() {
    let text = free(FREE[4]);
    let launch = |most| {
        move |params| Launch {
            threads: threads(most),
            schedule: Schedule::Seeded(7),
            ..Launch::new([20, 1, 1], [70, 1, 1], params)
        }
    };
    let alone = load(&text).run_with(WORDS, launch(1)).unwrap();
    assert_eq!(load(&text).run_with(WORDS, launch(4)).unwrap(), alone);
    let launch = |most| {
        move |params| Launch {
            threads: threads(most),
            limits: Limits {
                max_warp_instructions: Some(1000),
                ..Limits::default()
            },
            ..Launch::new([20, 1, 1], [70, 1, 1], params)
        }
    };
    let alone = load(&text).run_with(WORDS, launch(1)).unwrap_err();
    assert_eq!(load(&text).run_with(WORDS, launch(4)).unwrap_err(), alone);
}

/// What one cell of a protocol needs: exchanges, and loads, of two words at once.
#[test]
fn locks_hold_between_threads() {
    // Every thread takes a lock of 64 bits, counts, and gives it back.
    let text = kernel(
        "mov.u64 %d9, 0x8000000180000001; mov.u32 %r0, 0;
         again: setp.ge.u32 %p0, %r0, 20; @%p0 ret;
         atom.acquire.gpu.global.cas.b64 %d0, [%out], 0, %d9; setp.ne.u64 %p1, %d0, 0; @%p1 bra wait;
         ld.global.u32 %r1, [%out+8]; add.u32 %r1, %r1, 1; st.global.u32 [%out+8], %r1;
         st.release.gpu.global.u64 [%out], 0; add.u32 %r0, %r0, 1; bra again;
         wait: ld.relaxed.gpu.global.u64 %d1, [%out]; setp.eq.u64 %p1, %d1, 0; @%p1 bra again;
         setp.eq.u64 %p1, %d1, %d9; @%p1 bra wait; st.global.u32 [%out+16], 1; bra wait;",
    );
    for most in [1, 2, 4] {
        let launch = |params| Launch {
            threads: Threads {
                unordered: true,
                ..threads(most)
            },
            ..Launch::new([40, 1, 1], [33, 1, 1], params)
        };
        let (words, _) = load(&text).run_with(3, launch).unwrap();
        assert_eq!(words, [0, 40 * 33 * 20, 0], "{most} threads");
    }
}
