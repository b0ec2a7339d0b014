//! What an instruction does to memory: kind, space, strength, scope and width.
//!
//! Source: PTX ISA 9.0, "Data Movement and Conversion Instructions" and "Memory Consistency Model".
//! `.volatile` is `.relaxed.sys`; `atom` and `red` without qualifiers are `.relaxed.gpu`.

use events::{Scope, Semantics};

use crate::ast::{Instruction, Operand, Space, Type};

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOp {
    /// Load, store, and so on.
    pub kind: MemoryKind,
    /// State space of the address.
    pub space: Space,
    /// Strength and ordering.
    pub sem: Semantics,
    /// Scope of a strong access; [`Scope::Cta`], without meaning, for a weak one.
    pub scope: Scope,
    /// Element type; [`Type::B8`] where the instruction names none.
    pub ty: Type,
    /// Elements per lane.
    pub vector: u8,
    /// Bytes per element. For [`MemoryKind::AsyncCopy`] the bytes copied; 0 when they are not
    /// constant, as with all the kinds that are larger than one lane's scalar access.
    pub bytes_per_element: u32,
    /// Index of the operand that holds the address.
    pub address: usize,
    /// True for `.nc` and `ldu`: the data must not change while the kernel runs.
    pub nc: bool,
    /// What an atomic or a reduction computes.
    pub op: Option<AtomicOp>,
    /// For copies: operand and space of the address that is read.
    pub source: Option<(usize, Space)>,
}

impl MemoryOp {
    /// Bytes per lane; 0 when not known.
    pub fn bytes(&self) -> u32 {
        u32::from(self.vector) * self.bytes_per_element
    }

    /// Bytes for which an atomic is atomic: of a pair of packed numbers each half by itself (PTX ISA, `atom`, `red`), and
    /// of a bulk reduction each element. A tensor's elements are taken for bytes; the instruction does not say their size.
    pub fn atomic_bytes(&self) -> u32 {
        match self.kind {
            MemoryKind::BulkCopy => self.ty.bytes(),
            _ => self.bytes_per_element / self.halves(),
        }
    }

    /// 2 for atomics on pairs of packed numbers, else 1.
    pub fn halves(&self) -> u32 {
        match (self.kind, self.ty) {
            (MemoryKind::Rmw | MemoryKind::Reduction, Type::F16x2 | Type::BF16x2) => 2,
            _ => 1,
        }
    }

    /// True for relaxed, acquire, release, volatile and atomic accesses.
    pub fn is_strong(&self) -> bool {
        self.sem != Semantics::Weak
    }

    /// True when it may change the memory at its address.
    pub fn is_write(&self) -> bool {
        !matches!(
            self.kind,
            MemoryKind::Load
                | MemoryKind::MatrixLoad
                | MemoryKind::Texture
                | MemoryKind::SurfaceLoad
        )
    }

    /// True for the kinds that are one scalar or vector access per lane.
    pub fn is_plain(&self) -> bool {
        matches!(
            self.kind,
            MemoryKind::Load | MemoryKind::Store | MemoryKind::Rmw | MemoryKind::Reduction
        )
    }
}

/// What an instruction does at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// `ld`, `ldu`
    Load,
    /// `st`
    Store,
    /// `atom`: reads, writes and returns the old value.
    Rmw,
    /// `red`: reads and writes, returns nothing.
    Reduction,
    /// `cp.async`: copies 4, 8 or 16 bytes, later.
    AsyncCopy,
    /// `cp.async.bulk`, `cp.reduce.async.bulk`, and tensor copies.
    BulkCopy,
    /// `st.async`, `red.async`: a store to another CTA of the cluster that completes later.
    AsyncStore,
    /// `wmma.load`, `ldmatrix`: the lanes of a warp read a matrix together.
    MatrixLoad,
    /// `wmma.store`, `stmatrix`
    MatrixStore,
    /// `tex`, `tld4`
    Texture,
    /// `suld`
    SurfaceLoad,
    /// `sust`
    SurfaceStore,
    /// `sured`
    SurfaceReduction,
    /// Multicast, tensor memory, discarding and the like: it touches memory in a way that the
    /// other fields do not describe.
    Opaque,
}

/// What an atomic operation computes.
#[allow(missing_docs, reason = "each is the suffix of the same name")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    And,
    Or,
    Xor,
    Cas,
    Exch,
    Add,
    Inc,
    Dec,
    Min,
    Max,
}

/// The scope an instruction names, if any.
pub(super) fn scope(instruction: &Instruction) -> Option<Scope> {
    let mut suffixes = instruction.suffixes.iter();
    suffixes.find_map(|suffix| Scope::from_suffix(suffix))
}

/// What an instruction does to memory, by its opcode, suffixes and operands; see [`super::memory()`].
pub(super) fn classify(instruction: &Instruction) -> Option<MemoryOp> {
    use MemoryKind::{
        AsyncStore, Load, MatrixLoad, MatrixStore, Opaque, Reduction, Rmw, Store, SurfaceLoad,
        SurfaceReduction, SurfaceStore, Texture,
    };
    let first = instruction.suffixes.first().map_or("", |suffix| suffix);
    let kind = match instruction.opcode.as_str() {
        "ld" | "ldu" => Load,
        "st" | "red" if first == "async" => AsyncStore,
        "st" if first == "bulk" => Opaque,
        "st" => Store,
        "red" => Reduction,
        "atom" => Rmw,
        "ldmatrix" => MatrixLoad,
        "stmatrix" => MatrixStore,
        "wmma" if first == "load" => MatrixLoad,
        "wmma" if first == "store" => MatrixStore,
        "tex" | "tld4" => Texture,
        "suld" => SurfaceLoad,
        "sust" => SurfaceStore,
        "sured" => SurfaceReduction,
        "cp" => return copy(instruction, first),
        "discard" | "multimem" | "tensormap" => Opaque,
        "tcgen05" | "wgmma" if first == "mma" || first == "mma_async" || first == "cp" => Opaque,
        "clusterlaunchcontrol" if first == "try_cancel" => Opaque,
        _ => return None,
    };
    let (sem, scope) = strength(instruction, kind);
    let ty = instruction.types().pop().unwrap_or(Type::B8);
    let op = match kind {
        Rmw | Reduction | AsyncStore | SurfaceReduction => atomic_op(instruction),
        _ => None,
    };
    let plain = matches!(kind, Load | Store | Rmw | Reduction | AsyncStore);
    Some(MemoryOp {
        kind,
        space: instruction.space(),
        sem,
        scope,
        ty,
        vector: instruction.vector(),
        bytes_per_element: if plain { ty.bytes() } else { 0 },
        address: address_operand(instruction, 0),
        nc: instruction.has("nc") || instruction.opcode == "ldu",
        op,
        source: None,
    })
}

/// Index of the first operand in brackets from `from` on; `from` when there is none.
fn address_operand(instruction: &Instruction, from: usize) -> usize {
    let in_brackets =
        |operand: &Operand| matches!(operand, Operand::Address { .. } | Operand::Bracket(_));
    instruction
        .operands
        .iter()
        .skip(from)
        .position(in_brackets)
        .map_or(from, |index| from + index)
}

fn strength(instruction: &Instruction, kind: MemoryKind) -> (Semantics, Scope) {
    let named = instruction
        .suffixes
        .iter()
        .find_map(|suffix| Semantics::from_suffix(suffix));
    let atomic = matches!(kind, MemoryKind::Rmw | MemoryKind::Reduction);
    match named {
        None | Some(Semantics::Weak) if !atomic => (Semantics::Weak, Scope::Cta),
        Some(sem @ (Semantics::Volatile | Semantics::Mmio)) => (sem, Scope::Sys),
        _ => (
            named.unwrap_or(Semantics::Relaxed),
            scope(instruction).unwrap_or(Scope::Gpu),
        ),
    }
}

fn atomic_op(instruction: &Instruction) -> Option<AtomicOp> {
    instruction.suffixes.iter().find_map(|suffix| {
        Some(match suffix.as_str() {
            "and" => AtomicOp::And,
            "or" => AtomicOp::Or,
            "xor" => AtomicOp::Xor,
            "cas" => AtomicOp::Cas,
            "exch" => AtomicOp::Exch,
            "add" => AtomicOp::Add,
            "inc" => AtomicOp::Inc,
            "dec" => AtomicOp::Dec,
            "min" => AtomicOp::Min,
            "max" => AtomicOp::Max,
            _ => return None,
        })
    })
}

/// `cp.async…` and `cp.reduce.async.bulk…`, other than the forms that only commit and wait.
fn copy(instruction: &Instruction, first: &str) -> Option<MemoryOp> {
    let has = |suffix| instruction.has(suffix);
    let commits = [
        "commit_group",
        "wait_group",
        "wait_all",
        "mbarrier",
        "prefetch",
    ];
    if commits.into_iter().any(has) {
        return None;
    }
    let mut spaces = instruction
        .suffixes
        .iter()
        .filter_map(|suffix| Space::from_suffix(suffix));
    let to = spaces.next().unwrap_or(Space::Generic);
    let from = spaces.next().unwrap_or(Space::Generic);
    let bulk = first == "reduce" || has("bulk");
    let bytes = match instruction.operands.get(2) {
        Some(&Operand::Int(bytes)) if !has("tensor") => u32::try_from(bytes).unwrap_or(0),
        _ => 0,
    };
    let address = address_operand(instruction, 0);
    // Each element is reduced as if by `.relaxed.gpu`.
    let (sem, scope) = match first {
        "reduce" => (Semantics::Relaxed, Scope::Gpu),
        _ => (Semantics::Weak, Scope::Cta),
    };
    Some(MemoryOp {
        kind: if bulk {
            MemoryKind::BulkCopy
        } else {
            MemoryKind::AsyncCopy
        },
        space: to,
        sem,
        scope,
        ty: instruction.types().pop().unwrap_or(Type::B8),
        vector: 1,
        bytes_per_element: bytes,
        address,
        nc: false,
        op: atomic_op(instruction).filter(|_| first == "reduce"),
        source: Some((address_operand(instruction, address + 1), from)),
    })
}
