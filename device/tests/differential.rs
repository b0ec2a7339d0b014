//! The rule in Rust against the rule in PTX: `__cudarun_slow` runs on the simulated device over the
//! boundary values of every field of a cell, and must leave the cell that `shadow::rule` computes
//! and count what it says.

use bytemuck::Zeroable;
use driver::Device as _;
use shadow::layout::{Counters, LaunchBlock, PairSlot, WITNESS_BYTES};
use shadow::plan::{Identity, Widths};
use shadow::rule;
use simt::{Device, DeviceConfig, Launch};

/// Cases per kind of access and choice of widths.
const CASES: usize = 16 * 1024;
const BLOCK: u32 = 256;

/// Each thread checks one access with a launch block, a cell and counters of its own.
const KERNEL: &str = "
.visible .entry one_access(.param .u64 blocks, .param .u64 identities, .param .u64 addresses, .param .u32 access)
{
    .reg .b32 %i, %cta, %size, %access;
    .reg .b64 %block, %me, %address, %slot;
    mov.u32 %i, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mad.lo.u32 %i, %cta, %size, %i;
    ld.param.u64 %block, [blocks];
    mul.wide.u32 %slot, %i, 96;
    add.u64 %block, %block, %slot;
    mul.wide.u32 %slot, %i, 8;
    ld.param.u64 %me, [identities];
    add.u64 %me, %me, %slot;
    ld.global.u64 %me, [%me];
    ld.param.u64 %address, [addresses];
    add.u64 %address, %address, %slot;
    ld.global.u64 %address, [%address];
    ld.param.u32 %access, [access];
    {
        .param .b64 p0;
        .param .b64 p1;
        .param .b64 p2;
        .param .b32 p3;
        .param .b32 p4;
        st.param.b64 [p0], %block;
        st.param.b64 [p1], %me;
        st.param.b64 [p2], %address;
        st.param.b32 [p3], 7;
        st.param.b32 [p4], %access;
        call __cudarun_slow, (p0, p1, p2, p3, p4);
    }
    ret;
}
";

/// A small fixed sequence (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    /// A boundary value of a field of `bits` bits: 0, 1 or its maximum.
    fn edge(&mut self, bits: u32) -> u64 {
        let max = if bits == 0 { 0 } else { !0 >> (64 - bits) };
        [0, 1.min(max), max][self.below(3) as usize]
    }

    fn identity(&mut self, widths: &Widths) -> Identity {
        Identity {
            generation: [1, 255][self.below(2) as usize],
            tag: self.edge(widths.tag),
            cta: self.edge(widths.cta),
            barrier_epoch: self.edge(widths.barrier),
            warp_epoch: self.edge(widths.warp),
            warp: self.edge(5) as u32,
            lane: self.edge(5) as u32,
        }
    }
}

#[test]
fn the_rule_in_rust_equals_the_rule_in_ptx() {
    let mut verdicts = [0u32; 6];
    for widths in [
        Widths {
            tag: 4,
            cta: 12,
            barrier: 10,
            warp: 7,
        },
        Widths {
            tag: 0,
            cta: 5,
            barrier: 28,
            warp: 0,
        },
        Widths {
            tag: 3,
            cta: 30,
            barrier: 0,
            warp: 0,
        },
    ] {
        for kind in 0..rule::KINDS {
            compare(&widths, kind, &mut verdicts);
        }
    }
    // Every verdict must have been compared, or the values are no boundary values.
    assert!(verdicts.iter().all(|&seen| seen > 100), "{verdicts:?}");
}

fn compare(widths: &Widths, kind: u32, verdicts: &mut [u32; 6]) {
    let mut random = Random(u64::from(kind) + 1);
    let mut device = Device::new(DeviceConfig {
        memory: 1 << 28,
        ..DeviceConfig::default()
    })
    .unwrap();
    let mut alloc = |bytes: u64| driver::Device::alloc(&mut device, bytes).unwrap();
    let n = CASES as u64;
    let (cells, witnesses) = (alloc(8 * n), alloc(WITNESS_BYTES * n));
    let counters = alloc(size_of::<Counters>() as u64 * n);
    let (pairs, blocks) = (alloc(size_of::<PairSlot>() as u64), alloc(96 * n));
    let (identities, addresses) = (alloc(8 * n), alloc(8 * n));

    let shifts = widths.shifts();
    let (mut before, mut mine, mut at, mut launches) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let me = random.identity(widths);
        // The tag comes from the address: granules of 4 bytes, one cell.
        at.push(me.tag * 4);
        mine.push(Identity { tag: 0, ..me }.pack(widths));
        // Mostly the same thread in most fields, or nearly every cell would be of another CTA.
        let other = random.identity(widths);
        let mut owner = me;
        for field in 0..7 {
            if random.below(4) == 0 {
                match field {
                    0 => owner.generation = other.generation,
                    1 => owner.tag = other.tag,
                    2 => owner.cta = other.cta,
                    3 => owner.barrier_epoch = other.barrier_epoch,
                    4 => owner.warp_epoch = other.warp_epoch,
                    5 => owner.warp = other.warp,
                    _ => owner.lane = other.lane,
                }
            }
        }
        // Classes and multi bits: everything below the generation but warp, lane and the busy bit.
        let state = random.below(1 << 22) & !(31 << 9) & !31;
        let cell = if random.below(16) == 0 {
            0
        } else {
            owner.pack(widths) | state
        };
        before.push(cell);
        launches.push(LaunchBlock {
            cells: cells + 8 * i,
            witnesses: witnesses + WITNESS_BYTES * i,
            window_bytes: 1 << 40,
            barrier_shift: shifts.barrier,
            cta_shift: shifts.cta,
            tag_shift: shifts.tag,
            pairs,
            counters: counters + size_of::<Counters>() as u64 * i,
            ..LaunchBlock::zeroed()
        });
    }
    for (address, bytes) in [
        (cells, bytemuck::cast_slice::<u64, u8>(&before)),
        (identities, bytemuck::cast_slice(&mine)),
        (addresses, bytemuck::cast_slice(&at)),
        (blocks, bytemuck::cast_slice(&launches)),
    ] {
        device.write(address, bytes).unwrap();
    }

    let text = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n{}{KERNEL}",
        device::functions()
    );
    let (module, diagnostics) = ptx::parse(&text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let module = device.load(&module).unwrap();
    let access = device::access_word(kind, 2, 4);
    let mut params: Vec<u8> = [blocks, identities, addresses]
        .map(u64::to_le_bytes)
        .concat();
    params.extend(access.to_le_bytes());
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
    for i in 0..CASES {
        let me = mine[i]
            | if widths.tag == 0 {
                0
            } else {
                (at[i] / 4) << shifts.tag
            };
        let expected = rule::access(before[i], me, kind, &shifts);
        let case = format!("cell {:#x} me {me:#x} kind {kind} {widths:?}", before[i]);
        assert_eq!(after[i], expected.next, "{case}");
        let verdict = match (
            counted[i].conflicts,
            counted[i].evictions,
            counted[i].undecided,
        ) {
            (0, 0, 0) => rule::OK,
            (1, 0, 0) if expected.verdict < rule::EVICTED => expected.verdict,
            (0, 1, 0) => rule::EVICTED,
            (0, 0, 1) => rule::UNDECIDED,
            other => panic!("{case}: counted {other:?}, expected {}", expected.verdict),
        };
        assert_eq!(verdict, expected.verdict, "{case}");
        verdicts[verdict as usize] += 1;
    }
}
