//! Kernels by hand: what is proved of them, held against the simulated device.

use crate::machine::{Machine, Run};
use prove::Argument::{self, Barriers, Private, ReadOnly};
use prove::assume::Quantity;

/// A kernel `k` with two pointers and two numbers.
fn kernel(body: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 to, .param .u64 from, .param .u32 n, .param .u32 m) {{
            .reg .pred %p<16>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .b16 %h<4>;
            .reg .b32 %t, %b, %s, %i, %n, %m; .reg .b64 %to, %from, %at;
            .shared .align 4 .b8 tile[4096];
            ld.param.u64 %to, [to]; ld.param.u64 %from, [from];
            ld.param.u32 %n, [n]; ld.param.u32 %m, [m];
            mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %s, %ntid.x;
            mad.lo.s32 %i, %b, %s, %t;
            {body}
            ret;
        }}"
    )
}

/// Runs a kernel with two buffers of so many bytes, and returns what is proved.
fn proof(
    body: &str,
    run: Run,
    bytes: u64,
    (n, m): (u32, u32),
) -> (Vec<Result<Argument, String>>, bool) {
    let mut machine = Machine::new(&kernel(body));
    if let Some(refused) = &machine.summary.refused {
        panic!("refused: {refused}");
    }
    let (to, from) = (machine.buffer(bytes), machine.buffer(bytes));
    let run = run.long(to).long(from).word(n).word(m);
    let checked = machine
        .check(&run, false)
        .unwrap_or_else(|error| panic!("{error}"));
    let (proof, _) = checked.expect("the launch runs");
    let results = proof.accesses.into_iter();
    let results = results
        .map(|result| result.map_err(|reason| reason.text))
        .collect();
    (results, proof.whole)
}

fn all_proved(body: &str, run: Run, bytes: u64, numbers: (u32, u32), arguments: &[Argument]) {
    let (results, whole) = proof(body, run, bytes, numbers);
    let expected: Vec<Result<Argument, String>> =
        arguments.iter().map(|&argument| Ok(argument)).collect();
    assert_eq!(results, expected);
    assert!(whole);
}

fn unproved(body: &str, run: Run, bytes: u64, numbers: (u32, u32)) {
    let (results, whole) = proof(body, run, bytes, numbers);
    assert!(results.iter().any(Result::is_err), "{results:?}");
    assert!(!whole);
}

#[test]
fn one_element_per_thread() {
    let body = "setp.ge.s32 %p1, %i, %n; @%p1 bra end;
        mul.wide.s32 %d1, %i, 4; add.s64 %d2, %from, %d1; add.s64 %d3, %to, %d1;
        ld.global.u32 %r1, [%d2]; st.global.u32 [%d3], %r1;
        end:";
    all_proved(body, Run::new(5, 64), 1000, (250, 0), &[ReadOnly, Private]);
    // One more than the buffer holds.
    unproved(body, Run::new(5, 64), 1000, (251, 0));
}

#[test]
fn two_threads_per_element() {
    let body = "shr.u32 %r1, %i, 1; mul.wide.u32 %d1, %r1, 4; add.s64 %d2, %to, %d1;
        st.global.u32 [%d2], %t;";
    unproved(body, Run::new(2, 64), 4096, (0, 0));
}

#[test]
fn rows_and_columns() {
    let body = "mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ntid.y; mov.u32 %r3, %tid.y;
        mad.lo.s32 %r4, %r1, %r2, %r3;
        setp.ge.s32 %p1, %i, %n; setp.ge.s32 %p2, %r4, %m; or.pred %p3, %p1, %p2; @%p3 bra end;
        mad.lo.s32 %r5, %r4, %n, %i; mul.wide.s32 %d1, %r5, 4; add.s64 %d2, %to, %d1;
        st.global.u32 [%d2], %r5;
        end:";
    let run = Run {
        grid: [3, 3, 1],
        block: [8, 4, 1],
        ..Run::default()
    };
    all_proved(body, run.clone(), 4 * 20 * 10, (20, 10), &[Private]);
    // Without the bound on columns, rows overlap.
    let body = body.replace("or.pred %p3, %p1, %p2", "mov.pred %p3, %p2");
    unproved(&body, run, 4 * 30 * 10, (20, 10));
}

#[test]
fn a_loop_over_a_grid() {
    let body = "mov.u32 %r1, %nctaid.x; mul.lo.s32 %r2, %r1, %s; mov.u32 %r3, %i;
        setp.ge.s32 %p1, %r3, %n; @%p1 bra end;
        more: mul.wide.s32 %d1, %r3, 4; add.s64 %d2, %to, %d1; st.global.u32 [%d2], %r3;
        add.s32 %r3, %r3, %r2; setp.lt.s32 %p2, %r3, %n; @%p2 bra more;
        end:";
    all_proved(body, Run::new(2, 32), 4000, (1000, 0), &[Private]);
    let wrong = body.replace("mul.lo.s32 %r2, %r1, %s", "mov.u32 %r2, 7");
    unproved(&wrong, Run::new(2, 32), 4000, (1000, 0));
}

#[test]
fn an_index_that_is_added_to_other_memory() {
    let body = "ld.global.s32 %r1, [%from];
        mul.wide.s32 %d1, %r1, 4; mul.wide.s32 %d2, %m, 4;
        add.s64 %d3, %from, %d2; add.s64 %d4, %d3, %d1; ld.global.u32 %r2, [%d4];
        mul.wide.s32 %d5, %i, 4; add.s64 %d6, %to, %d5; st.global.u32 [%d6], %r2;";
    let arguments = [ReadOnly, ReadOnly, Private];
    all_proved(body, Run::new(2, 32), 1024, (0, 0), &arguments);
    // The buffers have the same distance in each machine.
    let mut machine = Machine::new(&kernel(body));
    let (to, from) = (machine.buffer(1024), machine.buffer(1024));
    let apart = (to.wrapping_sub(from) as i64 / 4) as u32;
    unproved(body, Run::new(2, 32), 1024, (0, apart));
}

#[test]
fn an_index_that_a_loop_loads() {
    let body = "cvt.s64.s32 %d1, %m; mov.u32 %r1, 0;
        more: shl.b64 %d2, %d1, 2; add.s64 %d3, %from, %d2; ld.global.u32 %r2, [%d3];
        cvt.s64.s32 %d1, %r2; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %n; @%p1 bra more;
        shl.b64 %d2, %d1, 2; add.s64 %d3, %from, %d2; ld.global.u32 %r2, [%d3];
        mul.wide.s32 %d1, %i, 4; add.s64 %d3, %to, %d1; st.global.u32 [%d3], %r2;";
    let arguments = [ReadOnly, ReadOnly, Private];
    all_proved(body, Run::new(2, 32), 1000, (3, 0), &arguments);
    // The first index is known, and leaves the buffer.
    unproved(body, Run::new(2, 32), 1000, (3, 250));
    // What is loaded may be where another thread stores.
    let wrong = body.replace("add.s64 %d3, %to, %d1;", "add.s64 %d3, %from, %d1;");
    unproved(&wrong, Run::new(2, 32), 1000, (3, 0));
    // The index may be a pointer.
    let wrong = body.replace(
        "ld.global.u32 %r2, [%d3];
        cvt.s64.s32 %d1, %r2;",
        "ld.global.u64 %d1, [%d3];",
    );
    assert_ne!(wrong, body);
    unproved(&wrong, Run::new(2, 32), 1000, (3, 0));
    // A path on which the index is a number that leaves the buffer.
    let wrong = body.replace(
        "cvt.s64.s32 %d1, %r2;",
        "cvt.s64.s32 %d1, %r2;
        setp.gt.s32 %p2, %r2, 5; @%p2 mov.u64 %d1, 250;",
    );
    unproved(&wrong, Run::new(2, 32), 1000, (3, 0));
}

#[test]
fn a_row_per_thread() {
    let body = "mul.lo.s32 %r1, %i, %n; mov.u32 %r2, 0;
        more: add.s32 %r3, %r1, %r2; mul.wide.s32 %d1, %r3, 4; add.s64 %d2, %to, %d1;
        st.global.u32 [%d2], %r3; add.s32 %r2, %r2, 1; setp.ne.s32 %p1, %r2, %n; @%p1 bra more;";
    all_proved(body, Run::new(2, 32), 4 * 64 * 10, (10, 0), &[Private]);
    // One step too far: rows overlap.
    let wrong = body.replace("setp.ne.s32 %p1, %r2, %n", "setp.le.s32 %p1, %r2, %n");
    unproved(&wrong, Run::new(2, 32), 4 * 64 * 10 + 4, (10, 0));
}

#[test]
fn a_pointer_that_walks_down() {
    let body = "add.s32 %r1, %i, 1; mul.lo.s32 %r2, %r1, %n; mul.wide.s32 %d1, %r2, 4;
        add.s64 %d2, %to, %d1; mov.u32 %r3, %n;
        more: st.global.u32 [%d2+-4], %r3; add.s64 %d2, %d2, -4; add.s32 %r3, %r3, -1;
        setp.gt.s32 %p1, %r3, 0; @%p1 bra more;";
    all_proved(body, Run::new(2, 32), 4 * 64 * 10, (10, 0), &[Private]);
}

#[test]
fn a_tile_between_barriers() {
    let body = "mov.u32 %r1, tile; shl.b32 %r2, %t, 2; add.s32 %r3, %r1, %r2;
        st.shared.u32 [%r3], %t; bar.sync 0;
        sub.s32 %r4, 63, %t; shl.b32 %r5, %r4, 2; add.s32 %r6, %r1, %r5;
        ld.shared.u32 %r7, [%r6]; mul.wide.s32 %d1, %i, 4; add.s64 %d2, %to, %d1;
        st.global.u32 [%d2], %r7;";
    all_proved(
        body,
        Run::new(2, 64),
        512,
        (0, 0),
        &[Barriers, Barriers, Private],
    );
    let wrong = body.replace("bar.sync 0;", "");
    unproved(&wrong, Run::new(2, 64), 512, (0, 0));
    let wrong = body.replace(
        "bar.sync 0;",
        "setp.lt.s32 %p1, %t, 32; @%p1 bra on; bar.sync 0; on:",
    );
    // Half of the threads do not come to the barrier: such a launch may end in an error.
    let machine = Machine::new(&kernel(&wrong));
    let run = Run::new(2, 64).long(0).long(0).word(0).word(0);
    assert!(!machine.prove(&run).whole);
}

#[test]
fn a_tile_in_a_loop() {
    let body = "mov.u32 %r1, tile; shl.b32 %r2, %t, 2; add.s32 %r3, %r1, %r2; mov.u32 %r8, 0;
        sub.s32 %r4, 63, %t; shl.b32 %r5, %r4, 2; add.s32 %r6, %r1, %r5;
        more: st.shared.u32 [%r3], %t; bar.sync 0; ld.shared.u32 %r7, [%r6]; bar.sync 0;
        add.s32 %r8, %r8, 1; setp.lt.s32 %p1, %r8, %n; @%p1 bra more;";
    all_proved(body, Run::new(1, 64), 512, (5, 0), &[Barriers, Barriers]);
    // Without the second barrier the next store meets the load.
    let wrong = body.replace("[%r6]; bar.sync 0;", "[%r6];");
    unproved(&wrong, Run::new(1, 64), 512, (5, 0));
}

#[test]
fn halves_of_a_reduction() {
    let body = "mov.u32 %r1, tile; shl.b32 %r2, %t, 2; add.s32 %r3, %r1, %r2;
        st.shared.u32 [%r3], %t; shr.u32 %r4, %s, 1;
        more: bar.sync 0; setp.ge.u32 %p1, %t, %r4; @%p1 bra skip;
        shl.b32 %r5, %r4, 2; add.s32 %r6, %r3, %r5; ld.shared.u32 %r7, [%r6];
        ld.shared.u32 %r8, [%r3]; add.s32 %r8, %r8, %r7; st.shared.u32 [%r3], %r8;
        skip: shr.u32 %r4, %r4, 1; setp.ne.u32 %p2, %r4, 0; @%p2 bra more;";
    let (results, whole) = proof(body, Run::new(1, 64), 512, (0, 0));
    assert!(whole, "{results:?}");
}

/// Arithmetic that wraps around makes two threads meet: nothing of it is proved, and forms stay true.
#[test]
fn arithmetic_that_wraps() {
    let store = "mul.wide.u32 %d1, %r9, 4; add.s64 %d2, %to, %d1; st.global.u32 [%d2], %t;";
    let cases = [
        // A product that loses its upper bits: 2^31 times 2 is 0.
        "mul.lo.u32 %r8, %i, 0x80000000; shr.u32 %r9, %r8, 30;",
        "shl.b32 %r8, %i, 31; shr.u32 %r9, %r8, 26;",
        "mul.lo.s32 %r8, %i, 0x10000001; and.b32 %r9, %r8, 0xf0000000; shr.u32 %r9, %r9, 26;",
        // Signed and unsigned readings of a difference.
        "sub.s32 %r8, %i, 5; min.u32 %r9, %r8, 7;",
        "sub.s32 %r8, %i, 5; max.s32 %r9, %r8, 0;",
        "cvt.u16.u32 %h1, %i; mul.lo.s16 %h2, %h1, 0x4000; cvt.u32.u16 %r9, %h2; shr.u32 %r9, %r9, 8;",
        "mul.hi.u32 %r9, %i, 0x40000000;",
        "sub.s32 %r8, 3, %i; abs.s32 %r9, %r8;",
        "rem.u32 %r9, %i, 7;",
        // Bits of the inserted field, and of what it is inserted into, are dropped.
        "bfi.b32 %r9, %i, 0, 2, 3;",
        "shr.u32 %r1, %i, 4; bfi.b32 %r9, %r1, %i, 3, 8;",
        "sub.s32 %r8, %i, 100; div.s32 %r8, %r8, 64; abs.s32 %r9, %r8;",
        "neg.s32 %r8, %i; shr.s32 %r8, %r8, 3; neg.s32 %r9, %r8;",
        "xor.b32 %r8, %i, 1; and.b32 %r9, %r8, -2;",
        "setp.lt.s32 %p1, %i, 9; selp.b32 %r9, 9, %i, %p1;",
        "mov.u32 %r9, %i; setp.gt.s32 %p1, %i, 9; @%p1 mov.u32 %r9, 3;",
    ];
    for case in cases {
        unproved(&format!("{case} {store}"), Run::new(4, 32), 4096, (0, 0));
    }
}

#[test]
fn arithmetic_that_is_exact() {
    let store = "mul.wide.u32 %d1, %r9, 4; add.s64 %d2, %to, %d1; st.global.u32 [%d2], %t;";
    let cases = [
        "and.b32 %r1, %i, 31; shr.u32 %r2, %i, 5; mad.lo.s32 %r9, %r1, 4, %r2;",
        "rem.u32 %r1, %i, 7; div.u32 %r2, %i, 7; mad.lo.s32 %r9, %r1, 20, %r2;",
        "xor.b32 %r8, %i, -1; add.s32 %r9, %r8, 128;",
        "neg.s32 %r8, %i; add.s32 %r9, %r8, 127;",
        "shl.b32 %r8, %i, 1; or.b32 %r9, %r8, 1;",
        "sub.s32 %r8, %i, 5; setp.lt.s32 %p1, %r8, 0; @%p1 bra end; mov.u32 %r9, %r8;",
        "sub.s32 %r8, %i, 5; setp.gt.u32 %p1, %r8, 99; @%p1 bra end; mov.u32 %r9, %r8;",
        "cvt.u16.u32 %h1, %i; mul.lo.s16 %h2, %h1, 2; cvt.u32.u16 %r9, %h2;",
        "bfe.u32 %r1, %i, 2, 3; bfe.u32 %r2, %i, 5, 4; and.b32 %r3, %i, 3; shl.b32 %r1, %r1, 2;
         shl.b32 %r2, %r2, 5; or.b32 %r9, %r1, %r3; or.b32 %r9, %r9, %r2;",
        "and.b32 %r1, %i, 15; shr.u32 %r2, %i, 4; bfi.b32 %r9, %r2, %r1, 4, 28;",
        "bfi.b32 %r9, %i, 3, 2, 8;",
        "setp.lt.s32 %p1, %i, 64; sub.s32 %r1, 63, %i; selp.b32 %r9, %r1, %i, %p1;",
        "setp.lt.s32 %p1, %i, 64; @%p1 bra low; add.s32 %r9, %i, 100; bra.uni on;
         low: sub.s32 %r9, 63, %i; on:",
        "mov.u32 %r9, %i; setp.gt.s32 %p1, %i, 9; @%p1 add.s32 %r9, %i, 77;",
        "rem.u32 %r1, %b, 2; mul.lo.s32 %r2, %r1, 64; shr.u32 %r3, %b, 1; mad.lo.s32 %r3, %r3, 128, %r2;
         add.s32 %r9, %r3, %t;",
    ];
    for case in cases {
        let (results, whole) = proof(
            &format!("{case} {store} end:"),
            Run::new(4, 32),
            4096,
            (0, 0),
        );
        assert!(whole, "{case}: {results:?}");
    }
}

#[test]
fn loops_that_end_in_odd_ways() {
    let store = "mad.lo.s32 %r8, %i, 16, %r3; mul.wide.u32 %d1, %r8, 4; add.s64 %d2, %to, %d1;
        st.global.u32 [%d2], %t;";
    let exact = [
        // Down to zero, by two, unsigned, with the test in front.
        format!("mov.u32 %r3, 15; more: {store} add.s32 %r3, %r3, -1; setp.ne.s32 %p1, %r3, -1; @%p1 bra more;"),
        format!("mov.u32 %r3, 0; more: setp.ge.u32 %p1, %r3, 15; @%p1 bra end; {store} add.s32 %r3, %r3, 2; bra.uni more;"),
        format!("mov.u32 %r3, 0; more: setp.gt.s32 %p1, %r3, %n; @%p1 bra end; {store} add.s32 %r3, %r3, 3; bra.uni more;"),
        // Broken off in the middle by data.
        format!("mov.u32 %r3, 0; more: {store} ld.global.u32 %r5, [%from]; setp.eq.u32 %p2, %r5, 7; @%p2 bra end;
            add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, 16; @%p1 bra more;"),
        // An inner loop that is as long as the outer one's counter.
        format!("mov.u32 %r4, 0; outer: mov.u32 %r3, 0; more: setp.ge.s32 %p1, %r3, %r4; @%p1 bra next; {store}
            add.s32 %r3, %r3, 1; bra.uni more; next: add.s32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, 16; @%p2 bra outer;"),
    ];
    for case in exact {
        let (results, whole) = proof(
            &format!("{case} end:"),
            Run::new(2, 16),
            4 * 16 * 32,
            (14, 0),
        );
        assert!(whole, "{case}: {results:?}");
    }
    // The test for "not equal" is stepped over.
    let open = format!("mov.u32 %r3, 0; mov.u32 %r6, 40; more: {store} add.s32 %r3, %r3, 2;
        add.s32 %r6, %r6, -1; setp.eq.s32 %p2, %r6, 0; @%p2 bra end; setp.ne.s32 %p1, %r3, 15; @%p1 bra more;");
    unproved(
        &format!("{open} end:"),
        Run::new(2, 16),
        4 * 16 * 34,
        (14, 0),
    );
}

#[test]
fn nothing_orders_the_read_only_path() {
    // Each thread's own word, first behind a barrier, then before it, then without one; and words nobody writes.
    let own = "mul.wide.s32 %at, %i, 4; add.s64 %d1, %to, %at;";
    for body in [
        format!("{own} st.global.u32 [%d1], %i; bar.sync 0; ld.global.nc.u32 %r1, [%d1];"),
        format!("{own} ld.global.nc.u32 %r1, [%d1]; bar.sync 0; st.global.u32 [%d1], %i;"),
        format!("{own} st.global.u32 [%d1], %i; ldu.global.u32 %r1, [%d1];"),
    ] {
        let (results, whole) = proof(&body, Run::new(2, 32), 256, (0, 0));
        assert!(results.iter().all(Result::is_err), "{body}: {results:?}");
        assert!(!whole);
    }
    let other = format!(
        "{own} add.s64 %d2, %from, %at; ld.global.nc.u32 %r1, [%d2]; st.global.u32 [%d1], %r1;"
    );
    all_proved(&other, Run::new(2, 32), 256, (0, 0), &[ReadOnly, Private]);
}

#[test]
fn an_index_from_memory() {
    let body = "mul.wide.s32 %d1, %i, 4; add.s64 %d2, %from, %d1; ld.global.s32 %r1, [%d2];
        mul.wide.s32 %d3, %r1, 4; add.s64 %d4, %from, %d3; ld.global.u32 %r2, [%d4];
        add.s64 %d5, %to, %d1; st.global.u32 [%d5], %r2;";
    all_proved(
        body,
        Run::new(2, 64),
        512,
        (0, 0),
        &[ReadOnly, ReadOnly, Private],
    );
    // A scatter.
    let body = body.replace("add.s64 %d5, %to, %d1", "add.s64 %d5, %to, %d3");
    unproved(&body, Run::new(2, 64), 512, (0, 0));
}

#[test]
fn a_column_from_memory_of_ones_own_row() {
    // A row of n + 1 words per thread: cleared, then one of its words, by a loaded column, is added to.
    let body = "add.s32 %r1, %n, 1; cvt.s64.s32 %d1, %i; cvt.s64.s32 %d2, %r1; mul.lo.s64 %d3, %d1, %d2;
        shl.b64 %d4, %d3, 2; add.s64 %d5, %to, %d4; mov.u32 %r2, 0;
        more: mul.wide.s32 %d6, %r2, 4; add.s64 %d7, %d5, %d6; st.global.u32 [%d7], 0;
        add.s32 %r2, %r2, 1; setp.le.s32 %p1, %r2, %n; @%p1 bra more;
        mul.wide.s32 %d8, %i, 4; add.s64 %d9, %from, %d8; LOAD BOUND
        cvt.s64.s32 %d10, %r3; add.s64 %d11, %d3, %d10; shl.b64 %d12, %d11, 2; add.s64 %d13, %to, %d12;
        ld.global.u32 %r4, [%d13]; add.s32 %r5, %r4, 1; st.global.u32 [%d13], %r5;
        end:";
    let with = |load: &str, bound: &str| body.replace("LOAD", load).replace("BOUND", bound);
    let word = "ld.global.u32 %r3, [%d9];";
    let run = || Run::new(2, 32);
    let proved = [Private, ReadOnly, Private, Private];
    let bytes = 4 * 64 * 256;
    // A bound of the columns, in each way in which programs have one, proves it; one more column does not.
    for (load, bound, columns) in [
        (word, "setp.gt.u32 %p2, %r3, %n; @%p2 bra end;", 0..0),
        (
            word,
            "setp.lt.s32 %p2, %r3, 0; setp.gt.s32 %p3, %r3, %n; or.pred %p2, %p2, %p3; @%p2 bra end;",
            0..0,
        ),
        (word, "setp.gt.u32 %p2, %r3, 7; @%p2 bra end;", 6..7),
        (word, "and.b32 %r3, %r3, 7;", 6..7),
        (word, "rem.u32 %r3, %r3, 8;", 6..7),
        (word, "min.u32 %r3, %r3, 7;", 6..7),
        ("ld.global.u8 %r3, [%d9];", "", 254..255),
    ] {
        let body = with(load, bound);
        let last = columns.end.max(7);
        all_proved(&body, run(), bytes, (last, 0), &proved);
        for last in columns {
            unproved(&body, run(), bytes, (last, 0));
        }
    }
    // Without one, the word may be of another thread's row, and nothing of the rows is proved.
    for bound in ["", "setp.gt.s32 %p2, %r3, %n; @%p2 bra end;"] {
        let (results, whole) = proof(&with(word, bound), run(), bytes, (7, 0));
        let rows = results.iter().map(Result::is_err);
        assert!(rows.eq([true, false, true, true]), "{bound}: {results:?}");
        assert!(!whole);
    }
}

#[test]
fn a_column_from_memory_whose_bits_are_inserted() {
    // Rows of 16 words; the row stands above the column in one word.
    let body = "mul.wide.s32 %d1, %i, 4; add.s64 %d2, %from, %d1; ld.global.u32 %r1, [%d2];
        INSERT mul.wide.u32 %d3, %r3, 4; add.s64 %d4, %to, %d3; st.global.u32 [%d4], %t;";
    let with = |insert: &str| body.replace("INSERT", insert);
    for insert in [
        "and.b32 %r2, %r1, 15; bfi.b32 %r3, %i, %r2, 4, 28;",
        "bfi.b32 %r3, %i, %r1, 4, 28;",
    ] {
        let body = with(insert);
        all_proved(&body, Run::new(2, 32), 4096, (0, 0), &[ReadOnly, Private]);
    }
    // Above the field stands what was loaded.
    let open = with("and.b32 %r1, %r1, 1023; bfi.b32 %r3, %i, %r1, 4, 3;");
    unproved(&open, Run::new(2, 32), 4096, (0, 0));
}

#[test]
fn a_thread_that_data_chooses() {
    // The thread that finds a key writes for its block: memory may have the key twice.
    let body = "mul.wide.s32 %d1, %t, 4; add.s64 %d2, %from, %d1; ld.global.u32 %r1, [%d2];
        setp.CHOSEN; @%p1 bra end;
        mul.wide.s32 %d3, %b, 4; add.s64 %d4, %to, %d3; st.global.u32 [%d4], %t;
        end:";
    let by = |chosen| body.replace("CHOSEN", chosen);
    unproved(&by("ne.s32 %p1, %r1, %n"), Run::new(4, 32), 128, (7, 0));
    // The place of a key that the launch gives is one thread's.
    let place = by("ne.s32 %p1, %t, %n");
    all_proved(&place, Run::new(4, 32), 128, (7, 0), &[ReadOnly, Private]);
}

#[test]
fn a_pointer_from_memory_can_be_any() {
    let body = "ld.global.u64 %d1, [%from]; mul.wide.s32 %d2, %i, 4; add.s64 %d3, %to, %d2;
        st.global.u32 [%d3], %t; ld.global.u32 %r1, [%d1];";
    let mut machine = Machine::new(&kernel(body));
    let (to, from) = (machine.buffer(512), machine.buffer(512));
    machine
        .device
        .memory_mut()
        .write(from, &to.to_le_bytes())
        .expect("memory");
    let run = Run::new(2, 64).long(to).long(from).word(0).word(0);
    let (proof, _) = machine.check(&run, false).expect("sound").expect("it runs");
    assert!(
        proof.accesses[1].is_err() && proof.accesses[2].is_err(),
        "{proof:?}"
    );
}

#[test]
fn aliases_are_seen() {
    let body = "mul.wide.s32 %d1, %i, 4; add.s64 %d2, %to, %d1; add.s64 %d3, %from, %d1;
        ld.global.u32 %r1, [%d3]; st.global.u32 [%d2], %r1;";
    let mut machine = Machine::new(&kernel(body));
    let to = machine.buffer(1024);
    let apart = Run::new(2, 32).long(to).long(to + 256).word(0).word(0);
    let overlapping = Run::new(2, 32).long(to).long(to + 4).word(0).word(0);
    assert!(
        machine
            .check(&apart, false)
            .expect("sound")
            .expect("it runs")
            .0
            .whole
    );
    assert!(
        !machine
            .check(&overlapping, false)
            .expect("sound")
            .expect("it runs")
            .0
            .whole
    );
}

#[test]
fn generic_addresses_of_both_memories() {
    let body = "mov.u64 %d1, tile; cvta.shared.u64 %d2, %d1; mul.wide.s32 %d3, %t, 4; add.s64 %d4, %d2, %d3;
        st.u32 [%d4], %t; bar.sync 0; ld.u32 %r1, [%d2]; mul.wide.s32 %d5, %i, 4; add.s64 %d6, %to, %d5;
        st.u32 [%d6], %r1; cvta.to.shared.u64 %d7, %d4; ld.shared.u32 %r2, [%d7];";
    let (results, whole) = proof(body, Run::new(2, 64), 512, (0, 0));
    assert!(whole, "{results:?}");
}

#[test]
fn reasons_name_lines() {
    let body =
        "setp.eq.s32 %p1, %n, 0; @%p1 bra end;\n mad.lo.s32 %r1, %i, %i, 1; and.b32 %r1, %r1, 63;
        mul.wide.u32 %d1, %r1, 4; add.s64 %d2, %to, %d1;\n st.global.u32 [%d2], %t;\n end:";
    let (results, _) = proof(body, Run::new(1, 32), 512, (1, 0));
    let Err(text) = &results[0] else {
        panic!("{results:?}")
    };
    assert!(text.contains("PTX line"), "{text}");
}

#[test]
fn a_summary_can_be_read() {
    let body = "mov.u32 %r3, 0;
        more: mad.lo.s32 %r8, %r3, %s, %t; mul.wide.u32 %d1, %r8, 4; add.s64 %d2, %to, %d1;
        setp.lt.s32 %p2, %r8, %n; @%p2 st.global.u32 [%d2], %t;
        add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, 5; @%p1 bra more;";
    let machine = Machine::new(&kernel(body));
    let lines = machine.summary.describe();
    assert_eq!(
        lines[0],
        "loop k0 at PTX line 13, goes on while (0 + 1*k0) + 1 < 5"
    );
    assert_eq!(
        lines[1],
        "PTX line 14 (PTX line 14): store of 4 bytes, global, at (parameter+0 + ((((0 + 1*k0) * ntid.x) + tid.x) * 4)), \
         where ((((0 + 1*k0) * ntid.x) + tid.x) < parameter+16), in loop k0"
    );
}

/// Launches of a kernel with that block, with numbers for `n` and `m` and numbers of blocks that fulfil assumptions.
/// Returns whether all are proved; then none of those that run has a race.
fn family(body: &str, texts: &[&str], block: u32) -> bool {
    let mut machine = Machine::new(&kernel(body));
    let [to, from] = [(); 2].map(|()| machine.buffer(1 << 20) + (1 << 19));
    let assumed = machine.assumed(texts);
    let mut proved = None;
    let mut ran = 0;
    for grid in [1, 2, 5] {
        for n in [-7i32, 0, 1, 3, 4, 12, 36, 40, 64, 100] {
            for m in [-1i32, 0, 1, 4, 7, 36, 40, 64] {
                let value = |of| match of {
                    Quantity::Grid(0) => grid.into(),
                    Quantity::Block(0) => block.into(),
                    Quantity::Parameter(16, 4) => n.into(),
                    Quantity::Parameter(20, 4) => m.into(),
                    _ => 1,
                };
                if assumed.iter().any(|of| of.holds(&value) != Some(true)) {
                    continue;
                }
                let run = Run::new(grid, block).long(to).long(from);
                let run = run.word(n as u32).word(m as u32);
                let is_proved = machine.family(&run, &assumed).is_ok();
                // It is the same family, whichever launch it is asked about.
                assert_eq!(*proved.get_or_insert(is_proved), is_proved);
                if is_proved {
                    match machine.is_free(&run) {
                        Ok(all) => ran += u32::from(all),
                        Err(error) => panic!("{error}: {run:?}"),
                    }
                }
            }
        }
    }
    let proved = proved.expect("a launch that fulfils the assumptions");
    assert!(!proved || ran > 2, "{ran} launches ran");
    proved
}

#[test]
fn all_launches_of_a_family_are_proved_at_once() {
    let own = "setp.ge.s32 %p0, %i, %n; @%p0 ret;
        mul.wide.s32 %d0, %i, 4; add.s64 %d1, %to, %d0; st.global.u32 [%d1], %i;";
    assert!(family(own, &[], 32));
    // All blocks write the same.
    let same = "mul.wide.s32 %d0, %t, 4; add.s64 %d1, %to, %d0; st.global.u32 [%d1], %b;";
    assert!(!family(same, &[], 32));
    assert!(!family(same, &["gridDim.x <= 2"], 32));
    assert!(family(same, &["gridDim.x == 1"], 32));
    assert!(family(same, &["n == 1", "gridDim.x == n"], 32));
    assert!(family(same, &["gridDim.x < 2"], 32));
}

#[test]
fn relations_of_parameters_are_used() {
    // One part is read, another is written.
    let parts = "setp.ge.s32 %p0, %i, %m; @%p0 ret;
        mul.wide.s32 %d0, %i, 4; add.s64 %d1, %to, %d0; ld.global.u32 %r0, [%d1];
        mul.wide.s32 %d2, %n, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r0;";
    assert!(!family(parts, &[], 32));
    assert!(family(parts, &["n >= m"], 32));
    assert!(family(parts, &["n == m"], 32));
    assert!(family(parts, &["n + m <= 0"], 32));
    assert!(!family(parts, &["n + 1 >= m"], 32));
    // Backwards from two ends.
    let ends = "setp.ge.s32 %p0, %i, %n; @%p0 ret;
        sub.s32 %r0, %n, %i; mul.wide.s32 %d0, %r0, 4; add.s64 %d1, %to, %d0; ld.global.u32 %r1, [%d1];
        sub.s32 %r2, %m, %i; mul.wide.s32 %d2, %r2, 4; add.s64 %d3, %to, %d2; st.global.u32 [%d3], %r1;";
    let small = "-1000 <= m <= 1000";
    assert!(!family(ends, &[small], 32));
    assert!(family(ends, &[small, "n == m"], 32));
    assert!(!family(ends, &[small, "n == m + 1"], 32));
    assert!(!family(ends, &[small, "n != m"], 32));
    // Words apart by a number of bytes.
    let bytes =
        "shl.b32 %r0, %i, 3; cvt.s64.s32 %d0, %r0; add.s64 %d1, %to, %d0; ld.global.u32 %r1, [%d1];
        cvt.s64.s32 %d2, %n; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r1;";
    let few = "gridDim.x < 1000";
    assert!(!family(bytes, &[few], 32));
    assert!(!family(bytes, &[few, "n % 2 == 0"], 32));
    assert!(family(bytes, &[few, "n % 8 == 4"], 32));
    let odd = bytes.replace("st.global.u32 [%d3]", "st.global.u32 [%d3 + 4]");
    assert!(family(&odd, &[few, "n % 8 == 0"], 32));
    assert!(!family(&odd, &[few, "n % 4 == 0"], 32));
    assert!(family(bytes, &[few, "(n - m) % 8 == 0", "m == 4"], 32));
}

#[test]
fn nothing_is_known_of_pointers_but_that_they_are_apart() {
    // The alignment of a pointer decides what is written.
    let aligned = "cvt.u32.u64 %r0, %to; and.b32 %r0, %r0, 15; setp.eq.s32 %p0, %r0, 0; @%p0 ret;
        st.global.u32 [%to], %t;";
    assert!(!family(aligned, &[], 32));
    // The order of two pointers does.
    let order = "setp.lt.u64 %p0, %to, %from; @%p0 ret; st.global.u32 [%to], %t;";
    assert!(!family(order, &[], 32));
    let order = "setp.gt.u64 %p0, %to, %from; @%p0 ret; st.global.u32 [%to], %t;";
    assert!(!family(order, &[], 32));
    let distance =
        "sub.s64 %d0, %from, %to; setp.gt.s64 %p0, %d0, 0; @%p0 ret; st.global.u32 [%to], %t;";
    assert!(!family(distance, &[], 32));
    let distance =
        "sub.s64 %d0, %to, %from; setp.gt.s64 %p0, %d0, 0; @%p0 ret; st.global.u32 [%to], %t;";
    assert!(!family(distance, &[], 32));
    // A null pointer is none of those that the launch has.
    let null = "setp.ne.s64 %p0, %from, 0; @%p0 ret; st.global.u32 [%to], %t;";
    assert!(family(null, &[], 32));
}

#[test]
fn a_family_has_conditions() {
    let mut machine = Machine::new(&kernel("st.shared.u32 [tile], 1;"));
    let to = machine.buffer(64);
    let run = Run::new(1, 1).long(to).long(to).word(1).word(1);
    let assumed = machine.assumed(&["n == m", "m > 0"]);
    assert_eq!(
        machine.family(&run, &assumed),
        Ok([
            "blockDim == (1,1,1)",
            "gridDim.y == 1",
            "gridDim.z == 1",
            "n == m",
            "m > 0",
            "gridDim.x * blockDim.x < 2147483648",
        ]
        .map(str::to_owned)
        .to_vec())
    );
    let body = "ld.global.u32 %r0, [%from]; st.global.u32 [%to], %r0;";
    let mut machine = Machine::new(&kernel(body));
    let to = machine.buffer(64);
    let one = machine.assumed(&["gridDim.x == 1"]);
    let run = Run::new(1, 1).long(to).long(to).word(1).word(1);
    let conditions = machine.family(&run, &one).expect("a proof");
    assert_eq!(conditions[3..], ["gridDim.x == 1", "to == from"]);
    let run = Run::new(1, 1).long(to).long(to + 4).word(1).word(1);
    assert_eq!(
        machine.family(&run, &one),
        Err("two pointers lead to different places of one allocation".to_owned())
    );
    let other = machine.buffer(64);
    let run = Run::new(1, 1).long(to).long(other).word(1).word(1);
    let conditions = machine.family(&run, &one).expect("a proof");
    assert_eq!(
        conditions[4],
        "pointers that are not null, into different allocations"
    );
}

/// Whether a launch is proved as a whole by linear arithmetic, and bit by bit.
fn by_bits(body: &str, run: &Run, numbers: (u32, u32)) -> (bool, bool) {
    let mut machine = Machine::new(&kernel(body));
    let (to, from) = (machine.buffer(4096), machine.buffer(4096));
    let run = run.clone().long(to).long(from);
    let run = run.word(numbers.0).word(numbers.1);
    let [linear, bits] = [false, true].map(|by_bits| {
        let checked = machine.check(&run, by_bits);
        let checked = checked.unwrap_or_else(|error| panic!("{error}"));
        checked.expect("the launch runs").0.whole
    });
    (linear, bits)
}

/// A tile of 8 rows of 8 words whose columns are exchanged by row, which threads write and read without a conflict of
/// banks. `write` and `read` compute a column in %r2 from the row in %r1 and the column in %r0.
fn tile(write: &str, read: &str, barrier: &str) -> String {
    format!(
        "and.b32 %r0, %t, 7; shr.u32 %r1, %t, 3; mov.u32 %r9, tile;
        ld.global.u32 %r8, [%from]; setp.eq.s32 %p0, %r8, 7; @%p0 bra WRITTEN;
        {write} mad.lo.s32 %r3, %r1, 8, %r2; shl.b32 %r3, %r3, 2; add.s32 %r3, %r9, %r3; st.shared.u32 [%r3], %t;
        WRITTEN: {barrier}
        {read} mad.lo.s32 %r3, %r1, 8, %r2; shl.b32 %r3, %r3, 2; add.s32 %r3, %r9, %r3; ld.shared.u32 %r4, [%r3];
        {read} mad.lo.s32 %r3, %r1, 8, %r2; shl.b32 %r3, %r3, 2; add.s32 %r3, %r9, %r3; st.shared.u32 [%r3], %r4;"
    )
}

#[test]
fn swizzles_are_decided_bit_by_bit() {
    let block = Run::new(2, 64);
    let swizzle = "xor.b32 %r2, %r0, %r1;";
    // Each thread reads what it has written, so no barrier is needed.
    let right = tile(swizzle, swizzle, "");
    assert_eq!(by_bits(&right, &block, (0, 0)), (false, true));
    // Other threads' words, behind a barrier.
    let other = "add.s32 %r5, %r1, 3; and.b32 %r5, %r5, 7; xor.b32 %r2, %r0, %r5;";
    assert_eq!(
        by_bits(&tile(swizzle, other, "bar.sync 0;"), &block, (0, 0)),
        (false, true)
    );
    assert_eq!(
        by_bits(&tile(swizzle, other, ""), &block, (0, 0)),
        (false, false)
    );
    // Two columns of a row are one.
    let wrong = "or.b32 %r2, %r0, %r1;";
    assert_eq!(
        by_bits(&tile(wrong, wrong, "bar.sync 0;"), &block, (0, 0)),
        (false, false)
    );
    // A permutation by a multiplication that wraps around.
    let odd = "mul.lo.s32 %r2, %r0, -1640531527; xor.b32 %r2, %r2, %r1; and.b32 %r2, %r2, 7;";
    assert_eq!(by_bits(&tile(odd, odd, ""), &block, (0, 0)), (false, true));
    let even = "mul.lo.s32 %r2, %r0, 6; xor.b32 %r2, %r2, %r1; and.b32 %r2, %r2, 7;";
    assert_eq!(
        by_bits(&tile(even, even, ""), &block, (0, 0)),
        (false, false)
    );
}

#[test]
fn exchanges_of_sorts_are_decided_bit_by_bit() {
    // A step of a bitonic sort: the lower of two partners exchanges their elements.
    let sort = "shl.b32 %r0, 1, %n; xor.b32 %r1, %i, %r0; setp.le.u32 %p0, %r1, %i; @%p0 ret;
        mul.wide.u32 %d0, %i, 4; add.s64 %d0, %to, %d0; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %to, %d1;
        ld.global.u32 %r2, [%d0]; ld.global.u32 %r3, [%d1]; st.global.u32 [%d0], %r3; st.global.u32 [%d1], %r2;";
    for step in [0, 1, 3, 5] {
        assert_eq!(
            by_bits(sort, &Run::new(4, 32), (step, 0)),
            (false, true),
            "{step}"
        );
    }
    let both = sort.replace("@%p0 ret;", "");
    assert_eq!(by_bits(&both, &Run::new(4, 32), (3, 0)), (false, false));
    // Partners by a sum are not partners of each other.
    let sum = sort.replace("xor.b32", "add.s32");
    assert_eq!(by_bits(&sum, &Run::new(4, 32), (3, 0)), (false, false));
    // A mask that is not of low bits, and the other threads by a condition that is a disjunction.
    let pairs = "and.b32 %r0, %i, 5; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 5; or.pred %p2, %p0, %p1;
        @!%p2 ret; and.b32 %r1, %i, -6; mul.wide.u32 %d0, %r1, 4; add.s64 %d0, %to, %d0;
        shl.b32 %r2, %r0, 9; cvt.u64.u32 %d1, %r2; add.s64 %d0, %d0, %d1; st.global.u32 [%d0], %i;";
    assert_eq!(by_bits(pairs, &Run::new(1, 128), (0, 0)), (false, true));
    let one = pairs.replace("shl.b32 %r2, %r0, 9", "mov.u32 %r2, 0");
    assert_eq!(by_bits(&one, &Run::new(1, 128), (0, 0)), (false, false));
}

#[test]
fn the_last_thread_of_the_last_block_is_decided_bit_by_bit() {
    let last = |place: u32| {
        format!(
            "xor.b32 %r0, %i, 341; setp.eq.s32 %p0, %i, 127; @%p0 mov.u32 %r0, {place};
            mul.wide.u32 %d0, %r0, 4; add.s64 %d0, %to, %d0; st.global.u32 [%d0], %t;"
        )
    };
    // The first thread's word, or one of its own.
    for run in [Run::new(4, 32), Run::new(1, 128)] {
        assert_eq!(by_bits(&last(341), &run, (0, 0)), (false, false));
        assert_eq!(by_bits(&last(600), &run, (0, 0)), (false, true));
    }
}

#[test]
fn iterations_are_decided_bit_by_bit() {
    // Each iteration has a swizzle of its own, behind a barrier.
    let rounds = |barrier: &str| {
        format!(
            "mov.u32 %r0, 0; mov.u32 %r9, tile;
            LOOP: {barrier} xor.b32 %r1, %t, %r0; shl.b32 %r1, %r1, 2; add.s32 %r1, %r9, %r1; ld.shared.u32 %r2, [%r1];
            add.s32 %r2, %r2, 1; st.shared.u32 [%r1], %r2;
            add.s32 %r0, %r0, 1; setp.lt.s32 %p0, %r0, 16; @%p0 bra LOOP;"
        )
    };
    assert_eq!(
        by_bits(&rounds("bar.sync 0;"), &Run::new(2, 64), (0, 0)),
        (false, true)
    );
    assert_eq!(
        by_bits(&rounds(""), &Run::new(2, 64), (0, 0)),
        (false, false)
    );
    // Values of branches that are not taken say nothing.
    let branches = "setp.lt.s32 %p0, %t, 32; @%p0 bra LOW; setp.gt.s32 %p1, %t, 40; mov.u32 %r0, 1; @%p1 bra HIGH;
        mov.u32 %r0, 2; HIGH: xor.b32 %r1, %t, %r0; bra JOIN; LOW: xor.b32 %r1, %t, 3; JOIN:
        shl.b32 %r2, %r1, 2; cvt.u64.u32 %d0, %r2; add.s64 %d0, %to, %d0; st.global.u32 [%d0], %t;";
    // 40 ^ 2 == 43 ^ 1
    assert_eq!(by_bits(branches, &Run::new(1, 64), (0, 0)), (false, false));
    let apart = branches.replace("mov.u32 %r0, 2;", "mov.u32 %r0, 1;");
    assert_eq!(by_bits(&apart, &Run::new(1, 64), (0, 0)), (false, true));
}
