//! Barriers of the grid, as happens-before follows them.
//!
//! Between CTAs they are an atomic and a load of one word (`rewrite::grid`). A CTA may arrive for the
//! next time before another has seen that all have come; taken as it stands, the load of the other
//! then acquires what the first did in between, by chance. So every other time counts at a word of its
//! own: nobody arrives for the next but one before all have seen the end of the first.

use std::collections::HashMap;

use ptx::ast::Body;
use rewrite::grid::{self, GridBarrier};

/// The two accesses of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A CTA arrives.
    Arrival,
    /// It looks whether all have arrived.
    Look,
}

/// The barriers of a function.
#[derive(Debug)]
pub(crate) struct Barriers(Vec<GridBarrier>);

impl Barriers {
    pub(crate) fn of(body: &Body) -> Self {
        Self(grid::barriers(body))
    }

    /// What the instruction at a statement is to one of them.
    pub(crate) fn part(&self, statement: usize) -> Option<Part> {
        self.0.iter().find_map(|barrier| match statement {
            at if at == barrier.arrival => Some(Part::Arrival),
            at if at == barrier.load => Some(Part::Look),
            _ => None,
        })
    }

    /// Whether the instruction at a statement is the end of one of them.
    pub(crate) fn has_end(&self, statement: usize) -> bool {
        self.0.iter().any(|barrier| barrier.last == statement)
    }
}

/// How often each CTA has arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrivals(HashMap<u64, u64>);

impl Arrivals {
    /// How many bytes below the barrier's word the word is where `cta` arrives or looks: 0, or 4,
    /// where the driver keeps the size of the workspace, which nobody accesses in a kernel.
    pub(crate) fn step(&mut self, cta: u64, part: Part) -> u64 {
        let arrivals = self.0.entry(cta).or_default();
        *arrivals += u64::from(part == Part::Arrival);
        *arrivals % 2 * 4
    }
}
