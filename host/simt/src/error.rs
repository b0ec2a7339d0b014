//! How loading and launching fail. A faulting program is a verdict on the program, never a panic.

use std::fmt;

use ptx::ast::Space;

use crate::config::Progress;

/// Where in a launch something happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionPoint {
    /// The kernel that was launched.
    pub kernel: String,
    /// Line of the module's PTX text, from 1; 0 when unknown.
    pub line: u32,
    /// Byte offset of the instruction in the module's text.
    pub offset: u32,
    /// Index of the CTA.
    pub cta: [u32; 3],
    /// Index of the thread in its CTA.
    pub thread: [u32; 3],
}

impl fmt::Display for ExecutionPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [tx, ty, tz]) = (self.cta, self.thread);
        write!(
            f,
            "{} at ptx line {}, block ({bx},{by},{bz}) thread ({tx},{ty},{tz})",
            self.kernel, self.line
        )
    }
}

/// A group of lanes that waits for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The first lane of the group, and the instruction it waits at.
    pub at: ExecutionPoint,
    /// Warp in the CTA.
    pub warp: u32,
    /// Lanes of the group, one bit each.
    pub lanes: u32,
    /// What for, such as `barrier 0` or `bar.warp.sync 0xffffffff`.
    pub what: String,
    /// The same with its numbers.
    pub on: On,
}

/// What a group of lanes waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// Nothing: it can go on.
    Running,
    /// Other lanes of its warp.
    Lanes,
    /// A barrier of its CTA.
    Barrier {
        /// Which.
        id: u32,
        /// Threads that have come to it.
        arrived: u32,
        /// Threads that it waits for.
        expected: u32,
    },
    /// The barrier of its cluster.
    Cluster {
        /// Threads that have come to it.
        arrived: u32,
        /// Threads of the cluster that have not exited.
        expected: u32,
    },
    /// The barrier of a cooperative launch.
    Grid,
    /// Another value in memory: it goes round in a loop that looks at it.
    Memory {
        /// Where; never generic.
        space: Space,
        /// The address.
        address: u64,
        /// Bytes that it looks at.
        bytes: u32,
        /// What is there.
        value: u64,
    },
    /// The phase of an mbarrier: it goes round in a loop that tests it.
    Mbarrier {
        /// Address in shared memory.
        address: u64,
        /// Arrivals that are outstanding.
        arrivals: u64,
        /// Bytes that are outstanding; negative when more have come than were expected.
        bytes: i64,
    },
    /// Nothing: it goes round in a loop that looks at no memory.
    #[default]
    Nothing,
}

/// Who does not wait in a launch that is stuck.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Absent {
    /// CTAs that have ended.
    pub exited: u64,
    /// Indices of the first of them, where they are known.
    pub first: Vec<[u32; 3]>,
    /// CTAs that have not started, because the waiting CTAs occupy the device.
    pub unstarted: u64,
    /// Threads that have exited, of CTAs that have not ended.
    pub threads: u64,
}

/// Why a module cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Not enough device memory for a variable.
    OutOfMemory {
        /// The variable.
        variable: String,
        /// Its size in bytes.
        bytes: u64,
    },
    /// An initialiser or declaration names a symbol that is not there.
    UnknownSymbol {
        /// The symbol.
        symbol: String,
        /// Line of the PTX text.
        line: u32,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { variable, bytes } => {
                write!(
                    f,
                    "no device memory for variable {variable} of {bytes} bytes"
                )
            }
            Self::UnknownSymbol { symbol, line } => {
                write!(f, "ptx line {line}: unknown symbol {symbol}")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// How a launch fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchError {
    /// An access outside every live allocation.
    IllegalAddress {
        /// The instruction and thread.
        at: ExecutionPoint,
        /// The address as the instruction gave it.
        address: u64,
        /// Bytes accessed.
        bytes: u32,
        /// State space of the instruction.
        space: Space,
        /// True for stores and atomics.
        write: bool,
    },
    /// An address that is not a multiple of the access size.
    Misaligned {
        /// The instruction and thread.
        at: ExecutionPoint,
        /// The address.
        address: u64,
        /// Bytes accessed.
        bytes: u32,
    },
    /// A call to an address that is no function.
    InvalidProgramCounter {
        /// The instruction and thread.
        at: ExecutionPoint,
        /// The address.
        address: u64,
    },
    /// A fetch from what is no texture object, or no longer one: it or its array was destroyed.
    InvalidTexture {
        /// The instruction and thread.
        at: ExecutionPoint,
        /// The handle.
        handle: u64,
    },
    /// A load or store through what is no surface object, or no longer one.
    InvalidSurface {
        /// The instruction and thread.
        at: ExecutionPoint,
        /// The handle.
        handle: u64,
    },
    /// A load or store outside of a surface that was to trap there.
    OutsideSurface {
        /// The instruction and thread.
        at: ExecutionPoint,
        /// x in bytes, y, and z or the layer.
        place: [i32; 3],
    },
    /// Calls nested deeper than local memory allows.
    StackOverflow {
        /// The instruction and thread.
        at: ExecutionPoint,
    },
    /// `trap` was executed.
    Trap {
        /// The instruction and thread.
        at: ExecutionPoint,
    },
    /// A device-side `assert` failed.
    Assert {
        /// The instruction and thread.
        at: ExecutionPoint,
        /// The asserted expression.
        message: String,
        /// Source file.
        file: Box<str>,
        /// Source line.
        line: u32,
        /// Source function.
        function: Box<str>,
    },
    /// All threads wait for each other.
    Deadlock {
        /// The kernel.
        kernel: String,
        /// Who waits where, the first 4,096 groups.
        waiting: Vec<Waiting>,
        /// Who does not.
        absent: Absent,
    },
    /// A limit of the launch was reached.
    Timeout {
        /// The kernel.
        kernel: String,
        /// Warp instructions executed until then.
        warp_instructions: u64,
        /// Where some warps were.
        running: Vec<ExecutionPoint>,
    },
    /// Whoever launched it wanted no more of it; see [`Limits::go_on`](crate::Limits::go_on).
    Interrupted {
        /// The kernel.
        kernel: String,
        /// Warp instructions executed until then.
        warp_instructions: u64,
        /// How far it had come.
        progress: Progress,
        /// Where its threads were, the first 4,096 groups.
        threads: Vec<Waiting>,
    },
    /// The kernel, or a function it calls, has an instruction that the device does not know.
    Unsupported {
        /// The kernel.
        kernel: String,
        /// The instruction with its suffixes, or what else is not supported.
        what: String,
        /// Line of the PTX text.
        line: u32,
    },
    /// There is no such module.
    UnknownModule,
    /// The module has no such kernel.
    UnknownKernel(String),
    /// Sizes that no device accepts, with the reason.
    InvalidConfiguration(String),
    /// Sizes that this kernel on this device does not allow, with the reason.
    OutOfResources(String),
    /// A cooperative launch that does not fit on the device at once, with the reason.
    CooperativeTooLarge(String),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IllegalAddress {
                at,
                address,
                bytes,
                space,
                write,
            } => {
                let verb = if *write { "write" } else { "read" };
                let space = match space {
                    Space::Generic => "",
                    space => space.suffix(),
                };
                let gap = if space.is_empty() { "" } else { " " };
                write!(
                    f,
                    "invalid {space}{gap}{verb} of {bytes} bytes at {address:#x} in {at}"
                )
            }
            Self::Misaligned { at, address, bytes } => {
                write!(
                    f,
                    "misaligned access of {bytes} bytes at {address:#x} in {at}"
                )
            }
            Self::InvalidProgramCounter { at, address } => {
                write!(f, "call of {address:#x}, which is no function, in {at}")
            }
            Self::InvalidTexture { at, handle } => {
                write!(
                    f,
                    "fetch from {handle:#x}, which is no texture object, in {at}"
                )
            }
            Self::InvalidSurface { at, handle } => {
                write!(
                    f,
                    "access through {handle:#x}, which is no surface object, in {at}"
                )
            }
            Self::OutsideSurface {
                at,
                place: [x, y, z],
            } => write!(
                f,
                "access outside of a surface, at byte {x} of row {y} of slice {z}, in {at}"
            ),
            Self::StackOverflow { at } => write!(f, "stack overflow in {at}"),
            Self::Trap { at } => write!(f, "trap in {at}"),
            Self::Assert {
                at,
                message,
                file,
                line,
                function,
            } => write!(
                f,
                "{file}:{line}: {function}: assertion `{message}` failed in {at}"
            ),
            Self::Deadlock {
                kernel, waiting, ..
            } => {
                write!(f, "deadlock in {kernel}")?;
                for group in waiting.iter().take(4) {
                    write!(
                        f,
                        "; lanes {:#010x} of warp {} wait for {} in {}",
                        group.lanes, group.warp, group.what, group.at
                    )?;
                }
                Ok(())
            }
            Self::Timeout {
                kernel,
                warp_instructions,
                running,
            } => {
                write!(
                    f,
                    "{kernel} ran out of time after {warp_instructions} warp instructions"
                )?;
                match running.first() {
                    Some(at) => write!(f, ", at {at} among others"),
                    None => Ok(()),
                }
            }
            Self::Interrupted {
                kernel,
                warp_instructions,
                progress: Progress { done, ctas },
                ..
            } => write!(
                f,
                "{kernel} was interrupted after {warp_instructions} warp instructions, when {done} of its {ctas} blocks had ended"
            ),
            Self::Unsupported { kernel, what, line } => {
                write!(
                    f,
                    "{kernel}, ptx line {line}: {what} is not supported by the simulated device"
                )
            }
            Self::UnknownModule => f.write_str("no such module"),
            Self::UnknownKernel(name) => write!(f, "no such kernel: {name}"),
            Self::InvalidConfiguration(reason)
            | Self::OutOfResources(reason)
            | Self::CooperativeTooLarge(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for LaunchError {}
