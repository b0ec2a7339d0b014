//! What the lanes of a launch do, event by event, and the interface of what listens to it.

use crate::{Decides, Misuse, Sources, Space};

/// Distance in bytes between the shared memories of the CTAs of a cluster: to a CTA, its own lies at
/// 0, and that of rank `r` at `1 + r` times this.
pub const SHARED_STEP: u64 = 1 << 24;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    /// `ld`
    Load,
    /// `st`
    Store,
    /// `atom` and `red`
    Rmw,
}

/// A warp, and what of its code is being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executing {
    /// Linear index of the CTA in the grid.
    pub cta: u64,
    /// Warp in the CTA.
    pub warp: u32,
    /// Byte offset of the instruction in the module's text.
    pub offset: u32,
    /// Lanes that execute it, one bit each.
    pub lanes: u32,
}

/// Bytes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// Where; never generic.
    pub space: Space,
    /// Address of the first.
    pub address: u64,
    /// How many.
    pub count: u32,
}

/// What an `atom.exch` or `atom.cas` of up to 8 bytes did, by lane; other lanes' values mean nothing.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// Bytes of a lane.
    pub bytes: u32,
    /// What `atom.cas` compares with.
    pub compare: Option<&'a [u64; 32]>,
    /// What is to be written.
    pub new: &'a [u64; 32],
    /// What was there.
    pub old: &'a [u64; 32],
}

/// What another atomic of up to 8 bytes on an integer did, by lane; other lanes' values mean nothing.
#[derive(Clone, Copy, Debug)]
pub struct Updated<'a> {
    /// Bytes of a lane.
    pub bytes: u32,
    /// What was there.
    pub old: &'a [u64; 32],
    /// What is there now.
    pub new: &'a [u64; 32],
}

/// Receives what the lanes of a launch do, in the order in which they do it.
///
/// Every method has an empty default.
pub trait Observer {
    /// Whether it wants to know what depends on the launch's input and schedule: [`Self::depends`].
    fn follows_values(&self) -> bool {
        false
    }

    /// An access to memory, before it is made. `addresses` holds one address per lane; those of lanes that do not
    /// take part mean nothing. `space` is never generic. `bytes` are per lane.
    fn access(
        &mut self,
        threads: Executing,
        kind: AccessKind,
        space: Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        let _ = (threads, kind, space, addresses, bytes);
    }

    /// Lanes have exchanged values: comes after the [`Observer::access`] of the same instruction.
    fn exchanged(
        &mut self,
        threads: Executing,
        space: Space,
        addresses: &[u64; 32],
        exchange: Exchange<'_>,
    ) {
        let _ = (threads, space, addresses, exchange);
    }

    /// Lanes have changed integers by an atomic that is no exchange and no compare-and-swap: comes after the
    /// [`Observer::access`] of the same instruction.
    fn updated(
        &mut self,
        threads: Executing,
        space: Space,
        addresses: &[u64; 32],
        updated: Updated<'_>,
    ) {
        let _ = (threads, space, addresses, updated);
    }

    /// Whether to pass on what becomes of a space's memory: [`Self::changes`] and [`Self::accessed`].
    fn follows(&self, space: Space) -> bool {
        let _ = space;
        false
    }

    /// A lane is about to change an aligned word of memory, by the operation that was passed last. The
    /// lanes of an access come in order. Words that stay as they are are not passed on.
    fn changes(&mut self, threads: Executing, lane: u32, space: Space, address: u64, before: u32) {
        let _ = (threads, lane, space, address, before);
    }

    /// The load, store or atomic that was passed last has been made. `read` gives the aligned word at
    /// an address as its CTA sees it.
    fn accessed(&mut self, read: &dyn Fn(Space, u64) -> Option<u32>) {
        let _ = read;
    }

    /// Lanes arrive at barrier `id` of their CTA; `waits` when they also wait there.
    fn arrive(&mut self, threads: Executing, id: u32, waits: bool) {
        let _ = (threads, id, waits);
    }

    /// Barrier `id` of a CTA completes: all that arrived are ordered before all that waited.
    fn complete(&mut self, cta: u64, id: u32) {
        let _ = (cta, id);
    }

    /// Lanes pass a `bar.warp.sync` together.
    fn warp_barrier(&mut self, threads: Executing) {
        let _ = threads;
    }

    /// Lanes execute a fence.
    fn fence(&mut self, threads: Executing) {
        let _ = threads;
    }

    /// Lanes end a group of asynchronous copies, or wait for some: `cp.async.commit_group`,
    /// `cp.async.wait_all` and the like.
    fn copies(&mut self, threads: Executing) {
        let _ = threads;
    }

    /// Lanes let dependent launches begin, or wait for the launches that theirs depends on:
    /// `griddepcontrol`.
    fn dependency(&mut self, threads: Executing) {
        let _ = threads;
    }

    /// A lane issues an asynchronous copy of bytes: read from, and written to. `mbarrier` is the
    /// address in shared memory of the barrier that learns when it is complete, if one does.
    ///
    /// The device makes the copy at once; a program must not rely on that.
    fn copy(&mut self, threads: Executing, from: Bytes, to: Bytes, mbarrier: Option<u64>) {
        let _ = (threads, from, to, mbarrier);
    }

    /// A lane has operated on the mbarrier object at an address in shared memory. `over`: for an
    /// arrival that it ended the phase, for a wait that the phase waited for is over.
    fn mbarrier(&mut self, threads: Executing, address: u64, over: bool) {
        let _ = (threads, address, over);
    }

    /// Bytes that a copy of a lane brought have ended a phase of the mbarrier object.
    fn mbarrier_complete(&mut self, threads: Executing, address: u64) {
        let _ = (threads, address);
    }

    /// Lanes arrive at the barrier of their cluster, in a phase counted from 0.
    fn cluster_arrive(&mut self, threads: Executing, phase: u64) {
        let _ = (threads, phase);
    }

    /// Lanes have waited until a phase of their cluster's barrier was over.
    fn cluster_wait(&mut self, threads: Executing, phase: u64) {
        let _ = (threads, phase);
    }

    /// The device's own `malloc` hands out bytes, which may have been freed before.
    fn allocated(&mut self, address: u64, bytes: u64) {
        let _ = (address, bytes);
    }

    /// The parameters of a launch by a kernel have been read, and their bytes are no memory of the program's
    /// any more.
    fn released(&mut self, address: u64, bytes: u64) {
        let _ = (address, bytes);
    }

    /// A lane asks the device runtime for work: the request with that number, from 0. What the lane
    /// has done before comes before the work.
    fn requested(&mut self, threads: Executing, number: usize) {
        let _ = (threads, number);
    }

    /// Lanes misuse a barrier or a warp operation. `offset` is the instruction by which the others
    /// came there, or their own.
    fn misuse(&mut self, threads: Executing, misuse: Misuse, offset: u32) {
        let _ = (threads, misuse, offset);
    }

    /// A value that depends on more than the launch's arguments decides what lanes do at an instruction, or are about
    /// to do. `from` is the instruction that has brought the value.
    fn depends(&mut self, threads: Executing, decides: Decides, on: Sources, from: u32) {
        let _ = (threads, decides, on, from);
    }

    /// The launch has ended without an error. `on` gives the dependences of a byte of global memory. Called only if
    /// [`Self::follows_values`].
    fn ends(&mut self, on: &dyn Fn(u64) -> Sources) {
        let _ = on;
    }

    /// Lanes jump, from a `bra`.
    fn jump(&mut self, threads: Executing) {
        let _ = threads;
    }

    /// Lanes end.
    fn exit(&mut self, threads: Executing) {
        let _ = threads;
    }
}

/// Calls a macro with the signatures of all events of [`Observer`] that have no address in memory of the host program, for
/// observers that forward them.
#[macro_export]
macro_rules! events_without_addresses {
    ($forward:ident) => {
        $forward! {
            accessed(read: &dyn Fn(Space, u64) -> Option<u32>);
            arrive(threads: Executing, id: u32, waits: bool);
            complete(cta: u64, id: u32);
            warp_barrier(threads: Executing);
            fence(threads: Executing);
            copies(threads: Executing);
            dependency(threads: Executing);
            mbarrier(threads: Executing, address: u64, over: bool);
            mbarrier_complete(threads: Executing, address: u64);
            cluster_arrive(threads: Executing, phase: u64);
            cluster_wait(threads: Executing, phase: u64);
            allocated(address: u64, bytes: u64);
            released(address: u64, bytes: u64);
            requested(threads: Executing, number: usize);
            misuse(threads: Executing, misuse: Misuse, offset: u32);
            depends(threads: Executing, decides: Decides, on: Sources, from: u32);
            ends(on: &dyn Fn(u64) -> Sources);
            jump(threads: Executing);
            exit(threads: Executing);
        }
    };
}

macro_rules! both {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => { $(
        fn $name(&mut self, $($argument: $type),*) {
            self.0.$name($($argument),*);
            self.1.$name($($argument),*);
        }
    )* };
}

/// Two observers of one launch.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn follows_values(&self) -> bool {
        self.0.follows_values() || self.1.follows_values()
    }

    fn follows(&self, space: Space) -> bool {
        self.0.follows(space) || self.1.follows(space)
    }

    both! {
        access(threads: Executing, kind: AccessKind, space: Space, addresses: &[u64; 32], bytes: u32);
        exchanged(threads: Executing, space: Space, addresses: &[u64; 32], exchange: Exchange<'_>);
        updated(threads: Executing, space: Space, addresses: &[u64; 32], updated: Updated<'_>);
        changes(threads: Executing, lane: u32, space: Space, address: u64, before: u32);
        copy(threads: Executing, from: Bytes, to: Bytes, mbarrier: Option<u64>);
    }
    events_without_addresses!(both);
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
