//! Which of the accesses that threads have made are proved, and which are checked.

use std::collections::{BTreeMap, HashMap, HashSet};

use prove::Argument;
use ptx::ast::{Module, Space};
use ptx::isa;
use report::executed::{Executed, Tally};
use rewrite::edit::Shifts;

use crate::proofs::Proved;

/// The accesses of a module to memory that threads share, by their byte offset in the loaded text.
#[derive(Debug)]
pub(crate) struct Accesses(HashMap<u32, Access>);

#[derive(Clone, Copy, Debug)]
struct Access {
    /// Byte offset in the program's own text.
    offset: u32,
    shared: bool,
    /// It has a check in the loaded text.
    has_check: bool,
}

impl Accesses {
    /// Those of the program's own module, where `sites` have checks in the loaded text.
    pub(crate) fn new(module: &Module, shifts: &Shifts, sites: &[rewrite::Site]) -> Self {
        let checked: HashSet<u32> = sites.iter().map(|site| site.offset).collect();
        let mut all = HashMap::new();
        let bodies = module.functions().filter_map(|of| of.body.as_ref());
        for (_, instruction) in bodies.flat_map(|body| body.instructions()) {
            let shared = match isa::memory(instruction).map(|op| op.space) {
                Some(Space::Shared | Space::SharedCluster) => true,
                Some(Space::Global | Space::Generic) => false,
                _ => continue,
            };
            let offset = instruction.span.start;
            let access = Access {
                offset,
                shared,
                has_check: checked.contains(&offset),
            };
            all.insert(shifts.rewritten(offset), access);
            // The program's own code of a kernel with checks.
            all.extend(shifts.copied(offset).map(|copy| (copy, access)));
        }
        Self(all)
    }

    /// The accesses of a launch: `counts` by byte offset in the loaded text, and whether an access without a proof is
    /// checked, by whether it has a check.
    pub(crate) fn executed(
        &self,
        counts: &BTreeMap<u32, u64>,
        proved: Option<&Proved>,
        is_checked: impl Fn(bool) -> bool,
    ) -> Executed {
        let mut all = Executed::default();
        for (offset, count) in counts {
            let Some(access) = self.0.get(offset) else {
                continue;
            };
            let mut tally = Tally::default();
            let of = match proved.and_then(|of| of.argument(access.offset)) {
                Some(Argument::ReadOnly) => &mut tally.read_only,
                Some(Argument::Private) => &mut tally.private,
                Some(Argument::Barriers) => &mut tally.barriers,
                Some(Argument::Atomic) => &mut tally.atomic,
                None if proved.is_some_and(|of| of.is_known(access.offset)) => &mut tally.known,
                None if is_checked(access.has_check) => &mut tally.checked,
                None => &mut tally.unchecked,
            };
            *of = *count;
            match access.shared {
                true => all.shared += tally,
                false => all.global += tally,
            }
        }
        all
    }
}
