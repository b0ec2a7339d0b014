//! A launch that is proved to have no races: only the memory that it touches is followed, for races with the work of
//! other streams.

use std::ops::Range;
use std::sync::Arc;

use events::{AccessKind, Bytes, Executing, Observer};
use ptx::ast::Space;
use ptx::isa::SyncOp;

use crate::findings::Findings;
use crate::footprint_recorder::FootprintRecorder;
use crate::instructions::Instructions;
use crate::streams::At;

/// Follows a launch.
pub struct FootprintObserver {
    instructions: Arc<Instructions>,
    footprints: FootprintRecorder,
}

impl FootprintObserver {
    /// For a launch at a place among the work of all streams, if work of others may run beside it, or the host may touch
    /// what it touches outside of the device's own memory.
    pub(crate) fn new(
        instructions: &Arc<Instructions>,
        at: &At,
        device: Option<Range<u64>>,
    ) -> Option<Self> {
        let footprints = FootprintRecorder::at_position(at, instructions, device)?;
        Some(Self {
            instructions: Arc::clone(instructions),
            footprints,
        })
    }

    /// What the launch has touched; no race was looked for.
    pub fn finish(self) -> Findings {
        Findings::nothing(self.instructions, self.footprints.finish())
    }
}

impl Observer for FootprintObserver {
    fn access(
        &mut self,
        threads: Executing,
        _: AccessKind,
        space: Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        let Some(meaning) = self.instructions.at(threads.offset) else {
            return;
        };
        match (meaning.access, meaning.grid) {
            (_, Some(_)) => self.footprints.learns(threads),
            (Some(mut access), None) => {
                if access.bytes == 0 {
                    access.bytes = bytes;
                }
                self.footprints.access(threads, space, &access, addresses);
            }
            (None, None) => {}
        }
    }

    fn copy(&mut self, threads: Executing, from: Bytes, to: Bytes, _: Option<u64>) {
        if let Some(meaning) = self.instructions.at(threads.offset) {
            let reduces = meaning.reduces();
            self.footprints
                .copy(threads, meaning.site, [from, to], reduces);
        }
    }

    fn complete(&mut self, cta: u64, _: u32) {
        self.footprints.complete(cta);
    }

    fn warp_barrier(&mut self, threads: Executing) {
        self.footprints.warp_barrier(threads);
    }

    fn fence(&mut self, threads: Executing) {
        let meaning = self.instructions.at(threads.offset);
        if let Some(SyncOp::Fence {
            scope,
            proxy: false,
            ..
        }) = meaning.and_then(|of| of.sync)
        {
            self.footprints.fence(threads, scope);
        }
    }

    fn mbarrier(&mut self, threads: Executing, _: u64, _: bool) {
        self.footprints.learns(threads);
    }

    fn cluster_wait(&mut self, threads: Executing, _: u64) {
        self.footprints.learns(threads);
    }

    fn dependency(&mut self, threads: Executing) {
        let meaning = self.instructions.at(threads.offset);
        if let Some(SyncOp::GridDependency { wait }) = meaning.and_then(|of| of.sync) {
            self.footprints.dependency(threads, wait);
        }
    }

    fn allocated(&mut self, address: u64, bytes: u64) {
        self.footprints.allocated(address, bytes);
    }

    fn released(&mut self, address: u64, bytes: u64) {
        self.footprints.freed(address, bytes);
    }
}
