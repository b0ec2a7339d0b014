//! Why a mutant is not reported that is not proved to be equivalent either.
//!
//! What is left of the synchronisation in the text is taken away too, instruction by instruction, as long as nothing is
//! reported. If the mutant makes the difference then, what was taken away with it does the same as it does; if not,
//! what is still there orders all that must be ordered.

use std::fmt;

use anyhow::Result;

use super::mutations::{Mutation, apply};
use super::subject::Subject;
use super::{MORE_SCHEDULES, SCHEDULES};

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// It races under schedules that come later only.
    Rare,
    /// No schedule executes the instruction.
    Idle,
    /// All may go: nothing has to be ordered.
    Unneeded,
    /// It may go with all others but a few.
    Spare,
    /// The instruction is needed, in its weaker form, or it is an access.
    Enough,
    /// Other instructions do the same.
    Redundant,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rare => "It is reported under later schedules",
            Self::Idle => "No schedule executes the instruction",
            Self::Unneeded => "Nothing has to be ordered",
            Self::Spare => "Other instructions order everything",
            Self::Enough => "What is left of the instruction is enough",
            Self::Redundant => "Another instruction does the same",
        })
    }
}

impl Cause {
    /// What it means, for a person.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Rare => {
                "A race that depends on the schedule. The number is that of the first schedule that shows it."
            }
            Self::Idle => {
                "With `trap` in its place, the launch ends as before. In other launches the instruction may be needed."
            }
            Self::Unneeded => {
                "All synchronisation may be taken away and weakened at once, and no data race is reported: what conflicts is strong, and of sufficient scope. The instruction decides which values strong accesses may return, and that is no data race."
            }
            Self::Spare => {
                "Most synchronisation may be taken away with it at once, and nothing is reported as long as the lines in brackets stay: they order all that conflicts."
            }
            Self::Enough => {
                "The instruction is an access, or it orders what must be ordered; its weaker form does the same here. Most other synchronisation may be taken away at the same time; the lines in brackets stay, in one form or another."
            }
            Self::Redundant => {
                "Nothing is reported without the line in brackets either, or without several such lines, but without both something is. One of the two is enough."
            }
        }
    }
}

/// A cause, with the lines or the schedule that it is about.
#[derive(Clone, Debug)]
pub(super) struct Explained {
    pub(super) cause: Cause,
    pub(super) about: Vec<u64>,
}

impl Explained {
    fn new(cause: Cause, about: Vec<u64>) -> Self {
        Self { cause, about }
    }
}

/// Explains the mutant `this`, of all that can be done to a text. `alone` are those that are not reported by themselves.
pub(super) fn explain(
    subject: &Subject,
    this: &Mutation,
    alone: &[&Mutation],
    all: &[Mutation],
) -> Result<Explained> {
    let text = subject.text();
    let reported = |mutations: &[&Mutation]| -> Result<bool> {
        let found = subject.reported(&apply(text, mutations), 0..SCHEDULES)?;
        Ok(found.is_some())
    };
    let later = SCHEDULES..SCHEDULES + MORE_SCHEDULES;
    if let Some(seed) = subject.reported(&apply(text, &[this]), later)? {
        return Ok(Explained::new(Cause::Rare, vec![seed]));
    }
    if !reported(&[&this.stopping(text)])? {
        return Ok(Explained::new(Cause::Idle, Vec::new()));
    }
    let others = || alone.iter().filter(|of| !of.overlaps(this));
    for &other in others() {
        if reported(&[this, other])? {
            let line = u64::from(other.line);
            return Ok(Explained::new(Cause::Redundant, vec![line]));
        }
    }
    let mut gone: Vec<&Mutation> = Vec::new();
    for &other in others() {
        if gone.iter().any(|of| of.overlaps(other)) {
            continue;
        }
        gone.push(other);
        if reported(&gone)? {
            gone.pop();
        }
    }
    let lines = |of: &mut dyn Iterator<Item = &Mutation>| {
        let mut lines: Vec<u64> = of.map(|of| u64::from(of.line)).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    };
    let with = [&gone[..], &[this]].concat();
    if reported(&with)? {
        let gone = lines(&mut gone.iter().copied());
        return Ok(Explained::new(Cause::Redundant, gone));
    }
    let is_alone = |of: &Mutation| alone.iter().any(|alone| alone.range == of.range);
    let touched = |of: &Mutation| with.iter().any(|gone| gone.overlaps(of));
    let stays = lines(&mut all.iter().filter(|of| !touched(of) || !is_alone(of)));
    let mut same = all.iter().filter(|of| of.instruction == this.instruction);
    let whole_may_go = same.any(|of| of.range == of.instruction && is_alone(of));
    let cause = match stays.is_empty() {
        true => Cause::Unneeded,
        false if whole_may_go => Cause::Spare,
        false => Cause::Enough,
    };
    Ok(Explained::new(cause, stays))
}
