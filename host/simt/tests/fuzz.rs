//! Whatever the text of a program, the device ends with a result or an error.
//!
//! `FUZZ_ROUNDS` says how many damaged programs to run, 3000 without it.

use crate::common::kernel;
use random::Random;
use simt::{Device, DeviceConfig, Launch, Limits, Schedule};

/// Programs that use most of the instruction set, to be damaged.
fn seeds() -> Vec<String> {
    let bodies = [
        "add.s32 %r0, %t, 5; mul.wide.s32 %d0, %r0, 7; shl.b64 %d1, %d0, 3; st.global.u64 [%mine], %d1;
         cvt.rn.f32.s32 %f0, %r0; fma.rn.f32 %f1, %f0, %f0, 0f3F800000; div.rn.f32 %f2, %f1, %f0;
         sqrt.approx.f32 %f3, %f2; setp.lt.f32 %p0|%p1, %f3, %f0; selp.f32 %f4, %f0, %f1, %p0;
         cvt.rzi.s32.f32 %r1, %f4; st.global.u32 [%mine], %r1; ret;",
        ".shared .align 8 .b8 s[256]; .local .align 4 .b8 l[64]; mov.u32 %r0, s; mad.lo.u32 %r1, %t, 4, %r0;
         st.shared.u32 [%r1], %t; bar.sync 0; ld.shared.v2.u32 {%r2, %r3}, [%r0+8];
         mov.u64 %d0, l; st.local.u32 [%d0+4], %r2; cvta.local.u64 %d1, %d0; ld.u32 %r4, [%d1+4];
         atom.shared.add.u32 %r5, [%r0], %r4; atom.global.cas.b64 %d2, [%out], %d0, %d1;
         bfe.u32 %r6, %r5, 3, 7; bfi.b32 %r7, %r6, %r5, 2, 9; prmt.b32 %r8, %r7, %r6, 0x3210;
         st.global.v4.u32 [%out], {%r2, %r3, %r4, %r8}; ret;",
        "shfl.sync.idx.b32 %r0|%p0, %t, 3, 0x1f, -1; vote.sync.ballot.b32 %r1, %p0, -1;
         match.any.sync.b32 %r2, %r0, -1; redux.sync.add.u32 %r3, %r1, -1; bar.warp.sync -1;
         mov.u32 %r4, 0; loop: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %t; @%p1 bra loop;
         { .param .b32 a; .param .b32 b; st.param.b32 [a], %r4; call.uni (b), twice, (a); ld.param.b32 %r5, [b]; }
         add.cc.u32 %r6, %r5, -1; addc.u32 %r7, 0, 0; mov.b64 %d0, {%r6, %r7}; st.global.u64 [%mine], %d0;
         barrier.cta.red.popc.u32 %r8, 0, %p1; exit;",
        "mov.u64 %d0, twice; mov.u32 %r0, %laneid; rem.u32 %r1, %r0, 2; brx.idx %r1, targets;
         targets: .branchtargets one, two; one: min.f64 %e0, %e1, 0d3FF0000000000000; bra two;
         two: proto: .callprototype (.param .b32 _) _ (.param .b32 _);
         { .param .b32 a; .param .b32 b; st.param.b32 [a], 3; call (b), %d0, (a), proto; ld.param.b32 %r2, [b]; }
         ld.global.u32 %r3, [table+4]; ld.const.u32 %r4, [fixed]; st.global.u32 [%mine], %r3; ret;",
    ];
    let around = "
        .global .align 8 .u64 table[2] = {twice, fixed}; .const .align 4 .u32 fixed = 7;
        .func (.param .b32 r) twice (.param .b32 x) {
            .reg .b32 %q<4>; .reg .pred %z; ld.param.b32 %q0, [x]; add.u32 %q1, %q0, %q0;
            setp.gt.u32 %z, %q1, 1000; @%z ret; st.param.b32 [r], %q1; ret; }";
    bodies
        .map(|body| {
            format!(
                ".version 8.0\n.target sm_90\n.address_size 64\n{around}\n{}",
                kernel(body)
            )
        })
        .into()
}

fn run(text: &str, seed: u64) -> Result<(), simt::LaunchError> {
    let (module, _) = ptx::parse(text);
    let mut device = Device::new(DeviceConfig {
        memory: 1 << 24,
        ..DeviceConfig::default()
    })
    .unwrap();
    let Ok(id) = device.load(&module) else {
        return Ok(());
    };
    let out = device.memory_mut().alloc(1024).unwrap();
    let launch = Launch {
        limits: Limits {
            max_warp_instructions: Some(2000),
            timeout: None,
            ..Limits::default()
        },
        schedule: if seed.is_multiple_of(2) {
            Schedule::RoundRobin
        } else {
            Schedule::Seeded(seed)
        },
        ..Launch::new([2, 1, 1], [33, 1, 1], out.to_le_bytes().to_vec())
    };
    let result = device.launch(id, "k", &launch).map(|_| ());
    device.unload(id);
    device.memory_mut().free(out).unwrap();
    assert_eq!(
        device.memory().used(),
        0,
        "the module's variables were not freed"
    );
    result
}

#[test]
fn the_undamaged_programs_run() {
    for text in seeds() {
        run(&text, 0).unwrap();
        run(&text, 1).unwrap();
    }
}

#[test]
fn damaged_programs_end() {
    let mut numbers = Random::new(1);
    let mut random = move |below: usize| numbers.index(below.max(1));
    let seeds = seeds();
    let split = |text: &str| -> Vec<String> {
        let mut tokens = vec![String::new()];
        for c in text.chars() {
            let word = |c: char| c.is_alphanumeric() || "_%.".contains(c);
            let last = tokens.last_mut().unwrap();
            if last
                .chars()
                .next_back()
                .is_some_and(|before| word(before) && word(c))
            {
                last.push(c);
            } else {
                tokens.push(c.to_string());
            }
        }
        tokens
    };
    let words: Vec<String> = seeds
        .iter()
        .flat_map(|seed| split(seed))
        .filter(|w| !w.trim().is_empty())
        .collect();
    let mut outcomes = [0; 2];
    let rounds = std::env::var("FUZZ_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok());
    for round in 0..rounds.unwrap_or(3000u64) {
        let mut tokens = split(&seeds[random(seeds.len())]);
        for _ in 0..1 + random(3) {
            let at = 20 + random(tokens.len() - 20);
            match random(4) {
                0 => tokens[at] = words[random(words.len())].clone(),
                1 => tokens[at].clear(),
                2 => {
                    tokens[at] = ["0", "-1", "4294967295", "0x7fffffffffffffff", "1000000"]
                        [random(5)]
                    .to_owned()
                }
                _ => {
                    let other = 20 + random(tokens.len() - 20);
                    tokens.swap(at, other);
                }
            }
        }
        let text: String = tokens.concat();
        outcomes[usize::from(run(&text, round).is_ok())] += 1;
    }
    assert!(
        outcomes.iter().all(|&count| count > 200),
        "damage should do some harm, not only harm: {outcomes:?}"
    );
}
