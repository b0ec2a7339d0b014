//! A cell that is claimed in place has its witness a moment later: whoever conflicts with the claim in
//! between waits for it and names it, and does not wait for ever for one that is lost.

use bytemuck::Zeroable;
use driver::Device as _;
use shadow::layout::{
    Counters, LaunchBlock, PairSlot, Record, UNKNOWN, WITNESS_BYTES, sole_witness,
};
use shadow::plan::{Identity, Widths};
use shadow::rule;
use simt::{Device, DeviceConfig, Launch};

const WIDTHS: Widths = Widths {
    grid: 0,
    tag: 0,
    cta: 5,
    barrier: 20,
    warp: 8,
};
/// The site of the access that claims, and of the one that conflicts with it.
const CLAIMS: u32 = 9;
const ASKS: u32 = 7;

/// The first warp asks about a store to what the second has stored to. The second enters `witness` after
/// some turns of a loop.
fn kernel() -> String {
    let access = device::access_word(rule::WEAK_STORE, 2, 4);
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n{functions}
.visible .entry conflict(.param .u64 block, .param .u64 me, .param .u64 place, .param .u64 witness, .param .u32 turns)
{{
    .reg .pred %p;
    .reg .b32 %t;
    .reg .b64 %a, %b;
    mov.u32 %t, %tid.x;
    setp.ge.u32 %p, %t, 32;
    @%p bra claims;
    ld.param.u64 %a, [block];
    ld.param.u64 %b, [me];
    {{
        .param .b64 p0;
        .param .b64 p1;
        .param .b64 p2;
        .param .b32 p3;
        .param .b32 p4;
        st.param.b64 [p0], %a;
        st.param.b64 [p1], %b;
        st.param.b64 [p2], 0;
        st.param.b32 [p3], {ASKS};
        st.param.b32 [p4], {access};
        call __cudarun_slow, (p0, p1, p2, p3, p4);
    }}
    ret;
claims:
    ld.param.u32 %t, [turns];
more:
    sub.u32 %t, %t, 1;
    setp.ne.u32 %p, %t, 0;
    @%p bra more;
    ld.param.u64 %a, [place];
    ld.param.u64 %b, [witness];
    st.relaxed.gpu.global.u64 [%a], %b;
    ret;
}}
",
        functions = device::functions(["__cudarun_slow"]),
    )
}

/// The record of the conflict, where the first row holds `before`, and `later` after so many turns.
fn conflict(before: u64, later: u64, turns: u32) -> Record {
    let identity = |warp: u32| Identity {
        generation: 3,
        warp,
        ..Identity::default()
    };
    let cell = identity(1).pack(&WIDTHS) | rule::classes(rule::WEAK_STORE);
    let resolved = |witness: u64| match witness {
        0 => sole_witness(CLAIMS, true, cell),
        other => other,
    };
    let mut device = Device::new(DeviceConfig::default()).unwrap();
    let mut alloc = |bytes: usize| driver::Device::alloc(&mut device, bytes as u64).unwrap();
    let (cells, witnesses) = (alloc(8), alloc(WITNESS_BYTES as usize));
    let (counters, pairs) = (alloc(size_of::<Counters>()), alloc(size_of::<PairSlot>()));
    let (records, block) = (
        alloc(size_of::<Record>()),
        alloc(2 * size_of::<LaunchBlock>()),
    );
    let shifts = WIDTHS.shifts();
    let launch = LaunchBlock {
        cells,
        witnesses,
        to_witness: witnesses.wrapping_sub(cells),
        row: 8,
        window_bytes: 1 << 40,
        barrier_shift: shifts.barrier,
        cta_shift: shifts.cta,
        tag_shift: shifts.tag,
        grid_shift: shifts.grid,
        pairs,
        records,
        record_capacity: 1,
        counters,
        ..LaunchBlock::zeroed()
    };
    device.write(cells, &cell.to_le_bytes()).unwrap();
    device.write(witnesses, &before.to_le_bytes()).unwrap();
    device.write(block, bytemuck::bytes_of(&launch)).unwrap();
    let (module, diagnostics) = ptx::parse(&kernel());
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let module = device.load(&module).unwrap();
    let mut params = [block, identity(0).pack(&WIDTHS), witnesses, resolved(later)]
        .map(u64::to_le_bytes)
        .concat();
    params.extend(turns.to_le_bytes());
    let launch = Launch::new([1; 3], [33, 1, 1], params);
    device.launch(module, "conflict", &launch).unwrap();
    let mut record = Record::zeroed();
    device
        .read(records, bytemuck::bytes_of_mut(&mut record))
        .unwrap();
    assert_eq!((record.ready, record.site), (1, ASKS));
    assert_eq!(record.verdict, rule::CONFLICT_CTA);
    record
}

#[test]
fn who_conflicts_waits_for_the_witness() {
    // Of an older launch, of which this thread, too, has claimed the cell; or several witnesses.
    let older = Identity {
        generation: 2,
        warp: 1,
        ..Identity::default()
    };
    let older = older.pack(&WIDTHS) | rule::classes(rule::WEAK_STORE);
    for before in [0, sole_witness(1, true, older), 5 << 34] {
        for turns in [1, 10, 1000] {
            let record = conflict(before, 0, turns);
            assert_eq!(record.previous_site, CLAIMS, "{before:#x} {turns}");
            assert_eq!(record.previous_thread, 32);
        }
    }
}

#[test]
fn a_lost_witness_names_nobody() {
    let record = conflict(0, 5 << 34, 1);
    assert_eq!((record.previous_site, record.previous_thread), (0, UNKNOWN));
}
