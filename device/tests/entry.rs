//! Who a thread is, by the device code and by `shadow`: every thread of a grid, flat or of three dimensions, finds the
//! identity that `Identity::pack` gives it, and its CTA's slot where `rule::slot` puts it.

use std::mem::offset_of;

use bytemuck::Zeroable;
use device::Entry;
use driver::Device as _;
use shadow::layout::{GENERATION_SHIFT, LaunchBlock};
use shadow::plan::{Identity, Widths};
use shadow::rule;
use simt::{Device, DeviceConfig, Launch};

/// Grids with their CTAs.
const EXTENTS: [[[u32; 3]; 2]; 3] = [
    [[3, 2, 5], [5, 7, 3]],
    [[1, 1, 5], [1, 1, 7]],
    [[30, 1, 1], [105, 1, 1]],
];
const CELLS: u64 = 1 << 20;
/// Cells of a slot minus 1.
const LAST: u64 = 63;
const SLOT_MASK: u64 = 7;
const GENERATION: u32 = 200;

/// Each thread stores its identity, its slot, and what the called function says besides, to where its linear index in the grid says.
fn kernel(grid: [u32; 3], block: [u32; 3]) -> String {
    let entry = Entry {
        launch: "%launch",
        flat: "%flat",
        me: "%me",
        cta: "%cta",
        scratch: ["%a", "%b"],
        words: ["%x", "%y", "%z"],
        predicate: "%p",
    };
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n{functions}
.visible .entry enter(.param .u64 blocks, .param .u64 results)
{{
    .reg .b32 %x, %y, %z, %flat;
    .reg .pred %p;
    .reg .b64 %launch, %me, %cta, %a, %b, %slot, %mask, %called, %at;
    ld.param.u64 %launch, [blocks];
    ld.global.u32 %flat, [%launch+{flat}];
    {identity}
    {slot}
    add.u64 %launch, %launch, {block_bytes};
    {{
        .param .b64 launch;
        .param .b64 found;
        st.param.b64 [launch], %launch;
        call (found), __cudarun_slot, (launch);
        ld.param.b64 %called, [found];
    }}
    sub.u64 %called, %called, %slot;
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
    mul.wide.u32 %at, %x, 24;
    ld.param.u64 %a, [results];
    add.u64 %at, %at, %a;
    st.global.u64 [%at], %me;
    st.global.u64 [%at+8], %slot;
    st.global.u64 [%at+16], %called;
    ret;
}}
",
        functions = device::functions(["__cudarun_slot"]),
        flat = offset_of!(LaunchBlock, flat),
        identity = entry.identity(),
        slot = entry.slot("%slot", "%mask"),
        block_bytes = size_of::<LaunchBlock>(),
        by = block[1],
        bx = block[0],
        gy = grid[1],
        gx = grid[0],
        threads = block.iter().product::<u32>(),
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
        for [grid, block] in EXTENTS {
            compare(&widths, grid, block);
        }
    }
}

fn compare(widths: &Widths, grid: [u32; 3], block: [u32; 3]) {
    let (module, diagnostics) = ptx::parse(&kernel(grid, block));
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let shifts = widths.shared_shifts();
    let mut device = Device::new(DeviceConfig::default()).unwrap();
    let of_launch = LaunchBlock {
        generation_in_place: u64::from(GENERATION) << GENERATION_SHIFT,
        cta_step: rule::up(1, shifts.cta),
        flat: u32::from([grid, block].iter().all(|of| of[1..] == [1, 1])),
        ..LaunchBlock::zeroed()
    };
    let behind = LaunchBlock {
        cells: CELLS,
        cell_mask: 8 * LAST,
        slot_mask: SLOT_MASK,
        ..of_launch
    };
    let blocks = device.alloc(2 * size_of::<LaunchBlock>() as u64).unwrap();
    device
        .write(blocks, bytemuck::cast_slice(&[of_launch, behind]))
        .unwrap();
    let threads = block.iter().product::<u32>();
    let ctas = grid.iter().product::<u32>();
    let mut found = vec![[0u64; 3]; (threads * ctas) as usize];
    let results = device.alloc(24 * found.len() as u64).unwrap();
    let params = [blocks, results].map(u64::to_le_bytes).concat();
    let id = device.load(&module).unwrap();
    let launch = Launch::new(grid, block, params);
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
        .pack(widths);
        let slot = CELLS + 8 * rule::slot(me, &shifts, SLOT_MASK, LAST);
        assert_eq!(
            *found,
            [me, slot, 0],
            "CTA {cta}, thread {thread}, {widths:?}"
        );
    }
}
