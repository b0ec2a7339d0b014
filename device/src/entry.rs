//! What stands at a kernel's entry: who the thread is, and where its CTA's shared memory has its cells.

use std::mem::offset_of;

use shadow::layout::LaunchBlock;

/// The code at the entry.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Register: the address of the first launch block.
    pub launch: &'a str,
    /// The register that takes the thread's identity.
    pub me: &'a str,
    /// The 64-bit register that takes the CTA's linear index in the grid, x fastest.
    pub cta: &'a str,
    /// Two 64-bit registers.
    pub scratch: [&'a str; 2],
    /// Three 32-bit registers.
    pub words: [&'a str; 3],
}

impl Entry<'_> {
    /// The identity at the entry, without granule and epochs, and the CTA's index.
    pub fn identity(&self) -> String {
        let Self {
            launch,
            me,
            cta,
            scratch: [generation, step],
            words: [a, b, c],
        } = self;
        let generation_at = offset_of!(LaunchBlock, generation_in_place);
        // Five bits of lane, and four more up to the warp: 16 times what the warp is worth in an index.
        format!(
            "mov.u32 {a}, %tid.z;\nmov.u32 {b}, %ntid.y;\nmov.u32 {c}, %tid.y;\nmad.lo.u32 {a}, {a}, {b}, {c};\n\
             mov.u32 {b}, %ntid.x;\nmov.u32 {c}, %tid.x;\nmad.lo.u32 {a}, {a}, {b}, {c};\n\
             and.b32 {b}, {a}, -32;\nmad.lo.u32 {a}, {b}, 15, {a};\ncvt.u64.u32 {me}, {a};\n\
             mov.u32 {a}, %ctaid.z;\nmov.u32 {b}, %nctaid.y;\nmov.u32 {c}, %ctaid.y;\nmad.lo.u32 {a}, {a}, {b}, {c};\n\
             mov.u32 {b}, %nctaid.x;\nmov.u32 {c}, %ctaid.x;\ncvt.u64.u32 {cta}, {c};\nmad.wide.u32 {cta}, {a}, {b}, {cta};\n\
             ld.global.v2.u64 {{{generation}, {step}}}, [{launch}+{generation_at}];\n\
             add.s64 {me}, {me}, {generation};\nmad.lo.s64 {me}, {cta}, {step}, {me};\n"
        )
    }

    /// Behind that: puts the address of the first cell of the CTA's slot into `cells`, where `index_mask`
    /// holds [`LaunchBlock::index_mask`] of shared memory, times 8.
    pub fn slot(&self, cells: &str, index_mask: &str) -> String {
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
            "ld.global.u64 {cells}, [{launch}+{cells_at}];\nld.global.u64 {slots}, [{launch}+{slots_at}];\n\
             and.b64 {slots}, {slots}, {cta};\nadd.s64 {bytes}, {index_mask}, 8;\n\
             mad.lo.s64 {cells}, {slots}, {bytes}, {cells};\n"
        )
    }
}
