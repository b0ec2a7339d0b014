//! Decoded code: what a kernel and the functions it reaches become before they run.

use std::collections::HashMap;

use ptx::ast::Space;
use smol_str::SmolStr;

use crate::config::KernelInfo;
use crate::decode::Retry;
use crate::device_call::DeviceCall;
use crate::lanes::{AluFn, Args, Lanes};
use crate::matrix::Matrix;

/// One step of the interpreter. Most instructions are one op; those that read special registers
/// as operands are preceded by ops that fetch them.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) kind: Kind,
    /// Predicate source that must hold; 0, the predicate that always holds, without a guard.
    pub(crate) guard: u32,
    /// True for the op that counts as the instruction.
    pub(crate) counts: bool,
    /// True where it is counted as [`LaunchStats::device_fences`](crate::LaunchStats::device_fences).
    pub(crate) fences: bool,
}

/// What an op does.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Registers to registers.
    Alu(AluFn, Args),
    /// Reads a special register.
    Special(u32, Special),
    /// Address of a variable of the frame in local memory.
    FrameAddress {
        d: u32,
        offset: u32,
    },
    /// `ld.param` of a kernel parameter at a known place.
    Param {
        d: u32,
        offset: u32,
        load: Width,
    },
    Load(Box<Access>),
    Store(Box<Access>),
    Atomic(Box<Atomic>),
    Copy(Box<Copy>),
    AsyncStore(Box<AsyncStore>),
    Texture(Box<Texture>),
    Surface(Box<Surface>),
    Matrix(Box<Matrix>),
    Mbarrier(Box<Mbarrier>),
    Branch(u32),
    BranchIndexed {
        index: u32,
        targets: Box<[u32]>,
    },
    Call(Box<Call>),
    Return,
    Exit,
    Trap,
    Barrier(Box<Barrier>),
    ClusterBarrier {
        arrive: bool,
    },
    /// Waits for other lanes of the warp, then exchanges values with them.
    Exchange(Box<Exchange>),
    ActiveMask(u32),
    /// Address of a shared variable as another CTA of the cluster sees it.
    Map(Map),
    /// Rank of the CTA of the cluster whose shared memory an address is in.
    Rank(Rank),
    /// True for the lanes whose generic address lies in a space.
    IsSpace {
        d: u32,
        address: u32,
        space: Space,
    },
    /// `alloca`: bytes of local memory that are free again when the function returns.
    Allocate {
        d: u32,
        bytes: u32,
        align: u32,
    },
    /// `stacksave`
    StackSave(u32),
    /// `stackrestore`
    StackRestore(u32),
    Fence,
    /// Ends a group of copies, or waits for some.
    Copies,
    /// `griddepcontrol`: one launch runs at a time, so there is nothing to wait for.
    Dependency,
    /// `nanosleep`: lets others go first, the longer the more nanoseconds.
    Sleep(u32),
    Nop,
    /// Not understood; a launch that would run it is refused, or fails when it gets here.
    Unsupported(Box<str>),
}

/// Special registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    NwarpId,
    SmId,
    NsmId,
    GridId,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    Clock,
    ClockHi,
    Clock64,
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    Env(u8),
    TotalShared,
    AggregateShared,
    DynamicShared,
    /// Start, end, size and two places of the shared memory that belongs to the system.
    ReservedShared(u8),
    ClusterId(u8),
    NclusterId(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    /// What counts or names nothing here: performance counters, the graph that is executed.
    Nothing,
}

/// Bytes of an element and what becomes of them in the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Width {
    /// 1, 2, 4, 8 or 16.
    pub(crate) bytes: u8,
    /// Bits to fill with the sign, 0 for none; the register's width.
    pub(crate) sign_to: u8,
}

impl Width {
    /// What a register holds after `raw` was loaded into it.
    #[inline(always)]
    pub(crate) fn extend(self, raw: u64) -> u64 {
        if self.sign_to == 0 {
            return raw;
        }
        let unused = 64 - 8 * u32::from(self.bytes.min(8));
        let wide = ((raw << unused) as i64 >> unused) as u64;
        wide & (u64::MAX >> (64 - u32::from(self.sign_to)))
    }
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressSpace {
    /// Global, const, or any address that can only be that.
    Global,
    Shared,
    Local,
    /// Local memory relative to the frame.
    Frame,
    /// The kernel's parameters.
    Param,
    Generic,
}

/// `[base + offset]`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) address_space: AddressSpace,
    /// Row of the base.
    pub(crate) base: u32,
    pub(crate) offset: i64,
}

/// A load or store.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) address: Address,
    pub(crate) width: Width,
    /// Rows, one per vector element; a pair of rows, low half first, for 16-byte elements.
    pub(crate) rows: Vec<u32>,
    /// Bytes of the whole vector.
    pub(crate) bytes: u32,
    /// Volatile or ordered: likely part of a spin loop.
    pub(crate) strong: bool,
    /// What it stands for, if that is less than its bytes.
    pub(crate) narrow: Option<Narrow>,
}

/// An access to a word that stands for one to an element of it ([`ptx::narrow()`]): observers hear of that one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrow {
    /// Row of the element's address.
    pub(crate) pointer: u32,
    /// Bytes of the element.
    pub(crate) bytes: u32,
    /// Bytes of the access that it stands for.
    pub(crate) around: u32,
}

impl Access {
    /// Bytes of an element in memory, or of half of one that takes two rows.
    #[inline(always)]
    pub(crate) fn element(&self) -> u32 {
        u32::from(self.width.bytes.min(8))
    }

    /// Where each row's bytes lie behind the address, in bytes, and the row.
    #[inline(always)]
    pub(crate) fn steps(&self) -> impl Iterator<Item = (u64, &u32)> {
        let size = u64::from(self.element());
        (0..).map(move |index| size * index).zip(&self.rows)
    }
}

/// What an atomic computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rmw {
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Add,
    Inc,
    Dec,
    MinU,
    MaxU,
    MinS,
    MaxS,
    AddF32,
    AddF64,
    /// Packed or single half precision: (bfloat, lanes of 16 bits, operation).
    Half {
        bfloat: bool,
        op: HalfOp,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HalfOp {
    Add,
    Min,
    Max,
}

/// `atom` or `red`.
#[derive(Clone, Debug)]
pub(crate) struct Atomic {
    pub(crate) address: Address,
    pub(crate) op: Rmw,
    /// Bytes of an element: 2, 4, 8 or 16.
    pub(crate) bytes: u8,
    /// Rows of the result, empty for `red`.
    pub(crate) results: Vec<u32>,
    /// Rows of the operand, one per element (two for 16 bytes).
    pub(crate) operands: Vec<u32>,
    /// Rows of the second operand of `cas`.
    pub(crate) second: Vec<u32>,
    /// What it stands for, if that is less than its bytes.
    pub(crate) narrow: Option<Narrow>,
}

/// `cp.async` and bulk copies, done at once.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) to: Address,
    pub(crate) from: Address,
    /// Row with the number of bytes written.
    pub(crate) bytes: u32,
    /// Row with the number of bytes read, the rest being zero; none for all.
    pub(crate) source_bytes: Option<u32>,
    /// Predicate source that says to write zeroes.
    pub(crate) ignore: Option<u32>,
    /// Barrier that learns about the bytes.
    pub(crate) complete: Option<Address>,
    /// Bulk copies are made of 16-byte pieces.
    pub(crate) bulk: bool,
    /// What is done with each element where it goes, and the element's bytes; none to replace it.
    pub(crate) reduce: Option<(Rmw, u8)>,
    /// Row with a bit for each CTA of the cluster that gets the bytes, and where.
    pub(crate) multicast: Option<u32>,
}

/// `mapa`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    pub(crate) d: u32,
    pub(crate) address: u32,
    /// Row of the rank of the CTA whose memory is meant.
    pub(crate) rank: u32,
    /// The addresses are generic.
    pub(crate) generic: bool,
}

/// `getctarank`
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank {
    pub(crate) d: u32,
    pub(crate) address: u32,
    /// The address is generic.
    pub(crate) generic: bool,
}

/// `st.async` and `red.async`: done at once, and reported to a barrier.
#[derive(Clone, Debug)]
pub(crate) struct AsyncStore {
    pub(crate) to: Address,
    /// Rows of the elements.
    pub(crate) rows: Vec<u32>,
    /// Bytes of an element.
    pub(crate) bytes: u8,
    /// What is done with each element; none to replace it.
    pub(crate) reduce: Option<Rmw>,
    pub(crate) complete: Address,
}

/// `suld.b` and `sust.b`
#[derive(Clone, Debug)]
pub(crate) struct Surface {
    /// Where; x counts bytes.
    pub(crate) texel: TexelAddress,
    /// Bytes of an element.
    pub(crate) bytes: u32,
    /// Rows of the elements.
    pub(crate) rows: Vec<u32>,
    /// True for a store.
    pub(crate) store: bool,
    /// What to do outside.
    pub(crate) beyond: Beyond,
}

/// Where a texture or a surface is accessed.
#[derive(Clone, Debug)]
pub(crate) struct TexelAddress {
    /// Row of the object's handle.
    pub(crate) handle: u32,
    /// Rows of the coordinates in x, y and z, as far as the geometry has them.
    pub(crate) at: Vec<u32>,
    /// Row of the layer, of a layered geometry.
    pub(crate) layer: Option<u32>,
}

impl TexelAddress {
    /// The rows that are read.
    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut u32> {
        let first = std::iter::once(&mut self.handle);
        first.chain(&mut self.at).chain(&mut self.layer)
    }
}

/// What an access outside of a surface does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// It ends the launch.
    Trap,
    /// It goes to the nearest place inside.
    Clamp,
    /// It reads 0, and writes nothing.
    Zero,
}

/// `tex` and `tld4`
#[derive(Clone, Debug)]
pub(crate) struct Texture {
    /// Where.
    pub(crate) texel: TexelAddress,
    /// True when the coordinates are integers.
    pub(crate) texels: bool,
    /// True when they are a direction, and the layer is one of several cubemaps.
    pub(crate) cube: bool,
    /// The channel that a gather returns of four texels.
    pub(crate) gather: Option<u8>,
    /// Rows of the four channels.
    pub(crate) rows: [u32; 4],
    /// Predicate that says that the texels are in memory, as they always are.
    pub(crate) resident: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MbarrierKind {
    Init,
    Inval,
    Arrive {
        drop: bool,
        expect: bool,
    },
    ExpectTx,
    CompleteTx,
    TestWait {
        parity: bool,
    },
    /// `cp.async.mbarrier.arrive`, which leaves the count as it is.
    CopyArrive,
    PendingCount,
}

/// An operation on an mbarrier object.
#[derive(Clone, Debug)]
pub(crate) struct Mbarrier {
    pub(crate) kind: MbarrierKind,
    pub(crate) address: Address,
    /// Row or predicate of the result.
    pub(crate) d: Option<u32>,
    /// Row of the count, state or parity.
    pub(crate) a: u32,
    /// Row of the count of an arrival that also expects.
    pub(crate) b: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    Popc,
    And,
    Or,
}

/// A CTA barrier.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    pub(crate) kind: BarrierKind,
    /// Row of the number.
    pub(crate) id: u32,
    /// Row of the thread count; none for the whole CTA.
    pub(crate) count: Option<u32>,
    /// All lanes of a warp must come by the same instruction.
    pub(crate) aligned: bool,
    /// Row (popc) or predicate of the result.
    pub(crate) d: u32,
    /// Predicate source of a reduction.
    pub(crate) predicate: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeKind {
    /// `bar.warp.sync`
    Barrier,
    /// The lanes come together, which orders nothing.
    Together,
    ShflUp,
    ShflDown,
    ShflBfly,
    ShflIdx,
    VoteAll,
    VoteAny,
    VoteUni,
    Ballot,
    MatchAny {
        wide: bool,
    },
    MatchAll {
        wide: bool,
    },
    ReduxAdd,
    ReduxMinU,
    ReduxMaxU,
    ReduxMinS,
    ReduxMaxS,
    ReduxAnd,
    ReduxOr,
    ReduxXor,
    Elect,
}

impl ExchangeKind {
    /// Whether lanes bring predicates.
    pub(crate) fn votes(self) -> bool {
        matches!(
            self,
            Self::VoteAll | Self::VoteAny | Self::VoteUni | Self::Ballot
        )
    }

    /// The opcode, without its type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Barrier => "bar.warp.sync",
            Self::Together => "an operation of the whole warp",
            Self::ShflUp => "shfl.sync.up",
            Self::ShflDown => "shfl.sync.down",
            Self::ShflBfly => "shfl.sync.bfly",
            Self::ShflIdx => "shfl.sync.idx",
            Self::VoteAll => "vote.sync.all",
            Self::VoteAny => "vote.sync.any",
            Self::VoteUni => "vote.sync.uni",
            Self::Ballot => "vote.sync.ballot",
            Self::MatchAny { .. } => "match.any.sync",
            Self::MatchAll { .. } => "match.all.sync",
            Self::ReduxAdd => "redux.sync.add",
            Self::ReduxMinU | Self::ReduxMinS => "redux.sync.min",
            Self::ReduxMaxU | Self::ReduxMaxS => "redux.sync.max",
            Self::ReduxAnd => "redux.sync.and",
            Self::ReduxOr => "redux.sync.or",
            Self::ReduxXor => "redux.sync.xor",
            Self::Elect => "elect.sync",
        }
    }
}

/// An operation of several lanes of a warp together.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) kind: ExchangeKind,
    /// Row of the member mask; none for the lanes that happen to be together.
    pub(crate) members: Option<u32>,
    /// Written row.
    pub(crate) d: Option<u32>,
    /// Written predicate.
    pub(crate) p: Option<u32>,
    /// Value row, or predicate source for votes.
    pub(crate) a: u32,
    /// Lane or offset row.
    pub(crate) b: u32,
    /// Clamp row.
    pub(crate) c: u32,
}

/// Whom a call calls.
#[derive(Clone, Debug)]
pub(crate) enum Callee {
    Function(u32),
    /// Row with the address.
    Indirect(u32),
    Vprintf,
    Malloc,
    Free,
    AssertFail,
    /// A function of the device runtime.
    Device {
        call: DeviceCall,
        /// Stream 0 is the thread's own.
        own_stream: bool,
    },
    /// Declared, but defined nowhere.
    Missing(SmolStr),
}

/// A value at a call: where the caller keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    /// A `.param` variable in the caller's frame.
    Frame { offset: u32, bytes: u32 },
    /// A register or constant.
    Row(u32),
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) returns: Vec<Argument>,
}

/// A formal parameter: where the callee expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Formal {
    Frame {
        offset: u32,
        bytes: u32,
    },
    /// A `.reg` parameter.
    Row {
        row: u32,
        bytes: u32,
    },
}

/// A decoded function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Func {
    pub(crate) entry: u32,
    pub(crate) rows: u32,
    pub(crate) preds: u32,
    /// Bytes of local memory of a frame.
    pub(crate) local: u32,
    pub(crate) params: Vec<Formal>,
    pub(crate) returns: Vec<Formal>,
}

/// How much the order means in which the CTAs of a kernel run, whose accesses do not race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CtaOrder {
    /// Nothing: they may run at the same time.
    #[default]
    Free,
    /// They communicate, by atomics or strong accesses.
    Communicating,
    /// They ask where or when they run, print, allocate, or do what is not done while others run.
    Fixed,
}

/// A kernel with everything it reaches. Function 0 is the kernel.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
    /// Byte offset in the module's text of each op's instruction.
    pub(crate) offsets: Vec<u32>,
    pub(crate) consts: Vec<Lanes>,
    pub(crate) functions: Vec<Func>,
    /// Functions whose address may be taken: address to function number.
    pub(crate) addresses: Vec<(u64, u32)>,
    /// First and last byte of each `.const` variable, where somebody asks for the space of an address.
    pub(crate) constants: Vec<(u64, u64)>,
    /// Bytes of static shared memory; dynamic shared memory starts behind, at `dynamic_start`.
    pub(crate) static_shared: u32,
    pub(crate) dynamic_start: u32,
    /// True when it uses the system's part of shared memory.
    pub(crate) reserved_shared: bool,
    /// True when its CTAs may communicate: it has atomic or ordered accesses, fences,
    /// mbarriers, or barriers of the cluster.
    pub(crate) communicates: bool,
    /// True when its threads may wait for each other without taking turns: it has barriers, or
    /// exchanges between lanes.
    pub(crate) waits: bool,
    /// What keeps its CTAs on one thread of the host.
    pub(crate) order: CtaOrder,
    /// Tests of mbarriers whose failure leads only to themselves, by the number of their op.
    pub(crate) retries: HashMap<u32, Retry>,
    /// True when it asks how many arrivals an mbarrier still waits for.
    pub(crate) counts_pending: bool,
    pub(crate) info: KernelInfo,
    /// What directly reached code the device does not know: (what, offset).
    pub(crate) unsupported: Option<(String, u32)>,
}
