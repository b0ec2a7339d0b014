//! What one run of a launch proves of all its runs.
//!
//! If nothing in a launch depends on the order in which its threads run, and no accesses race in one run, none race in
//! any: take the first access that differs in another order; all that it depends on came before it, so it is the same.
//! For that
//!
//! 1. no value that depends on the order (a result of an atomic, a strong load, a clock) decides an address or a branch
//!    ([`events::Observer::depends`]);
//! 2. every command of a barrier belongs to one generation in every order, and so do the operations and waits of
//!    mbarriers to their phases ([`shadow::hb::Generations`]);
//! 3. no accesses race by happens-before, also where only barriers and mbarriers, and no fences and atomics, order threads, since
//!    what these order depends on who comes first.
//!
//! If no value of the launch's input decides an address or a branch either, all of that holds for other input too.
//! What the launch's arguments prove of an access holds for every order and input already ([`prove`]).

use std::collections::{BTreeSet, HashSet};

use events::{Decides, Executing, Observer, Sources};
use shadow::hb::Unphased;

use crate::findings::Findings;
use crate::log;
use crate::pairs::Class;

/// Something that is in the way of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reason {
    /// Byte offset of the instruction.
    offset: u32,
    obstacle: Obstacle,
    /// Byte offset of the instruction that has brought the value.
    from: u32,
}

/// Where an instruction is.
pub(crate) struct Place {
    pub(crate) ptx_line: u32,
    /// Its source.
    pub(crate) frames: Vec<log::Frame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    /// A value decides something.
    Value(Decides, Sources),
    /// Accesses are ordered by more than barriers.
    Order,
    /// A kernel launches kernels.
    Launches,
}

/// What is in the way of a proof of a launch, as its values say. Listens beside happens-before.
#[derive(Debug, Default)]
pub struct Obstacles {
    /// Byte offsets of accesses that the launch's arguments prove.
    proved: HashSet<u32>,
    found: BTreeSet<Reason>,
}

impl Observer for Obstacles {
    fn follows_values(&self) -> bool {
        true
    }

    fn depends(&mut self, threads: Executing, decides: Decides, on: Sources, from: u32) {
        let excused = decides != Decides::Flow && self.proved.contains(&threads.offset);
        if !excused {
            self.found.insert(Reason {
                offset: threads.offset,
                obstacle: Obstacle::Value(decides, on),
                from,
            });
        }
    }

    fn requested(&mut self, threads: Executing, _: usize) {
        self.found.insert(Reason {
            offset: threads.offset,
            obstacle: Obstacle::Launches,
            from: threads.offset,
        });
    }
}

impl Obstacles {
    pub(crate) fn new(proved: HashSet<u32>) -> Self {
        Self {
            proved,
            found: BTreeSet::new(),
        }
    }

    /// The answer for a launch that was listened to. `place` says where a byte offset in the module's text is.
    pub(crate) fn answer(
        &self,
        findings: &Findings,
        failed: Option<&str>,
        place: impl Fn(u32) -> Place,
    ) -> log::Verified {
        let because = |text: &str, offset: u32, from: u32| {
            let at = place(offset);
            let from = match from == offset {
                true => Place {
                    ptx_line: 0,
                    frames: Vec::new(),
                },
                false => place(from),
            };
            log::Because {
                text: text.to_owned(),
                ptx_line: at.ptx_line,
                frames: at.frames,
                from_ptx_line: from.ptx_line,
                from_frames: from.frames,
            }
        };
        let others = findings.explored.iter().map(|of| &of.findings);
        let is_bad = |of: &Findings| {
            let mut races = of.found.iter();
            races.any(|of| matches!(of.class, Class::Race)) || !of.misuses.is_empty()
        };
        if std::iter::once(findings).chain(others).any(is_bad) {
            return log::Verified::of(log::Answer::Race, Vec::new());
        }
        let mut unknown = Vec::new();
        let mut input = Vec::new();
        if let Some(failed) = failed {
            unknown.push(log::Because::of(format!("the launch failed: {failed}")));
        }
        for found in &findings.found {
            let site = found.race.later.site;
            let offset = offset_of(findings, site);
            unknown.push(because(
                "accesses are ordered by locks or fences in this run only, or by nothing but volatile or relaxed accesses",
                offset,
                offset_of(findings, found.race.earlier.site),
            ));
        }
        for &(unphased, site) in &findings.unordered_by_barriers.unphased {
            let offset = offset_of(findings, site);
            unknown.push(because(in_another_order(unphased), offset, offset));
        }
        let unordered = findings.unordered_by_barriers.pairs.iter().map(|pair| {
            let [earlier, later] = pair.map(|site| offset_of(findings, site));
            Reason {
                offset: later,
                obstacle: Obstacle::Order,
                from: earlier,
            }
        });
        for reason in self.found.iter().copied().chain(unordered) {
            let Reason {
                offset,
                obstacle,
                from,
            } = reason;
            match obstacle {
                Obstacle::Value(decides, Sources { schedule: true, .. }) => {
                    unknown.push(because(&by_order(decides), offset, from));
                }
                Obstacle::Value(decides, _) => {
                    input.push(because(&by_input(decides), offset, from));
                }
                Obstacle::Order => unknown.push(because(
                    "fences, flags or atomics order the access, and may order it otherwise in another run",
                    offset,
                    from,
                )),
                Obstacle::Launches => unknown.push(because(
                    "kernels that kernels launch are not followed",
                    offset,
                    from,
                )),
            }
        }
        match (unknown.is_empty(), input.is_empty()) {
            (false, _) => log::Verified::of(log::Answer::Unknown, unknown),
            (true, false) => log::Verified::of(log::Answer::ThisData, input),
            (true, true) => log::Verified::of(log::Answer::AllData, Vec::new()),
        }
    }
}

fn offset_of(findings: &Findings, site: u32) -> u32 {
    findings.instructions.offset(site).unwrap_or(0)
}

fn in_another_order(unphased: Unphased) -> &'static str {
    match unphased {
        Unphased::EarlyOperation => {
            "nothing lets the operation wait for the phase before, so it may belong to that phase of the mbarrier in another run"
        }
        Unphased::Unexpected => {
            "no arrival waits for the operation, so the phase of the mbarrier may end without it in another run"
        }
        Unphased::EarlyWait => {
            "the wait may find an earlier phase of the mbarrier over in another run"
        }
        Unphased::LateWait => {
            "nothing keeps the next phase of the mbarrier from ending before the wait, which then waits for another phase"
        }
    }
}

fn by_order(decides: Decides) -> String {
    format!(
        "{} depends on the order in which threads run",
        what(decides)
    )
}

fn by_input(decides: Decides) -> String {
    format!("{} depends on what memory contains", what(decides))
}

fn what(decides: Decides) -> &'static str {
    match decides {
        Decides::Address => "where the access goes",
        Decides::Access => "whether the access is made",
        Decides::Flow => "what is executed next",
    }
}
