//! The second opinion on what happens-before receives of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use ptx::ast::Module;
use runtime::traced::{EventKind, TraceEvent};
use runtime::{Mode, Model};
use shadow::hb::{Location, OpKind};

use super::super::kernel::Kernel;
use super::super::tally::Tally;
use super::super::text::{self, ENTRY, Text};
use super::super::truth::Byte;
use super::bench::{Bench, Run};
use super::{Disagreement, Wrong};
use crate::definition::{self, Verdict};
use crate::machine::Checks;
use crate::retrace::{self, Objection};

/// A run, and what happens-before has received of it.
pub struct Recorded {
    /// What it has received.
    pub traced: Vec<TraceEvent>,
    module: Arc<Module>,
    kernel: Kernel,
    memory: u64,
    contents: Vec<u8>,
    workspace: Option<u64>,
    variables: BTreeMap<String, u64>,
}

/// Runs a kernel with its checks.
///
/// # Errors
/// When it does not run.
pub fn record(kernel: &Kernel, schedule: u64) -> Result<Recorded> {
    let text = text::write(kernel);
    let mut bench = Bench::new(kernel, &text, Checks::by(Mode::Precise))?;
    Ok(bench.run(schedule)?.recorded(kernel))
}

impl Recorded {
    /// Whether the text and what memory holds in the end agree with events of the run.
    ///
    /// # Errors
    /// What does not agree, or is not understood.
    pub fn confirm(&self, traced: &[TraceEvent]) -> Result<(), Objection> {
        let memory = [(self.memory, vec![0; self.contents.len()])];
        let launch = retrace::Launch {
            module: &self.module,
            entry: ENTRY,
            grid: [self.kernel.ctas, 1, 1],
            block: [self.kernel.threads(), 1, 1],
            cluster: if self.kernel.clusters { 2 } else { 1 },
            shared_content: 0,
            params: &self.memory.to_le_bytes(),
            variables: &self.variables,
            memory: &memory,
            workspace: self.workspace,
        };
        let after = retrace::follow(&launch, traced)?;
        match after.iter().all(|(_, bytes)| *bytes == self.contents) {
            true => Ok(()),
            false => Err(Objection::Differs {
                after: traced.len(),
                what: "memory differs".to_owned(),
            }),
        }
    }
}

impl Recorded {
    /// Whether it has asynchronous copies or mbarriers.
    fn is_asynchronous(&self) -> bool {
        self.traced.iter().any(|event| {
            matches!(
                event.what,
                EventKind::Copy { .. } | EventKind::Mbarrier { .. }
            )
        })
    }

    /// What the definition says of the run under a memory model, if it is not too long.
    pub fn judge(&self, text: &Text, model: Model) -> Option<Verdict> {
        let launch = definition::Launch {
            cluster: if self.kernel.clusters { 2 } else { 1 },
            threads: self.kernel.threads(),
            waits: &text.waits,
            takes: &text.takes,
            gives: &text.gives,
            copies_arrive: &text.copies_arrive,
        };
        match self.kernel.cooperative() {
            // The barrier of the grid is taken for more than its accesses.
            true => None,
            false => definition::judge(&launch, &self.traced, model),
        }
    }
}

impl Run {
    /// Takes what [`Recorded`] needs.
    pub(super) fn recorded(&mut self, kernel: &Kernel) -> Recorded {
        Recorded {
            module: Arc::clone(&self.module),
            kernel: kernel.clone(),
            memory: self.memory,
            workspace: self.workspace(),
            contents: std::mem::take(&mut self.contents),
            traced: std::mem::take(&mut self.audit.traced),
            variables: self.variables.clone(),
        }
    }

    /// What was received is what the text says.
    pub(super) fn second(
        &mut self,
        kernel: &Kernel,
        text: &Text,
        tally: &mut Tally,
    ) -> Result<(), Disagreement> {
        let recorded = self.recorded(kernel);
        self.by_definition(text, &recorded, tally)?;
        confirm(&recorded, tally)
    }

    /// The bytes that race are those that do so by definition.
    fn by_definition(
        &self,
        text: &Text,
        recorded: &Recorded,
        tally: &mut Tally,
    ) -> Result<(), Disagreement> {
        let Some(verdict) = recorded.judge(text, Model::Ptx) else {
            return Ok(());
        };
        tally.defined += 1;
        tally.defined_asynchronous += u64::from(recorded.is_asynchronous());
        let defined = self.locations(&verdict.races);
        let mut found = self.racing(text);
        found.extend(self.racing_mbarriers(recorded));
        match super::differ(&defined, &found) {
            None => Ok(()),
            Some(what) => Err((Wrong::Definition, what)),
        }
    }

    /// The bytes of mbarriers that happens-before knows a race on. The text has no places for them.
    fn racing_mbarriers(&self, recorded: &Recorded) -> BTreeSet<Byte> {
        let bytes = self.locations(&definition::mbarriers(&recorded.traced));
        let conflicts = &self.audit.happens_before;
        let words = conflicts.iter().flat_map(|conflict| {
            let word = self.offset(conflict);
            (word..word + 4).map(|byte| (conflict.shared, byte))
        });
        words.filter(|byte| bytes.contains(byte)).collect()
    }

    /// Bytes, with offsets in the kernel's own memory.
    pub(super) fn locations(&self, bytes: &BTreeSet<Location>) -> BTreeSet<Byte> {
        let byte = |location: &Location| match *location {
            Location::Global(address) => (None, (address - self.memory) as u32),
            Location::Shared { cta, offset } => (Some(cta), offset),
        };
        bytes.iter().map(byte).collect()
    }

    /// Where the grid's barrier is: the only place besides the kernel's memory that it changes by atomics.
    /// The first arrival is received at its first byte.
    fn workspace(&self) -> Option<u64> {
        let end = self.memory + self.contents.len() as u64;
        let accesses = self
            .audit
            .traced
            .iter()
            .filter_map(|event| match &event.what {
                EventKind::Access { access, locations } if access.kind == OpKind::Rmw => {
                    locations.first()
                }
                _ => None,
            });
        let mut addresses = accesses.filter_map(|location| match *location {
            Location::Global(address) => Some(address),
            Location::Shared { .. } => None,
        });
        addresses.find(|address| !(self.memory..end).contains(address))
    }
}

/// What was received is what the text says.
pub(super) fn confirm(recorded: &Recorded, tally: &mut Tally) -> Result<(), Disagreement> {
    match recorded.confirm(&recorded.traced) {
        Ok(()) => {
            tally.retraced += 1;
            tally.events += recorded.traced.len() as u64;
            Ok(())
        }
        Err(Objection::NotUnderstood(_)) => {
            tally.not_retraced += 1;
            Ok(())
        }
        Err(objection) => Err((Wrong::TraceEvent, objection.to_string())),
    }
}
