//! Loads of what a launch never writes go unchecked, and no others.

use runtime::{Mode, Options, Prove, ShadowSize};

use crate::common::{launch, load};

/// Every thread loads its neighbour's word of `from`, and stores to its own of `to`.
const TEXT: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 from, .param .u64 to) { .reg .b64 %from, %to, %at; .reg .b32 %t, %n, %v;\n\
    ld.param.u64 %from, [from]; cvta.to.global.u64 %from, %from; ld.param.u64 %to, [to];\n\
    mov.u32 %t, %tid.x; xor.b32 %n, %t, 32; mul.wide.u32 %at, %n, 4; add.s64 %from, %from, %at;\n\
    mul.wide.u32 %at, %t, 4; add.s64 %to, %to, %at;\n\
    ld.global.u32 %v, [%from]; st.global.u32 [%to], %v; ret; }";

/// Every thread loads its neighbour's word of a table, and stores to its own of `to`; and one more
/// store, or none.
const TABLE: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .b8 table[256];\n\
    .func put(.param .b64 at) { .reg .b64 %at; .reg .b32 %t; ld.param.u64 %at, [at];\n\
    mov.u32 %t, %tid.x; st.u32 [%at], %t; ret; }\n\
    .visible .entry k(.param .u64 to, .param .u64 also) { .reg .b64 %table, %to, %at, %also; .reg .b32 %t, %n, %v;\n\
    .reg .pred %p; ld.param.u64 %to, [to]; ld.param.u64 %also, [also]; mov.u64 %table, table;\n\
    mov.u32 %t, %tid.x; xor.b32 %n, %t, 32; mul.wide.u32 %at, %n, 4; add.s64 %table, %table, %at;\n\
    mul.wide.u32 %at, %t, 4; add.s64 %to, %to, %at;\n\
    ld.global.u32 %v, [%table]; st.global.u32 [%to], %v; setp.eq.u32 %p, %t, NUMBER; WRITE ret; }";

/// A place in one of two allocations.
#[derive(Clone, Copy)]
struct At {
    allocation: usize,
    offset: u64,
}

fn at(allocation: usize, offset: u64) -> At {
    At { allocation, offset }
}

/// How many races the launch has with these parameters, and how many warp-instructions it takes.
fn run(from: At, to: At) -> (usize, u64) {
    let options = Options {
        prove: Prove::Off,
        mode: Mode::Fast,
        shadow: ShadowSize::Bytes(1 << 20),
        ..Options::default()
    };
    let mut rig = load(TEXT, options);
    let memory = [rig.memory(&[7; 256]), rig.memory(&[8; 256])];
    rig.launch(&launch(
        1,
        64,
        &[from, to].map(|at| memory[at.allocation] + at.offset),
    ));
    let launch = rig.launches().pop().unwrap();
    assert!(launch.checked, "{:?}", launch.why_not);
    (rig.races().len(), launch.warp_instructions)
}

#[test]
fn loads_of_another_allocation_are_free() {
    let (races, apart) = run(at(0, 0), at(1, 0));
    assert_eq!(races, 0);
    let (races, together) = run(at(0, 0), at(0, 512));
    assert_eq!(races, 0);
    // Two warps have loaded without a check.
    assert!(apart + 40 < together, "{apart} {together}");
}

#[test]
fn loads_of_what_is_written_are_checked() {
    assert_ne!(run(at(0, 0), at(0, 0)).0, 0);
    assert_ne!(run(at(0, 4), at(0, 0)).0, 0);
}

/// Races, and warp-instructions, where the thread of a number, which may be beyond all, makes the store
/// as well. The second parameter is memory of its own, or the table's address.
fn run_table(number: u32, write: &str, also_is_table: bool) -> (usize, u64) {
    let options = Options {
        prove: Prove::Off,
        mode: Mode::Fast,
        shadow: ShadowSize::Bytes(1 << 20),
        ..Options::default()
    };
    let number = number.to_string();
    let text = TABLE.replace("NUMBER", &number).replace("WRITE", write);
    let mut rig = load(&text, options);
    let to = rig.memory(&[7; 256]);
    let also = match also_is_table {
        true => rig.variable("table"),
        false => rig.memory(&[7; 256]),
    };
    rig.launch(&launch(1, 64, &[to, also]));
    let launch = rig.launches().pop().unwrap();
    assert!(launch.checked, "{:?}", launch.why_not);
    (rig.races().len(), launch.warp_instructions)
}

#[test]
fn loads_of_a_table_are_free_where_other_memory_is_written() {
    let elsewhere = "@%p st.global.u32 [%also], %t;";
    let (races, free) = run_table(0, elsewhere, false);
    assert_eq!(races, 0);
    // The same store, which nobody makes, where it would be to the table.
    let (races, checked) = run_table(64, elsewhere, true);
    assert_eq!(races, 0);
    assert!(free + 20 < checked, "{free} {checked}");
}

#[test]
fn loads_of_a_table_are_checked_however_it_is_written() {
    for (write, also_is_table) in [
        ("@%p st.global.u32 [table], %t;", false),
        (
            "mov.u64 %at, table; cvta.global.u64 %at, %at; @%p st.u32 [%at], %t;",
            false,
        ),
        ("@%p red.global.add.u32 [table+4], 1;", false),
        ("@%p st.global.u32 [%also], %t;", true),
        (
            "selp.b64 %at, %also, %to, %p; @%p st.global.u32 [%at], %t;",
            true,
        ),
        // Its address goes through memory, a callee and a word at a time.
        (
            "mov.u64 %at, table; @%p st.global.u64 [%also+8], %at; @%p ld.global.u64 %at, [%also+8]; @%p st.u32 [%at], %t;",
            false,
        ),
        (
            "@!%p bra past; { .param .b64 at; mov.u64 %at, table; st.param.b64 [at], %at; call put, (at); } past:",
            false,
        ),
        (
            "mov.u64 %at, table; mov.b64 {%n, %v}, %at; mov.b64 %at, {%n, %v}; @%p st.u32 [%at], %t;",
            false,
        ),
    ] {
        assert_ne!(run_table(0, write, also_is_table).0, 0, "{write}");
        assert_eq!(run_table(64, write, also_is_table).0, 0, "{write}");
    }
}

/// The second thread stores a word to `to`, the first loads a byte of `from`.
const PARTS: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 from, .param .u64 to) { .reg .b64 %from, %to; .reg .b32 %t, %v; .reg .pred %p;\n\
    ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; mov.u32 %t, %tid.x;\n\
    setp.eq.u32 %p, %t, 0; @%p ld.global.u8 %v, [%from]; @!%p st.global.u32 [%to], %t; ret; }";

#[test]
fn words_are_one_granule_beside_parts_of_other_memory() {
    let run = |from: (usize, u64)| {
        let options = Options {
            prove: Prove::Off,
            mode: Mode::Fast,
            shadow: ShadowSize::Bytes(1 << 20),
            ..Options::default()
        };
        let mut rig = load(PARTS, options);
        let memory = [rig.memory(&[7; 256]), rig.memory(&[8; 256])];
        rig.launch(&launch(1, 2, &[memory[from.0] + from.1, memory[1]]));
        let launch = rig.launches().pop().unwrap();
        assert!(launch.checked, "{:?}", launch.why_not);
        (rig.races().len(), launch.warp_instructions)
    };
    // Each byte of the word races; those beside it do not.
    for at in 0..4 {
        assert_eq!(run((1, at)).0, 1, "{at}");
    }
    let (races, together) = run((1, 4));
    assert_eq!(races, 0);
    let (races, apart) = run((0, 0));
    assert_eq!(races, 0);
    // One granule instead of four.
    assert!(apart + 80 < together, "{apart} {together}");
}
