//! What is reported of accesses outside of all memory that a launch went on after (`--oob continue`).

use events::AccessKind;
use ptx::ast::Space;
use simt::Strays;

use report::log::{Act, Stray, StraySpace};
use runtime::{Checker, ModuleKey};

/// What a launch has left, in the program's own terms.
pub(crate) fn reported(strays: &Strays, checker: &Checker, key: ModuleKey) -> Vec<Stray> {
    let all = strays.take().into_iter();
    all.map(|stray| {
        let line = checker.original_line(key, stray.at.line);
        let global = !matches!(
            stray.space,
            Space::Shared | Space::SharedCluster | Space::Local
        );
        Stray {
            op: match stray.kind {
                AccessKind::Load => Act::Read,
                AccessKind::Store => Act::Write,
                AccessKind::Rmw => Act::Atomic,
            },
            space: match stray.space {
                Space::Shared | Space::SharedCluster => StraySpace::Shared,
                Space::Local => StraySpace::Local,
                _ => StraySpace::Global,
            },
            bytes: stray.bytes,
            address: stray.address,
            nearest: match global {
                true => checker.nearest(stray.address),
                false => None,
            },
            size: stray.size,
            thread: stray.at.thread,
            block: stray.at.cta,
            count: stray.count,
            ptx_line: line,
            frames: checker.source(key, line),
        }
    })
    .collect()
}
