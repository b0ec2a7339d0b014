//! Where registers are written and read.
//!
//! [`Dataflow::new`] lists the writes and reads of every register, in time linear in the body.
//! Which writes a read may see is answered on demand by walking the control flow graph backwards
//! from the read, because nearly every register nvcc makes has one write, and the full table of
//! reaching definitions of a large kernel would be huge.
//! A guarded write may not happen, so it does not hide the writes before it.

use std::collections::HashMap;

use crate::ast::{Body, Instruction, Statement};
use crate::cfg::Cfg;
use crate::isa;
use crate::scope::{Register, Scopes};

/// Writes and reads of the registers of a body. Places are statement indices.
#[derive(Clone, Debug)]
pub struct Dataflow<'a> {
    body: &'a Body,
    scopes: Scopes<'a>,
    uses: HashMap<Register, Occurrences>,
}

/// Where a register is written and read, each in text order without repetition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// Statements that write it.
    pub writes: Vec<usize>,
    /// Statements that read it, guards and addresses included.
    pub reads: Vec<usize>,
}

impl<'a> Dataflow<'a> {
    /// Lists the writes and reads in `body`.
    pub fn new(body: &'a Body) -> Self {
        let scopes = Scopes::new(body);
        let mut uses: HashMap<Register, Occurrences> = HashMap::new();
        for (at, instruction) in body.instructions() {
            isa::register_writes(instruction, |name| {
                if let Some(register) = scopes.register(at, name) {
                    note(&mut uses.entry(register).or_default().writes, at);
                }
            });
            isa::register_reads(instruction, |name| {
                if let Some(register) = scopes.register(at, name) {
                    note(&mut uses.entry(register).or_default().reads, at);
                }
            });
        }
        Self { body, scopes, uses }
    }

    /// The names of the body.
    pub fn scopes(&self) -> &Scopes<'a> {
        &self.scopes
    }

    /// The register that `name` means at statement `at`.
    pub fn register(&self, at: usize, name: &str) -> Option<Register> {
        self.scopes.register(at, name)
    }

    /// Where a register is written.
    pub fn writes(&self, register: Register) -> &[usize] {
        self.uses
            .get(&register)
            .map_or(&[], |occurrences| &occurrences.writes)
    }

    /// Where a register is read.
    pub fn reads(&self, register: Register) -> &[usize] {
        self.uses
            .get(&register)
            .map_or(&[], |occurrences| &occurrences.reads)
    }

    /// The one instruction that writes the register `name` means at `at`, if there is just one and
    /// it has no guard: then that instruction computes the value wherever it is defined at all.
    pub fn only_write(&self, at: usize, name: &str) -> Option<(usize, &'a Instruction)> {
        let [write] = *self.writes(self.register(at, name)?) else {
            return None;
        };
        let instruction = self.instruction(write)?;
        instruction.guard.is_none().then_some((write, instruction))
    }

    /// The writes of `register` whose value the statement `at` may see, in text order, and whether
    /// a path from the start of the body reaches it without any unguarded write.
    /// Visits each block at most once.
    pub fn reaching(&self, cfg: &Cfg, register: Register, at: usize) -> (Vec<usize>, bool) {
        let writes = self.writes(register);
        let mut found = Vec::new();
        let mut undefined = false;
        let mut entered = vec![false; cfg.blocks.len()];
        // Ranges of statements still to be looked through, from the back.
        let home = cfg.block_of(at);
        let mut work = vec![(home, at)];
        while let Some((block, end)) = work.pop() {
            let start = cfg.blocks[block].start;
            let first = writes.partition_point(|&write| write < start);
            let last = writes.partition_point(|&write| write < end);
            let mut killed = false;
            for &write in writes[first.min(last)..last].iter().rev() {
                found.push(write);
                if self
                    .instruction(write)
                    .is_some_and(|write| write.guard.is_none())
                {
                    killed = true;
                    break;
                }
            }
            if killed {
                continue;
            }
            undefined |= block == 0;
            for &from in &cfg.blocks[block].predecessors {
                if !entered[from] {
                    entered[from] = true;
                    work.push((from, cfg.blocks[from].end));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        (found, undefined)
    }

    /// The reads that may see the value written to `register` at statement `write`, in text order.
    pub fn reached(&self, cfg: &Cfg, register: Register, write: usize) -> Vec<usize> {
        let alone = self.writes(register) == [write];
        let sees = |&read: &usize| alone || self.reaching(cfg, register, read).0.contains(&write);
        self.reads(register).iter().copied().filter(sees).collect()
    }

    fn instruction(&self, at: usize) -> Option<&'a Instruction> {
        match self.body.statements.get(at) {
            Some(Statement::Instruction(instruction)) => Some(instruction),
            _ => None,
        }
    }
}

fn note(occurrences: &mut Vec<usize>, at: usize) {
    if occurrences.last() != Some(&at) {
        occurrences.push(at);
    }
}
