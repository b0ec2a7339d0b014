//! Locks by the text of a function, for runs that do not show the values of swaps, as those on a GPU do not.

use std::collections::BTreeSet;

use ptx::isa;

use super::flow::{Flow, RequiredOrder};
use crate::log::{Level, Locked};

/// The lock that every thread has taken which comes to a statement: of the swaps in `takes`, the last one in front of the
/// statement whose word is written again behind it. Fences are those that order threads as far apart as the level says.
pub(super) fn at(
    flow: &Flow<'_>,
    takes: &BTreeSet<usize>,
    at: usize,
    level: Level,
) -> Option<Locked> {
    let home = flow.cfg.block_of(at);
    let order = match level {
        Level::Grid => RequiredOrder::Fence,
        Level::Cta | Level::Warp => RequiredOrder::BlockFence,
    };
    let free = |way| flow.reaches(way, &[], RequiredOrder::Nothing);
    takes.iter().rev().find_map(|&taken| {
        let block = flow.cfg.block_of(taken);
        let ahead = match block == home {
            true => taken < at,
            false => flow.cfg.dominates(block, home),
        };
        let word = flow.address(taken).filter(|_| ahead)?;
        let writes = flow.body.instructions().filter(|&(write, of)| {
            let writes = isa::memory(of).is_some_and(|op| op.is_strong() && op.is_write());
            write != taken && writes && flow.address(write) == Some(word)
        });
        let writes: Vec<usize> = writes.map(|(write, _)| write).collect();
        let held = flow.reaches([taken, at], &writes, RequiredOrder::Nothing);
        let mut behind = writes.iter().filter(|&&write| !takes.contains(&write));
        let released = *behind.find(|&&write| held && free([at, write]))?;
        Some(Locked {
            taken: flow.place(taken),
            released: flow.place(released),
            no_entry_fence: flow.reaches([taken, at], &[], order),
            no_exit_fence: flow.reaches([at, released], &[], order),
        })
    })
}
