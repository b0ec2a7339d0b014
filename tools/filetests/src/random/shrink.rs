//! Makes a kernel that disagrees as small as it can be while it still does, in the same way.

use super::judge::{Finding, judge};
use super::kernel::{Act, Call, Kernel, Role, Step, Target};

/// Kernels tried at most.
const MOST: u32 = 3000;

/// The smallest kernel found while there is `time_left`, and how it disagrees.
pub fn shrink(
    kernel: &Kernel,
    finding: Finding,
    schedules: &[u64],
    time_left: &dyn Fn() -> bool,
) -> (Kernel, Finding) {
    let (mut best, mut how) = (kernel.clone(), finding);
    let mut tried = 0;
    'again: loop {
        for candidate in smaller(&best) {
            tried += 1;
            if tried > MOST || !time_left() {
                return (best, how);
            }
            match judge(&candidate, schedules) {
                Err(finding) if finding.wrong == how.wrong => {
                    (best, how) = (candidate, finding);
                    continue 'again;
                }
                _ => {}
            }
        }
        return (best, how);
    }
}

/// Kernels with a little less in them, the largest cuts first.
fn smaller(kernel: &Kernel) -> Vec<Kernel> {
    let mut all = Vec::new();
    let mut push = |change: &dyn Fn(&mut Kernel)| {
        let mut less = kernel.clone();
        change(&mut less);
        if less != *kernel {
            all.push(less);
        }
    };
    let steps = |list: Vec<Step>| move |less: &mut Kernel| less.steps = list.clone();
    for list in fewer_steps(&kernel.steps) {
        push(&steps(list));
    }
    push(&|less| {
        less.ctas = if less.clusters {
            2
        } else {
            (less.ctas - 1).max(1)
        }
    });
    push(&|less| less.warps = (less.warps - 1).max(1));
    push(&|less| less.clusters &= less.reaches_far());
    push(&|less| less.small_shadow = false);
    push(&|less| less.beside.clear());
    for number in 0..kernel.roles.len() {
        for role in fewer_threads(kernel.roles[number]) {
            push(&|less| less.roles[number] = role);
        }
    }
    for list in simpler_steps(&kernel.steps) {
        push(&steps(list));
    }
    all
}

/// The list without one of its steps, or with fewer acts in one.
fn fewer_steps(list: &[Step]) -> Vec<Vec<Step>> {
    let mut all = Vec::new();
    for at in 0..list.len() {
        let with = |instead: Vec<Step>| [&list[..at], &instead, &list[at + 1..]].concat();
        match &list[at] {
            // An arrival and its wait go together, or the kernel hangs for another reason.
            Step::ClusterArrive { .. } => {
                let mut fewer = with(Vec::new());
                let wait = fewer[at..]
                    .iter()
                    .position(|step| *step == Step::ClusterWait);
                wait.map(|wait| fewer.remove(at + wait));
                all.push(fewer);
            }
            Step::ClusterWait => {}
            _ => all.push(with(Vec::new())),
        }
        match &list[at] {
            Step::Acts {
                role,
                branch,
                acts,
                others,
                call,
            } => {
                let step = |acts: &[Act], others: &[Act]| Step::Acts {
                    role: *role,
                    branch: *branch,
                    acts: acts.to_vec(),
                    others: others.to_vec(),
                    call: *call,
                };
                if *call != Call::Inline {
                    let mut inline = list[at].clone();
                    if let Step::Acts { call, .. } = &mut inline {
                        *call = Call::Inline;
                    }
                    all.push(with(vec![inline]));
                }
                if !others.is_empty() {
                    all.push(with(vec![step(acts, &[])]));
                }
                for gone in 0..acts.len() {
                    let fewer = [&acts[..gone], &acts[gone + 1..]].concat();
                    all.push(with(vec![step(&fewer, others)]));
                }
                for gone in 0..others.len() {
                    let fewer = [&others[..gone], &others[gone + 1..]].concat();
                    all.push(with(vec![step(acts, &fewer)]));
                }
            }
            Step::Loop { times, steps } => {
                all.push(with(steps.clone()));
                for steps in fewer_steps(steps) {
                    let times = *times;
                    all.push(with(vec![Step::Loop { times, steps }]));
                }
            }
            _ => {}
        }
    }
    all
}

/// The list with one access made plainer.
fn simpler_steps(list: &[Step]) -> Vec<Vec<Step>> {
    let mut all = Vec::new();
    for at in 0..list.len() {
        let with = |instead: Step| [&list[..at], &[instead], &list[at + 1..]].concat();
        let Step::Acts {
            role,
            branch,
            acts,
            others,
            call,
        } = &list[at]
        else {
            continue;
        };
        for (number, act) in acts.iter().enumerate() {
            let Act::Access(access) = act else { continue };
            let target = Target {
                generic: false,
                by_lane: false,
                vector: 1,
                ..access.target
            };
            let mut acts = acts.clone();
            acts[number] = Act::Access(super::kernel::Access { target, ..*access });
            if *act != acts[number] {
                all.push(with(Step::Acts {
                    role: *role,
                    branch: *branch,
                    acts,
                    others: others.clone(),
                    call: *call,
                }));
            }
        }
    }
    all
}

fn fewer_threads(role: Role) -> Vec<Role> {
    let mut all = Vec::new();
    for ctas in fewer_bits(role.ctas) {
        all.push(Role { ctas, ..role });
    }
    for warps in fewer_bits(role.warps) {
        all.push(Role { warps, ..role });
    }
    for lanes in fewer_bits(role.lanes) {
        all.push(Role { lanes, ..role });
    }
    all
}

/// The lowest bit, half of the bits, and all but one.
fn fewer_bits(mask: u32) -> Vec<u32> {
    let lowest = mask & mask.wrapping_neg();
    let masks = [lowest, mask & 0xffff, mask & !lowest];
    masks
        .into_iter()
        .filter(|&less| less != 0 && less != mask)
        .collect()
}
