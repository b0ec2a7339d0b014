//! What a lane can do wrong, before it is known which instruction of which kernel it was.

use ptx::ast::{Module, Space};

use super::cta::CtaId;
use super::warp::Warp;
use crate::code::Program;
use crate::error::{ExecutionPoint, LaunchError};

#[derive(Clone, Debug)]
pub(crate) enum FaultKind {
    Illegal {
        address: u64,
        bytes: u32,
        space: Space,
        write: bool,
    },
    Misaligned {
        address: u64,
        bytes: u32,
    },
    BadCall {
        address: u64,
    },
    BadTexture {
        handle: u64,
    },
    BadSurface {
        handle: u64,
    },
    BeyondSurface {
        place: [i32; 3],
    },
    StackOverflow,
    Trap,
    Assert {
        message: String,
        file: String,
        line: u32,
        function: String,
    },
    Unsupported(String),
}

/// A fault of one lane.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) lane: u32,
    pub(crate) kind: FaultKind,
}

impl Fault {
    #[cold]
    pub(crate) fn new(lane: u32, kind: FaultKind) -> Box<Self> {
        Box::new(Self { lane, kind })
    }
}

/// Where a lane is.
pub(crate) fn place(
    module: &Module,
    program: &Program,
    kernel: &str,
    pc: u32,
    cta: &CtaId,
    warp: &Warp,
    lane: u32,
) -> ExecutionPoint {
    let offset = program.offsets.get(pc as usize).copied().unwrap_or(0);
    ExecutionPoint {
        kernel: kernel.to_owned(),
        line: module.line_column(offset).0,
        offset,
        cta: cta.index,
        thread: [0, 1, 2].map(|axis: usize| warp.tid[axis][lane as usize & 31] as u32),
    }
}

/// The error that a fault at a place ends the launch with.
pub(crate) fn error(fault: Fault, at: ExecutionPoint) -> LaunchError {
    match fault.kind {
        FaultKind::Illegal {
            address,
            bytes,
            space,
            write,
        } => LaunchError::IllegalAddress {
            at,
            address,
            bytes,
            space,
            write,
        },
        FaultKind::Misaligned { address, bytes } => LaunchError::Misaligned { at, address, bytes },
        FaultKind::BadCall { address } => LaunchError::InvalidProgramCounter { at, address },
        FaultKind::BadTexture { handle } => LaunchError::InvalidTexture { at, handle },
        FaultKind::BadSurface { handle } => LaunchError::InvalidSurface { at, handle },
        FaultKind::BeyondSurface { place } => LaunchError::OutsideSurface { at, place },
        FaultKind::StackOverflow => LaunchError::StackOverflow { at },
        FaultKind::Trap => LaunchError::Trap { at },
        FaultKind::Assert {
            message,
            file,
            line,
            function,
        } => LaunchError::Assert {
            at,
            message,
            file: file.into(),
            line,
            function: function.into(),
        },
        FaultKind::Unsupported(what) => LaunchError::Unsupported {
            kernel: at.kernel,
            what,
            line: at.line,
        },
    }
}
