//! Asynchronous copies and stores: checked when they are issued, as weak accesses by the thread that
//! issues them.
//!
//! What completes with an mbarrier is handed over by it, so such a copy counts as a release, behind
//! its own accesses.

use ptx::ast::{Instruction, Operand};
use ptx::isa::{self, MemoryKind, MemoryOp};
use shadow::layout::{
    ACCESS_BYTES_SHIFT, ACCESS_GRANULE_SHIFT, ACCESS_SHARED, ENTRY_COPY_BARRIER, ENTRY_COPY_FROM,
    ENTRY_COPY_TO, JOURNAL_WRITES, LaunchBlock,
};
use shadow::order::{NARROW, WIDE};
use shadow::rule;

use crate::access::{self, AddressSpace, Located, unless};
use crate::analysis::Granules;
use crate::call::{LAUNCH, ME, Value, call};
use crate::cluster;
use crate::journal::STATE;
use crate::names::Names;

/// The register that [`check`] uses besides those of all checks.
pub(crate) const DECLARATIONS: &str = "\n.reg .b32 %crc_copied;\n";

/// An asynchronous copy or store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    /// What it does at its target.
    pub op: MemoryOp,
    /// Operand and address space that it reads from, if that is memory.
    pub from: Option<(usize, AddressSpace)>,
    /// Operand and address space that it writes to.
    pub to: (usize, AddressSpace),
    /// Bytes that it writes.
    pub written: Count,
    /// Bytes that it reads.
    pub read: Count,
    /// Operand with the mbarrier that learns when it is complete.
    pub mbarrier: Option<usize>,
}

/// A number of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    /// This many.
    Constant(u32),
    /// As many as an operand says.
    Operand(usize),
    /// This many, unless the predicate in an operand holds.
    Unless(u32, usize),
}

/// Reads an instruction that is no copy within tensors, to several CTAs, or under a mask of bytes.
pub(crate) fn read(
    names: &Names<'_>,
    at: usize,
    instruction: &Instruction,
    op: &MemoryOp,
) -> Option<Copy> {
    let has = |suffix: &str| instruction.has(suffix);
    if ["tensor", "multicast::cluster", "cp_mask", "mmio"]
        .into_iter()
        .any(has)
    {
        return None;
    }
    let address_space = |operand: usize, space| {
        let address = instruction.operands.get(operand);
        let space = access::space_of(names, at, space, address)?;
        matches!(address, Some(Operand::Address { .. }))
            .then_some((operand, AddressSpace::of(space)?))
    };
    let completes = has("mbarrier::complete_tx::bytes");
    let to = address_space(op.address, op.space)?;
    match op.kind {
        MemoryKind::AsyncStore => Some(Copy {
            op: *op,
            from: None,
            to,
            written: Count::Constant(op.bytes()),
            read: Count::Constant(0),
            mbarrier: completes.then_some(op.address + 2),
        }),
        MemoryKind::AsyncCopy | MemoryKind::BulkCopy => {
            let (operand, space) = op.source?;
            let from = address_space(operand, space)?;
            let written = count(instruction, operand + 1)?;
            let read = match (op.kind, written) {
                (MemoryKind::AsyncCopy, Count::Constant(bytes)) => {
                    source(names, at, instruction, operand + 2, bytes)?
                }
                (_, written) => written,
            };
            Some(Copy {
                op: *op,
                from: Some(from),
                to,
                written,
                read,
                mbarrier: completes.then_some(operand + 2),
            })
        }
        _ => None,
    }
}

/// A constant or a register.
fn count(instruction: &Instruction, operand: usize) -> Option<Count> {
    match instruction.operands.get(operand)? {
        Operand::Int(bytes) => Some(Count::Constant(u32::try_from(*bytes).ok()?)),
        Operand::Name { .. } => Some(Count::Operand(operand)),
        _ => None,
    }
}

/// What `cp.async` reads of so many bytes: what follows their number says so, unless that is the
/// policy of a cache.
fn source(
    names: &Names<'_>,
    at: usize,
    instruction: &Instruction,
    operand: usize,
    bytes: u32,
) -> Option<Count> {
    let policy = usize::from(instruction.has("L2::cache_hint"));
    match instruction.operands.get(operand) {
        _ if instruction.operands.len() <= operand + policy => Some(Count::Constant(bytes)),
        Some(Operand::Name { name, .. }) if names.is_predicate(at, name) => {
            Some(Count::Unless(bytes, operand))
        }
        Some(Operand::Not(_)) => Some(Count::Unless(bytes, operand)),
        _ => count(instruction, operand),
    }
}

impl Copy {
    /// Adds up values at its target, instead of storing.
    pub(crate) fn reduces(&self) -> bool {
        self.op.op.is_some()
    }

    /// Both sides: operand and address space, whether it is written, and the bytes.
    pub(crate) fn sides(&self) -> impl Iterator<Item = ((usize, AddressSpace), bool, Count)> {
        let from = self.from.map(|from| (from, false, self.read));
        from.into_iter().chain([(self.to, true, self.written)])
    }
}

/// Puts a number of bytes, shifted as in an access word and with `word` below, into `register`; goes to
/// `skip` when there are none.
pub(crate) fn bytes(
    instruction: &Instruction,
    count: Count,
    register: &str,
    word: u32,
    skip: &str,
) -> String {
    let shift = ACCESS_BYTES_SHIFT;
    let name = |operand: usize| match instruction.operands.get(operand) {
        Some(Operand::Name { name, .. }) => name.to_string(),
        Some(Operand::Not(of)) => match &**of {
            Operand::Name { name, .. } => format!("!{name}"),
            _ => "0".to_owned(),
        },
        _ => "0".to_owned(),
    };
    match count {
        Count::Constant(0) => format!("bra {skip};\n"),
        Count::Constant(bytes) => format!("mov.u32 {register}, {};\n", bytes << shift | word),
        Count::Operand(operand) => format!(
            "shl.b32 {register}, {}, {shift};\nor.b32 {register}, {register}, {word};\n",
            name(operand)
        ),
        Count::Unless(bytes, operand) => format!(
            "@{} bra {skip};\nmov.u32 {register}, {};\n",
            name(operand),
            bytes << shift | word
        ),
    }
}

/// The rule's kind of what it does at one side.
fn kind(copy: &Copy, writes: bool) -> u32 {
    match (writes, copy.reduces()) {
        (false, _) => rule::WEAK_LOAD,
        (true, false) => rule::WEAK_STORE,
        // At gpu scope in global memory, at cluster scope in shared memory.
        (true, true) => rule::STRONG_WRITE_GPU,
    }
}

/// The check of a copy, to stand in front of it. `label` and the one after it are unique in the function.
/// `counts` says that it has to be counted for the fence rule.
pub(crate) fn check(
    names: &Names<'_>,
    Located { at, instruction }: Located<'_>,
    copy: &Copy,
    site: u32,
    granules: Granules,
    counts: bool,
    label: u32,
) -> String {
    let mut text = String::from("\n");
    let end = format!("$crc_copied_{label}");
    if let Some(guard) = &instruction.guard {
        text.push_str(&format!("{}bra {end};\n", unless(guard)));
    }
    for (number, ((operand, address_space), writes, count)) in copy.sides().enumerate() {
        let label = label + number as u32;
        let skip = format!("$crc_checked_{label}");
        let address = instruction.operands.get(operand);
        access::address(&mut text, names, at, address, address_space);
        let kind = kind(copy, writes);
        let site = rule::site_of_kind(site, kind);
        let elsewhere = format!("$crc_elsewhere_{label}");
        if address_space == AddressSpace::Generic {
            text.push_str(&format!(
                "isspacep.global %crc_global, %crc_address;\n@!%crc_global bra {elsewhere};\n"
            ));
        }
        if address_space.may_be_global() {
            let word = device::access_word(kind, granules.global, 0);
            text.push_str(&bytes(instruction, count, "%crc_copied", word, &skip));
            text.push_str(&range("%crc_launch", site));
        }
        if address_space == AddressSpace::Generic {
            text.push_str(&format!("bra {skip};\n{elsewhere}:\n"));
        }
        if let Some(granule_log2) = granules.shared
            && address_space.may_be_shared()
        {
            text.push_str(&in_shared(address_space, granules, &skip));
            let word = device::access_word(kind, granule_log2, 0) | ACCESS_SHARED;
            text.push_str(&bytes(instruction, count, "%crc_copied", word, &skip));
            let block = size_of::<LaunchBlock>();
            text.push_str(&format!("add.s64 %crc_next, %crc_launch, {block};\n"));
            text.push_str(&range("%crc_next", site));
        }
        text.push_str(&format!("{skip}:\n"));
    }
    if counts && copy.mbarrier.is_some() {
        // Another CTA may wait for it only where there are clusters.
        let reach = if granules.clusters { WIDE } else { NARROW }.to_string();
        let arguments = [LAUNCH, Value::new("b64", &reach), Value::new("b64", "0")];
        text.push_str(&call("order", None, &arguments));
    }
    text + &format!("{end}:\n")
}

/// What a journal records of a copy, to stand in front of it: what it completes with, and both sides.
pub(crate) fn record(
    names: &Names<'_>,
    Located { at, instruction }: Located<'_>,
    copy: &Copy,
    granules: Granules,
) -> String {
    let mut text = String::from("\n");
    let end = format!("$crc_recorded_{at}");
    if let Some(guard) = &instruction.guard {
        text.push_str(&format!("{}bra {end};\n", unless(guard)));
    }
    let barrier = copy.mbarrier.map(|operand| {
        let bytes = Count::Constant(8);
        ((operand, AddressSpace::Cluster), ENTRY_COPY_BARRIER, bytes)
    });
    let sides = copy.sides().map(|(where_, writes, count)| {
        let kind = if writes {
            ENTRY_COPY_TO
        } else {
            ENTRY_COPY_FROM
        };
        (where_, kind, count)
    });
    for (number, ((operand, address_space), kind, count)) in
        barrier.into_iter().chain(sides).enumerate()
    {
        let (skip, known) = (
            format!("$crc_side_{at}_{number}"),
            format!("$crc_known_{at}_{number}"),
        );
        let elsewhere = format!("$crc_elsewhere_{at}_{number}");
        let flags = if kind == ENTRY_COPY_TO {
            JOURNAL_WRITES
        } else {
            0
        };
        let address = instruction.operands.get(operand);
        access::address(&mut text, names, at, address, address_space);
        if address_space == AddressSpace::Generic {
            text.push_str(&format!(
                "isspacep.global %crc_global, %crc_address;\n@!%crc_global bra {elsewhere};\n"
            ));
        }
        if address_space.may_be_global() {
            let word = flags | granules.global << ACCESS_GRANULE_SHIFT;
            text.push_str(&bytes(instruction, count, "%crc_word", word, &skip));
            text.push_str("mov.u64 %crc_block, %crc_launch;\n");
        }
        if address_space == AddressSpace::Generic {
            text.push_str(&format!("bra {known};\n{elsewhere}:\n"));
        }
        if address_space.may_be_shared() {
            let granule = granules.shared.unwrap_or(2);
            let word = flags | granule << ACCESS_GRANULE_SHIFT | ACCESS_SHARED;
            text.push_str(&in_shared(address_space, granules, &skip));
            text.push_str(&bytes(instruction, count, "%crc_word", word, &skip));
            let block = size_of::<LaunchBlock>();
            text.push_str(&format!("add.s64 %crc_block, %crc_launch, {block};\n"));
        }
        let (what, kind) = (instruction.span.start.to_string(), kind.to_string());
        let arguments = [
            Value::new("b64", "%crc_block"),
            STATE,
            Value::new("b64", "%crc_address"),
            Value::new("b32", &what),
            Value::new("b32", "%crc_word"),
            Value::new("b32", &kind),
        ];
        let recorded = call("journal_copy", None, &arguments);
        text.push_str(&format!("{known}:\n{recorded}{skip}:\n"));
    }
    text + &format!("{end}:\n")
}

/// Turns `%crc_address`, in an address space that may be shared memory, into one that cells of shared memory
/// know; goes to `skip` where it is somewhere else.
pub(crate) fn in_shared(address_space: AddressSpace, granules: Granules, skip: &str) -> String {
    match address_space {
        _ if granules.clusters => cluster::place(address_space, skip),
        AddressSpace::Generic => format!(
            "isspacep.shared %crc_global, %crc_address;\n@!%crc_global bra {skip};\n\
             cvta.to.shared.u64 %crc_address, %crc_address;\n"
        ),
        _ => String::new(),
    }
}

/// The called check of as many bytes as `%crc_copied` says.
fn range(launch: &str, site: u32) -> String {
    let site = site.to_string();
    let arguments = [
        Value::new("b64", launch),
        ME,
        Value::new("b64", "%crc_address"),
        Value::new("b32", &site),
        Value::new("b32", "%crc_copied"),
    ];
    call("range", None, &arguments)
}

/// Whether an instruction is an asynchronous copy or store.
pub(crate) fn is_copy(instruction: &Instruction) -> bool {
    isa::memory(instruction).is_some_and(|op| {
        matches!(
            op.kind,
            MemoryKind::AsyncCopy | MemoryKind::BulkCopy | MemoryKind::AsyncStore
        )
    })
}
