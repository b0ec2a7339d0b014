//! What the arguments of a kernel's launches prove.

use serde::{Deserialize, Serialize};

use crate::log;

/// Most reasons of a kernel that are kept.
const REASONS: usize = 32;

/// A kernel's accesses by what the arguments of its launches prove, summed over the launches for which a proof was
/// tried; an instruction counts once in each launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Proofs {
    /// Launches for which a proof was tried.
    pub launches: u64,
    /// Those of which all accesses are proved.
    pub whole: u64,
    /// No thread writes the bytes.
    pub read_only: u64,
    /// No other thread accesses the bytes.
    pub private: u64,
    /// Barriers order all conflicting accesses.
    pub barriers: u64,
    /// All conflicting accesses are atomics that include each other.
    pub atomic: u64,
    /// Not proved.
    pub unproved: u64,
    /// Launches whose proofs ran out of the steps that one may take.
    pub out_of_steps: u64,
    /// Launches with arguments that no earlier one had.
    pub new: u64,
    /// How long the proofs of these took.
    pub nanoseconds: u64,
    /// The longest of them.
    pub longest_nanoseconds: u64,
    /// What is in the way of a proof, once for each line in the program's PTX.
    pub reasons: Vec<Reason>,
}

/// What is in the way of a proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reason {
    /// The access's line in the program's own PTX.
    pub ptx_line: u32,
    /// What is in the way.
    pub why: String,
}

impl Proofs {
    pub(crate) fn add(&mut self, proof: &log::Proof) {
        self.launches += 1;
        self.whole += u64::from(proof.whole);
        self.read_only += proof.read_only;
        self.private += proof.private;
        self.barriers += proof.barriers;
        self.atomic += proof.atomic;
        self.unproved += proof.unproved;
        self.out_of_steps += u64::from(proof.out_of_steps);
        self.new += u64::from(proof.nanoseconds > 0);
        self.nanoseconds += proof.nanoseconds;
        self.longest_nanoseconds = self.longest_nanoseconds.max(proof.nanoseconds);
        for of in &proof.reasons {
            let known = self
                .reasons
                .iter()
                .any(|reason| reason.ptx_line == of.ptx_line);
            if !known && self.reasons.len() < REASONS {
                self.reasons.push(Reason {
                    ptx_line: of.ptx_line,
                    why: of.why.clone(),
                });
            }
        }
    }
}
