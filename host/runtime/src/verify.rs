//! What one run of a launch proves of all its runs.
//!
//! If nothing in a launch depends on the order in which its threads run, and no accesses race in one run, none race in
//! any: take the first access that differs in another order; all that it depends on came before it, so it is the same.
//! For that
//!
//! 1. no value that depends on the order (a result of an atomic, a strong load, a clock) decides an address or a branch
//!    ([`events::Observer::depends`]);
//! 2. every command of a barrier belongs to one generation in every order ([`shadow::hb::Generations`]);
//! 3. no accesses race by happens-before, also where only barriers, and no fences and atomics, order threads, since
//!    what these order depends on who comes first.
//!
//! If no value of the launch's input decides an address or a branch either, all of that holds for other input too.
//! What the launch's arguments prove of an access holds for every order and input already ([`prove`]).

use std::collections::{BTreeMap, HashSet};

use events::{AccessKind, Bytes, Decides, Exchange, Executing, Misuse, Observer, Sources, Updated};
use ptx::ast::Space;

use crate::judged::Judged;
use crate::log;
use crate::options::Verify;
use crate::pairs::Class;
use crate::reference::Reference;

/// Something that is in the way of a proof: at an instruction, by what, and the instruction that has brought the value.
type Reason = (u32, Obstacle, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    /// A value decides something.
    Value(Decides, Sources),
    /// Accesses are ordered by more than barriers.
    Order,
    /// A kernel launches kernels.
    Launches,
}

/// Listens to a launch for its happens-before, and follows what may be otherwise in another run.
pub struct Followed {
    reference: Reference,
    /// Byte offsets of accesses that the launch's arguments prove.
    proved: HashSet<u32>,
    reasons: BTreeMap<Reason, u64>,
    warp_synchronous: bool,
    /// The lanes of the last access, if they go on together.
    together: Option<Executing>,
}

impl Followed {
    pub(crate) fn new(reference: Reference, proved: HashSet<u32>, verify: Verify) -> Self {
        Self {
            reference: reference.with_barriers_alone(),
            proved,
            reasons: BTreeMap::new(),
            warp_synchronous: verify.warp_synchronous,
            together: None,
        }
    }

    /// What happens-before has found, and what is in the way of a proof.
    pub fn finish(mut self) -> (Reference, Obstacles) {
        for [earlier, later] in self.reference.unordered_by_barriers() {
            self.note(later, Obstacle::Order, earlier);
        }
        (self.reference, Obstacles(self.reasons))
    }

    fn note(&mut self, offset: u32, obstacle: Obstacle, from: u32) {
        *self.reasons.entry((offset, obstacle, from)).or_default() += 1;
    }
}

/// What is in the way of a proof of a launch.
#[derive(Debug, Default)]
pub struct Obstacles(BTreeMap<Reason, u64>);

impl Obstacles {
    /// The answer for a launch that was listened to. `place` turns a byte offset in the module's text into a line and
    /// its source.
    pub(crate) fn answer(
        &self,
        judged: &Judged,
        failed: Option<&str>,
        place: impl Fn(u32) -> (u32, Vec<log::Frame>),
    ) -> log::Verified {
        let because = |text: &str, offset: u32, from: u32| {
            let (ptx_line, frames) = place(offset);
            let (from_ptx_line, from_frames) = match from == offset {
                true => (0, Vec::new()),
                false => place(from),
            };
            log::Because {
                text: text.to_owned(),
                ptx_line,
                frames,
                from_ptx_line,
                from_frames,
            }
        };
        let races = judged.found.iter();
        let certain = races.filter(|of| matches!(of.class, Class::Race));
        if certain.count() > 0 || !judged.misuses.is_empty() {
            return log::Verified::of(log::Answer::Race, Vec::new());
        }
        let mut unknown = Vec::new();
        let mut input = Vec::new();
        if let Some(failed) = failed {
            unknown.push(log::Because::of(format!("the launch failed: {failed}")));
        }
        for found in &judged.found {
            let site = found.race.later.site;
            let offset = offset_of(judged, site);
            unknown.push(because(
                "accesses are ordered by locks or fences in this run only, or by nothing but volatile or relaxed accesses",
                offset,
                offset_of(judged, found.race.earlier.site),
            ));
        }
        for &(offset, obstacle, from) in self.0.keys() {
            match obstacle {
                Obstacle::Value(decides, Sources { schedule: true, .. }) => {
                    unknown.push(because(&by_order(decides), offset, from));
                }
                Obstacle::Value(decides, _) => {
                    input.push(because(&by_input(decides), offset, from));
                }
                Obstacle::Order => unknown.push(because(
                    "what orders the access depends on fences, flags or atomics, which may order it otherwise in another run",
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

fn offset_of(judged: &Judged, site: u32) -> u32 {
    judged.instructions.offset(site).unwrap_or(0)
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

impl Observer for Followed {
    const FOLLOWS_VALUES: bool = true;

    fn depends(&mut self, who: Executing, decides: Decides, on: Sources, from: u32) {
        let excused = decides != Decides::Flow && self.proved.contains(&who.offset);
        if !excused {
            self.note(who.offset, Obstacle::Value(decides, on), from);
        }
    }

    fn access(
        &mut self,
        who: Executing,
        kind: AccessKind,
        space: Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        self.reference.access(who, kind, space, addresses, bytes);
        self.together = self.warp_synchronous.then_some(who);
    }

    fn exchanged(
        &mut self,
        who: Executing,
        space: Space,
        addresses: &[u64; 32],
        exchange: Exchange<'_>,
    ) {
        self.reference.exchanged(who, space, addresses, exchange);
    }

    fn updated(
        &mut self,
        who: Executing,
        space: Space,
        addresses: &[u64; 32],
        updated: Updated<'_>,
    ) {
        self.reference.updated(who, space, addresses, updated);
    }

    fn follows(&self, space: Space) -> bool {
        self.reference.follows(space)
    }

    fn changes(&mut self, who: Executing, lane: u32, place: (Space, u64), before: u32) {
        self.reference.changes(who, lane, place, before);
    }

    fn accessed(&mut self, read: &dyn Fn(Space, u64) -> Option<u32>) {
        self.reference.accessed(read);
        if let Some(who) = self.together.take() {
            self.reference.meet(who);
        }
    }

    fn arrive(&mut self, who: Executing, id: u32, waits: bool) {
        self.reference.arrive(who, id, waits);
    }

    fn complete(&mut self, cta: u64, id: u32) {
        self.reference.complete(cta, id);
    }

    fn warp_barrier(&mut self, who: Executing) {
        self.reference.warp_barrier(who);
    }

    fn fence(&mut self, who: Executing) {
        self.reference.fence(who);
    }

    fn copies(&mut self, who: Executing) {
        self.reference.copies(who);
    }

    fn dependency(&mut self, who: Executing) {
        self.reference.dependency(who);
    }

    fn copy(&mut self, who: Executing, from: Bytes, to: Bytes, mbarrier: Option<u64>) {
        self.reference.copy(who, from, to, mbarrier);
    }

    fn mbarrier(&mut self, who: Executing, address: u64, over: bool) {
        // Whether a phase is over when a thread looks depends on who comes first.
        if over && self.reference.looks(who) {
            self.note(who.offset, Obstacle::Order, who.offset);
        }
        self.reference.mbarrier(who, address, over);
    }

    fn mbarrier_complete(&mut self, who: Executing, address: u64) {
        self.reference.mbarrier_complete(who, address);
    }

    fn cluster_arrive(&mut self, who: Executing, phase: u64) {
        self.reference.cluster_arrive(who, phase);
    }

    fn cluster_wait(&mut self, who: Executing, phase: u64) {
        self.reference.cluster_wait(who, phase);
    }

    fn allocated(&mut self, address: u64, bytes: u64) {
        self.reference.allocated(address, bytes);
    }

    fn released(&mut self, address: u64, bytes: u64) {
        self.reference.released(address, bytes);
    }

    fn requested(&mut self, who: Executing, number: usize) {
        self.note(who.offset, Obstacle::Launches, who.offset);
        self.reference.requested(who, number);
    }

    fn misuse(&mut self, who: Executing, misuse: Misuse, offset: u32) {
        self.reference.misuse(who, misuse, offset);
    }

    fn jump(&mut self, who: Executing) {
        self.reference.jump(who);
    }

    fn exit(&mut self, who: Executing) {
        self.reference.exit(who);
    }
}
