//! Video instructions with random operands, against the steps that the PTX ISA gives for them.

use crate::common;
use proptest::prelude::*;

/// `(text, what it computes)`; the sources are `%r1`, `%r2` and `%r3`.
type Form = (&'static str, fn(u32, u32, u32) -> u32);

fn byte(x: u32, n: u32) -> i64 {
    i64::from(x >> (8 * n) & 255)
}

fn signed_byte(x: u32, n: u32) -> i64 {
    i64::from((x >> (8 * n)) as u8 as i8)
}

fn half(x: u32, n: u32) -> i64 {
    i64::from((x >> (16 * n)) as u16)
}

fn signed_half(x: u32, n: u32) -> i64 {
    i64::from((x >> (16 * n)) as u16 as i16)
}

fn word(x: u32) -> i64 {
    i64::from(x)
}

fn signed(x: u32) -> i64 {
    i64::from(x as i32)
}

fn clamp(x: i64, low: i64, high: i64) -> u32 {
    x.max(low).min(high) as u32
}

fn merge(x: u32, c: u32, low: u32, bits: u32) -> u32 {
    let ones = (1u32 << bits) - 1;
    c & !(ones << low) | (x & ones) << low
}

/// Four bytes side by side.
fn bytes(f: impl Fn(u32) -> i64) -> u32 {
    (0..4).map(|n| (f(n) as u32 & 255) << (8 * n)).sum()
}

fn halves(f: impl Fn(u32) -> i64) -> u32 {
    (0..2).map(|n| (f(n) as u32 & 0xffff) << (16 * n)).sum()
}

const FORMS: &[Form] = &[
    ("vadd.s32.s32.s32.sat %r0, %r1, %r2", |a, b, _| {
        clamp(signed(a) + signed(b), i32::MIN.into(), i32::MAX.into())
    }),
    ("vadd.u32.s32.s32.sat %r0, %r1, %r2", |a, b, _| {
        clamp(signed(a) + signed(b), 0, u32::MAX.into())
    }),
    ("vadd.s32.u32.s32 %r0, %r1.b0, %r2.h1", |a, b, _| {
        (byte(a, 0) + signed_half(b, 1)) as u32
    }),
    (
        "vsub.s32.s32.s32.sat %r0.h1, %r1.h0, %r2.b2, %r3",
        |a, b, c| {
            merge(
                clamp(signed_half(a, 0) - signed_byte(b, 2), -32768, 32767),
                c,
                16,
                16,
            )
        },
    ),
    ("vsub.u32.u32.u32.add %r0, %r1, %r2, %r3", |a, b, c| {
        a.wrapping_sub(b).wrapping_add(c)
    }),
    (
        "vabsdiff.u32.s32.s32.max %r0, %r1.b1, %r2.b2, %r3",
        |a, b, c| ((signed_byte(a, 1) - signed_byte(b, 2)).unsigned_abs() as u32).max(c),
    ),
    ("vmin.s32.s32.u32.min %r0, %r1, %r2.h0, %r3", |a, b, c| {
        (signed(a).min(half(b, 0)) as i32).min(c as i32) as u32
    }),
    ("vmax.u32.u32.u32 %r0.b3, %r1.b0, %r2.b3, %r3", |a, b, c| {
        merge(byte(a, 0).max(byte(b, 3)) as u32, c, 24, 8)
    }),
    (
        "vshl.u32.u32.u32.sat.clamp %r0, %r1.b1, %r2.b0",
        |a, b, _| clamp(byte(a, 1) << byte(b, 0).min(32), 0, u32::MAX.into()),
    ),
    ("vshl.u32.u32.u32.wrap %r0, %r1, %r2", |a, b, _| {
        a << (b & 31)
    }),
    ("vshr.s32.s32.u32.clamp %r0, %r1, %r2.b3", |a, b, _| {
        (signed(a) >> byte(b, 3).min(32)) as u32
    }),
    (
        "vshr.u32.u32.u32.wrap.add %r0, %r1.h1, %r2, %r3",
        |a, b, c| ((half(a, 1) >> (b & 31)) as u32).wrapping_add(c),
    ),
    ("vset.u32.s32.lt %r0, %r1, %r2", |a, b, _| {
        u32::from(word(a) < signed(b))
    }),
    ("vset.s32.s32.ge.add %r0, %r1.b0, %r2.b1, %r3", |a, b, c| {
        u32::from(signed_byte(a, 0) >= signed_byte(b, 1)).wrapping_add(c)
    }),
    ("vmad.s32.s32.s32 %r0, %r1.h0, %r2.h1, %r3", |a, b, c| {
        (signed_half(a, 0) * signed_half(b, 1) + signed(c)) as u32
    }),
    ("vmad.u32.u32.u32.shr7 %r0, %r1, %r2.b1, %r3", |a, b, c| {
        ((word(a) * byte(b, 1) + word(c)) >> 7) as u32
    }),
    ("vmad.s32.s32.u32.sat %r0, %r1, -%r2.b1, %r3", |a, b, c| {
        clamp(
            -signed(a) * byte(b, 1) + signed(c),
            i32::MIN.into(),
            i32::MAX.into(),
        )
    }),
    ("vmad.u32.u32.u32.po %r0, %r1.b0, %r2.b0, %r3", |a, b, c| {
        (byte(a, 0) * byte(b, 0) + word(c) + 1) as u32
    }),
    (
        "vmad.s32.s32.s32.sat.shr15 %r0, %r1.h0, %r2, -%r3",
        |a, b, c| {
            clamp(
                (signed_half(a, 0) * signed(b) - signed(c)) >> 15,
                i32::MIN.into(),
                i32::MAX.into(),
            )
        },
    ),
    ("vadd2.s32.s32.s32 %r0, %r1, %r2, %r3", |a, b, _| {
        halves(|n| half(a, n) + half(b, n))
    }),
    ("vadd2.u32.u32.u32.sat %r0, %r1, %r2, %r3", |a, b, _| {
        halves(|n| (half(a, n) + half(b, n)).min(65535))
    }),
    (
        "vsub2.s32.s32.s32.sat %r0.h1, %r1.h01, %r2.h23, %r3",
        |a, b, c| {
            // Part 1 of `a` is its half 0, and part 1 of `b` the half 2 of both, `b`'s own half 0.
            merge(
                clamp(signed_half(a, 0) - signed_half(b, 0), -32768, 32767),
                c,
                16,
                16,
            )
        },
    ),
    ("vavrg2.s32.s32.s32 %r0, %r1, %r2, %r3", |a, b, _| {
        halves(|n| {
            let sum = signed_half(a, n) + signed_half(b, n);
            if sum >= 0 { (sum + 1) >> 1 } else { sum >> 1 }
        })
    }),
    ("vabsdiff2.u32.u32.u32.add %r0, %r1, %r2, %r3", |a, b, c| {
        (0..2).fold(c, |sum, n| {
            sum.wrapping_add((half(a, n) - half(b, n)).unsigned_abs() as u32)
        })
    }),
    ("vset2.u32.u32.eq %r0, %r1, %r1.h01, %r3", |a, _, _| {
        halves(|n| i64::from(half(a, n) == half(a, 1 - n)))
    }),
    ("vadd4.s32.s32.s32.sat %r0, %r1, %r2, %r3", |a, b, _| {
        bytes(|n| (signed_byte(a, n) + signed_byte(b, n)).clamp(-128, 127))
    }),
    ("vsub4.u32.u32.u32 %r0.b20, %r1, %r2, %r3", |a, b, c| {
        let all = bytes(|n| byte(a, n) - byte(b, n));
        all & 0x00ff_00ff | c & 0xff00_ff00
    }),
    (
        "vavrg4.u32.u32.u32 %r0, %r1.b7210, %r2.b0123, %r3",
        |a, b, _| {
            bytes(|n| {
                let left = if n == 3 { byte(b, 3) } else { byte(a, n) };
                (left + byte(a, 3 - n) + 1) >> 1
            })
        },
    ),
    ("vabsdiff4.u32.s32.s32 %r0, %r1, %r2, %r3", |a, b, _| {
        bytes(|n| (signed_byte(a, n) - signed_byte(b, n)).abs())
    }),
    (
        "vabsdiff4.u32.u32.u32.add %r0.b10, %r1, %r2, %r3",
        |a, b, c| {
            (0..2).fold(c, |sum, n| {
                sum.wrapping_add((byte(a, n) - byte(b, n)).unsigned_abs() as u32)
            })
        },
    ),
    ("vmin4.u32.u32.u32 %r0, %r1, %r2, %r3", |a, b, _| {
        bytes(|n| byte(a, n).min(byte(b, n)))
    }),
    ("vmax4.s32.s32.s32 %r0, %r1, %r2, %r3", |a, b, _| {
        bytes(|n| signed_byte(a, n).max(signed_byte(b, n)))
    }),
    ("vset4.u32.s32.ge.add %r0, %r1, %r2, %r3", |a, b, c| {
        (0..4).fold(c, |sum, n| {
            sum.wrapping_add(u32::from(byte(a, n) >= signed_byte(b, n)))
        })
    }),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn video_instructions_follow_their_steps(seed: u64) {
        // What the threads of a kernel compute with: mixed words, from a shared start.
        let mix = |thread: u32, n: u32| {
            let x = (seed as u32).wrapping_mul(2 * n + 1).wrapping_add(thread.wrapping_mul(0x9e37_79b9));
            (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d)
        };
        let mut body = String::new();
        for n in 0..3 {
            let factor = 2 * n + 1;
            let start = (seed as u32).wrapping_mul(factor);
            body += &format!(
                "mad.lo.u32 %r10, %t, 0x9e3779b9, {start}; shr.u32 %r11, %r10, 15; xor.b32 %r10, %r10, %r11;
                 mul.lo.u32 %r{}, %r10, 0x2c1b3c6d;\n",
                n + 1
            );
        }
        let mut all = body;
        // A word per form and thread.
        for (n, (text, _)) in FORMS.iter().enumerate() {
            all += &format!("{text};\n mad.wide.u32 %d1, %t, 8, %out; st.global.u32 [%d1+{}], %r0;\n", 64 * 8 * n);
        }
        let text = common::kernel(&all);
        let words = common::load(&text).run(1, 64, 64 * FORMS.len()).unwrap();
        for (n, (text, want)) in FORMS.iter().enumerate() {
            for thread in 0..64 {
                let [a, b, c] = [0, 1, 2].map(|n| mix(thread, n));
                let have = words[64 * n + thread as usize] as u32;
                prop_assert_eq!(have, want(a, b, c), "{} of {:#x}, {:#x}, {:#x}", text, a, b, c);
            }
        }
    }
}
