//! A launch that is proved to have no races: only the memory that it touches is followed, for races with the work of
//! other streams.

use std::sync::Arc;

use events::{AccessKind, Bytes, Executing, Observer};
use ptx::ast::Space;
use ptx::isa::SyncOp;

use crate::follower::Follower;
use crate::instructions::Instructions;
use crate::judged::Judged;
use crate::streams::At;

/// Follows a launch.
pub struct Watch {
    instructions: Arc<Instructions>,
    follower: Follower,
}

impl Watch {
    /// For a launch at a place among the work of all streams, if work of others may run beside it.
    pub(crate) fn new(instructions: &Arc<Instructions>, at: &At) -> Option<Self> {
        let follower = Follower::at_place(at, instructions)?;
        Some(Self {
            instructions: Arc::clone(instructions),
            follower,
        })
    }

    /// What the launch has touched; no race was looked for.
    pub fn finish(self) -> Judged {
        Judged::nothing(self.instructions, self.follower.finish())
    }
}

impl Observer for Watch {
    fn access(
        &mut self,
        who: Executing,
        _: AccessKind,
        space: Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        if space != Space::Global {
            return;
        }
        let Some(meaning) = self.instructions.at(who.offset) else {
            return;
        };
        if let (Some(mut access), None) = (meaning.access, meaning.grid) {
            if access.bytes == 0 {
                access.bytes = bytes;
            }
            self.follower.access(who, space, &access, addresses);
        }
    }

    fn copy(&mut self, who: Executing, from: Bytes, to: Bytes, _: Option<u64>) {
        if let Some(meaning) = self.instructions.at(who.offset) {
            self.follower.copy(who, meaning.site, from, to);
        }
    }

    fn dependency(&mut self, who: Executing) {
        let meaning = self.instructions.at(who.offset);
        if let Some(SyncOp::GridDependency { wait }) = meaning.and_then(|of| of.sync) {
            self.follower.dependency(who, wait);
        }
    }

    fn allocated(&mut self, address: u64, bytes: u64) {
        self.follower.allocated(address, bytes);
    }

    fn released(&mut self, address: u64, bytes: u64) {
        self.follower.released(address, bytes);
    }
}
