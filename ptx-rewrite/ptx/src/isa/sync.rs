//! What an instruction orders: fences, barriers, and their kin.
//!
//! Source: PTX ISA 9.0, "Parallel Synchronization and Communication Instructions" and "Memory
//! Consistency Model". `membar.{cta,gl,sys}` is `fence.sc` at scope cta, gpu, sys; before sm_70 it
//! was weaker, which no module this crate is used on can tell.

use super::memory::scope;
use super::{memory, sync};
use events::{Scope, Semantics};

use crate::ast::{Instruction, Operand};

/// What an instruction orders. Numbers are indices of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncOp {
    /// `fence`, `membar`
    Fence {
        /// Its ordering.
        sem: FenceSemantics,
        /// Its scope; [`Scope::Sys`] for a proxy fence that names none.
        scope: Scope,
        /// True for `fence.proxy`, which orders the accesses of different proxies.
        proxy: bool,
    },
    /// `bar.sync`, `barrier.arrive`, `bar.red`, …
    CtaBarrier {
        /// Sync, arrive or reduce.
        kind: BarrierKind,
        /// Operand with the number of the barrier.
        id: usize,
        /// Operand with the number of threads; none for the whole CTA.
        count: Option<usize>,
        /// False for `barrier` without `.aligned`.
        aligned: bool,
    },
    /// `bar.warp.sync`
    WarpBarrier {
        /// Operand with the mask of lanes.
        mask: usize,
    },
    /// `barrier.cluster.arrive` and `.wait`
    ClusterBarrier {
        /// True for the arrive, false for the wait.
        arrive: bool,
        /// True for `.relaxed`, which orders no memory.
        relaxed: bool,
    },
    /// `mbarrier…`, and `cp.async.mbarrier.arrive`
    Mbarrier {
        /// What it does.
        op: MbarrierOp,
        /// Operand with the address of the barrier.
        address: usize,
        /// True for `.relaxed`, which orders no memory.
        relaxed: bool,
        /// Its scope, cta unless it says cluster.
        scope: Scope,
    },
    /// `cp.async.commit_group`, `cp.async.bulk.commit_group`, `wgmma.commit_group`
    CommitGroup,
    /// `cp.async.wait_group`, `.wait_all`, `cp.async.bulk.wait_group`, `wgmma.wait_group`
    WaitGroup,
    /// `griddepcontrol.launch_dependents` and `.wait`
    GridDependency {
        /// True for `.wait`.
        wait: bool,
    },
    /// `wgmma.fence`, `tcgen05.fence` and the like: order within one asynchronous unit.
    Other,
}

/// Ordering of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceSemantics {
    /// `.sc`
    Sc,
    /// `.acq_rel`
    AcqRel,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
}

/// What a thread does at a CTA barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierKind {
    /// Arrives and waits.
    Sync,
    /// Arrives and goes on.
    Arrive,
    /// Arrives, waits, and combines a predicate over all threads.
    Red,
}

/// What an `mbarrier` instruction does.
#[allow(missing_docs, reason = "each is the suffix of the same name")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MbarrierOp {
    Init,
    Inval,
    Arrive,
    ArriveDrop,
    ExpectTx,
    CompleteTx,
    TestWait,
    TryWait,
    PendingCount,
    /// `cp.async.mbarrier.arrive`: arrives when the copies before it are complete.
    CopyArrive,
}

/// What an instruction orders besides its own memory access; none if nothing. The ordering of
/// `ld.acquire` and the like stands in [`memory()`].
pub(super) fn classify(instruction: &Instruction) -> Option<SyncOp> {
    let has = |suffix| instruction.has(suffix);
    let first = instruction.suffixes.first().map_or("", |suffix| suffix);
    Some(match instruction.opcode.as_str() {
        "membar" if first != "proxy" => SyncOp::Fence {
            sem: FenceSemantics::Sc,
            scope: scope(instruction).unwrap_or(Scope::Sys),
            proxy: false,
        },
        "fence" | "membar" => fence(instruction),
        "bar" if first == "warp" => SyncOp::WarpBarrier { mask: 0 },
        "barrier" if first == "cluster" => SyncOp::ClusterBarrier {
            arrive: has("arrive"),
            relaxed: has("relaxed"),
        },
        "bar" | "barrier" => cta_barrier(instruction),
        "mbarrier" => mbarrier(instruction, first)?,
        "cp" if has("mbarrier") => SyncOp::Mbarrier {
            op: MbarrierOp::CopyArrive,
            address: 0,
            relaxed: false,
            scope: Scope::Cta,
        },
        "cp" | "wgmma" if has("commit_group") => SyncOp::CommitGroup,
        "cp" | "wgmma" if has("wait_group") || has("wait_all") => SyncOp::WaitGroup,
        "griddepcontrol" => SyncOp::GridDependency { wait: has("wait") },
        "wgmma" if has("fence") => SyncOp::Other,
        "tcgen05" if first.starts_with("wait") || matches!(first, "fence" | "commit") => {
            SyncOp::Other
        }
        _ => return None,
    })
}

/// True when threads may be ordered by this instruction in a way that a count of full CTA and
/// full warp barriers does not see, from the side of the thread that publishes: fences,
/// `.release` accesses, barriers of part of a CTA or warp, arrivals.
pub fn release_capable(instruction: &Instruction) -> bool {
    if let Some(access) = memory(instruction)
        && matches!(access.sem, Semantics::Release | Semantics::AcqRel)
    {
        return true;
    }
    match sync(instruction) {
        Some(SyncOp::Fence { sem, proxy, .. }) => sem != FenceSemantics::Acquire && !proxy,
        Some(SyncOp::CtaBarrier { .. }) => !is_full_cta_barrier(instruction),
        Some(SyncOp::WarpBarrier { .. }) => !is_full_warp_barrier(instruction),
        Some(SyncOp::ClusterBarrier { arrive, relaxed }) => arrive && !relaxed,
        Some(SyncOp::Mbarrier { op, relaxed, .. }) => {
            let arrives = matches!(
                op,
                MbarrierOp::Arrive
                    | MbarrierOp::ArriveDrop
                    | MbarrierOp::CompleteTx
                    | MbarrierOp::CopyArrive
            );
            arrives && !relaxed
        }
        Some(SyncOp::CommitGroup | SyncOp::WaitGroup | SyncOp::GridDependency { .. }) => false,
        Some(SyncOp::Other) => instruction.has("commit"),
        None => false,
    }
}

/// As [`release_capable`], from the side of the thread that learns.
pub fn acquire_capable(instruction: &Instruction) -> bool {
    if let Some(access) = memory(instruction)
        && matches!(access.sem, Semantics::Acquire | Semantics::AcqRel)
    {
        return true;
    }
    match sync(instruction) {
        Some(SyncOp::Fence { sem, proxy, .. }) => sem != FenceSemantics::Release && !proxy,
        Some(SyncOp::CtaBarrier { kind, .. }) => {
            kind != BarrierKind::Arrive && !is_full_cta_barrier(instruction)
        }
        Some(SyncOp::WarpBarrier { .. }) => !is_full_warp_barrier(instruction),
        Some(SyncOp::ClusterBarrier { arrive, .. }) => !arrive,
        Some(SyncOp::Mbarrier { op, relaxed, .. }) => {
            matches!(op, MbarrierOp::TestWait | MbarrierOp::TryWait) && !relaxed
        }
        Some(
            SyncOp::CommitGroup | SyncOp::WaitGroup | SyncOp::GridDependency { .. } | SyncOp::Other,
        )
        | None => false,
    }
}

/// True for a barrier that every thread of the CTA takes part in and waits at: `bar.sync` and
/// `bar.red` (or `barrier`) without a thread count, whatever the barrier's number.
pub fn is_full_cta_barrier(instruction: &Instruction) -> bool {
    matches!(
        sync(instruction),
        Some(SyncOp::CtaBarrier {
            kind: BarrierKind::Sync | BarrierKind::Red,
            count: None,
            ..
        })
    )
}

/// True for `bar.warp.sync` with a constant mask of all 32 lanes.
pub fn is_full_warp_barrier(instruction: &Instruction) -> bool {
    match sync(instruction) {
        Some(SyncOp::WarpBarrier { mask }) => matches!(
            instruction.operands.get(mask),
            Some(Operand::Int(-1 | 0xffff_ffff))
        ),
        _ => false,
    }
}

fn fence(instruction: &Instruction) -> SyncOp {
    let named = instruction
        .suffixes
        .iter()
        .find_map(|suffix| match suffix.as_str() {
            "sc" => Some(FenceSemantics::Sc),
            "acq_rel" => Some(FenceSemantics::AcqRel),
            "acquire" => Some(FenceSemantics::Acquire),
            "release" => Some(FenceSemantics::Release),
            _ => None,
        });
    SyncOp::Fence {
        sem: named.unwrap_or(FenceSemantics::AcqRel),
        scope: scope(instruction).unwrap_or(Scope::Sys),
        proxy: instruction
            .suffixes
            .iter()
            .any(|suffix| suffix.starts_with("proxy")),
    }
}

/// Operands: `sync a[, b]`, `arrive a, b`, `red.popc d, a[, b], p`, `red.or.pred p, a[, b], q`.
fn cta_barrier(instruction: &Instruction) -> SyncOp {
    let operands = instruction.operands.len();
    let (kind, id, with_count) = if instruction.has("red") {
        (BarrierKind::Red, 1, 4)
    } else if instruction.has("arrive") {
        (BarrierKind::Arrive, 0, 2)
    } else {
        (BarrierKind::Sync, 0, 2)
    };
    SyncOp::CtaBarrier {
        kind,
        id,
        count: (operands >= with_count).then_some(id + 1),
        aligned: instruction.opcode == "bar" || instruction.has("aligned"),
    }
}

fn mbarrier(instruction: &Instruction, first: &str) -> Option<SyncOp> {
    let op = match first {
        "init" => MbarrierOp::Init,
        "inval" => MbarrierOp::Inval,
        "arrive" => MbarrierOp::Arrive,
        "arrive_drop" => MbarrierOp::ArriveDrop,
        "expect_tx" => MbarrierOp::ExpectTx,
        "complete_tx" => MbarrierOp::CompleteTx,
        "test_wait" => MbarrierOp::TestWait,
        "try_wait" => MbarrierOp::TryWait,
        "pending_count" => MbarrierOp::PendingCount,
        _ => return None,
    };
    let in_brackets = |operand: &Operand| matches!(operand, Operand::Address { .. });
    Some(SyncOp::Mbarrier {
        op,
        address: instruction
            .operands
            .iter()
            .position(in_brackets)
            .unwrap_or(0),
        relaxed: instruction.has("relaxed"),
        scope: scope(instruction).unwrap_or(Scope::Cta),
    })
}
