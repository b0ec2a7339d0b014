//! The ways matrices come into registers: `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`.

use crate::common::{
    self,
    elements::{bits, keep, list, run_over, value},
};

/// 8 by 8 halves `100 * matrix + 8 * row + column` in shared memory, each row at an address of its own,
/// loaded by `ldmatrix`, stored by `stmatrix` to where they came from, one row down.
#[test]
fn rows_come_and_go() {
    for (count, transposed) in [(1, false), (2, true), (4, false), (4, true)] {
        let trans = if transposed { ".trans" } else { "" };
        let registers = list("r", 0, count);
        let stores: String = (0..count)
            .map(|n| format!("st.global.b32 [%at+{}], %r{n};\n", 8 * n))
            .collect();
        let text = format!(
            ".visible .entry k(.param .u64 out) {{
                .reg .b32 %r<8>, %t, %s, %x; .reg .b64 %out, %at; .reg .b16 %h; .reg .pred %p;
                .shared .align 16 .b8 rows[2048]; .shared .align 16 .b8 again[1024];
                ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
                // Row t at 48 * (t ^ 5): elements 8 * t to 8 * t + 7.
                xor.b32 %x, %t, 5; mov.u32 %s, rows; mad.lo.u32 %s, %x, 48, %s;
                shl.b32 %x, %t, 3;
                cvt.u16.u32 %h, %x; st.shared.b16 [%s], %h; add.u16 %h, %h, 1; st.shared.b16 [%s+2], %h;
                add.u16 %h, %h, 1; st.shared.b16 [%s+4], %h; add.u16 %h, %h, 1; st.shared.b16 [%s+6], %h;
                add.u16 %h, %h, 1; st.shared.b16 [%s+8], %h; add.u16 %h, %h, 1; st.shared.b16 [%s+10], %h;
                add.u16 %h, %h, 1; st.shared.b16 [%s+12], %h; add.u16 %h, %h, 1; st.shared.b16 [%s+14], %h;
                bar.sync 0;
                ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {registers}, [%s];
                mad.wide.u32 %at, %t, 64, %out;
                {stores}
                mov.u32 %x, again; mad.lo.u32 %s, %t, 16, %x;
                stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%s], {registers};
                bar.sync 0;
                ld.shared.b32 %r0, [%s]; st.global.b32 [%at+32], %r0;
                ld.shared.b32 %r0, [%s+12]; st.global.b32 [%at+40], %r0;
                movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;
                st.global.b32 [%at+48], %r1;
                ret;
            }}"
        );
        let data = run_over(&text, &[0; 32 * 8]);
        // Element of a matrix, as `ldmatrix` gives it.
        let element = |matrix: usize, row: usize, column: usize| {
            let (row, column) = if transposed {
                (column, row)
            } else {
                (row, column)
            };
            (64 * matrix + 8 * row + column) as u64
        };
        let pair = |matrix, lane: usize| {
            let (row, column) = (lane / 4, 2 * (lane % 4));
            element(matrix, row, column) | element(matrix, row, column + 1) << 16
        };
        for lane in 0..32 {
            for matrix in 0..count {
                assert_eq!(
                    data[8 * lane + matrix],
                    pair(matrix, lane),
                    "{count} {transposed} {lane}"
                );
            }
            if lane < 8 * count {
                // What was stored is what was there, row by row.
                let row = 8 * lane as u64;
                assert_eq!(data[8 * lane + 4], row | (row + 1) << 16);
                assert_eq!(data[8 * lane + 5], (row + 6) | (row + 7) << 16);
            }
            if count > 1 {
                let (row, column) = (lane / 4, 2 * (lane % 4));
                let want = element(1, column, row) | element(1, column + 1, row) << 16;
                assert_eq!(data[8 * lane + 6], want, "movmatrix, lane {lane}");
            }
        }
    }
}

/// `wmma`: what was loaded is multiplied and stored, for every order in memory.
#[test]
fn fragments_fit_each_other() {
    // Shape, type of a and b, registers of a, b and c, type of c.
    for (shape, [m, n, k], ab, counts, c) in [
        ("m16n16k16", [16, 16, 16], "f16", [8, 8, 8], "f32"),
        ("m32n8k16", [32, 8, 16], "f16", [8, 8, 8], "f32"),
        ("m8n32k16", [8, 32, 16], "f16", [8, 8, 8], "f32"),
        ("m16n16k16", [16, 16, 16], "bf16", [4, 4, 8], "f32"),
        ("m8n32k16", [8, 32, 16], "bf16", [2, 8, 8], "f32"),
        ("m16n16k8", [16, 16, 8], "tf32", [4, 4, 8], "f32"),
        ("m16n16k16", [16, 16, 16], "s8", [2, 2, 8], "s32"),
        ("m32n8k16", [32, 8, 16], "u8", [4, 1, 8], "s32"),
        ("m8n8k32", [8, 8, 32], "s4", [1, 1, 2], "s32"),
        ("m8n8k128", [8, 8, 128], "b1", [1, 1, 2], "s32"),
    ] {
        for (a_order, b_order, d_order) in [
            ("row", "col", "row"),
            ("col", "row", "col"),
            ("row", "row", "col"),
        ] {
            let sub_byte = bits(ab) < 8;
            if sub_byte && (a_order, b_order) != ("row", "col") {
                continue;
            }
            let small = |x: usize| (x * 7 + x / 5) % 5;
            let element = |x: usize| match ab {
                "f16" => [0u64, 0x3c00, 0x4000, 0x4200, 0xbc00][small(x)],
                "bf16" => [0u64, 0x3f80, 0x4000, 0x4040, 0xbf80][small(x)],
                "tf32" => [0u64, 0x3f80_0000, 0x4000_0000, 0x4040_0000, 0xbf80_0000][small(x)],
                "b1" => (small(x) & 1) as u64,
                _ => [0, 1, 2, 3, keep(ab)][small(x)],
            };
            // Matrices with a margin, `a` at 0, `b` at 4096, `c` at 8192, `d` at 16384 bytes.
            let mut bytes = vec![0u8; 24576];
            let mut put = |start: usize, ty: &str, index: usize, value: u64| {
                let bit = bits(ty) * index;
                if bits(ty) < 8 {
                    bytes[start + bit / 8] |= (value << (bit % 8)) as u8;
                } else {
                    let size = bits(ty) / 8;
                    bytes[start + bit / 8..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
                }
            };
            let lines = |order: &str, rows: usize, columns: usize| {
                if order == "row" { columns } else { rows }
            };
            let margin = if sub_byte { 0 } else { 16 };
            let (lda, ldb) = (lines(a_order, m, k) + margin, lines(b_order, k, n) + margin);
            let ldd = lines(d_order, m, n) + 8;
            let at = |order: &str, stride: usize, row: usize, column: usize| match order {
                "row" => row * stride + column,
                _ => column * stride + row,
            };
            let a = |row: usize, q: usize| element(row * 31 + q * 3);
            let b = |q: usize, column: usize| element(q * 17 + column * 5 + 2);
            for q in 0..k {
                (0..m).for_each(|row| put(0, ab, at(a_order, lda, row, q), a(row, q)));
                (0..n).for_each(|column| put(4096, ab, at(b_order, ldb, q, column), b(q, column)));
            }
            let start = |row: usize, column: usize| (row * 3 + column) as f64;
            for row in 0..m {
                for column in 0..n {
                    let value = start(row, column);
                    let bits = if c == "f32" {
                        (value as f32).to_bits()
                    } else {
                        value as u32
                    };
                    put(8192, c, at("col", m, row, column), bits.into());
                }
            }
            let name = if c == "f32" { "f" } else { "r" };
            let (ra, rb, rc, rd) = (
                list("r", 0, counts[0]),
                list("r", 16, counts[1]),
                list(name, 32, counts[2]),
                list(name, 48, counts[2]),
            );
            let types = match ab {
                "f16" => "f32.f32".to_owned(),
                _ => format!("{c}.{ab}.{ab}.{c}"),
            };
            let op = if ab == "b1" { "xor.popc." } else { "" };
            let text = format!(
                ".visible .entry k(.param .u64 out) {{
                    .reg .b32 %r<64>; .reg .f32 %f<64>; .reg .b64 %a, %b, %c, %d;
                    ld.param.u64 %a, [out];
                    add.u64 %b, %a, 4096; add.u64 %c, %a, 8192; add.u64 %d, %a, 16384;
                    wmma.load.a.sync.aligned.{a_order}.{shape}.global.{ab} {ra}, [%a], {lda};
                    wmma.load.b.sync.aligned.{b_order}.{shape}.{ab} {rb}, [%b], {ldb};
                    wmma.load.c.sync.aligned.col.{shape}.global.{c} {rc}, [%c];
                    wmma.mma.{op}sync.aligned.{a_order}.{b_order}.{shape}.{types} {rd}, {ra}, {rb}, {rc};
                    wmma.store.d.sync.aligned.{d_order}.{shape}.global.{c} [%d], {rd}, {ldd};
                    ret;
                }}"
            );
            let words: Vec<u64> = bytes
                .chunks(8)
                .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
                .collect();
            let after = run_over(&text, &words);
            for row in 0..m {
                for column in 0..n {
                    let index = 16384 / 4 + at(d_order, ldd, row, column);
                    let have = (after[index / 2] >> (32 * (index % 2))) as u32;
                    let sum: f64 = (0..k)
                        .map(|q| match ab {
                            "b1" => (a(row, q) ^ b(q, column)) as f64,
                            _ => value(ab, a(row, q)) * value(ab, b(q, column)),
                        })
                        .sum();
                    let want = sum + start(row, column);
                    let have = if c == "f32" {
                        f64::from(f32::from_bits(have))
                    } else {
                        f64::from(have as i32)
                    };
                    assert_eq!(
                        have, want,
                        "{shape} {ab} {a_order} {b_order} at {row}, {column}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_not_known_is_said() {
    for text in [
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r2,%r3}, {%f0,%f1,%f2,%f3}, %r4, 0x0;",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4,%r5}, {%f0,%f1,%f2,%f3};",
        "mma.sync.aligned.m16n8k16.row.col.f32.s8.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r0}, [%r1];",
    ] {
        let error = common::fail(32, text).to_string();
        let opcode = text.split('.').next().unwrap();
        assert!(
            error.contains(opcode) && error.contains("not supported"),
            "{error}"
        );
    }
}
