//! Which accesses of a launch cannot race, proved from the launch's own arguments.
//!
//! A [`Summary`] is made once per kernel, from its PTX. At a launch it meets the grid, the block, the parameters and
//! the allocations ([`Launch`]); every access becomes a linear form over integers ([`problem`]), and integer
//! arithmetic decides which pairs of accesses by two threads can meet ([`Proof`]).
//!
//! An access is *proved* if no other thread can make a conflicting access to the same byte that barriers do not
//! order, whatever memory contains and however the threads are scheduled. Dropping the check of a proved access
//! changes no verdict about the others: each pair that it is part of is impossible.
//!
//! The crate knows PTX, threads and memory. It knows nothing of cells, reports and drivers.

pub mod assume;
mod bits;
mod classify;
pub mod decide;
mod evaluate;
mod family;
mod form;
mod graph;
pub mod interval;
mod iterations;
mod launch;
mod loops;
mod machine;
mod operations;
mod phases;
pub mod problem;
mod show;
mod ssa;
mod summary;
mod translate;
mod value;
#[cfg(test)]
#[allow(clippy::print_stdout, reason = "tests say that nothing was compared")]
mod z3;

use assume::{Assumed, Names};
pub use bits::Effort;
pub use launch::Posed;
pub use problem::Space;

use std::collections::BTreeSet;

use ptx::ast::{Function, Module};

/// The size and the arguments of a launch.
pub struct Launch<'a> {
    /// CTAs in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y and z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y and z; zeroes without clusters.
    pub cluster: [u32; 3],
    /// The kernel's parameters, as PTX lays them out.
    pub parameters: &'a [u8],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// First byte and number of bytes of the memory that a pointer with a value leads to.
    pub allocation: &'a dyn Fn(u64) -> Option<(u64, u64)>,
    /// Where a variable of the module lies in global or constant memory: first byte and number of bytes.
    pub variable: &'a dyn Fn(&str) -> Option<(u64, u64)>,
}

/// What is known of a kernel before it is launched.
#[derive(Debug, Default)]
pub struct Summary {
    /// The accesses to global, shared and generic memory, in text order.
    pub accesses: Vec<Access>,
    /// Why nothing can be proved about any launch of the kernel, if so.
    pub refused: Option<String>,
    /// What assumptions about its launches can name.
    pub names: Names,
    plan: Option<summary::Plan>,
}

/// An access of a kernel.
#[derive(Clone, Debug)]
pub struct Access {
    /// Its instruction's index in the body's statements.
    pub statement: usize,
    /// Line in the PTX, from 1.
    pub ptx_line: u32,
}

/// What is proved about a launch.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    /// By access of the summary: the argument that proves it, or what is in the way.
    pub accesses: Vec<Result<Argument, Reason>>,
    /// No two threads of the launch race, and none misuses a barrier: the launch needs no check at all.
    pub whole: bool,
    /// The steps that a proof may take ran out before all accesses were decided.
    pub out_of_steps: bool,
    /// The launch writes nothing that it loads through the read-only path.
    pub read_only_path: bool,
    /// The bytes of global memory that the accesses can touch, each access at least once. None if that is not known.
    pub footprint: Option<Vec<Footprint>>,
}

/// Bytes of global memory that an access can touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes of one element.
    pub bytes: u32,
    /// Its atomicity includes all threads of the device.
    pub wide: bool,
    /// The first byte.
    pub start: u64,
    /// The byte behind the last.
    pub end: u64,
    /// Whether it may write them.
    pub writes: bool,
}

/// What proves an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Argument {
    /// No thread writes the bytes.
    ReadOnly,
    /// No other thread accesses the bytes.
    Private,
    /// Barriers order all conflicting accesses.
    Barriers,
    /// All conflicting accesses are atomics whose scopes include each other.
    Atomic,
}

/// Why an access is not proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// In plain words, for a person.
    pub text: String,
    /// The access, by its index in the summary, that may conflict with it.
    pub against: Option<usize>,
}

/// Two accesses that have raced in a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownPair {
    /// Which memory.
    pub space: Space,
    /// Their indices in the summary, the lower one first.
    pub accesses: [usize; 2],
}

/// Which pairs of accesses are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pairs {
    All,
    /// Those of two accesses that write.
    OfWrites,
}

impl Summary {
    /// Analyses a kernel.
    ///
    /// Never fails: where the analysis does not follow, [`refused`](Self::refused) or the [reasons](Reason) of a
    /// [`Proof`] say why.
    pub fn new(module: &Module, kernel: &Function) -> Self {
        summary::summarise(module, kernel)
    }

    /// What the arguments of a launch prove.
    pub fn prove(&self, launch: &Launch) -> Proof {
        self.prove_besides(launch, &BTreeSet::new())
    }

    /// What they prove if nobody asks whether these pairs of accesses race: an access is proved if it races with no other
    /// in any other pair.
    pub fn prove_besides(&self, launch: &Launch, known: &BTreeSet<KnownPair>) -> Proof {
        self.prove_pairs(launch, known, Pairs::All)
    }

    /// The same for pairs of accesses that both write: an access is proved if it is in no other such pair that races.
    pub fn prove_among_writes(&self, launch: &Launch, known: &BTreeSet<KnownPair>) -> Proof {
        self.prove_pairs(launch, known, Pairs::OfWrites)
    }

    fn prove_pairs(&self, launch: &Launch, known: &BTreeSet<KnownPair>, pairs: Pairs) -> Proof {
        match &self.plan {
            Some(plan) => plan.prove(&self.accesses, launch, known, pairs),
            None => {
                let text = self.refused.clone().unwrap_or_default();
                let reason = Reason {
                    text,
                    against: None,
                };
                Proof {
                    accesses: vec![Err(reason); self.accesses.len()],
                    ..Proof::default()
                }
            }
        }
    }

    /// What they prove if pairs that linear arithmetic leaves open are decided bit by bit, which takes milliseconds.
    /// `effort` is what that may still cost.
    pub fn prove_by_bits(&self, launch: &Launch, effort: &mut Effort) -> Proof {
        match &self.plan {
            Some(plan) => plan.prove_by_bits(&self.accesses, launch, effort),
            None => self.prove(launch),
        }
    }

    /// A launch as integers, as it is given to [`decide`]. None if the kernel is refused.
    pub fn pose(&self, launch: &Launch) -> Option<Posed> {
        Some(self.plan.as_ref()?.pose(launch, None))
    }

    /// Proves all launches that are like one and fulfil assumptions which that one fulfils: any grid, any numbers in
    /// the parameters, and pointers into any allocations, but blocks, clusters and dynamic shared memory of that size,
    /// and pointers equal where they are equal there. Returns the conditions.
    ///
    /// # Errors
    ///
    /// Why they are not proved.
    pub fn prove_family(&self, like: &Launch, assumed: &[Assumed]) -> Result<Vec<String>, Reason> {
        let reason = |text: String| Reason {
            text,
            against: None,
        };
        let plan = match &self.plan {
            Some(plan) => plan,
            None => return Err(reason(self.refused.clone().unwrap_or_default())),
        };
        plan.prove_family(&self.accesses, like, &self.names, assumed)
    }
}
