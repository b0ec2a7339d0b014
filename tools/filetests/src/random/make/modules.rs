//! What makes a module of a kernel: functions that it calls, directly and through pointers, and other
//! kernels beside it. And kernels of a few lines, where a verdict hangs on one thing.

use super::super::Random;
use super::super::kernel::{AccessKind, AccessOrder, Act, Call, Kernel, Role, Step};
use super::{Flavour, Maker};

/// Acts that need nothing of the kernel but its memory, and leave nothing to it.
fn stand_alone(acts: &[Act]) -> bool {
    acts.iter().all(|act| match act {
        Act::Access(access) => !access.after_flag,
        Act::Fence(..) | Act::Copy { .. } | Act::Commit | Act::WaitGroup(_) => true,
        Act::BulkCommit | Act::BulkWait { .. } | Act::ProxyFence => true,
        _ => false,
    })
}

/// Puts the acts of some steps into functions.
pub(super) fn calls(kernel: &mut Kernel) {
    let mut random = Random::new(kernel.seed.rotate_left(8) ^ 0x6361_6c6c);
    if random.percent(25) {
        let often = random.pick(&[30, 60, 100]);
        // Some modules do everything in one way.
        let way = random.percent(50).then(|| any(&mut random));
        outline(&mut kernel.steps, &mut random, often, way);
    }
}

fn any(random: &mut Random) -> Call {
    random.pick(&[Call::Direct, Call::Pointer, Call::Table, Call::Virtual])
}

fn outline(steps: &mut [Step], random: &mut Random, often: u32, way: Option<Call>) {
    for step in steps {
        match step {
            Step::Acts { call, acts, .. } if stand_alone(acts) && random.percent(often) => {
                *call = way.unwrap_or_else(|| any(random));
            }
            Step::Loop { steps, .. } => outline(steps, random, often, way),
            _ => {}
        }
    }
}

/// The seeds of kernels that stand in the module of some kernels, and are not launched.
pub(super) fn beside(seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed.rotate_left(24) ^ 0x6d6f_6475);
    match random.percent(15) {
        true => {
            let count = 1 + random.below(2);
            (0..count).map(|_| random.number() % 1_000_000).collect()
        }
        false => Vec::new(),
    }
}

/// A kernel of one or two messages between single threads.
pub(super) fn messages(seed: u64) -> Kernel {
    let mut random = Random::new(seed.rotate_left(56) ^ 0x6d65_7373);
    let (ctas, warps) = random.pick(&[(1, 2), (2, 1), (2, 1), (3, 1)]);
    let role = |number: u32| Role {
        ctas: 1 << (number % ctas),
        warps: 1 << (number / ctas % warps),
        lanes: 1,
    };
    let mut kernel = Kernel {
        seed,
        ctas,
        warps,
        clusters: false,
        small_shadow: false,
        roles: (0..ctas * warps).map(role).collect(),
        gates: Vec::new(),
        steps: Vec::new(),
        early: false,
        beside: Vec::new(),
    };
    let mut maker = Maker {
        random,
        flavour: Flavour::Flags,
        sizes: vec![4],
        strong: vec![4],
        words: 1,
        shared: 0,
        small_shadow: false,
        clusters: false,
        copies: false,
        bulk: false,
        sends: false,
        named: 0,
    };
    let mut steps = Vec::new();
    for _ in 0..1 + maker.random.below(2) {
        maker.message(&kernel, &mut steps);
    }
    // Every flag is set at last, and whoever waits for it sees that.
    let all = steps.iter_mut().filter_map(|step| match step {
        Step::Acts { acts, .. } => Some(acts),
        _ => None,
    });
    for act in all.flatten() {
        if let Act::Poll { tries, .. } = act {
            *tries = 1_000_000;
        }
    }
    kernel.steps = steps;
    kernel
}

/// Lets those who wait for a flag look before they come to the loop.
pub(super) fn look_before(steps: &mut [Step]) {
    for step in steps {
        match step {
            Step::Acts { acts, others, .. } => {
                for act in acts.iter_mut().chain(others) {
                    if let Act::Poll { before, .. } = act {
                        *before = true;
                    }
                }
            }
            Step::Loop { steps, .. } => look_before(steps),
            _ => {}
        }
    }
}

/// Makes volatile what is weak.
pub(super) fn make_volatile(steps: &mut [Step]) {
    for step in steps {
        let all = match step {
            Step::Acts { acts, others, .. } => acts.iter_mut().chain(others),
            Step::Loop { steps, .. } => {
                make_volatile(steps);
                continue;
            }
            _ => continue,
        };
        for act in all {
            if let Act::Access(access) | Act::Poll { access, .. } = act
                && access.order == AccessOrder::Plain
                && matches!(access.kind, AccessKind::Load | AccessKind::Store)
            {
                access.order = AccessOrder::Volatile;
            }
        }
    }
}
