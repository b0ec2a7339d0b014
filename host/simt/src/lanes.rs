//! Registers as arrays of 32 lanes, and loops over them.
//!
//! A row holds one register of all lanes of a warp: the value's bits, zero-extended to 64.
//! A predicate register of a warp is a word with one bit per lane.
//! An arithmetic operation is a plain function over rows ([`AluFn`]); it computes all 32 lanes,
//! because a loop of known length is what the compiler can vectorise, and keeps those in the mask.

use std::marker::PhantomData;

/// Lanes of a warp.
pub(crate) const WARP: usize = 32;
/// All lanes.
pub(crate) const ALL: u32 = u32::MAX;

/// One register of all lanes.
pub(crate) type Lanes = [u64; WARP];

/// Set in a source number that means a constant of the program instead of a register.
pub(crate) const CONSTANT: u32 = 1 << 31;

/// The registers an operation may use: those of one frame.
pub(crate) struct Rows<'a> {
    pub(crate) regs: &'a mut [Lanes],
    pub(crate) preds: &'a mut [u32],
    pub(crate) consts: &'a [Lanes],
}

/// Numbers of the registers an operation works on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Args {
    /// Written row or predicate.
    pub(crate) d: u32,
    /// Second written row or predicate.
    pub(crate) e: u32,
    /// Read rows; a predicate source is `number * 2 + negated`.
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) c: u32,
    /// Modifiers, with a meaning that the operation knows.
    pub(crate) imm: u32,
    /// Which of the numbers are rows.
    pub(crate) shape: Shape,
}

/// Which of the numbers of [`Args`] are rows; the others are predicates or mean nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `d`, `a`, `b` and `c`; those not needed are the sink.
    #[default]
    Rows,
    /// The same, and the carry flag may be read or written.
    Carry,
    /// `a` and `b`; `d` and `e` are written predicates, and `c` is the source of one.
    Test,
    /// `d`, `a` and `b`; `c` is the source of a predicate.
    Choose,
    /// None: `a` and `b` are sources of predicates, and `d` is a written one.
    Preds,
}

/// True when [`map3`] has an instruction for `mul_add`.
pub(crate) fn has_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    return pulp::x86::V3::is_available();
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}

/// An operation on registers, for the lanes in the mask.
pub(crate) type AluFn = fn(&mut Rows<'_>, &Args, u32);

impl Rows<'_> {
    /// A source row.
    #[inline(always)]
    pub(crate) fn src(&self, number: u32) -> &Lanes {
        if number & CONSTANT == 0 {
            &self.regs[number as usize]
        } else {
            &self.consts[(number & !CONSTANT) as usize]
        }
    }

    /// A source predicate.
    #[inline(always)]
    pub(crate) fn pred(&self, source: u32) -> u32 {
        let flip = if source & 1 == 1 { ALL } else { 0 };
        self.preds[(source >> 1) as usize] ^ flip
    }

    /// Writes the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn put(&mut self, number: u32, mask: u32, value: &Lanes) {
        put(&mut self.regs[number as usize], mask, value);
    }

    /// Writes the same into the lanes of `mask`.
    #[inline(always)]
    pub(crate) fn splat(&mut self, number: u32, mask: u32, value: u64) {
        splat(&mut self.regs[number as usize], mask, value);
    }

    /// Writes the lanes of `mask` of a predicate.
    #[inline(always)]
    pub(crate) fn put_pred(&mut self, number: u32, mask: u32, value: u32) {
        let pred = &mut self.preds[number as usize];
        *pred = *pred & !mask | value & mask;
    }
}

/// The lane of a mask that has one.
#[inline(always)]
pub(crate) fn only(mask: u32) -> Option<usize> {
    mask.is_power_of_two()
        .then(|| mask.trailing_zeros() as usize % WARP)
}

/// Writes the lanes of `mask`.
#[inline(always)]
pub(crate) fn put(row: &mut Lanes, mask: u32, value: &Lanes) {
    if mask == ALL {
        *row = *value;
    } else if let Some(lane) = only(mask) {
        row[lane] = value[lane];
    } else {
        for lane in 0..WARP {
            row[lane] = if mask >> lane & 1 == 1 {
                value[lane]
            } else {
                row[lane]
            };
        }
    }
}

/// Writes the same into the lanes of `mask`.
#[inline(always)]
pub(crate) fn splat(row: &mut Lanes, mask: u32, value: u64) {
    if mask == ALL {
        row.fill(value);
    } else if let Some(lane) = only(mask) {
        row[lane] = value;
    } else {
        for (lane, old) in row.iter_mut().enumerate() {
            *old = if mask >> lane & 1 == 1 { value } else { *old };
        }
    }
}

/// A value in a register.
pub(crate) trait Value: Copy {
    fn from_bits(bits: u64) -> Self;
    fn into_bits(self) -> u64;
}

macro_rules! value {
    ($($ty:ty, $unsigned:ty);*) => { $(
        impl Value for $ty {
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as $unsigned as $ty
            }
            #[inline(always)]
            fn into_bits(self) -> u64 {
                u64::from(self as $unsigned)
            }
        }
    )* };
}

value!(u8, u8; i8, u8; u16, u16; i16, u16; u32, u32; i32, u32; u64, u64; i64, u64);

impl Value for f32 {
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn into_bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Value for f64 {
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn into_bits(self) -> u64 {
        self.to_bits()
    }
}

/// Lanes that are computed at a time: as many as fit a few vector registers.
const PART: usize = 8;
/// Some lanes of a row.
type Part = [u64; PART];

impl Rows<'_> {
    #[inline(always)]
    fn part(&self, number: u32, part: usize) -> Part {
        self.src(number).as_chunks().0[part]
    }

    /// Writes the lanes of `mask` in a part.
    #[inline(always)]
    fn put_part(&mut self, number: u32, part: usize, mask: u32, value: Part) {
        let row = &mut self.regs[number as usize].as_chunks_mut().0[part];
        if mask == ALL {
            *row = value;
        } else {
            for lane in 0..PART {
                let keep = mask >> (part * PART + lane) & 1 == 1;
                row[lane] = if keep { value[lane] } else { row[lane] };
            }
        }
    }
}

// The loops over lanes are compiled twice, and run with wide vectors where the machine has them.
// They are the `call` of a type, not closures, because only what is inlined gets the wide vectors.

/// A function that applies `f` to each lane of some sources, and the type whose `call` is its loop.
macro_rules! maps {
    ($($(#[$doc:meta])* $name:ident $over:ident: $($source:ident $ty:ident),+;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<$($ty: Value,)+ R: Value>(
            rows: &mut Rows<'_>,
            args: &Args,
            mask: u32,
            f: impl Fn($($ty),+) -> R,
        ) {
            let of = PhantomData::<fn($($ty),+) -> R>;
            pulp::Arch::new().dispatch($over { rows, args, mask, f, of });
        }

        struct $over<'a, 'b, F, S> {
            rows: &'a mut Rows<'b>,
            args: &'a Args,
            mask: u32,
            f: F,
            of: PhantomData<S>,
        }

        impl<$($ty: Value,)+ R: Value, F: Fn($($ty),+) -> R> pulp::NullaryFnOnce
            for $over<'_, '_, F, fn($($ty),+) -> R>
        {
            type Output = ();

            #[inline(always)]
            fn call(self) {
                let Self { rows, args, mask, f, .. } = self;
                if let Some(lane) = only(mask) {
                    let value = f($($ty::from_bits(rows.src(args.$source)[lane])),+);
                    rows.regs[args.d as usize][lane] = value.into_bits();
                    return;
                }
                for part in 0..WARP / PART {
                    // Read before anything is written, so the written row may be one of the read ones.
                    $(let $source = rows.part(args.$source, part);)+
                    let mut out = [0; PART];
                    for lane in 0..PART {
                        out[lane] = f($($ty::from_bits($source[lane])),+).into_bits();
                    }
                    rows.put_part(args.d, part, mask, out);
                }
            }
        }
    )* };
}

maps! {
    /// Applies `f` to each lane of one source.
    map1 Map1: a T;
    /// Applies `f` to each lane of two sources.
    map2 Map2: a T, b U;
    /// Applies `f` to each lane of three sources.
    map3 Map3: a T, b U, c V;
}

/// One bit per lane of what `f` says, at least of those in the mask.
#[inline(always)]
pub(crate) fn test2<T: Value>(
    rows: &Rows<'_>,
    args: &Args,
    mask: u32,
    f: impl Fn(T, T) -> bool,
) -> u32 {
    if let Some(lane) = only(mask) {
        let (a, b) = (rows.src(args.a)[lane], rows.src(args.b)[lane]);
        return u32::from(f(T::from_bits(a), T::from_bits(b))) << lane;
    }
    let of = PhantomData::<T>;
    pulp::Arch::new().dispatch(Test2 { rows, args, f, of })
}

struct Test2<'a, 'b, F, T> {
    rows: &'a Rows<'b>,
    args: &'a Args,
    f: F,
    of: PhantomData<T>,
}

impl<T: Value, F: Fn(T, T) -> bool> pulp::NullaryFnOnce for Test2<'_, '_, F, T> {
    type Output = u32;

    #[inline(always)]
    fn call(self) -> u32 {
        let Self { rows, args, f, .. } = self;
        let mut bits = 0;
        for part in 0..WARP / PART {
            let (a, b) = (rows.part(args.a, part), rows.part(args.b, part));
            let mut here = [0u32; PART];
            for lane in 0..PART {
                here[lane] = u32::from(f(T::from_bits(a[lane]), T::from_bits(b[lane]))) << lane;
            }
            bits |= here.iter().fold(0, |all, bit| all | bit) << (part * PART);
        }
        bits
    }
}

/// An [`AluFn`] of one, two or three sources from an expression over typed values.
macro_rules! alu {
    (|$a:ident: $t:ty| -> $r:ty $body:block) => {{
        fn run(rows: &mut $crate::lanes::Rows<'_>, args: &$crate::lanes::Args, mask: u32) {
            $crate::lanes::map1::<$t, $r>(rows, args, mask, |$a| $body);
        }
        run as $crate::lanes::AluFn
    }};
    (|$a:ident: $t:ty, $b:ident: $u:ty| -> $r:ty $body:block) => {{
        fn run(rows: &mut $crate::lanes::Rows<'_>, args: &$crate::lanes::Args, mask: u32) {
            $crate::lanes::map2::<$t, $u, $r>(rows, args, mask, |$a, $b| $body);
        }
        run as $crate::lanes::AluFn
    }};
    (|$a:ident: $t:ty, $b:ident: $u:ty, $c:ident: $v:ty| -> $r:ty $body:block) => {{
        fn run(rows: &mut $crate::lanes::Rows<'_>, args: &$crate::lanes::Args, mask: u32) {
            $crate::lanes::map3::<$t, $u, $v, $r>(rows, args, mask, |$a, $b, $c| $body);
        }
        run as $crate::lanes::AluFn
    }};
    // With the modifiers of the instruction.
    (imm $m:ident, |$a:ident: $t:ty| -> $r:ty $body:block) => {{
        fn run(rows: &mut $crate::lanes::Rows<'_>, args: &$crate::lanes::Args, mask: u32) {
            let $m = args.imm;
            $crate::lanes::map1::<$t, $r>(rows, args, mask, |$a| $body);
        }
        run as $crate::lanes::AluFn
    }};
    (imm $m:ident, |$a:ident: $t:ty, $b:ident: $u:ty| -> $r:ty $body:block) => {{
        fn run(rows: &mut $crate::lanes::Rows<'_>, args: &$crate::lanes::Args, mask: u32) {
            let $m = args.imm;
            $crate::lanes::map2::<$t, $u, $r>(rows, args, mask, |$a, $b| $body);
        }
        run as $crate::lanes::AluFn
    }};
    (imm $m:ident, |$a:ident: $t:ty, $b:ident: $u:ty, $c:ident: $v:ty| -> $r:ty $body:block) => {{
        fn run(rows: &mut $crate::lanes::Rows<'_>, args: &$crate::lanes::Args, mask: u32) {
            let $m = args.imm;
            $crate::lanes::map3::<$t, $u, $v, $r>(rows, args, mask, |$a, $b, $c| $body);
        }
        run as $crate::lanes::AluFn
    }};
}
pub(crate) use alu;
