//! Races and unordered strong conflicts by definition, on kernels of a few lines, and whether a verdict
//! depends on who came first.

use filetests::random::kernel::{
    Access, AccessKind, AccessOrder, Act, Call, Kernel, Role, Scope, Step, Target,
};
use filetests::random::kernel::{LANES, Whole};
use filetests::random::{judge, make, text};
use runtime::Model;

/// Kernels run under several schedules.
const KERNELS: u64 = 400;

fn target(offset: u32) -> Target {
    Target {
        shared: false,
        far: false,
        generic: false,
        offset,
        bytes: 4,
        vector: 1,
        by_lane: false,
    }
}

fn access(kind: AccessKind, order: AccessOrder, offset: u32, after_flag: bool) -> Act {
    Act::Access(Access {
        kind,
        order,
        target: target(offset),
        after_flag,
    })
}

fn acts(role: usize, acts: Vec<Act>) -> Step {
    Step::Acts {
        role,
        branch: true,
        acts,
        others: Vec::new(),
        call: Call::Inline,
    }
}

/// The first threads of two warps of a CTA, or of two CTAs, do something.
fn kernel(ctas: u32, steps: Vec<Step>) -> Kernel {
    let two = ctas == 1;
    let role = |number: u32| Role {
        ctas: if two { 1 } else { 1 << number },
        warps: if two { 1 << number } else { 1 },
        lanes: 1,
    };
    Kernel {
        seed: 0,
        ctas,
        warps: if two { 2 } else { 1 },
        clusters: false,
        small_shadow: false,
        roles: vec![role(0), role(1)],
        gates: Vec::new(),
        steps,
        early: false,
        beside: Vec::new(),
    }
}

/// Whether any of some runs has a data race, and whether any has an unordered strong conflict.
fn judged(kernel: &Kernel) -> (bool, bool) {
    let text = text::write(kernel);
    let (mut races, mut strong) = (false, false);
    for schedule in 0..6 {
        let recorded = judge::record(kernel, schedule).unwrap();
        let judged = |model| recorded.judge(&text, model).unwrap();
        races |= !judged(Model::Ptx).races.is_empty();
        strong |= !judged(Model::Scoped).strong.is_empty();
    }
    // What is reported under the scoped model is that.
    if let Err(finding) = judge::judge(kernel, &[0, 1, 2, 3, 4, 5]) {
        panic!("{finding}\n{}", text.whole());
    }
    (races, strong)
}

const VOLATILE: AccessOrder = AccessOrder::Volatile;

fn flag_is_seen() -> Act {
    Act::Poll {
        access: Access {
            kind: AccessKind::Load,
            order: VOLATILE,
            target: target(32),
            after_flag: false,
        },
        tries: 60,
        before: false,
    }
}

/// Volatile data under a volatile flag, with a fence of the writer or none.
fn handed_over(ctas: u32, fence: Option<Scope>, order: AccessOrder) -> Kernel {
    let mut put = vec![access(AccessKind::Store, order, 0, false)];
    put.extend(fence.map(|scope| Act::Fence("acq_rel", scope)));
    put.push(access(AccessKind::Store, VOLATILE, 32, false));
    let get = vec![flag_is_seen(), access(AccessKind::Load, order, 0, true)];
    kernel(ctas, vec![acts(0, put), acts(1, get)])
}

#[test]
fn what_is_volatile_and_in_no_order_is_a_conflict() {
    let store = |role| acts(role, vec![access(AccessKind::Store, VOLATILE, 0, false)]);
    let load = |role| acts(role, vec![access(AccessKind::Load, VOLATILE, 0, false)]);
    let barrier = || Step::Barrier(Whole::Bar);
    assert_eq!(judged(&kernel(1, vec![store(0), load(1)])), (false, true));
    assert_eq!(judged(&kernel(1, vec![store(0), store(1)])), (false, true));
    assert_eq!(judged(&kernel(1, vec![load(0), load(1)])), (false, false));
    let ordered = vec![store(0), barrier(), load(1)];
    assert_eq!(judged(&kernel(1, ordered)), (false, false));
    // A barrier of one CTA does not order two.
    let apart = vec![store(0), barrier(), load(1)];
    assert_eq!(judged(&kernel(2, apart)), (false, true));
    let weak = acts(
        1,
        vec![access(AccessKind::Load, AccessOrder::Plain, 0, false)],
    );
    assert_eq!(judged(&kernel(1, vec![store(0), weak])), (true, false));
    let red = AccessOrder::Strong("relaxed", Scope::Gpu);
    let add = |role| acts(role, vec![access(AccessKind::Red("add"), red, 0, false)]);
    assert_eq!(judged(&kernel(1, vec![add(0), add(1)])), (false, false));
    assert_eq!(judged(&kernel(1, vec![add(0), load(1)])), (false, true));
}

#[test]
fn flags_order_if_the_writer_has_a_fence_that_is_wide_enough() {
    let gpu = Some(Scope::Gpu);
    assert_eq!(judged(&handed_over(1, None, VOLATILE)), (false, true));
    assert_eq!(judged(&handed_over(1, gpu, VOLATILE)), (false, false));
    assert_eq!(judged(&handed_over(2, gpu, VOLATILE)), (false, false));
    let cta = Some(Scope::Cta);
    assert_eq!(judged(&handed_over(1, cta, VOLATILE)), (false, false));
    assert_eq!(judged(&handed_over(2, cta, VOLATILE)), (false, true));
    // Of what is weak, the reader has to acquire.
    assert_eq!(
        judged(&handed_over(1, gpu, AccessOrder::Plain)),
        (true, false)
    );
}

#[test]
fn a_reader_that_acquires_in_too_narrow_a_scope_is_not_ordered() {
    let with = |ctas, narrow: Option<Act>| {
        let put = vec![
            access(AccessKind::Store, VOLATILE, 0, false),
            Act::Fence("acq_rel", Scope::Gpu),
            access(AccessKind::Store, VOLATILE, 32, false),
        ];
        let mut get = vec![flag_is_seen()];
        get.extend(narrow);
        get.push(access(AccessKind::Load, VOLATILE, 0, true));
        kernel(ctas, vec![acts(0, put), acts(1, get)])
    };
    let fence = |scope| Some(Act::Fence("acquire", scope));
    assert_eq!(judged(&with(2, None)), (false, false));
    assert_eq!(judged(&with(2, fence(Scope::Gpu))), (false, false));
    assert_eq!(judged(&with(2, fence(Scope::Cta))), (false, true));
    assert_eq!(judged(&with(1, fence(Scope::Cta))), (false, false));
}

#[test]
fn fences_alone_order_nothing() {
    let fence = || Act::Fence("sc", Scope::Gpu);
    let put = vec![access(AccessKind::Store, VOLATILE, 0, false), fence()];
    let get = vec![fence(), access(AccessKind::Load, VOLATILE, 0, false)];
    let both = kernel(2, vec![acts(0, put), acts(1, get)]);
    assert_eq!(judged(&both), (false, true));
}

#[test]
fn a_reduction_acquires_nothing() {
    let release = AccessOrder::Strong("release", Scope::Gpu);
    let put = vec![
        access(AccessKind::Store, VOLATILE, 0, false),
        access(AccessKind::Atom("add"), release, 32, false),
    ];
    let get = vec![
        access(AccessKind::Red("add"), AccessOrder::Plain, 32, false),
        Act::Fence("acq_rel", Scope::Gpu),
        access(AccessKind::Load, VOLATILE, 0, false),
    ];
    for steps in [[0, 1], [1, 0]] {
        let both = [&put, &get];
        let steps = steps.map(|role| acts(role, both[role].clone()));
        assert_eq!(judged(&kernel(2, steps.to_vec())), (false, true));
    }
}

#[test]
fn the_last_one_to_count_may_reset_the_counter() {
    let all = Role {
        ctas: 1,
        warps: 1,
        lanes: u32::MAX,
    };
    let last = Role {
        lanes: 1 << 31,
        ..all
    };
    let first = Role { lanes: 1, ..all };
    let by = |kind, role| {
        let add = vec![access(kind, AccessOrder::Plain, 0, false)];
        let reset = vec![access(AccessKind::Store, VOLATILE, 0, false)];
        Kernel {
            roles: vec![all, role],
            ..kernel(1, vec![acts(0, add), acts(1, reset)])
        }
    };
    // Lanes of one instruction count one after the other.
    assert_eq!(judged(&by(AccessKind::Atom("add"), last)), (false, false));
    assert_eq!(judged(&by(AccessKind::Atom("add"), first)), (false, true));
    // Who does not learn the count does not know to be the last.
    assert_eq!(judged(&by(AccessKind::Red("add"), last)), (false, true));
}

/// Volatile data that two threads write under a lock, with or without the fences of each critical section.
fn locked(ctas: u32, entry: [Option<Scope>; 2], exit: [Option<Scope>; 2]) -> Kernel {
    let fence = |scope| Act::Fence("acq_rel", scope);
    let section = |number: usize| {
        let lock = |kind, order| Access {
            kind,
            order,
            target: target(480),
            after_flag: false,
        };
        let mut all = vec![Act::Take {
            access: lock(AccessKind::Atom("cas"), AccessOrder::Plain),
            tries: 60,
        }];
        all.extend(entry[number].map(fence));
        all.push(access(AccessKind::Store, VOLATILE, 0, true));
        all.extend(exit[number].map(fence));
        all.push(Act::Give(lock(AccessKind::Store, VOLATILE)));
        acts(number, all)
    };
    kernel(ctas, vec![section(0), section(1)])
}

#[test]
fn locks_order_if_all_their_fences_are_there() {
    let (gpu, cta) = ([Some(Scope::Gpu); 2], [Some(Scope::Cta); 2]);
    assert_eq!(judged(&locked(2, gpu, gpu)), (false, false));
    assert_eq!(judged(&locked(1, cta, cta)), (false, false));
    assert_eq!(judged(&locked(2, cta, gpu)), (false, true));
    assert_eq!(judged(&locked(2, gpu, cta)), (false, true));
    for missing in 0..2 {
        let mut fences = gpu;
        fences[missing] = None;
        assert_eq!(judged(&locked(2, fences, gpu)), (false, true));
        assert_eq!(judged(&locked(2, gpu, fences)), (false, true));
    }
}

#[test]
fn where_barriers_alone_order_no_verdict_depends_on_the_schedule() {
    let schedules: Vec<u64> = (0..16).collect();
    let (mut tried, mut reported) = (0, 0);
    for seed in 0..KERNELS {
        let kernel = make::kernel(seed);
        let plain = |act: &&Act| match act {
            Act::Access(access) => {
                matches!(access.order, AccessOrder::Plain)
                    && !matches!(access.kind, AccessKind::Atom(_))
            }
            _ => false,
        };
        if !kernel.acts().iter().all(plain) || kernel.cooperative() || kernel.warps * LANES > 64 {
            continue;
        }
        tried += 1;
        let orders = judge::orders(&kernel, &schedules, None).unwrap();
        reported += u32::from(orders.reporting > 0);
        assert!(!orders.differ(), "seed {seed}: {orders:?}");
    }
    assert!(tried >= 15 && reported > tried / 4, "{reported} of {tried}");
}

fn copied(offset: u32, shared: bool, bytes: u32) -> Target {
    Target {
        shared,
        bytes,
        ..target(offset)
    }
}

fn load(shared: bool) -> Act {
    Act::Access(Access {
        kind: AccessKind::Load,
        order: AccessOrder::Plain,
        target: copied(0, shared, 4),
        after_flag: false,
    })
}

/// Whether a kernel has a race, by definition and as the tool reports it.
fn races(steps: Vec<Step>) -> bool {
    let kernel = kernel(1, steps);
    let text = text::write(&kernel);
    let recorded = judge::record(&kernel, 0).unwrap();
    let verdict = recorded.judge(&text, Model::Ptx).unwrap();
    if let Err(finding) = judge::judge(&kernel, &[0, 1, 2, 3]) {
        panic!("{finding}\n{}", text.whole());
    }
    !verdict.races.is_empty()
}

#[test]
fn a_copy_is_under_way_until_its_thread_has_waited() {
    let copy = Act::Copy {
        from: copied(0, false, 4),
        to: copied(0, true, 4),
    };
    let done = Act::WaitGroup(None);
    let barrier = || Step::Barrier(Whole::Bar);
    let other = || acts(1, vec![load(true)]);
    assert!(races(vec![acts(0, vec![copy, load(true)])]));
    assert!(!races(vec![acts(0, vec![copy, done, load(true)])]));
    assert!(!races(vec![acts(0, vec![copy, load(false)])]));
    assert!(races(vec![acts(0, vec![copy]), barrier(), other()]));
    assert!(races(vec![acts(0, vec![copy, done]), other()]));
    assert!(!races(vec![acts(0, vec![copy, done]), barrier(), other()]));
    // The last group may still be under way.
    let two = [copy, Act::Commit, Act::WaitGroup(Some(1)), load(true)];
    assert!(races(vec![acts(0, two.to_vec())]));
}

#[test]
fn a_bulk_copy_reads_what_is_behind_a_proxy_fence_and_ends_with_its_group() {
    let store = Act::Access(Access {
        kind: AccessKind::Store,
        order: AccessOrder::Plain,
        target: copied(0, true, 4),
        after_flag: false,
    });
    for op in [None, Some("add")] {
        let bulk = Act::Bulk {
            from: copied(0, true, 16),
            to: copied(0, false, 16),
            op,
        };
        let wait = |read| Act::BulkWait { left: 0, read };
        let with = |fence: Option<Act>, read, last| {
            let mut all = vec![store];
            all.extend(fence);
            all.extend([bulk, Act::BulkCommit, wait(read), last]);
            races(vec![acts(0, all)])
        };
        let fence = Some(Act::ProxyFence);
        assert!(!with(fence, false, load(false)), "{op:?}");
        assert!(with(None, false, load(false)), "{op:?}");
        assert!(with(fence, true, load(false)), "{op:?}");
        assert!(!with(fence, true, store), "{op:?}");
    }
}

#[test]
fn an_mbarrier_makes_known_copies_that_end_with_it_and_arrivals() {
    let bulk = Act::Bulk {
        from: copied(0, false, 16),
        to: copied(0, true, 16),
        op: None,
    };
    let arrive = |relaxed| Act::Arrive {
        copies: false,
        relaxed,
    };
    let pass = |relaxed| Act::Pass {
        tries: 1000,
        relaxed,
    };
    let store = access(AccessKind::Store, AccessOrder::Plain, 64, false);
    let other = access(AccessKind::Load, AccessOrder::Plain, 64, true);
    let behind = |of: Act| match of {
        Act::Access(access) => Act::Access(Access {
            after_flag: true,
            ..access
        }),
        of => of,
    };
    let handed = |arrives: &[Act], reads: &[Act]| {
        races(vec![acts(0, arrives.to_vec()), acts(1, reads.to_vec())])
    };
    // The copy brings an arrival of its own thread with it.
    assert!(!handed(
        &[bulk, arrive(false)],
        &[pass(false), behind(load(true))]
    ));
    assert!(handed(&[bulk, arrive(false)], &[load(true)]));
    assert!(!handed(
        &[store, bulk, arrive(false)],
        &[pass(false), other]
    ));
    assert!(!handed(
        &[arrive(false), store, arrive(false)],
        &[pass(false), other]
    ));
    assert!(handed(
        &[arrive(false), arrive(false), store],
        &[pass(false), other]
    ));
    assert!(handed(
        &[store, arrive(true), arrive(true)],
        &[pass(false), other]
    ));
    assert!(handed(
        &[store, arrive(false), arrive(false)],
        &[pass(true), other]
    ));
    let fence = Act::Fence("acq_rel", Scope::Cta);
    assert!(!handed(
        &[store, fence, arrive(true), arrive(true)],
        &[pass(true), fence, other]
    ));
}
