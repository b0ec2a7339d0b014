//! The pasted entry of a kernel against `shadow`: every thread of a grid of three dimensions finds the
//! identity that `Identity::pack` gives it, and its CTA's slot where `rule::slot` puts it.

use std::mem::offset_of;

use bytemuck::Zeroable;
use device::Entry;
use driver::Device as _;
use shadow::layout::{GENERATION_SHIFT, LaunchBlock};
use shadow::plan::{Identity, Widths};
use shadow::rule;
use simt::{Device, DeviceConfig, Launch};

const GRID: [u32; 3] = [3, 2, 5];
const BLOCK: [u32; 3] = [5, 7, 3];
const CELLS: u64 = 1 << 20;
const INDEX_MASK: u64 = 63;
const SLOT_MASK: u64 = 7;
const GENERATION: u32 = 200;

/// Each thread stores its identity and its slot to where its linear index in the grid says.
fn kernel() -> String {
    let entry = Entry {
        launch: "%launch",
        me: "%me",
        cta: "%cta",
        scratch: ["%a", "%b"],
        words: ["%x", "%y", "%z"],
    };
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n
.visible .entry enter(.param .u64 blocks, .param .u64 results)
{{
    .reg .b32 %x, %y, %z;
    .reg .b64 %launch, %me, %cta, %a, %b, %slot, %mask, %at;
    ld.param.u64 %launch, [blocks];
    {identity}
    ld.global.u64 %mask, [%launch+{mask}];
    shl.b64 %mask, %mask, 3;
    {slot}
    mov.u32 %x, %tid.z;
    mad.lo.u32 %x, %x, {by}, 0;
    mov.u32 %y, %tid.y;
    add.u32 %x, %x, %y;
    mov.u32 %y, %tid.x;
    mad.lo.u32 %x, %x, {bx}, %y;
    mov.u32 %y, %ctaid.z;
    mad.lo.u32 %y, %y, {gy}, 0;
    mov.u32 %z, %ctaid.y;
    add.u32 %y, %y, %z;
    mov.u32 %z, %ctaid.x;
    mad.lo.u32 %y, %y, {gx}, %z;
    mad.lo.u32 %x, %y, {threads}, %x;
    mul.wide.u32 %at, %x, 16;
    ld.param.u64 %a, [results];
    add.u64 %at, %at, %a;
    st.global.v2.u64 [%at], {{%me, %slot}};
    ret;
}}
",
        identity = entry.identity(),
        slot = entry.slot("%slot", "%mask"),
        mask = size_of::<LaunchBlock>() + offset_of!(LaunchBlock, index_mask),
        by = BLOCK[1],
        bx = BLOCK[0],
        gy = GRID[1],
        gx = GRID[0],
        threads = BLOCK.iter().product::<u32>(),
    )
}

#[test]
fn every_thread_finds_who_it_is_and_where_its_cells_are() {
    let widths = Widths {
        grid: 3,
        tag: 2,
        cta: 12,
        barrier: 9,
        warp: 7,
    };
    let (module, diagnostics) = ptx::parse(&kernel());
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    for widths in [
        widths,
        // The CTA goes up to the highest bit.
        Widths {
            grid: 0,
            tag: 0,
            cta: 33,
            barrier: 0,
            warp: 0,
        },
    ] {
        let shifts = widths.shared_shifts();
        let mut device = Device::new(DeviceConfig::default()).unwrap();
        let block = LaunchBlock {
            generation_in_place: u64::from(GENERATION) << GENERATION_SHIFT,
            cta_step: rule::up(1, shifts.cta),
            ..LaunchBlock::zeroed()
        };
        let behind = LaunchBlock {
            cells: CELLS,
            index_mask: INDEX_MASK,
            slot_mask: SLOT_MASK,
            ..block
        };
        let blocks = device.alloc(2 * size_of::<LaunchBlock>() as u64).unwrap();
        device
            .write(blocks, bytemuck::cast_slice(&[block, behind]))
            .unwrap();
        let threads = BLOCK.iter().product::<u32>();
        let ctas = GRID.iter().product::<u32>();
        let mut found = vec![[0u64; 2]; (threads * ctas) as usize];
        let results = device.alloc(16 * found.len() as u64).unwrap();
        let params = [blocks, results].map(u64::to_le_bytes).concat();
        let id = device.load(&module).unwrap();
        let launch = Launch::new(GRID, BLOCK, params);
        device.launch(id, "enter", &launch).unwrap();
        device
            .read(results, bytemuck::cast_slice_mut(&mut found))
            .unwrap();
        for (at, found) in found.iter().enumerate() {
            let (cta, thread) = (at as u32 / threads, at as u32 % threads);
            let me = Identity {
                generation: GENERATION,
                cta: u64::from(cta),
                warp: thread / 32,
                lane: thread % 32,
                ..Identity::default()
            }
            .pack(&widths);
            let slot = CELLS + 8 * rule::slot(me, &shifts, SLOT_MASK, INDEX_MASK);
            assert_eq!(*found, [me, slot], "CTA {cta}, thread {thread}, {widths:?}");
        }
    }
}
