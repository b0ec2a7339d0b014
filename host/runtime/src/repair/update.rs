//! Updates: a load, an operation, and a store to the same address. Those of one commutative operation
//! may come in any order, so that an atomic repairs their races.

use ptx::ast::{Body, Instruction, Operand, Statement};
use ptx::cfg::Cfg;
use ptx::dataflow::Dataflow;

/// Conversions and copies between load, operation and store, at most.
const STEPS: usize = 4;

/// The operation of the updates that both accesses belong to, as CUDA's atomic calls it.
pub(super) fn common(body: &Body, sites: [usize; 2]) -> Option<String> {
    let flow = Dataflow::new(body);
    let cfg = Cfg::new(body);
    let of = |site| part(body, &flow, &cfg, site);
    let (one, other) = (of(sites[0])?, of(sites[1])?);
    (one == other).then(|| one.to_owned())
}

/// The operation of the update that a load or store belongs to.
fn part(body: &Body, flow: &Dataflow<'_>, cfg: &Cfg, site: usize) -> Option<&'static str> {
    let access = instruction(body, site)?;
    match access.opcode.as_str() {
        "st" => update(body, flow, cfg, site).map(|(_, operation)| operation),
        "ld" => body.instructions().find_map(|(at, store)| {
            let (load, operation) = match store.opcode.as_str() {
                "st" => update(body, flow, cfg, at)?,
                _ => return None,
            };
            (load == site).then_some(operation)
        }),
        _ => None,
    }
}

/// The load and the operation of the update that ends in a store.
fn update(
    body: &Body,
    flow: &Dataflow<'_>,
    cfg: &Cfg,
    store: usize,
) -> Option<(usize, &'static str)> {
    let stored = instruction(body, store)?;
    let [address, value] = &stored.operands[..] else {
        return None;
    };
    let (at, operation) = writer(body, flow, cfg, store, value)?;
    let name = commutes(operation)?;
    let inputs = match operation.opcode.as_str() {
        // A product is added to the third operand.
        "fma" | "mad" => &operation.operands[3..],
        // What is subtracted from.
        "sub" => &operation.operands[1..2],
        _ => &operation.operands[1..],
    };
    inputs.iter().find_map(|input| {
        let (load, loaded) = writer(body, flow, cfg, at, input)?;
        let same = loaded.opcode == "ld" && loaded.operands.get(1) == Some(address);
        same.then_some((load, name))
    })
}

/// The instruction that computes an operand, behind copies and conversions.
fn writer<'a>(
    body: &'a Body,
    flow: &Dataflow<'a>,
    cfg: &Cfg,
    mut at: usize,
    operand: &'a Operand,
) -> Option<(usize, &'a Instruction)> {
    let mut operand = operand;
    for _ in 0..STEPS {
        let Operand::Name { name, .. } = operand else {
            return None;
        };
        let (writes, undefined) = flow.reaching(cfg, flow.register(at, name)?, at);
        let [write] = writes[..] else { return None };
        let found = instruction(body, write).filter(|of| of.guard.is_none() && !undefined)?;
        match found.opcode.as_str() {
            "mov" | "cvt" => (at, operand) = (write, found.operands.get(1)?),
            _ => return Some((write, found)),
        }
    }
    None
}

/// The atomic that does what an operation does, if its order does not matter.
fn commutes(operation: &Instruction) -> Option<&'static str> {
    if operation.operands.len() < 3 {
        return None;
    }
    Some(match operation.opcode.as_str() {
        "add" | "fma" | "mad" => "atomicAdd",
        "sub" => "atomicSub",
        "and" => "atomicAnd",
        "or" => "atomicOr",
        "xor" => "atomicXor",
        "min" => "atomicMin",
        "max" => "atomicMax",
        _ => return None,
    })
}

fn instruction(body: &Body, at: usize) -> Option<&Instruction> {
    match body.statements.get(at) {
        Some(Statement::Instruction(instruction)) => Some(instruction),
        _ => None,
    }
}
