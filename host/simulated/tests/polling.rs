//! What threads that wait for each other execute under a journal: in proportion to their number.

use crate::common::{Rig, launch, load};
use runtime::{Choice, Mode, Options};

const BLOCK: u32 = 128;

/// Each thread publishes a word by a flag and waits for the flags of its neighbours, by atomics that
/// change nothing.
const NEIGHBOURS: &str = "
    mov.u32 %n, %ctaid.x; mov.u32 %t, %tid.x; mov.u32 %s, %ntid.x; mad.lo.u32 %t, %n, %s, %t;
    mov.u32 %n, %nctaid.x; mul.lo.u32 %n, %n, %s;
    add.u32 %l, %t, %n; sub.u32 %l, %l, 1; rem.u32 %l, %l, %n; add.u32 %r, %t, 1; rem.u32 %r, %r, %n;
    mad.wide.u32 %p, %t, 4, %data; st.global.u32 [%p], %t; fence.sc.gpu;
    mad.wide.u32 %p, %t, 4, %flags; atom.global.exch.b32 %v, [%p], 1;
    mad.wide.u32 %p, %l, 4, %flags;
    left: atom.global.add.u32 %v, [%p], 0; setp.ne.u32 %q, %v, 1; @%q bra left;
    fence.sc.gpu; mad.wide.u32 %p, %l, 4, %data; ld.global.u32 %v, [%p];
    mad.wide.u32 %p, %r, 4, %flags;
    right: atom.global.add.u32 %v, [%p], 0; setp.ne.u32 %q, %v, 1; @%q bra right;
    fence.sc.gpu; mad.wide.u32 %p, %r, 4, %data; ld.global.u32 %v, [%p];
    ret;";

/// Threads count up a word to 512, each by a compare-and-swap with what it has loaded by an atomic, until
/// there is nothing left.
const TAKERS: &str = "
    again: atom.global.add.u32 %v, [%flags], 0; setp.ge.u32 %q, %v, 512; @%q bra done;
    add.u32 %n, %v, 1; atom.global.cas.b32 %t, [%flags], %v, %n; bra again;
    done: ret;";

/// Each thread takes the lock of its bucket, of which there is one for eight threads, and counts in it.
const LOCKS: &str = "
    mov.u32 %n, %ctaid.x; mov.u32 %t, %tid.x; mov.u32 %s, %ntid.x; mad.lo.u32 %t, %n, %s, %t;
    mov.u32 %n, %nctaid.x; mul.lo.u32 %n, %n, %s; shr.u32 %n, %n, 3; rem.u32 %l, %t, %n;
    mad.wide.u32 %p, %l, 4, %flags; mad.wide.u32 %data, %l, 4, %data;
    take: atom.global.cas.b32 %v, [%p], 0, 1; setp.ne.u32 %q, %v, 0; @%q bra take;
    fence.acq_rel.gpu;
    ld.global.u32 %v, [%data]; add.u32 %v, %v, 1; st.global.u32 [%data], %v;
    fence.acq_rel.gpu; atom.global.exch.b32 %v, [%p], 0;
    ret;";

/// Warp-instructions of a launch of so many threads, and its races.
fn run(body: &str, threads: u32, journal: bool) -> (u64, usize, Vec<u32>) {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 flags, .param .u64 data) {{\n\
         .reg .pred %q; .reg .b32 %n, %t, %s, %l, %r, %v; .reg .b64 %p, %flags, %data;\n\
         ld.param.u64 %flags, [flags]; ld.param.u64 %data, [data];{body} }}"
    );
    let options = Options {
        mode: Mode::Precise,
        as_gpu: true,
        choice: Choice {
            kernels: match journal {
                true => Vec::new(),
                false => vec!["kne=other".parse().unwrap()],
            },
            ..Choice::default()
        },
        ..Options::default()
    };
    let mut rig: Rig = load(&text, options);
    let flags = rig.memory(&vec![0; threads as usize]);
    let data = rig.memory(&vec![0; threads as usize]);
    rig.launch(&launch(threads / BLOCK, BLOCK, &[flags, data]));
    let executed = rig.launches()[0].warp_instructions;
    let left = rig.words(flags, threads as usize);
    (executed, rig.races().len(), left)
}

#[test]
fn polling_costs_in_proportion_to_the_threads() {
    let [few, many] = [128, 1024].map(|threads| {
        let (executed, races, left) = run(NEIGHBOURS, threads, true);
        assert_eq!(races, 0);
        assert!(left.iter().all(|&flag| flag == 1));
        executed
    });
    let (unchecked, _, _) = run(NEIGHBOURS, 1024, false);
    assert!(many <= LIMIT * unchecked, "{many} after {unchecked}");
    assert!(many <= 9 * few, "{many} after {few}");
}

#[test]
fn locks_cost_in_proportion_to_the_threads() {
    let [few, many] = [256, 2048].map(|threads| {
        let (executed, races, left) = run(LOCKS, threads, true);
        assert_eq!(races, 0);
        assert!(left.iter().all(|&lock| lock == 0));
        executed
    });
    assert!(many <= 9 * few, "{many} after {few}");
}

#[test]
fn threads_that_compete_do_not_wait_for_each_other_in_turns() {
    let [few, many] = [128, 512].map(|threads| {
        let (executed, races, left) = run(TAKERS, threads, true);
        assert_eq!(races, 0);
        assert_eq!(left[0], 512);
        executed
    });
    // A turn for each thread and value would be 65,536 of them.
    assert!(few <= 512 * PER_VALUE, "{few}");
    assert!(many <= 4 * few, "{many} after {few}");
}

/// Times the unchecked warp-instructions.
const LIMIT: u64 = 10;
/// Warp-instructions for each value of the word.
const PER_VALUE: u64 = 10_000;
