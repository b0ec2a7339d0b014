//! What an instruction, executed by one thread, must be heard as. Read off its text, by PTX ISA,
//! "Memory Consistency Model" and the pages of the instructions.

use ptx::ast::{Instruction, Operand, Space, Type};
use shadow::hb::{
    Access, Completion, FenceKind, Location, MemoryOrder, OpKind, Scope, Span, Waited,
};

use super::code::Code;
use super::lane::Lane;
use super::mbarriers::Operation;
use super::{Launch, Objection, Result, alu};

/// An instruction that others may notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Want {
    /// Its line; 0 for the end of a thread.
    pub(super) line: u32,
    /// What it is.
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// `ld`, `st`, `atom` and `red`; the site is 0.
    Access { access: Access, at: Location },
    /// `fence` and `membar`
    Fence { kind: FenceKind, scope: Scope },
    /// `fence.proxy.async`
    ProxyFence,
    /// `fence.mbarrier_init`
    InitFence,
    /// `bar`, `barrier`
    Arrive {
        id: u32,
        waits: bool,
        count: Option<u32>,
    },
    /// `bar.warp.sync`
    WarpBarrier { mask: u32 },
    /// `barrier.cluster.arrive`
    ClusterArrive { relaxed: bool },
    /// `barrier.cluster.wait`
    ClusterWait,
    /// `cp.async`, `st.async` and the like.
    Copy {
        from: Span,
        to: Span,
        ends: Completion,
        bulk: bool,
        reduces: Option<Access>,
    },
    /// The end of a group.
    Commit { bulk: bool },
    /// A wait for copies.
    Wait(Waited),
    /// `mbarrier`
    Mbarrier {
        at: Location,
        operation: Operation,
        access: Option<Access>,
        order: Option<MemoryOrder>,
    },
    /// The end of the thread.
    Exit,
}

impl Want {
    pub(super) fn end() -> Self {
        Self {
            line: 0,
            what: What::Exit,
        }
    }
}

/// What reads the operands of one instruction.
struct Reader<'a, 'b> {
    lane: &'a mut Lane,
    code: &'a Code<'b>,
    launch: &'a Launch<'b>,
    instruction: &'a Instruction,
}

/// What an instruction is to others; nothing if they cannot notice it.
pub(super) fn of(
    lane: &mut Lane,
    code: &Code<'_>,
    launch: &Launch<'_>,
    instruction: &Instruction,
) -> Result<Option<What>> {
    let mut reader = Reader {
        lane,
        code,
        launch,
        instruction,
    };
    let unknown = || {
        let suffixes = instruction.suffixes.join(".");
        Objection::unknown(format!("{}.{suffixes}", instruction.opcode))
    };
    let what = match instruction.opcode.as_str() {
        "ld" | "st" if instruction.space() == Space::Param => return Ok(None),
        "st" | "red" if reader.first() == "async" => reader.async_store()?,
        "ld" | "st" | "atom" | "red" | "ldu" if reader.first() != "bulk" => reader.access()?,
        "fence" | "membar" => reader.fence().ok_or_else(unknown)?,
        "bar" if reader.first() == "warp" => What::WarpBarrier {
            mask: reader.number(0)? as u32,
        },
        "barrier" if reader.first() == "cluster" => match reader.has("arrive") {
            true => What::ClusterArrive {
                relaxed: reader.has("relaxed"),
            },
            false => What::ClusterWait,
        },
        "bar" | "barrier" => reader.barrier()?,
        "cp" => reader.copy().and_then(|what| what.ok_or_else(unknown))?,
        "mbarrier" => reader
            .mbarrier()
            .and_then(|what| what.ok_or_else(unknown))?,
        // What no thread can notice, or `advance` and `alu` know about.
        _ => return Ok(None),
    };
    Ok(Some(what))
}

impl Reader<'_, '_> {
    fn has(&self, suffix: &str) -> bool {
        self.instruction.has(suffix)
    }

    fn first(&self) -> &str {
        self.instruction.suffixes.first().map_or("", |first| first)
    }

    fn operand(&self, number: usize) -> Result<&Operand> {
        let missing = || Objection::unknown("a missing operand");
        self.instruction.operands.get(number).ok_or_else(missing)
    }

    fn number(&mut self, operand: usize) -> Result<u64> {
        let operand = self.operand(operand)?.clone();
        self.lane.value(self.code, self.launch, &operand)
    }

    fn location(&mut self, operand: usize, space: Space) -> Result<Location> {
        let operand = self.operand(operand)?.clone();
        let address = self.lane.address(self.code, self.launch, &operand)?;
        self.lane.location(self.launch, space, address)
    }

    fn scope(&self) -> Option<Scope> {
        let mut names = self.instruction.suffixes.iter().rev();
        names.find_map(|suffix| Scope::from_suffix(suffix))
    }

    /// How an access orders others.
    fn order(&self, atomic: bool) -> Result<MemoryOrder> {
        let scope = || {
            let none = || Objection::unknown("a strong access without a scope");
            match self.scope() {
                None if atomic => Ok(Scope::Gpu),
                scope => scope.ok_or_else(none),
            }
        };
        Ok(match () {
            () if self.has("volatile") || self.has("mmio") => MemoryOrder::Relaxed(Scope::Sys),
            () if self.has("acq_rel") => MemoryOrder::AcqRel(scope()?),
            () if self.has("acquire") => MemoryOrder::Acquire(scope()?),
            () if self.has("release") => MemoryOrder::Release(scope()?),
            () if self.has("relaxed") || atomic => MemoryOrder::Relaxed(scope()?),
            () if self.has("nc") || self.instruction.opcode == "ldu" => MemoryOrder::ReadOnly,
            () => MemoryOrder::Weak,
        })
    }

    fn access(&mut self) -> Result<What> {
        let name = self.instruction.opcode.as_str();
        let (kind, address) = match name {
            "st" => (OpKind::Store, 0),
            "red" => (OpKind::Reduction, 0),
            "atom" => (OpKind::Rmw, 1),
            _ => (OpKind::Load, 1),
        };
        let ty = alu::ty(self.instruction)?;
        let atomic = matches!(kind, OpKind::Rmw | OpKind::Reduction);
        let order = self.order(atomic)?;
        // Two halves are two atomics.
        let halves = match ty {
            Type::F16x2 | Type::BF16x2 if atomic => 2,
            _ => 1,
        };
        let access = Access {
            kind,
            order,
            bytes: ty.bytes() / halves,
            elements: u32::from(self.instruction.vector()) * halves,
            site: 0,
        };
        let at = self.location(address, self.instruction.space())?;
        Ok(What::Access { access, at })
    }

    fn fence(&self) -> Option<What> {
        if self.first() == "proxy" {
            return self.has("async").then_some(What::ProxyFence);
        }
        if self.has("mbarrier_init") {
            return Some(What::InitFence);
        }
        let kind = match self.instruction.opcode.as_str() {
            "membar" => FenceKind::Sc,
            _ if self.has("sc") => FenceKind::Sc,
            _ if self.has("acquire") => FenceKind::Acquire,
            _ if self.has("release") => FenceKind::Release,
            _ => FenceKind::AcqRel,
        };
        let scope = self.scope()?;
        Some(What::Fence { kind, scope })
    }

    fn barrier(&mut self) -> Result<What> {
        let reduces = self.has("red");
        let first = usize::from(reduces);
        let id = self.number(first)? as u32;
        // Of a reduction the last operand is what is reduced.
        let operands = self.instruction.operands.len() - usize::from(reduces);
        let count = match operands > first + 1 {
            true => Some(self.number(first + 1)? as u32),
            false => None,
        };
        let waits = !self.has("arrive");
        Ok(What::Arrive { id, waits, count })
    }

    fn copy(&mut self) -> Result<Option<What>> {
        let bulk = self.has("bulk");
        if self.has("commit_group") {
            return Ok(Some(What::Commit { bulk }));
        }
        if self.has("wait_group") || self.has("wait_all") {
            let left = match self.has("wait_group") {
                true => Some(self.number(0)? as u32),
                false => None,
            };
            let reads = self.has("read");
            return Ok(Some(What::Wait(Waited { left, bulk, reads })));
        }
        // Where `async` is not the first suffix, the bulk copy reduces.
        let reduces = self.first() != "async";
        if reduces && !bulk || self.has("tensor") || self.has("prefetch") {
            return Ok(None);
        }
        if self.has("mbarrier") {
            let at = self.location(0, self.instruction.space())?;
            return Ok(Some(What::Mbarrier {
                at,
                operation: Operation::CopyArrive(self.has("noinc")),
                access: Some(object(OpKind::Reduction)),
                order: None,
            }));
        }
        let spaces = self.instruction.suffixes.iter();
        let spaces: Vec<Space> = spaces
            .filter_map(|suffix| match suffix.as_str() {
                "global" => Some(Space::Global),
                "shared" | "shared::cta" => Some(Space::Shared),
                "shared::cluster" => Some(Space::SharedCluster),
                _ => None,
            })
            .collect();
        let [to, from] = spaces[..] else {
            return Ok(None);
        };
        let (to, from) = (self.location(0, to)?, self.location(1, from)?);
        let bytes = self.number(2)? as u32;
        let with_mbarrier = self.has("mbarrier::complete_tx::bytes");
        // Anything beyond that has other operands.
        let known = self.instruction.operands.len() == if with_mbarrier { 4 } else { 3 };
        if !known || self.has("multicast::cluster") {
            return Ok(None);
        }
        let ends = match with_mbarrier {
            true => Completion::Mbarrier(self.location(3, Space::SharedCluster)?),
            false => Completion::Group,
        };
        Ok(Some(What::Copy {
            from: Span {
                location: from,
                bytes,
            },
            to: Span {
                location: to,
                bytes,
            },
            ends,
            bulk,
            reduces: match reduces {
                true => Some(self.reduction(Scope::Gpu)?),
                false => None,
            },
        }))
    }

    /// `st.async` and `red.async`: what they write comes from registers.
    fn async_store(&mut self) -> Result<What> {
        let space = self.instruction.space();
        let (to, barrier) = (self.location(0, space)?, self.location(2, space)?);
        let bytes = alu::ty(self.instruction)?.bytes() * u32::from(self.instruction.vector());
        Ok(What::Copy {
            from: Span {
                location: to,
                bytes: 0,
            },
            to: Span {
                location: to,
                bytes,
            },
            ends: Completion::Mbarrier(barrier),
            bulk: false,
            reduces: match self.instruction.opcode == "red" {
                true => Some(self.reduction(Scope::Cluster)?),
                false => None,
            },
        })
    }

    /// What is done to an element of the target of a copy that reduces.
    fn reduction(&self, scope: Scope) -> Result<Access> {
        Ok(Access {
            kind: OpKind::Reduction,
            order: MemoryOrder::Relaxed(scope),
            bytes: alu::ty(self.instruction)?.bytes(),
            elements: self.instruction.vector().into(),
            site: 0,
        })
    }

    fn mbarrier(&mut self) -> Result<Option<What>> {
        let space = self.instruction.space();
        let scope = self.scope().unwrap_or(Scope::Cta);
        let relaxed = self.has("relaxed");
        let order = |strong: fn(Scope) -> MemoryOrder| match relaxed {
            true => MemoryOrder::Relaxed(scope),
            false => strong(scope),
        };
        let first = self.first().to_owned();
        // Where the object stands among the operands.
        let waits = matches!(first.as_str(), "test_wait" | "try_wait");
        let arrives = matches!(first.as_str(), "arrive" | "arrive_drop");
        let address = usize::from(waits || arrives);
        let at = self.location(address, space)?;
        let operation = match first.as_str() {
            "init" => Operation::Init(self.number(1)?),
            "inval" => Operation::Inval,
            "expect_tx" => Operation::Expect(self.number(1)?),
            "complete_tx" => Operation::Complete(self.number(1)?),
            "test_wait" | "try_wait" => {
                let phase = self.number(2)?;
                Operation::Wait(match self.has("parity") {
                    true => phase & 1,
                    false => phase >> 63,
                })
            }
            "arrive" | "arrive_drop" => {
                let given = match self.instruction.operands.len() > 2 {
                    true => Some(self.number(2)?),
                    false => None,
                };
                let expects = self.has("expect_tx");
                Operation::Arrive {
                    count: given.filter(|_| !expects).unwrap_or(1),
                    expects: given.filter(|_| expects).unwrap_or(0),
                    drops: first == "arrive_drop",
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(What::Mbarrier {
            at,
            operation,
            access: match operation {
                Operation::Init(_) => Some(Access {
                    order: MemoryOrder::Weak,
                    ..object(OpKind::Store)
                }),
                Operation::Inval => None,
                Operation::Wait(_) => Some(object(OpKind::Load)),
                _ => Some(object(OpKind::Reduction)),
            },
            order: match operation {
                Operation::Arrive { .. } => Some(order(MemoryOrder::Release)),
                Operation::Wait(_) => Some(order(MemoryOrder::Acquire)),
                _ => None,
            },
        }))
    }
}

/// An access of an mbarrier: atomic with all others (docs/memory-model.md).
fn object(kind: OpKind) -> Access {
    Access {
        kind,
        order: MemoryOrder::Relaxed(Scope::Sys),
        bytes: 8,
        elements: 1,
        site: 0,
    }
}
