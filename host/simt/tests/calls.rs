//! Calls: parameters, recursion, function pointers, what the device brings along.

use crate::common::{kernel, load};
use simt::{Launch, LaunchError, Sink};

fn run(functions: &str, body: &str, block: u32) -> Vec<u64> {
    let text = format!("{functions}\n{}", kernel(body));
    load(&text).run(1, block, block as usize).unwrap()
}

#[test]
fn recursion_to_different_depths() {
    let out = run(
        ".func (.param .b64 r) sum(.param .b32 n) {
            .reg .pred %p; .reg .b32 %a, %b; .reg .b64 %x, %y;
            ld.param.u32 %a, [n]; mov.u64 %x, 0;
            setp.eq.u32 %p, %a, 0; @%p bra done;
            sub.u32 %b, %a, 1;
            { .param .b32 p0; .param .b64 q0; st.param.b32 [p0], %b;
              call.uni (q0), sum, (p0); ld.param.b64 %x, [q0]; }
            cvt.u64.u32 %y, %a; add.u64 %x, %x, %y;
            done: st.param.b64 [r], %x; ret; }",
        "{ .param .b32 p; .param .b64 q; st.param.b32 [p], %t; call (q), sum, (p); ld.param.b64 %d0, [q]; }
         st.global.u64 [%mine], %d0; ret;",
        32,
    );
    assert_eq!(out, (0..32u64).map(|n| n * (n + 1) / 2).collect::<Vec<_>>());
}

#[test]
fn register_parameters_and_byte_arrays() {
    let out = run(
        ".func (.reg .b32 r) plus(.reg .b32 a, .reg .b32 b) { add.u32 r, a, b; ret; }
         .func (.param .align 4 .b8 r[12]) swap(.param .align 4 .b8 x[12]) {
            .reg .b32 %a<3>; ld.param.b32 %a0, [x]; ld.param.b32 %a1, [x+4]; ld.param.b32 %a2, [x+8];
            st.param.b32 [r+8], %a0; st.param.b8 [r], %a1; st.param.b8 [r+1], 0; st.param.b16 [r+2], 0;
            st.param.b32 [r+4], %a2; ret; }",
        "call (%r0), plus, (%t, 5);
         { .param .align 4 .b8 p[12]; .param .align 4 .b8 q[12];
           st.param.b32 [p], %r0; st.param.b32 [p+4], 2; st.param.b32 [p+8], 3;
           call (q), swap, (p); ld.param.b32 %r1, [q]; ld.param.b32 %r2, [q+4]; ld.param.b32 %r3, [q+8]; }
         mad.lo.u32 %r4, %r1, 10, %r2; mad.lo.u32 %r4, %r4, 100, %r3;
         cvt.u64.u32 %d0, %r4; st.global.u64 [%mine], %d0; ret;",
        4,
    );
    assert_eq!(out, [2305, 2306, 2307, 2308]);
}

#[test]
fn function_pointers_from_tables_and_registers() {
    let out = run(
        ".func (.param .b32 r) one(.param .b32 x) { st.param.b32 [r], 1; ret; }
         .func (.param .b32 r) same(.param .b32 x) { .reg .b32 %a; ld.param.b32 %a, [x]; st.param.b32 [r], %a; ret; }
         .global .align 8 .u64 table[2] = {one, same};",
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _);
         and.b32 %r0, %t, 1; mov.u64 %d0, table; mad.wide.u32 %d0, %r0, 8, %d0; ld.global.u64 %d1, [%d0];
         setp.eq.u32 %p0, %t, 3; @%p0 mov.u64 %d1, one;
         { .param .b32 p; .param .b32 q; st.param.b32 [p], %t; call (q), %d1, (p), proto; ld.param.b32 %r1, [q]; }
         cvt.u64.u32 %d2, %r1; st.global.u64 [%mine], %d2; ret;",
        6,
    );
    assert_eq!(out, [1, 1, 1, 1, 1, 5]);
}

#[test]
fn printf_writes_to_the_sink() {
    let text = format!(
        ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
         .global .align 1 .b8 format[12] = {{37, 100, 32, 37, 46, 49, 102, 32, 37, 115, 10, 0}};
         .global .align 1 .b8 word[3] = {{104, 105, 0}};
         {}",
        kernel(
            ".local .align 8 .b8 pack[24]; .reg .b64 %sp;
             mov.u64 %sp, pack; cvta.local.u64 %d0, %sp;
             cvt.rn.f64.u32 %e0, %t; add.f64 %e0, %e0, 0d3FE0000000000000;
             mov.u64 %d1, word; st.local.u32 [%sp], %t; st.local.f64 [%sp+8], %e0; st.local.u64 [%sp+16], %d1;
             mov.u64 %d2, format; cvta.global.u64 %d2, %d2;
             { .param .b64 p0; .param .b64 p1; .param .b32 q; st.param.b64 [p0], %d2; st.param.b64 [p1], %d0;
               call.uni (q), vprintf, (p0, p1); ld.param.b32 %r0, [q]; }
             cvt.u64.u32 %d3, %r0; st.global.u64 [%mine], %d3; ret;"
        )
    );
    let (sink, buffer) = Sink::buffer();
    let launch = |params| Launch {
        printf: sink,
        ..Launch::new([1; 3], [3, 1, 1], params)
    };
    let (out, _) = load(&text).run_with(3, launch).unwrap();
    assert_eq!(out, [3; 3]);
    assert_eq!(
        String::from_utf8_lossy(&buffer.lock().unwrap()),
        "0 0.5 hi\n1 1.5 hi\n2 2.5 hi\n"
    );
}

const HEAP: &str =
    ".extern .func (.param .b64 r) malloc (.param .b64 n); .extern .func free (.param .b64 p);";

#[test]
fn device_malloc_lasts_until_free() {
    let text = format!(
        "{HEAP}\n{}",
        kernel(
            "ld.global.u64 %d0, [%mine]; setp.ne.u64 %p0, %d0, 0; @%p0 bra second;
             { .param .b64 p; .param .b64 q; st.param.b64 [p], 16; call (q), malloc, (p); ld.param.b64 %d0, [q]; }
             st.u32 [%d0+12], %t; st.global.u64 [%mine], %d0; ret;
             second: ld.u32 %r0, [%d0+12];
             { .param .b64 p; st.param.b64 [p], %d0; call free, (p); }
             cvt.u64.u32 %d1, %r0; st.global.u64 [%mine], %d1; ret;"
        )
    );
    let mut rig = load(&text);
    let out = rig.device.memory_mut().alloc(64).unwrap();
    let before = rig.device.memory().used();
    let launch = Launch::new([1; 3], [8, 1, 1], out.to_le_bytes().to_vec());
    rig.device.launch(rig.module, "k", &launch).unwrap();
    assert!(rig.device.memory().used() > before);
    rig.device.launch(rig.module, "k", &launch).unwrap();
    assert_eq!(rig.device.memory().used(), before);
    let mut bytes = [0; 64];
    rig.device.memory().read(out, &mut bytes).unwrap();
    assert_eq!(bytes.map(usize::from)[56], 7);
}

#[test]
fn a_full_heap_gives_null_and_a_stray_free_faults() {
    let text = format!(
        "{HEAP}\n{}",
        kernel(
            "{ .param .b64 p; .param .b64 q; st.param.b64 [p], 1099511627776; call (q), malloc, (p);
               ld.param.b64 %d0, [q]; }
             setp.ne.u64 %p0, %d0, 0; @%p0 trap;
             { .param .b64 p; st.param.b64 [p], %out; call free, (p); } ret;"
        )
    );
    let error = load(&text).run(1, 1, 1).unwrap_err();
    assert!(
        matches!(error, LaunchError::IllegalAddress { .. }),
        "{error}"
    );
}

#[test]
fn what_is_defined_nowhere_fails_when_it_is_called() {
    let text = format!(
        ".extern .func __cudaCDP2GetErrorString ();\n{}",
        kernel("setp.ne.u32 %p0, %t, 1; @%p0 ret; call __cudaCDP2GetErrorString, (); ret;")
    );
    assert!(load(&text).run(1, 1, 1).is_ok());
    let error = load(&text).run(1, 2, 2).unwrap_err();
    assert!(
        error.to_string().contains("__cudaCDP2GetErrorString"),
        "{error}"
    );
}
