//! Barriers of the whole grid: `grid.sync()` of cooperative groups, as nvcc compiles it for sm_70
//! and later (cooperative_groups/details/sync.h of CUDA 12 and 13), inlined or not:
//!
//! ```text
//!         barrier.sync 0;
//!         @%others bra JOINED;                          // all but thread 0 of the CTA
//!         atom.add.release.gpu.u32 %old, [%ws+4], %n;   // the top bit flips when all CTAs are there
//! SPIN:   ld.acquire.gpu.u32 %now, [%ws+4];
//!         xor.b32 %x, %now, %old;
//!         setp.gt.s32 %same, %x, -1;
//!         @%same bra SPIN;
//! JOINED: barrier.sync 0;
//! ```
//!
//! In place of the branch of the others, thread 0 may branch over theirs: `@%leads bra LEADS; bra JOINED; LEADS:`.
//!
//! `%ws` is the workspace whose address the driver keeps in `%envreg1` and `%envreg2`, and `%n` is 1
//! but in CTA 0. Only arithmetic may stand in between, and nobody else may jump to the two labels.
//! What differs in anything is not taken for a grid barrier, and may release as any other code may.

use std::collections::BTreeSet;

use ptx::ast::{AddressBase, Body, Instruction, Operand, Statement};
use ptx::dataflow::Dataflow;
use ptx::isa::{self, AtomicOp, Control, Effect, MemoryKind, Scope, Semantics};

/// What CTA 0 adds is this minus the number of CTAs.
const FLIPS: i128 = -0x7fff_ffff;

/// One grid barrier, by statement indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridBarrier {
    first: usize,
    /// The atomic by which a CTA arrives.
    pub arrival: usize,
    /// The load that looks whether all have.
    pub load: usize,
    spin: usize,
    /// The barrier of the CTA behind it.
    pub last: usize,
}

/// What an instruction is to a grid barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The barrier of the CTA before it. What follows, up to the last, accesses nothing.
    First,
    /// An access of the workspace.
    Own,
    /// The branch back to the load. Past it, all CTAs have arrived.
    Spin,
    /// The barrier of the CTA behind it.
    Last,
}

impl GridBarrier {
    fn part(&self, at: usize) -> Option<Part> {
        match at {
            _ if at == self.first => Some(Part::First),
            _ if at == self.arrival || at == self.load => Some(Part::Own),
            _ if at == self.spin => Some(Part::Spin),
            _ if at == self.last => Some(Part::Last),
            _ => None,
        }
    }
}

/// What the instruction at statement `at` is, if it is part of one of the barriers.
pub(crate) fn part(barriers: &[GridBarrier], at: usize) -> Option<Part> {
    barriers.iter().find_map(|barrier| barrier.part(at))
}

/// The grid barriers of a function, in text order.
pub fn barriers(body: &Body) -> Vec<GridBarrier> {
    let mut dataflow = None;
    let mut found = Vec::new();
    for (at, instruction) in body.instructions() {
        if !is_whole_barrier(instruction) {
            continue;
        }
        if let Some(parts) = Parts::behind(body, at)
            && parts.hold(dataflow.get_or_insert_with(|| Dataflow::new(body)))
        {
            found.push(GridBarrier {
                first: at,
                arrival: parts.arrival.0,
                load: parts.load.0,
                spin: parts.spin.0,
                last: parts.last,
            });
        }
    }
    found
}

fn is_whole_barrier(instruction: &Instruction) -> bool {
    instruction.guard.is_none()
        && !instruction.has("red")
        && isa::sync::is_full_cta_barrier(instruction)
}

type Placed<'a> = (usize, &'a Instruction);

/// The instructions between the two barriers of a CTA that are not arithmetic.
struct Parts<'a> {
    /// The branch by which thread 0 and the others part.
    parting: Placed<'a>,
    /// It is taken by thread 0, and not by the others.
    leads: bool,
    arrival: Placed<'a>,
    load: Placed<'a>,
    spin: Placed<'a>,
    /// The second barrier.
    last: usize,
}

impl<'a> Parts<'a> {
    /// Those behind the barrier at `start`, if that is how its code goes on.
    fn behind(body: &'a Body, start: usize) -> Option<Self> {
        let mut rest = (start + 1..)
            .zip(body.statements.get(start + 1..)?)
            .filter(|(_, statement)| !is_arithmetic(statement));
        let parting = take(&mut rest, "bra")?;
        let mut ahead = rest.clone();
        let skipping = take(&mut ahead, "bra").filter(|(_, branch)| branch.guard.is_none());
        let mut entered = None;
        if skipping.is_some() {
            rest = ahead;
            entered = Some(take_label(&mut rest)?);
        }
        let arrival = take(&mut rest, "atom")?;
        let again = take_label(&mut rest)?;
        let load = take(&mut rest, "ld")?;
        let spin = take(&mut rest, "bra")?;
        let joined = take_label(&mut rest)?;
        let (last, end) = rest.next()?;
        let ends = matches!(end, Statement::Instruction(last) if is_whole_barrier(last));
        let goes = |(_, branch): Placed<'_>, label: &str| {
            let target = branch.operands.first().and_then(register);
            target == Some(label) && mentions(body, label) == 1
        };
        let leads = entered.is_none_or(|label| goes(parting, label));
        let skips = goes(skipping.unwrap_or(parting), joined);
        (ends && leads && skips && goes(spin, again)).then_some(Self {
            parting,
            leads: entered.is_some(),
            arrival,
            load,
            spin,
            last,
        })
    }

    /// Whether they do what they do in a grid barrier.
    fn hold(&self, dataflow: &Dataflow<'_>) -> bool {
        let parts = [
            self.address_is_the_workspace(dataflow),
            self.every_cta_counts(dataflow),
            self.thread_0_leads(dataflow),
            self.waits(dataflow),
        ];
        parts == [Some(true); 4]
    }

    /// Both accesses are those of the same word of the workspace.
    fn address_is_the_workspace(&self, dataflow: &Dataflow<'_>) -> Option<bool> {
        let [arrival, load] = [self.arrival.1, self.load.1];
        let (adds, loads) = (isa::memory(arrival)?, isa::memory(load)?);
        let fits = adds.kind == MemoryKind::Rmw
            && adds.op == Some(AtomicOp::Add)
            && (adds.sem, adds.scope, adds.bytes()) == (Semantics::Release, Scope::Gpu, 4)
            && loads.kind == MemoryKind::Load
            && (loads.sem, loads.scope, loads.bytes()) == (Semantics::Acquire, Scope::Gpu, 4)
            && (&arrival.guard, &load.guard) == (&None, &None);
        let (word, other) = (arrival.operands.get(1)?, load.operands.get(1)?);
        let Operand::Address {
            base: AddressBase::Name(name),
            ..
        } = word
        else {
            return None;
        };
        let sources = Sources::of(dataflow, self.arrival.0, name)?;
        let workspace = ["%envreg1".to_owned(), "%envreg2".to_owned()];
        Some(fits && word == other && sources.specials == BTreeSet::from(workspace))
    }

    /// What is added depends on the CTA, and on how many there are.
    fn every_cta_counts(&self, dataflow: &Dataflow<'_>) -> Option<bool> {
        let value = register(self.arrival.1.operands.get(2)?)?;
        let adds = Sources::of(dataflow, self.arrival.0, value)?;
        let all = components("ctaid").chain(components("nctaid")).collect();
        Some(adds.specials == all && adds.constants.contains(&FLIPS))
    }

    /// All threads but one of the CTA skip the arrival.
    fn thread_0_leads(&self, dataflow: &Dataflow<'_>) -> Option<bool> {
        let (at, branch) = self.parting;
        let guard = branch.guard.as_ref()?;
        let (_, sets) = dataflow.only_write(at, &guard.predicate)?;
        let comparison = match guard.negated == self.leads {
            true => "ne",
            false => "eq",
        };
        let sources = Sources::of(dataflow, at, &guard.predicate)?;
        let compared = sets.opcode == "setp" && sets.has(comparison);
        Some(compared && sources.specials == components("tid").collect())
    }

    /// The branch back is taken until the top bit has flipped.
    fn waits(&self, dataflow: &Dataflow<'_>) -> Option<bool> {
        let guard = self.spin.1.guard.as_ref()?;
        let (at, sign) = dataflow.only_write(self.spin.0, &guard.predicate)?;
        let [_, flipped, limit] = sign.operands.as_slice() else {
            return None;
        };
        let same = match limit {
            Operand::Int(-1) => sign.has("gt") && !guard.negated,
            Operand::Int(0) => sign.has(if guard.negated { "lt" } else { "ge" }),
            _ => false,
        };
        let (xor_at, xor) = dataflow.only_write(at, register(flipped)?)?;
        let [_, a, b] = xor.operands.as_slice() else {
            return None;
        };
        let mut both = [a, b].map(|value| {
            let written = dataflow.only_write(xor_at, register(value)?)?;
            Some(written.0)
        });
        both.sort_unstable();
        let again = self.load.0..self.spin.0;
        Some(
            sign.opcode == "setp"
                && sign.has("s32")
                && same
                && xor.opcode == "xor"
                && both == [Some(self.arrival.0), Some(self.load.0)]
                && again.contains(&xor_at)
                && again.contains(&at),
        )
    }
}

/// The next statement, if it is such an instruction.
fn take<'a>(
    rest: &mut impl Iterator<Item = (usize, &'a Statement)>,
    opcode: &str,
) -> Option<Placed<'a>> {
    match rest.next()? {
        (at, Statement::Instruction(instruction)) if instruction.opcode == opcode => {
            Some((at, instruction))
        }
        _ => None,
    }
}

/// The next statement, if it is a label.
fn take_label<'a>(rest: &mut impl Iterator<Item = (usize, &'a Statement)>) -> Option<&'a str> {
    match rest.next()? {
        (_, Statement::Label { name, .. }) => Some(name),
        _ => None,
    }
}

/// `%tid.x`, `%tid.y` and `%tid.z`.
fn components(special: &str) -> impl Iterator<Item = String> {
    ["x", "y", "z"]
        .into_iter()
        .map(move |component| format!("%{special}.{component}"))
}

/// Neither memory, nor order, nor control.
fn is_arithmetic(statement: &Statement) -> bool {
    match statement {
        Statement::Instruction(instruction) => computes(instruction),
        Statement::Loc(_) | Statement::Registers(_) => true,
        _ => false,
    }
}

fn computes(instruction: &Instruction) -> bool {
    isa::lookup(&instruction.opcode)
        .is_some_and(|row| row.control == Control::Next && row.effect == Effect::None)
}

/// How often branches and lists of targets name a label.
fn mentions(body: &Body, label: &str) -> usize {
    let named = |operand: &Operand| register(operand) == Some(label);
    let times = |statement: &Statement| match statement {
        Statement::Instruction(i) => i.operands.iter().filter(|operand| named(operand)).count(),
        Statement::BranchTargets { targets, .. } => targets.iter().filter(|t| *t == label).count(),
        _ => 0,
    };
    body.statements.iter().map(times).sum()
}

fn register(operand: &Operand) -> Option<&str> {
    match operand {
        Operand::Name {
            name,
            component: None,
            offset: 0,
        } => Some(name),
        _ => None,
    }
}

/// What a value is computed from, and from nothing else.
#[derive(Debug, Default)]
struct Sources {
    specials: BTreeSet<String>,
    constants: BTreeSet<i128>,
}

impl Sources {
    /// Those of what `name` holds at `at`; none when that is not plain arithmetic.
    fn of(dataflow: &Dataflow<'_>, at: usize, name: &str) -> Option<Self> {
        let mut sources = Self::default();
        let mut seen = BTreeSet::new();
        let mut open = vec![(at, name)];
        while let Some((at, name)) = open.pop() {
            let (written, instruction) = dataflow.only_write(at, name)?;
            if !seen.insert(written) {
                continue;
            }
            if !computes(instruction) {
                return None;
            }
            for operand in isa::reads(instruction) {
                match operand {
                    Operand::Int(value) => {
                        sources.constants.insert(*value);
                    }
                    Operand::Name {
                        name,
                        component,
                        offset: 0,
                    } => match (dataflow.register(written, name), component) {
                        (Some(_), None) => open.push((written, name)),
                        (None, component) => {
                            let dot =
                                component.and_then(|n| ["x", "y", "z", "w"].get(usize::from(n)));
                            let dot = dot.map_or(String::new(), |dot| format!(".{dot}"));
                            sources.specials.insert(format!("{name}{dot}"));
                        }
                        (Some(_), Some(_)) => return None,
                    },
                    _ => return None,
                }
            }
        }
        Some(sources)
    }
}
