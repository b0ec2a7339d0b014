//! The rule in Rust against the rule in PTX: `__cudarun_slow` runs on the simulated device over the
//! boundary values of every field of a cell, and must leave the cell that `shadow::rule` computes
//! and count what it says. Likewise the identity after barriers; the inlined fast path, which may
//! settle only what the rule would leave alone; and the inlined claim, which every second thread tries
//! before it calls, half of them with stores whose races with stores are known.

use std::mem::offset_of;

use bytemuck::Zeroable;
use device::{
    BarrierEpilogue, CellLoad, Claim, Fast, FastArguments, FastShared, FastSharedArguments,
    Inlined, Known,
};
use driver::Device as _;
use shadow::layout::{
    ACCESS_SHARED, BUSY, CTA_CLASS_MASK, CTA_CLASS_SHIFT, Counters, GENERATION_MASK,
    GRID_CLASS_MASK, GRID_CLASS_SHIFT, GRID_MULTI, LaunchBlock, PairSlot, WARP_CLASS_MASK,
    WARP_CLASS_SHIFT, WARP_LANE_MULTI, WARP_MULTI, WITNESS_BYTES, sole_witness,
};
use shadow::plan::{Identity, Widths};
use shadow::rule;
use simt::{Device, DeviceConfig, Launch, Random};

/// Cases per kind of access and choice of widths.
const CASES: usize = 16 * 1024;
const BLOCK: u32 = 256;
/// Slots of shared memory, of one cell each.
const SLOTS: u64 = 4;
/// Where all accesses are.
const SITE: u32 = 7;
/// Their bit in `LaunchBlock::known`.
const KNOWN: u64 = 1 << 5;
/// Bytes of the witnesses of one case: as many rows as a slot has, of [`SLOTS`] cells.
const ROWS: u64 = WITNESS_BYTES * SLOTS;

/// Identities of a launch of many CTAs with barriers of CTA and warp, whose cells cover the window.
const MANY_CTAS: Widths = Widths {
    grid: 0,
    tag: 0,
    cta: 12,
    barrier: 11,
    warp: 10,
};

/// Each thread checks one access with a launch block, a cell and counters of its own: first by the
/// fast path, which changes nothing, then by the slow one; then it passes barriers.
fn kernel(kind: u32, shared: bool) -> String {
    let load = match kind % 2 {
        0 => CellLoad::Fresh,
        _ => CellLoad::Cached,
    };
    let fast = match shared {
        false => Fast::inline(&FastArguments {
            cells: "%cells",
            base: "%base",
            bytes: "%bytes",
            cell_mask: "%mask",
            tag_from: "%bits",
            tag_shift: "%tag",
            compared: "%compared",
            compared_by_warps: "%by_warps",
            me: "%me",
            address: "%address",
            granule_log2: 2,
            kind,
            load,
        }),
        true => FastShared::inline(&FastSharedArguments {
            cells: "%first",
            cell_mask: "%mask",
            compared_by_warps: "%by_warps",
            me: "%me",
            address: "%address",
            granule_log2: 2,
            kind,
            load,
        }),
    };
    let claim = Claim {
        // A thread has no second block of its own.
        launch: if shared { "%before" } else { "%block" },
        bytes: (!shared).then_some("%bytes"),
        me: "%me",
        scratch: ["%slot", "%passed"],
        predicate: "%p",
        kind,
        known: (!shared && kind == rule::WEAK_STORE).then_some(Known {
            bit: KNOWN,
            compared: "%compared",
            done: "met",
        }),
        witness: &device::witness(SITE, kind),
        swaps: "swaps",
        not: "ask",
    };
    // Narrow accesses leave that to the called check.
    let claim = match rule::claims(kind) {
        true => format!(
            "{}@%crc_hit bra ask;\n{}{}@!%p bra ask;",
            claim.early(),
            claim.late(),
            claim.swap()
        ),
        false => "bra ask;".to_owned(),
    };
    let Inlined { find, settle } = fast;
    let access = device::access_word(kind, 2, 4) | if shared { ACCESS_SHARED } else { 0 };
    // Two of four threads whose kind has a short way take it.
    let short = match kind {
        rule::WEAK_LOAD => format!(
            "@!%q bra slowly;
    {{
        .param .b64 p0;
        .param .b64 p1;
        .param .b64 p2;
        .param .b32 p3;
        .param .b32 p4;
        .param .b64 p5;
        .param .b64 p6;
        st.param.b64 [p0], %block;
        st.param.b64 [p1], %me;
        st.param.b64 [p2], %address;
        st.param.b32 [p3], {SITE};
        st.param.b32 [p4], {access};
        st.param.b64 [p5], %crc_at;
        st.param.b64 [p6], {who};
        call __cudarun_load, (p0, p1, p2, p3, p4, p5, p6);
    }}
    bra checked;",
            who = if shared { "%me" } else { "%crc_who" },
        ),
        _ => String::new(),
    };
    let registers = Fast::declarations() + &FastShared::declarations();
    let [cells, base, bytes, mask, bits, tag, compared] = [
        offset_of!(LaunchBlock, cells),
        offset_of!(LaunchBlock, window_base),
        offset_of!(LaunchBlock, window_bytes),
        offset_of!(LaunchBlock, cell_mask),
        offset_of!(LaunchBlock, tag_from),
        offset_of!(LaunchBlock, tag_shift),
        offset_of!(LaunchBlock, compared),
    ];
    let epilogue = BarrierEpilogue {
        launch: "%block",
        me: "%passed",
        scratch: ["%first", "%before"],
        predicate: "%p",
    };
    let (after_barrier, after_warp_barrier) = (epilogue.barrier(), epilogue.warp_barrier());
    format!(
        "
.visible .entry one_access(.param .u64 blocks, .param .u64 identities, .param .u64 addresses, .param .u64 results, .param .u64 firsts)
{{
    .reg .b32 %i, %cta, %size, %bits, %tag, %hit;
    .reg .b64 %block, %me, %address, %slot, %passed, %result;
    .reg .b64 %cells, %base, %bytes, %mask, %first, %compared, %by_warps, %before;
    .reg .pred %p, %q;
    {registers}
    mov.u32 %i, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mad.lo.u32 %i, %cta, %size, %i;
    ld.param.u64 %block, [blocks];
    mul.wide.u32 %slot, %i, {block_bytes};
    add.u64 %block, %block, %slot;
    mul.wide.u32 %slot, %i, 8;
    ld.param.u64 %me, [identities];
    add.u64 %me, %me, %slot;
    ld.global.u64 %me, [%me];
    ld.param.u64 %address, [addresses];
    add.u64 %address, %address, %slot;
    ld.global.u64 %address, [%address];
    ld.param.u64 %result, [results];
    mul.wide.u32 %slot, %i, {result_bytes};
    add.u64 %result, %result, %slot;
    ld.global.u64 %cells, [%block+{cells}];
    ld.global.u64 %base, [%block+{base}];
    ld.global.u64 %bytes, [%block+{bytes}];
    ld.global.u64 %mask, [%block+{mask}];
    ld.global.u32 %bits, [%block+{bits}];
    ld.global.v2.u64 {{%compared, %by_warps}}, [%block+{compared}];
    sub.u64 %before, %block, {block_bytes};
    ld.global.u32 %tag, [%block+{tag}];
    ld.param.u64 %first, [firsts];
    mul.wide.u32 %slot, %i, 8;
    add.u64 %first, %first, %slot;
    {find}
    {settle}
    selp.u32 %hit, 1, 0, %crc_hit;
    cvt.u64.u32 %passed, %hit;
    st.global.u64 [%result], %passed;
    mov.u64 %passed, 0;
    st.global.u64 [%result+24], %passed;
    and.b32 %cta, %i, 2;
    setp.eq.u32 %q, %cta, 0;
    and.b32 %i, %i, 1;
    setp.eq.u32 %p, %i, 0;
    @%p bra ask;
    {claim}
    mov.u64 %passed, 1;
    st.global.u64 [%result+24], %passed;
    bra checked;
met:
    mov.u64 %passed, 2;
    st.global.u64 [%result+24], %passed;
    bra checked;
ask:
    {short}
slowly:
    {{
        .param .b64 p0;
        .param .b64 p1;
        .param .b64 p2;
        .param .b32 p3;
        .param .b32 p4;
        st.param.b64 [p0], %block;
        st.param.b64 [p1], %me;
        st.param.b64 [p2], %address;
        st.param.b32 [p3], {SITE};
        st.param.b32 [p4], {access};
        call __cudarun_slow, (p0, p1, p2, p3, p4);
    }}
checked:
    mov.u64 %passed, %me;
    {after_barrier}
    st.global.u64 [%result+8], %passed;
    mov.u64 %passed, %me;
    {after_warp_barrier}
    st.global.u64 [%result+16], %passed;
    {{
        .param .b64 p0;
        .param .b64 p1;
        .param .b64 r0;
        st.param.b64 [p0], %block;
        st.param.b64 [p1], %me;
        call (r0), __cudarun_barrier, (p0, p1);
        ld.param.b64 %passed, [r0];
    }}
    st.global.u64 [%result+32], %passed;
    ret;
}}
",
        block_bytes = size_of::<LaunchBlock>(),
        result_bytes = size_of::<Results>(),
    )
}

/// What a thread finds besides its cell and counters: whether the fast path settled the access, its
/// identity after either barrier, whether it claimed the cell (1) or was done as it met a store (2), and its identity after a barrier where
/// those of the grid are counted.
type Results = [u64; 5];

/// A boundary value of a field of `bits` bits: 0, 1 or its maximum.
fn edge(random: &mut Random, bits: u32) -> u64 {
    let max = if bits == 0 { 0 } else { !0 >> (64 - bits) };
    random.pick(&[0, 1.min(max), max])
}

fn identity(random: &mut Random, widths: &Widths) -> Identity {
    Identity {
        generation: random.pick(&[1, 255]),
        grid_epoch: edge(random, widths.grid),
        tag: edge(random, widths.tag),
        cta: edge(random, widths.cta),
        barrier_epoch: edge(random, widths.barrier),
        warp_epoch: edge(random, widths.warp),
        warp: edge(random, 5) as u32,
        lane: edge(random, 5) as u32,
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "the figures, for `--nocapture`")]
fn the_rule_in_rust_equals_the_rule_in_ptx() {
    let (mut verdicts, mut fast_hits) = ([0u32; 6], 0);
    for widths in [
        Widths {
            grid: 3,
            tag: 4,
            cta: 12,
            barrier: 7,
            warp: 7,
        },
        Widths {
            grid: 4,
            tag: 0,
            cta: 5,
            barrier: 24,
            warp: 0,
        },
        Widths {
            grid: 0,
            tag: 3,
            cta: 30,
            barrier: 0,
            warp: 0,
        },
        MANY_CTAS,
    ] {
        for kind in 0..rule::KINDS {
            fast_hits += compare(&widths, kind, false, &mut verdicts);
        }
    }
    // Every verdict must have been compared, or the values are no boundary values.
    assert!(verdicts.iter().all(|&seen| seen > 100), "{verdicts:?}");
    assert!(fast_hits > 1000, "{fast_hits}");
    eprintln!("verdicts {verdicts:?}, settled by the fast path {fast_hits}");
}

#[test]
#[allow(clippy::print_stderr, reason = "the figures, for `--nocapture`")]
fn the_rule_of_shared_memory_in_rust_equals_that_in_ptx() {
    let (mut verdicts, mut fast_hits) = ([0u32; 6], 0);
    for widths in [
        Widths {
            grid: 3,
            tag: 4,
            cta: 12,
            barrier: 7,
            warp: 7,
        },
        // One CTA: nothing of the identity is above the epochs.
        Widths {
            grid: 0,
            tag: 0,
            cta: 0,
            barrier: 23,
            warp: 10,
        },
        Widths {
            grid: 0,
            tag: 0,
            cta: 0,
            barrier: 0,
            warp: 33,
        },
        // Cells of other CTAs, without grid epochs, and one CTA with them.
        MANY_CTAS,
        Widths {
            grid: 4,
            tag: 0,
            cta: 0,
            barrier: 19,
            warp: 10,
        },
    ] {
        // Inside a CTA every scope is wide.
        for kind in [
            rule::WEAK_LOAD,
            rule::STRONG_LOAD_GPU,
            rule::STRONG_WRITE_GPU,
            rule::WEAK_STORE,
        ] {
            fast_hits += compare(&widths, kind, true, &mut verdicts);
        }
    }
    // CTAs do not race there.
    assert_eq!(verdicts[rule::CONFLICT_GRID as usize], 0);
    verdicts[rule::CONFLICT_GRID as usize] = 101;
    assert!(verdicts.iter().all(|&seen| seen > 100), "{verdicts:?}");
    assert!(fast_hits > 1000, "{fast_hits}");
    eprintln!("verdicts {verdicts:?}, settled by the fast path {fast_hits}");
}

/// Gives how many accesses the fast path settled.
fn compare(widths: &Widths, kind: u32, shared: bool, verdicts: &mut [u32; 6]) -> u32 {
    let mut random = Random::new(u64::from(kind) + 1);
    let mut device = Device::new(DeviceConfig {
        memory: 1 << 28,
        ..DeviceConfig::default()
    })
    .unwrap();
    let mut alloc = |bytes: u64| driver::Device::alloc(&mut device, bytes).unwrap();
    let n = CASES as u64;
    let (cells, witnesses) = (alloc(8 * n), alloc(ROWS * n));
    let counters = alloc(size_of::<Counters>() as u64 * n);
    let (pairs, blocks) = (
        alloc(size_of::<PairSlot>() as u64),
        alloc(size_of::<LaunchBlock>() as u64 * n),
    );
    let (identities, addresses) = (alloc(8 * n), alloc(8 * n));
    let results = alloc(size_of::<Results>() as u64 * n);

    let shifts = match shared {
        false => widths.shifts(),
        true => widths.shared_shifts(),
    };
    let (mut before, mut mine, mut at, mut launches) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let mut me = identity(&mut random, widths);
        // Shared memory has only the CTA.
        me.tag *= u64::from(!shared);
        // The tag comes from the address: granules of 4 bytes, one cell.
        at.push(me.tag * 4);
        mine.push(Identity { tag: 0, ..me }.pack(widths));
        // Mostly the same thread in most fields, or nearly every cell would be of another CTA.
        let other = identity(&mut random, widths);
        let mut owner = me;
        for field in 0..8 {
            if random.below(4) == 0 {
                match field {
                    0 => owner.generation = other.generation,
                    1 => owner.tag = other.tag * u64::from(!shared),
                    2 => owner.cta = other.cta,
                    3 => owner.barrier_epoch = other.barrier_epoch,
                    4 => owner.warp_epoch = other.warp_epoch,
                    5 => owner.warp = other.warp,
                    6 => owner.grid_epoch = other.grid_epoch,
                    _ => owner.lane = other.lane,
                }
            }
        }
        // Classes and multi bits: everything below the generation but warp, lane and the busy bit.
        let mut state = u64::from(random.below(1 << 22)) & !(31 << 9) & !31;
        // The fast path knows four states of a cell, and loads share what only loads have touched.
        match (random.below(10), shared) {
            (0, _) => state = rule::classes(kind),
            (1, false) => state = state & !GRID_CLASS_MASK | rule::shared(kind),
            (1, true) => state = state & !CTA_CLASS_MASK | rule::shared_by_warps(kind),
            (2, _) if owner.cta == me.cta => {
                state &= !(GRID_MULTI | CTA_CLASS_MASK | WARP_MULTI);
                state |= rule::shared_by_warps(kind) & !31;
            }
            (3, _) if owner.warp == me.warp => {
                state &= !(GRID_MULTI | WARP_MULTI | WARP_CLASS_MASK | WARP_LANE_MULTI);
                state |= rule::shared_by_lanes(kind) & !31;
            }
            (8 | 9, _) => {
                state &= !(GRID_CLASS_MASK | CTA_CLASS_MASK | WARP_CLASS_MASK);
                state |= rule::classes(rule::WEAK_LOAD);
            }
            _ => {}
        }
        if shared {
            // What only its CTA can access is never of several.
            state &= !GRID_MULTI;
        }
        // A cell whose owner has lost its grid epoch is that owner's alone.
        if widths.grid > 0 && owner.grid_epoch == !0 >> (64 - widths.grid) {
            state &= GRID_CLASS_MASK | CTA_CLASS_MASK | WARP_CLASS_MASK;
        }
        // A thread of an earlier launch was killed while it held the cell.
        if owner.generation != me.generation && random.below(2) == 0 {
            state |= BUSY;
        }
        let cell = if random.below(16) == 0 {
            0
        } else {
            owner.pack(widths) | state
        };
        before.push(cell);
        let slot = if shared { me.cta % SLOTS } else { 0 };
        launches.push(LaunchBlock {
            cells: (cells + 8 * i).wrapping_sub(8 * slot),
            witnesses: (witnesses + ROWS * i).wrapping_sub(8 * slot),
            to_witness: (witnesses + ROWS * i).wrapping_sub(cells + 8 * i),
            over_from: widths.over().0,
            over_span: widths.over().1,
            over_bits: widths.over_bits(widths.cta == 0),
            known: if i % 4 == 1 { KNOWN } else { !KNOWN },
            least_of_other_cta: rule::least_of_other_cta(&shifts),
            compared: rule::compared(&shifts),
            compared_by_warps: rule::compared_by_warps(&shifts),
            besides_barrier: rule::besides_barrier(&shifts),
            warp_epoch: rule::warp_epoch(&shifts),
            compared_by_load: rule::compared_by_load(&shifts),
            row: if shared { 8 * SLOTS } else { 8 },
            slot_mask: if shared { SLOTS - 1 } else { 0 },
            in_turn: u32::from(shared),
            window_bytes: 1 << 40,
            barrier_shift: shifts.barrier,
            cta_shift: shifts.cta,
            // One cell, of granules of 4 bytes.
            tag_from: 2,
            tag_shift: shifts.tag,
            grid_shift: shifts.grid,
            pairs,
            counters: counters + size_of::<Counters>() as u64 * i,
            ..LaunchBlock::zeroed()
        });
    }
    // A cell that one access may have claimed has its witness; the others have none that counts.
    let mut first = vec![0; (ROWS / 8) as usize * CASES];
    for (i, &cell) in before.iter().enumerate() {
        if rule::may_be_claimed(cell) {
            first[i * (ROWS / 8) as usize] = sole_witness(SITE, false, cell);
        }
    }
    for (address, bytes) in [
        (witnesses, bytemuck::cast_slice::<u64, u8>(&first)),
        (cells, bytemuck::cast_slice::<u64, u8>(&before)),
        (identities, bytemuck::cast_slice(&mine)),
        (addresses, bytemuck::cast_slice(&at)),
        (blocks, bytemuck::cast_slice(&launches)),
    ] {
        device.write(address, bytes).unwrap();
    }

    let kernel = kernel(kind, shared);
    let text = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n{}{kernel}",
        device::functions([kernel.as_str()]),
    );
    let (module, diagnostics) = ptx::parse(&text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let module = device.load(&module).unwrap();
    let params = [blocks, identities, addresses, results, cells];
    let params = params.map(u64::to_le_bytes).concat();
    let launch = Launch::new([CASES as u32 / BLOCK, 1, 1], [BLOCK, 1, 1], params);
    device.launch(module, "one_access", &launch).unwrap();

    let mut after = vec![0u64; CASES];
    device
        .read(cells, bytemuck::cast_slice_mut(&mut after))
        .unwrap();
    let mut counted = vec![Counters::zeroed(); CASES];
    device
        .read(counters, bytemuck::cast_slice_mut(&mut counted))
        .unwrap();
    let mut found = vec![Results::zeroed(); CASES];
    device
        .read(results, bytemuck::cast_slice_mut(&mut found))
        .unwrap();
    let mut claimed = vec![0u64; CASES * (ROWS / 8) as usize];
    device
        .read(witnesses, bytemuck::cast_slice_mut(&mut claimed))
        .unwrap();
    let (mut fast_hits, mut claims, mut met) = (0, 0, 0);
    for i in 0..CASES {
        let me = mine[i]
            | if widths.tag == 0 {
                0
            } else {
                (at[i] / 4) << shifts.tag
            };
        let expected = rule::access(before[i] & !BUSY, me, kind, &shifts);
        let case = format!("cell {:#x} me {me:#x} kind {kind} {widths:?}", before[i]);
        assert_eq!(after[i], expected.next, "{case}");
        let meets = rule::meets_store(
            before[i] ^ me,
            rule::compared(&shifts),
            rule::least_of_other_cta(&shifts),
        );
        let verdict = match (
            found[i][3],
            counted[i].conflicts,
            counted[i].evictions,
            counted[i].undecided,
        ) {
            // That the store has met another one is known, and not counted.
            (2, 0, 0, 0) if meets && i % 4 == 1 => {
                met += 1;
                assert_eq!(after[i], before[i], "{case}");
                rule::CONFLICT_GRID
            }
            (0 | 1, 0, 0, 0) => rule::OK,
            (0 | 1, 1, 0, 0) if expected.verdict < rule::EVICTED => expected.verdict,
            (0 | 1, 0, 1, 0) => rule::EVICTED,
            (0 | 1, 0, 0, 1) => rule::UNDECIDED,
            other => panic!("{case}: counted {other:?}, expected {}", expected.verdict),
        };
        assert_eq!(verdict, expected.verdict, "{case}");
        verdicts[verdict as usize] += 1;

        let [fast, after_barrier, after_warp_barrier, claim, called] = found[i];
        if claim == 1 {
            let first = claimed[i * (ROWS / 8) as usize];
            let write = kind > rule::STRONG_LOAD_CTA;
            assert_eq!(first, sole_witness(SITE, write, after[i]), "{case}");
            claims += 1;
        }
        // Not the only cells that are claimed, but the most.
        let older = (before[i] ^ me) & GENERATION_MASK != 0 && (!shared || before[i] & BUSY == 0);
        let claims_this = i % 2 == 1 && rule::claims(kind);
        assert!(claim == 1 || !claims_this || !older, "{case}");
        // A weak write is never shared without a conflict (`rule::shared`), so no cell has this
        // state; shadow/tests/enumeration.rs holds the fast path to the cells that there are.
        let shared_weak_write = GRID_MULTI | GRID_CLASS_MASK;
        let mut exists = before[i] & shared_weak_write != shared_weak_write;
        for shared_weak_write in [
            WARP_MULTI | CTA_CLASS_MASK,
            WARP_LANE_MULTI | WARP_CLASS_MASK,
        ] {
            exists &= before[i] & shared_weak_write != shared_weak_write;
        }
        // What has happened since the barrier has happened in the launch.
        let classes = [
            (GRID_CLASS_SHIFT, GRID_MULTI),
            (CTA_CLASS_SHIFT, WARP_MULTI),
            (WARP_CLASS_SHIFT, WARP_LANE_MULTI),
        ];
        // Only what several have done is mixed.
        exists &= classes.iter().all(|(shift, several)| {
            let class = before[i] >> shift & 7;
            attributes(class) == class || before[i] & several != 0
        });
        let [of_grid, of_cta, of_warp] = classes.map(|(at, _)| attributes(before[i] >> at & 7));
        exists &= of_cta & !of_grid == 0 && of_warp & !of_cta == 0;
        if fast == 1 && exists {
            assert_eq!((expected.next, verdict), (before[i], rule::OK), "{case}");
            fast_hits += 1;
        }
        let passed = rule::pass_barrier(mine[i], &shifts);
        assert_eq!([after_barrier, called], [passed; 2], "{case}");
        let passed = rule::pass_warp_barrier(mine[i], &shifts);
        assert_eq!(after_warp_barrier, passed, "{case}");
    }
    assert!((claims > 100) == rule::claims(kind), "{claims}");
    let may_meet = kind == rule::WEAK_STORE && !shared && widths.grid == 0;
    assert!(if may_meet { met > 40 } else { met == 0 }, "{met}");
    fast_hits
}

/// Of a class that may be mixed.
fn attributes(class: u64) -> u64 {
    match class {
        4 => 1,
        5 => 3,
        6 => 2,
        class => class,
    }
}
