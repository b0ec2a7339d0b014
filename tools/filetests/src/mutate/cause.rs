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
                "All synchronisation may be taken away and weakened at once, and no data race is reported: all conflicting accesses are strong, and of sufficient scope. The instruction decides which values strong accesses may return, and that is no data race."
            }
            Self::Spare => {
                "Most synchronisation may be taken away with it at once, and nothing is reported as long as the lines in brackets stay: they order all conflicting accesses."
            }
            Self::Enough => {
                "The instruction is an access, or it gives an order that is needed; its weaker form does the same here. Most other synchronisation may be taken away at the same time; the lines in brackets stay, in one form or another."
            }
            Self::Redundant => {
                "Nothing is reported without the line in brackets either, or without several such lines. Without both, something is reported. One of the two is enough."
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

/// Explains the mutants `survivors` of a text. `alone` are those that are not reported by themselves, the survivors among
/// them; `all` is everything that can be done to the text.
pub(super) fn explain(
    subject: &Subject,
    survivors: &[&Mutation],
    alone: &[&Mutation],
    all: &[Mutation],
) -> Result<Vec<Explained>> {
    let trials = Trials { subject };
    let seen = survivors.iter().map(|this| trials.by_itself(this));
    let mut explained: Vec<Option<Explained>> = seen.collect::<Result<_>>()?;
    if explained.iter().all(Option::is_some) {
        return Ok(explained.into_iter().flatten().collect());
    }
    let gone = trials.all_at_once(alone)?;
    let mut pairs: Vec<(&Mutation, u32)> = Vec::new();
    for (this, explained) in survivors.iter().copied().zip(&mut explained) {
        if explained.is_some() {
            continue;
        }
        // Where the whole instruction may go, what is left of it may stay.
        if gone.iter().any(|of| of.range == this.instruction) {
            *explained = Some(left(this, &gone, alone, all));
            continue;
        }
        let others = gone.iter().copied().filter(|of| !of.overlaps(this));
        let others: Vec<&Mutation> = others.collect();
        let made = with(&others, this);
        *explained = Some(match trials.silent(&made)? {
            true => left(this, &made, alone, all),
            false => {
                let needed = trials.culprits(this, &others)?;
                if let [other] = needed[..] {
                    pairs.push((other, this.line));
                }
                Explained::new(Cause::Redundant, lines(needed.iter().copied()))
            }
        });
    }
    let both = survivors.iter().zip(explained.into_iter().flatten());
    Ok(both
        .map(|(this, explained)| {
            let pair = pairs.iter().find(|(other, _)| other.is(this));
            match (pair, explained.cause) {
                (Some(&(_, line)), Cause::Unneeded | Cause::Spare | Cause::Enough) => {
                    Explained::new(Cause::Redundant, vec![u64::from(line)])
                }
                _ => explained,
            }
        })
        .collect())
}

/// Runs of a text with several mutations made.
struct Trials<'a> {
    subject: &'a Subject,
}

impl Trials<'_> {
    /// Whether no schedule reports a text with these mutations.
    fn silent(&self, mutations: &[&Mutation]) -> Result<bool> {
        let text = apply(self.subject.text(), mutations);
        Ok(self.subject.reported(&text, 0..SCHEDULES)?.is_none())
    }

    /// What explains a mutant whatever else is done.
    fn by_itself(&self, this: &Mutation) -> Result<Option<Explained>> {
        let text = self.subject.text();
        let later = SCHEDULES..SCHEDULES + MORE_SCHEDULES;
        if let Some(seed) = self.subject.reported(&apply(text, &[this]), later)? {
            return Ok(Some(Explained::new(Cause::Rare, vec![seed])));
        }
        let idle = self.silent(&[&this.stopping(text)])?;
        Ok(idle.then(|| Explained::new(Cause::Idle, Vec::new())))
    }

    /// As many as can be made together without a report: the first, and each of the others that goes with those before.
    fn all_at_once<'m>(&self, alone: &[&'m Mutation]) -> Result<Vec<&'m Mutation>> {
        let mut gone: Vec<&Mutation> = Vec::new();
        for &other in alone {
            if gone.iter().any(|of| of.overlaps(other)) {
                continue;
            }
            gone.push(other);
            if !self.silent(&gone)? {
                gone.pop();
            }
        }
        Ok(gone)
    }

    /// Those of `others`, which are reported together with `this`, that are so by themselves. They are halved as long as
    /// one half is enough.
    fn culprits<'m>(&self, this: &Mutation, others: &[&'m Mutation]) -> Result<Vec<&'m Mutation>> {
        if others.len() > 1 {
            let (first, second) = others.split_at(others.len() / 2);
            for half in [first, second] {
                if !self.silent(&with(half, this))? {
                    return self.culprits(this, half);
                }
            }
        }
        Ok(others.to_vec())
    }
}

fn with<'m>(others: &[&'m Mutation], this: &'m Mutation) -> Vec<&'m Mutation> {
    [others, &[this]].concat()
}

/// What `this` is where nothing is reported with all of `gone`: something stays, and orders all that must be ordered, or
/// nothing does.
fn left(this: &Mutation, gone: &[&Mutation], alone: &[&Mutation], all: &[Mutation]) -> Explained {
    let is_alone = |of: &Mutation| alone.iter().any(|alone| alone.range == of.range);
    let touched = |of: &Mutation| gone.iter().any(|gone| gone.overlaps(of));
    let stays = lines(all.iter().filter(|of| !touched(of) || !is_alone(of)));
    let mut same = all.iter().filter(|of| of.instruction == this.instruction);
    let whole_may_go = same.any(|of| of.range == of.instruction && is_alone(of));
    let cause = match stays.is_empty() {
        true => Cause::Unneeded,
        false if whole_may_go => Cause::Spare,
        false => Cause::Enough,
    };
    Explained::new(cause, stays)
}

fn lines<'m>(of: impl Iterator<Item = &'m Mutation>) -> Vec<u64> {
    let mut lines: Vec<u64> = of.map(|of| u64::from(of.line)).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}
