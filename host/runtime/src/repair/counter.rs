//! Atomics that count: a thread comes to an access depending on the result of one, as the last block of a reduction does.
//! Where the other access comes before the atomic, fences on both sides of it order the two.

use std::collections::HashSet;

use ptx::ast::{Instruction, Operand};
use ptx::isa;
use ptx::scope::{Register, Scopes};

use super::flow::{Flow, RequiredOrder};
use crate::log::Counted;

/// Atomics in front of an access that are looked at.
const ATOMICS: usize = 4;

/// The last atomic in front of one of two accesses that decides whether a thread makes it, behind the other one.
pub(super) fn between(flow: &Flow<'_>, [one, other]: [usize; 2]) -> Option<Counted> {
    let mut ways = [[one, other], [other, one]]
        .into_iter()
        .filter(|[a, b]| a != b);
    ways.find_map(|[from, to]| {
        let atomics = flow.body.instructions().filter(|(_, of)| {
            of.opcode == "atom" && !["cas", "exch", "cta"].iter().any(|suffix| of.has(suffix))
        });
        let between = atomics.filter(|&(at, _)| {
            let passes = |way| flow.reaches(way, &[], RequiredOrder::Nothing);
            passes([from, at]) && passes([at, to])
        });
        let between: Vec<usize> = between.map(|(at, _)| at).collect();
        let mut last = between.into_iter().rev().take(ATOMICS);
        let at = last.find(|&at| decides(flow, at, to))?;
        Some(Counted {
            frames: flow.source(at),
            line: flow.line(at),
            before: flow.reaches([from, at], &[], RequiredOrder::Fence),
            after: flow.reaches([at, to], &[], RequiredOrder::Fence),
        })
    })
}

/// Whether a branch on the result of an instruction, also by way of shared memory, decides if a statement is executed.
fn decides(flow: &Flow<'_>, source: usize, to: usize) -> bool {
    let scopes = Scopes::new(flow.body);
    let mut registers: HashSet<Register> = HashSet::new();
    let mut words: Vec<&Operand> = Vec::new();
    loop {
        let before = (registers.len(), words.len());
        for (at, instruction) in flow.body.instructions() {
            let reads = |registers: &HashSet<Register>| {
                let mut found = false;
                isa::register_reads(instruction, |name| {
                    let register = scopes.register(at, name);
                    found |= register.is_some_and(|register| registers.contains(&register));
                });
                found
            };
            let address = |of: &'_ Instruction, n: usize| of.has("shared").then_some(n);
            let loads = instruction.opcode == "ld"
                && address(instruction, 1)
                    .and_then(|n| instruction.operands.get(n))
                    .is_some_and(|word| words.contains(&word));
            if at == source || loads || reads(&registers) {
                if instruction.opcode == "st" && instruction.has("shared") {
                    words.extend(
                        instruction
                            .operands
                            .first()
                            .filter(|word| !words.contains(word)),
                    );
                }
                isa::register_writes(instruction, |name| {
                    registers.extend(scopes.register(at, name));
                });
            }
        }
        if before == (registers.len(), words.len()) {
            break;
        }
    }
    flow.branches_around(to).any(|at| {
        let mut found = false;
        if let Some(branch) = flow.instruction(at) {
            isa::register_reads(branch, |name| {
                let register = scopes.register(at, name);
                found |= register.is_some_and(|register| registers.contains(&register));
            });
        }
        found
    })
}
