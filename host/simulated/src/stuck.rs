//! What a launch is reported with that is stuck, or was interrupted: threads that wait at one place for one thing are one
//! entry.

use simt::{Absent, LaunchError, On, Waiting};

use report::log::{self, Stuck, Wait};
use runtime::{Checker, ModuleKey};

/// Entries that are kept.
const MOST: usize = 16;

/// Which threads wait for what, if an error says so. Its lines are those of the program's own PTX.
pub(crate) fn stuck(error: &LaunchError, checker: &Checker, key: ModuleKey) -> Option<Box<Stuck>> {
    let (waiting, absent) = match error {
        LaunchError::Deadlock {
            waiting, absent, ..
        } => (waiting, absent.clone()),
        LaunchError::Interrupted { threads, .. } => (threads, Absent::default()),
        _ => return None,
    };
    let mut entries: Vec<(&Waiting, u64, Vec<[u32; 3]>)> = Vec::new();
    for group in waiting {
        let threads = u64::from(group.lanes.count_ones());
        let known = entries.iter_mut().find(|(of, ..)| is_same(of, group));
        match known {
            Some((_, count, blocks)) => {
                *count += threads;
                // Groups come in the order of their blocks.
                if blocks.last() != Some(&group.at.cta) {
                    blocks.push(group.at.cta);
                }
            }
            None => entries.push((group, threads, vec![group.at.cta])),
        }
    }
    let waits = entries
        .iter()
        .take(MOST)
        .map(|(group, threads, blocks)| Wait {
            on: on(&group.on, checker),
            threads: *threads,
            blocks: blocks.len() as u64,
            thread: group.at.thread,
            block: group.at.cta,
            ptx_line: group.at.line,
            frames: checker.source(key, group.at.line),
        });
    let Absent {
        exited,
        first,
        unstarted,
        threads,
    } = absent;
    Some(Box::new(Stuck {
        waits: waits.collect(),
        more: entries.len().saturating_sub(MOST) as u64,
        exited,
        first_exited: first,
        unstarted,
        exited_threads: threads,
    }))
}

/// Whether two groups wait at one place for one thing, each in its own block.
fn is_same(a: &Waiting, b: &Waiting) -> bool {
    let on = match (&a.on, &b.on) {
        (On::Barrier { id: a, .. }, On::Barrier { id: b, .. }) => a == b,
        (On::Cluster { .. }, On::Cluster { .. }) => true,
        (a, b) => a == b,
    };
    on && a.at.line == b.at.line
}

fn on(on: &On, checker: &Checker) -> log::On {
    match *on {
        On::Lanes => log::On::Lanes,
        On::Barrier {
            id,
            arrived,
            expected,
        } => log::On::Barrier {
            id,
            arrived,
            expected,
        },
        On::Cluster { arrived, expected } => log::On::Cluster { arrived, expected },
        On::Grid => log::On::Grid,
        On::Memory {
            space,
            address,
            bytes,
            value,
        } => {
            let shared = space != ptx::ast::Space::Global;
            log::On::Memory {
                space: match shared {
                    true => log::Space::Shared,
                    false => log::Space::Global,
                },
                address,
                bytes,
                value,
                allocation: match shared {
                    true => None,
                    false => checker.allocation(address),
                },
            }
        }
        On::Mbarrier {
            address,
            arrivals,
            bytes,
        } => log::On::Mbarrier {
            address,
            arrivals,
            bytes,
        },
        On::Running => log::On::Running,
        On::Nothing => log::On::Nothing,
    }
}
