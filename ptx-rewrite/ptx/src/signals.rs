//! Accesses to memory that threads communicate through, whether or not a run waits there.
//!
//! A strong load that decides the exit of a loop shows that its location is a signal. A run may never
//! execute that load: the lock was free, the other thread did not come. Then another access tells
//! where the location is, if its address is computed from the same values by the same steps:
//! `node->next` in front of the loop that waits for `node->next`.

use std::collections::{BTreeSet, HashSet};

use crate::ast::{Function, Instruction, Module};
use crate::cfg::Cfg;
use crate::dataflow::Dataflow;
use crate::isa::{self, MemoryKind, MemoryOp};
use crate::values::Values;
use crate::{versions, waits};

/// The statements that access what a loop of a function waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// The loads and atomics that decide the loop's exit ([`waits`](crate::waits())).
    pub waits: BTreeSet<usize>,
    /// Those, and strong accesses of the same size at the address of one of them.
    pub all: BTreeSet<usize>,
}

/// The signals of a function.
pub fn signals(module: &Module, function: &Function) -> Signals {
    let mut signals = Signals::default();
    let Some(body) = &function.body else {
        return signals;
    };
    let accesses: Vec<_> = body
        .instructions()
        .filter_map(|(at, instruction)| Some((at, instruction, isa::memory(instruction)?)))
        .filter(|(.., op)| op.is_plain())
        .collect();
    if !accesses.iter().any(|(.., op)| op.is_strong()) {
        return signals;
    }
    let Some(cfg) = Cfg::of(module, function) else {
        return signals;
    };
    let flow = Dataflow::new(body);
    signals.waits = waits::find(body, &cfg, &flow);
    let mut found = signals.waits.clone();
    // A load that compares two values of one word makes the word a signal. A compare-and-swap does not: it may
    // just compute a sum.
    let twice = versions::find(body, &cfg, &flow).closes.into_iter();
    found.extend(twice.filter(|at| {
        accesses
            .iter()
            .any(|(of, _, op)| of == at && op.kind == MemoryKind::Load)
    }));
    if found.is_empty() {
        return signals;
    }
    let mut values = Values::new(body, &cfg, &flow);
    let mut place = |(at, instruction, op): &(usize, &Instruction, MemoryOp)| {
        let address = values.address(*at, instruction.operands.get(op.address)?)?;
        Some((address, op.bytes_per_element, op.vector))
    };
    let (known, others): (Vec<_>, Vec<_>) = accesses
        .into_iter()
        .filter(|(.., op)| op.is_strong())
        .partition(|(at, ..)| found.contains(at));
    let known: HashSet<_> = known.iter().filter_map(&mut place).collect();
    let alike = others
        .iter()
        .filter(|access| place(access).is_some_and(|at| known.contains(&at)));
    found.extend(alike.map(|(at, ..)| *at));
    signals.all = found;
    signals
}
