//! What stands at a kernel's entry: who the thread is, and where its CTA's shared memory has its cells.

use std::mem::offset_of;

use shadow::layout::{CELL_BYTES, LANES_LOG2, LaunchBlock, WARP_SHIFT};

/// The code at the entry.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Register: the address of the first launch block.
    pub launch: &'a str,
    /// 32-bit register: [`LaunchBlock::flat`].
    pub flat: &'a str,
    /// The register that takes the thread's identity.
    pub me: &'a str,
    /// The 64-bit register that takes the CTA's linear index in the grid, x fastest.
    pub cta: &'a str,
    /// Two 64-bit registers.
    pub scratch: [&'a str; 2],
    /// Three 32-bit registers.
    pub words: [&'a str; 3],
    /// A predicate.
    pub predicate: &'a str,
}

impl Entry<'_> {
    /// The identity at the entry, without granule and epochs, and the CTA's index. Flat launches, as most are, take
    /// half as many instructions for that.
    pub fn identity(&self) -> String {
        let Self {
            launch,
            flat,
            me,
            cta,
            scratch: [generation, step],
            words: [a, b, c],
            predicate: p,
        } = self;
        let generation_at = offset_of!(LaunchBlock, generation_in_place);
        // What one warp is worth in an identity beyond what it is worth in an index.
        let more = (1 << WARP_SHIFT) - (1 << LANES_LOG2);
        format!(
            "mov.u32 {a}, %tid.x;\nmov.u32 {c}, %ctaid.x;\ncvt.u64.u32 {cta}, {c};\n\
             setp.ne.u32 {p}, {flat}, 0;\n@{p} bra $crc_flat;\n\
             mov.u32 {b}, %tid.z;\nmov.u32 {c}, %ntid.y;\nmul.lo.u32 {b}, {b}, {c};\n\
             mov.u32 {c}, %tid.y;\nadd.u32 {b}, {b}, {c};\nmov.u32 {c}, %ntid.x;\nmad.lo.u32 {a}, {b}, {c}, {a};\n\
             mov.u32 {b}, %ctaid.z;\nmov.u32 {c}, %nctaid.y;\nmul.lo.u32 {b}, {b}, {c};\n\
             mov.u32 {c}, %ctaid.y;\nadd.u32 {b}, {b}, {c};\nmov.u32 {c}, %nctaid.x;\nmad.wide.u32 {cta}, {b}, {c}, {cta};\n\
             $crc_flat:\n\
             shr.u32 {b}, {a}, {LANES_LOG2};\nmad.lo.u32 {a}, {b}, {more}, {a};\ncvt.u64.u32 {me}, {a};\n\
             ld.global.v2.u64 {{{generation}, {step}}}, [{launch}+{generation_at}];\n\
             add.s64 {me}, {me}, {generation};\nmad.lo.s64 {me}, {cta}, {step}, {me};\n"
        )
    }

    /// Behind that: puts the address of the first cell of the CTA's slot into `cells`, where `cell_mask` holds
    /// [`LaunchBlock::cell_mask`] of shared memory.
    pub fn slot(&self, cells: &str, cell_mask: &str) -> String {
        let Self {
            launch,
            cta,
            scratch: [slots, bytes],
            ..
        } = self;
        let block = size_of::<LaunchBlock>();
        let cells_at = block + offset_of!(LaunchBlock, cells);
        let slots_at = block + offset_of!(LaunchBlock, slot_mask);
        format!(
            "ld.global.v2.u64 {{{cells}, {cell_mask}}}, [{launch}+{cells_at}];\n\
             ld.global.u64 {slots}, [{launch}+{slots_at}];\nand.b64 {slots}, {slots}, {cta};\n\
             add.s64 {bytes}, {cell_mask}, {CELL_BYTES};\nmad.lo.s64 {cells}, {slots}, {bytes}, {cells};\n"
        )
    }
}
