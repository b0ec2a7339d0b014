//! From the rewriter's terms to the log's, and kernel names.

use ptx::isa::{MbarrierOp, MemoryKind, MemoryOp, Scope, Semantics};

use crate::log;

/// Bytes of an mbarrier.
pub(crate) const MBARRIER_BYTES: u32 = 8;

/// Describes a rewritten module; `observed` says that happens-before listens to the device.
pub(crate) fn module(
    key: u32,
    origin: &str,
    rewritten: &rewrite::Rewritten,
    observed: bool,
) -> log::Module {
    log::Module {
        module: key,
        origin: origin.to_owned(),
        kernels: rewritten
            .kernels
            .iter()
            .map(|info| kernel(info, observed))
            .collect(),
        unchecked_functions: rewritten.unchecked_functions.clone(),
        rewrite_seconds: 0.0,
    }
}

pub(crate) fn kernel(info: &rewrite::KernelInfo, observed: bool) -> log::Kernel {
    log::Kernel {
        name: info.name.clone(),
        instrumented: info.instrumented || observed,
        why_not: info.why_not.clone().filter(|_| !observed),
        accesses: info.accesses,
        checked: if observed {
            info.accesses
        } else {
            info.checked
        },
        shared: if observed { 0 } else { info.skipped.shared },
        release_sites: info.release_sites.clone(),
        not_understood: match observed {
            true => info.not_observable.clone(),
            false => info.not_understood.clone(),
        },
    }
}

/// Describes a site that the checks name.
pub(crate) fn site(site: &rewrite::Site) -> log::Site {
    log::Site {
        id: site.id,
        function: site.function.clone(),
        text: site.text.clone(),
        ptx_line: site.ptx_line,
        frames: site.frames.iter().map(frame).collect(),
        ..operation(&site.op)
    }
}

/// What an access does, without saying where it stands.
pub(crate) fn operation(op: &MemoryOp) -> log::Site {
    log::Site {
        op: match op.kind {
            MemoryKind::Load
            | MemoryKind::MatrixLoad
            | MemoryKind::Texture
            | MemoryKind::SurfaceLoad => log::Op::Load,
            MemoryKind::Store
            | MemoryKind::MatrixStore
            | MemoryKind::AsyncStore
            | MemoryKind::SurfaceStore => log::Op::Store,
            MemoryKind::AsyncCopy | MemoryKind::BulkCopy => log::Op::Copy,
            _ => log::Op::Atomic,
        },
        bytes: match op.kind {
            // Of a matrix the size of an element.
            MemoryKind::MatrixLoad | MemoryKind::MatrixStore => op.ty.bytes(),
            MemoryKind::SurfaceLoad | MemoryKind::SurfaceStore => {
                op.ty.bytes() * u32::from(op.vector.max(1))
            }
            _ => op.bytes(),
        },
        ty: op.ty.suffix().to_owned(),
        sem: op.sem,
        scope: op.is_strong().then_some(op.scope),
        ..log::Site::default()
    }
}

/// What an operation on an mbarrier does to the memory where that lies.
pub(crate) fn mbarrier(op: MbarrierOp, relaxed: bool, within: Scope) -> log::Site {
    let (op, sem) = match op {
        MbarrierOp::Init => (log::Op::Store, Semantics::Weak),
        MbarrierOp::TestWait | MbarrierOp::TryWait => (log::Op::Load, Semantics::Acquire),
        _ => (log::Op::Atomic, Semantics::Release),
    };
    log::Site {
        op,
        bytes: MBARRIER_BYTES,
        ty: "b64".to_owned(),
        sem: match relaxed && op != log::Op::Store {
            true => Semantics::Relaxed,
            false => sem,
        },
        scope: (op != log::Op::Store).then_some(within),
        ..log::Site::default()
    }
}

pub(crate) fn frame(frame: &ptx::Frame) -> log::Frame {
    log::Frame {
        file: frame.file.to_string(),
        line: frame.line,
        column: frame.column,
        function: frame.function.as_ref().map(ToString::to_string),
    }
}
