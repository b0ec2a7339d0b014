//! Loads of what a launch never writes go unchecked, and no others.

mod common;

use runtime::{Mode, Options, ShadowSize};

use crate::common::{launch, load};

/// Every thread loads its neighbour's word of `from`, and stores to its own of `to`.
const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 from, .param .u64 to) { .reg .b64 %from, %to, %at; .reg .b32 %t, %n, %v;\n\
    ld.param.u64 %from, [from]; cvta.to.global.u64 %from, %from; ld.param.u64 %to, [to];\n\
    mov.u32 %t, %tid.x; xor.b32 %n, %t, 32; mul.wide.u32 %at, %n, 4; add.s64 %from, %from, %at;\n\
    mul.wide.u32 %at, %t, 4; add.s64 %to, %to, %at;\n\
    ld.global.u32 %v, [%from]; st.global.u32 [%to], %v; ret; }";

/// How many races the launch has with these parameters, offsets in two allocations, and how many
/// warp-instructions it takes.
fn run(from: (usize, u64), to: (usize, u64)) -> (usize, u64) {
    let options = Options {
        mode: Mode::Fast,
        shadow: ShadowSize::Bytes(1 << 20),
        ..Options::default()
    };
    let mut rig = load(TEXT, options);
    let memory = [rig.memory(&[7; 256]), rig.memory(&[8; 256])];
    rig.launch(&launch(
        1,
        64,
        &[from, to].map(|(which, offset)| memory[which] + offset),
    ));
    let launch = rig.launches().pop().unwrap();
    assert!(launch.checked, "{:?}", launch.why_not);
    (rig.races().len(), launch.warp_instructions)
}

#[test]
fn loads_of_another_allocation_are_free() {
    let (races, apart) = run((0, 0), (1, 0));
    assert_eq!(races, 0);
    let (races, together) = run((0, 0), (0, 512));
    assert_eq!(races, 0);
    // Two warps have loaded without a check.
    assert!(apart + 40 < together, "{apart} {together}");
}

#[test]
fn loads_of_what_is_written_are_checked() {
    assert_ne!(run((0, 0), (0, 0)).0, 0);
    assert_ne!(run((0, 4), (0, 0)).0, 0);
}
