//! Barriers of a whole CTA that complete without threads that have exited.
//!
//! A thread that returns early is done: devices do not wait for it. One that passes by a barrier and goes on with what
//! comes behind it has skipped the barrier (CUDA C++ Programming Guide, "Synchronization Functions"). Both exit, so
//! what they have done last tells them apart: whether anything between the last jump and the exit could have been
//! reached from the barrier. An early return in a loop that has a barrier is taken for skipping if it does something
//! of its own right before.

use events::Misuse;

use super::barriers::{Barriers, Exit};
use super::listener::Listener;
use super::machine::Machine;
use crate::code::{Kind, Program};

impl<O: Listener + ?Sized> Machine<'_, O> {
    /// How a barrier, to which threads came by the op `at`, is misused by those that have exited.
    #[cold]
    pub(super) fn without_threads(&self, barriers: &Barriers, at: u32) -> Misuse {
        let program = self.setup.program;
        let behind = behind(program, at);
        let does = |pc: u32| match program.ops[pc as usize].kind {
            Kind::Branch(_) | Kind::Return | Kind::Exit | Kind::Nop => false,
            _ => behind[pc as usize] && !self.setup.is_inserted(pc),
        };
        let skips = |exit: &Exit| (exit.came..exit.pc).any(does);
        match barriers.exits().iter().any(skips) {
            true => Misuse::Skipped,
            false => Misuse::Exited,
        }
    }
}

/// Which ops of its function an op leads to.
fn behind(program: &Program, at: u32) -> Vec<bool> {
    let mut found = vec![false; program.ops.len()];
    let mut left = vec![at + 1];
    while let Some(pc) = left.pop() {
        let Some(op) = program.ops.get(pc as usize) else {
            continue;
        };
        if std::mem::replace(&mut found[pc as usize], true) {
            continue;
        }
        let ends = match &op.kind {
            Kind::Branch(target) => {
                left.push(*target);
                true
            }
            Kind::BranchIndexed { targets, .. } => {
                left.extend(targets.iter());
                true
            }
            Kind::Return | Kind::Exit | Kind::Trap => true,
            _ => false,
        };
        if !ends || op.guard != 0 {
            left.push(pc + 1);
        }
    }
    found
}
