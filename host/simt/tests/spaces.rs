//! State spaces, module variables, atomics, and what an observer receives.

use crate::common::{kernel, load, run};
use events::{AccessKind, Exchange, Executing, Observer};
use ptx::ast::Space;
use simt::{Device, DeviceConfig, Launch};

#[test]
fn module_variables_and_their_initialisers() {
    let text = format!(
        ".global .align 4 .u16 halves[3] = {{1, 0xffff}};
         .const .align 8 .f64 real = 0d4000000000000000;
         .global .align 8 .u64 pointers[2] = {{halves+2, generic(halves)}};
         .global .align 1 .b8 bytes[4] = {{0xFF(halves), 0xFF00(halves), 7}};
         {}",
        kernel(
            "ld.global.u64 %d0, [pointers]; ld.u16 %h0, [%d0]; ld.global.s16 %r0, [halves+2];
             ld.const.f64 %e0, [real]; cvt.rzi.u32.f64 %r1, %e0; ld.global.u8 %r2, [bytes+1];
             mov.u64 %d1, halves; shr.u64 %d1, %d1, 8; and.b64 %d1, %d1, 255; cvt.u32.u64 %r3, %d1;
             setp.ne.u32 %p0, %r2, %r3; @%p0 trap;
             cvt.u32.u16 %r4, %h0; mad.lo.u32 %r4, %r1, 65536, %r4; mov.b64 %d2, {%r4, %r0};
             st.global.u64 [%mine], %d2; ret;"
        )
    );
    let mut rig = load(&text);
    assert_eq!(rig.run(1, 1, 1).unwrap(), [0xffff_ffff_0002_ffff]);
    let (address, bytes) = rig.device.global(rig.module, "halves").unwrap();
    assert_eq!(bytes, 6);
    let mut have = [0; 6];
    rig.device.memory().read(address, &mut have).unwrap();
    assert_eq!(have, [1, 0, 255, 255, 0, 0]);
    rig.device.unload(rig.module);
    assert!(rig.device.memory().read(address, &mut have).is_err());
}

/// Memory of this process that is in use, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() << 10
}

#[test]
fn a_large_device_costs_what_is_touched() {
    let body = "mov.u64 %d0, 0x3c0000000; mad.lo.u64 %d0, %d0, 3, 0; cvt.u64.u32 %d1, %t;
                mad.lo.u64 %d0, %d1, %d0, %out; mov.u64 %d2, 9; st.global.u64 [%d0], %d2; ret;";
    let header = ".version 8.0\n.target sm_90\n.address_size 64\n";
    let (module, _) = ptx::parse(&format!("{header}{}", kernel(body)));
    let config = DeviceConfig {
        memory: 64 << 30,
        ..DeviceConfig::default()
    };
    let mut device = Device::new(config).unwrap();
    let module = device.load(&module).unwrap();
    // Two threads, 45 GiB apart.
    let array = device.memory_mut().alloc(60 << 30).unwrap();
    let launch = Launch::new([1; 3], [2, 1, 1], array.to_le_bytes().to_vec());
    device.launch(module, "k", &launch).unwrap();
    for at in [array, array + 45 * (1 << 30)] {
        let mut word = [0; 16];
        device.memory().read(at, &mut word).unwrap();
        assert_eq!(word, [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    assert!(device.memory_mut().alloc(8 << 30).is_err());
    assert!(resident() < 2 << 30, "{}", resident());
}

#[test]
fn shared_memory_holds_what_the_device_is_made_with() {
    let body = ".shared .b32 word; ld.shared.u32 %r0, [word]; st.shared.u32 [word], 3;
                cvt.u64.u32 %d0, %r0; st.global.u64 [%mine], %d0; ret;";
    let header = ".version 8.0\n.target sm_90\n.address_size 64\n";
    let (module, _) = ptx::parse(&format!("{header}{}", kernel(body)));
    for content in [0, 7] {
        let config = DeviceConfig {
            shared_content: content,
            ..DeviceConfig::default()
        };
        let mut device = Device::new(config).unwrap();
        let module = device.load(&module).unwrap();
        let array = device.memory_mut().alloc(16).unwrap();
        let launch = Launch::new([2, 1, 1], [1; 3], array.to_le_bytes().to_vec());
        device.launch(module, "k", &launch).unwrap();
        let mut words = [0; 16];
        device.memory().read(array, &mut words).unwrap();
        let content = u128::from(content);
        assert_eq!(u128::from_le_bytes(words), content << 64 | content);
    }
}

#[test]
fn static_and_dynamic_shared_memory_do_not_overlap() {
    let text = format!(
        ".extern .shared .align 16 .b8 dynamic[]; .shared .align 4 .b32 outer;\n{}",
        kernel(
            ".shared .align 8 .b64 inner;
             mov.u32 %r0, dynamic; mov.u32 %r1, outer; mov.u32 %r2, inner;
             st.shared.u32 [outer], 1; st.shared.u64 [inner], 2; st.shared.u32 [dynamic+60], 3;
             ld.shared.u32 %r3, [%r1]; ld.shared.u32 %r4, [%r2]; ld.shared.u32 %r5, [%r0+60];
             mov.u32 %r6, %dynamic_smem_size; and.b32 %r7, %r0, 15; add.u32 %r6, %r6, %r7;
             mad.lo.u32 %r3, %r3, 10, %r4; mad.lo.u32 %r3, %r3, 10, %r5; mad.lo.u32 %r3, %r6, 1000, %r3;
             cvt.u64.u32 %d0, %r3; st.global.u64 [%mine], %d0; ret;"
        )
    );
    let mut rig = load(&text);
    assert_eq!(
        rig.device.kernel(rig.module, "k").unwrap().static_shared,
        16
    );
    let launch = |params| Launch {
        dynamic_shared: 64,
        ..Launch::new([1; 3], [1; 3], params)
    };
    assert_eq!(rig.run_with(1, launch).unwrap().0, [64123]);
    // Without dynamic memory the last store is out of bounds.
    assert!(rig.run(1, 1, 1).is_err());
}

#[test]
fn generic_addresses_of_every_space_in_one_access() {
    let out = run(
        8,
        ".shared .align 4 .b32 s[8]; .local .align 4 .b32 l;
         mov.u32 %r0, s; mad.lo.u32 %r1, %t, 4, %r0; cvt.u64.u32 %d0, %r1; cvta.shared.u64 %d0, %d0;
         mov.u64 %d1, l; cvta.local.u64 %d1, %d1;
         rem.u32 %r2, %t, 3; setp.eq.u32 %p0, %r2, 0; setp.eq.u32 %p1, %r2, 1;
         selp.b64 %d2, %d0, %d1, %p0; selp.b64 %d2, %mine, %d2, %p1;
         add.u32 %r3, %t, 100; st.u32 [%d2], %r3; atom.add.u32 %r4, [%d2], 1; ld.u32 %r5, [%d2];
         isspacep.shared %p2, %d2; isspacep.local %p3, %d2; isspacep.global %p4, %d2;
         selp.u32 %r6, 1000, 0, %p2; selp.u32 %r7, 2000, 0, %p3; selp.u32 %r8, 4000, 0, %p4;
         add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; add.u32 %r5, %r5, %r8; add.u32 %r5, %r5, %r4;
         cvt.u64.u32 %d3, %r5; st.global.u64 [%mine], %d3; ret;",
    );
    let space = |t: u64| [1000, 4000, 2000][(t % 3) as usize];
    assert_eq!(
        out,
        (0..8u64)
            .map(|t| 2 * (t + 100) + 1 + space(t))
            .collect::<Vec<_>>()
    );
}

#[test]
fn narrow_and_wide_accesses() {
    let out = run(
        1,
        "mov.u64 %d0, 0x8877665544332211; st.global.u64 [%out], %d0;
         ld.global.s8 %r0, [%out+7]; ld.global.u8 %r1, [%out+7]; ld.global.s16 %d1, [%out+6];
         ld.global.v2.u8 {%h0, %h1}, [%out+2]; ld.global.v4.u16 {%h2, %h3, %h4, %h5}, [%out];
         setp.ne.s32 %p0, %r0, -120; @%p0 trap; setp.ne.u32 %p0, %r1, 0x88; @%p0 trap;
         setp.ne.s64 %p0, %d1, -30601; @%p0 trap; setp.ne.u16 %p0, %h1, 0x44; @%p0 trap;
         setp.ne.u16 %p0, %h4, 0x6655; @%p0 trap;
         st.global.v2.u8 [%out+4], {%h1, %h0}; st.global.u16 [%out], %h5;
         ret;",
    );
    assert_eq!(out, [0x8877_3344_4433_8877]);
}

#[test]
fn atomics_lane_by_lane() {
    let out = run(
        32,
        "setp.ne.u32 %p0, %t, 0; @%p0 bra go; mov.u64 %d9, -1; st.global.u64 [%out+64], %d9; go: bar.sync 0;
         atom.global.add.u64 %d0, [%out], 3; atom.global.max.s32 %r0, [%out+8], %t;
         atom.global.inc.u32 %r1, [%out+16], 9; atom.global.or.b32 %r2, [%out+24], %t;
         cvt.rn.f32.u32 %f0, %t; red.global.add.f32 [%out+32], %f0; cvt.f64.f32 %e0, %f0;
         atom.global.add.f64 %e1, [%out+40], %e0; atom.global.exch.b32 %r3, [%out+48], %t;
         atom.global.cas.b64 %d1, [%out+56], 0, %d0; atom.global.min.u64 %d2, [%out+64], %d0;
         atom.global.add.noftz.f16x2 %r4, [%out+72], 0x3c003c00; ret;",
    );
    let want = [
        96,
        31,
        2,
        31,
        u64::from(496f32.to_bits()),
        496f64.to_bits(),
        31,
        0,
        0,
        0x5000_5000,
    ];
    // Lane 0 found 0 and wrote its own 0 back; lane 1 found 0 again and wrote 3.
    let want: Vec<u64> = want
        .iter()
        .enumerate()
        .map(|(at, &word)| if at == 7 { 3 } else { word })
        .collect();
    assert_eq!(out[..10], want);
}

#[derive(Default)]
struct Log(Vec<(AccessKind, Space, u32, u32)>, Vec<String>);

impl Observer for Log {
    fn access(
        &mut self,
        threads: Executing,
        kind: AccessKind,
        space: Space,
        at: &[u64; 32],
        bytes: u32,
    ) {
        assert!(at[threads.lanes.trailing_zeros() as usize] > 0 || space != Space::Global);
        self.0.push((kind, space, threads.lanes, bytes));
    }
    fn arrive(&mut self, threads: Executing, id: u32, waits: bool) {
        self.1.push(format!("arrive {} {id} {waits}", threads.warp));
    }
    fn complete(&mut self, cta: u64, id: u32) {
        self.1.push(format!("complete {cta} {id}"));
    }
    fn fence(&mut self, _: Executing) {
        self.1.push("fence".to_owned());
    }
    fn exit(&mut self, threads: Executing) {
        self.1.push(format!("exit {:x}", threads.lanes));
    }
}

#[test]
fn observers_see_accesses_and_synchronisation() {
    let text = kernel(
        ".shared .b32 s; setp.lt.u32 %p0, %t, 4; @%p0 st.shared.u32 [s], %t; membar.gl; bar.sync 2;
         ld.v2.u64 {%d0, %d1}, [%out]; red.global.add.u32 [%out], 1; ret;",
    );
    let mut rig = load(&text);
    let out = rig.device.memory_mut().alloc(64).unwrap();
    let launch = Launch::new([1; 3], [40, 1, 1], out.to_le_bytes().to_vec());
    let mut log = Log::default();
    let stats = rig
        .device
        .launch_observed(rig.module, "k", &launch, &mut log)
        .unwrap();
    let all = u32::MAX;
    let want = [
        (AccessKind::Store, Space::Shared, 15, 4),
        (AccessKind::Load, Space::Global, all, 16),
        (AccessKind::Rmw, Space::Global, all, 4),
        (AccessKind::Load, Space::Global, 255, 16),
        (AccessKind::Rmw, Space::Global, 255, 4),
    ];
    // Which warp goes on first after the barrier is the schedule's business.
    log.0.sort_by_key(|&(_, _, lanes, _)| lanes == 255);
    assert_eq!(log.0, want);
    let want = [
        "fence",
        "arrive 0 2 true",
        "fence",
        "arrive 1 2 true",
        "complete 0 2",
        "exit ffffffff",
        "exit ff",
    ];
    let mut have = log.1.clone();
    let mut want: Vec<String> = want.map(String::from).into();
    assert_eq!(have[..5], want[..5]);
    have.sort();
    want.sort();
    assert_eq!(have, want);
    assert_eq!((stats.global_sectors, stats.resident_ctas), (4, 1));
    assert_eq!(stats.device_fences, 2);
    // Six instructions before the body and seven of it, one of which only four lanes execute.
    assert_eq!(stats.warp_instructions, 2 * 13);
    assert_eq!(stats.thread_instructions, 40 * 12 + 4);
}

/// What was compared, what was to be written, and what was there.
#[derive(Default)]
struct Swaps(Vec<(Option<u64>, u64, u64)>);

impl Observer for Swaps {
    fn exchanged(&mut self, threads: Executing, _: Space, _: &[u64; 32], exchange: Exchange<'_>) {
        assert_eq!(exchange.bytes, 4);
        for lane in (0..32).filter(|lane| threads.lanes >> lane & 1 == 1) {
            let compared = exchange.compare.map(|values| values[lane]);
            self.0
                .push((compared, exchange.new[lane], exchange.old[lane]));
        }
    }
}

#[test]
fn observers_see_what_was_swapped() {
    let text = kernel(
        "atom.global.exch.b32 %r0, [%out], -1; atom.global.cas.b32 %r0, [%out], 5, 6;
         atom.global.cas.b32 %r0, [%out], -1, 0; atom.global.add.u32 %r0, [%out], 3; ret;",
    );
    let mut rig = load(&text);
    let out = rig.device.memory_mut().alloc(64).unwrap();
    let launch = Launch::new([1; 3], [2, 1, 1], out.to_le_bytes().to_vec());
    let mut swaps = Swaps::default();
    rig.device
        .launch_observed(rig.module, "k", &launch, &mut swaps)
        .unwrap();
    let ones = u64::from(u32::MAX);
    let want = [
        (None, ones, 0),
        (None, ones, ones),
        (Some(5), 6, ones),
        (Some(5), 6, ones),
        (Some(ones), 0, ones),
        (Some(ones), 0, 0),
    ];
    assert_eq!(swaps.0, want);
}

/// What a word was before each change, by lane, and what it was when an access had been made.
#[derive(Default)]
struct Contents {
    changes: Vec<(Space, u64, u32, u32)>,
    last: u64,
    made: Vec<Option<u32>>,
}

impl Observer for Contents {
    fn access(&mut self, _: Executing, _: AccessKind, _: Space, at: &[u64; 32], _: u32) {
        self.last = at[0] & !3;
    }
    fn follows(&self, space: Space) -> bool {
        matches!(space, Space::Shared | Space::Global)
    }
    fn changes(&mut self, _: Executing, lane: u32, space: Space, at: u64, before: u32) {
        self.changes.push((space, at, lane, before));
    }
    fn accessed(&mut self, read: &dyn Fn(Space, u64) -> Option<u32>) {
        self.made.push(read(Space::Global, self.last));
    }
}

#[test]
fn observers_see_what_words_held() {
    // Two lanes: one after the other, the same again, half a word, and an atomic.
    let text = kernel(
        ".shared .b32 s; add.u32 %r0, %t, 5; st.global.u32 [%out], %r0; st.global.u32 [%out], 6;
         mov.u32 %r1, 9; cvt.u16.u32 %h0, %r1; st.global.u16 [%out+2], %h0;
         mov.u64 %d0, 0x100000001; red.global.add.u64 [%out+8], %d0; st.shared.u32 [s], 3; ret;",
    );
    let mut rig = load(&text);
    let out = rig.device.memory_mut().alloc(64).unwrap();
    let launch = Launch::new([1; 3], [2, 1, 1], out.to_le_bytes().to_vec());
    let mut seen = Contents::default();
    rig.device
        .launch_observed(rig.module, "k", &launch, &mut seen)
        .unwrap();
    let global = |at, lane, before| (Space::Global, out + at, lane, before);
    let want = [
        global(0, 0, 0),
        global(0, 1, 5),
        global(0, 0, 6),
        global(8, 0, 0),
        global(12, 0, 0),
        global(8, 1, 1),
        global(12, 1, 1),
    ];
    assert_eq!(seen.changes[..7], want);
    assert_eq!(seen.changes[7], (Space::Shared, 0, 0, 0));
    assert_eq!(seen.changes.len(), 8);
    let half = 9 << 16 | 6;
    assert_eq!(seen.made[..4], [6, 6, half, 2].map(Some));
}
