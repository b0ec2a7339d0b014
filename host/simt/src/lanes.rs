//! Registers as arrays of 32 lanes, and loops over them.
//!
//! A row holds one register of all lanes of a warp: the value's bits, zero-extended to 64.
//! A predicate register of a warp is a word with one bit per lane.
//! An arithmetic operation is a plain function over rows ([`AluFn`]); it computes all 32 lanes,
//! because a loop of known length is what the compiler can vectorise, and keeps those in the mask.

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
    /// `a` and `b`.
    Test,
    /// `d`, `a` and `b`.
    Choose,
    /// None.
    Preds,
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
        let row = &mut self.regs[number as usize];
        if mask == ALL {
            *row = *value;
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

    /// Writes the lanes of `mask` of a predicate.
    #[inline(always)]
    pub(crate) fn put_pred(&mut self, number: u32, mask: u32, value: u32) {
        let pred = &mut self.preds[number as usize];
        *pred = *pred & !mask | value & mask;
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

#[inline(always)]
pub(crate) fn map1<T: Value, R: Value>(
    rows: &mut Rows<'_>,
    args: &Args,
    mask: u32,
    f: impl Fn(T) -> R,
) {
    let mut out = [0; WARP];
    let a = rows.src(args.a);
    for lane in 0..WARP {
        out[lane] = f(T::from_bits(a[lane])).into_bits();
    }
    rows.put(args.d, mask, &out);
}

#[inline(always)]
pub(crate) fn map2<T: Value, U: Value, R: Value>(
    rows: &mut Rows<'_>,
    args: &Args,
    mask: u32,
    f: impl Fn(T, U) -> R,
) {
    let mut out = [0; WARP];
    let (a, b) = (rows.src(args.a), rows.src(args.b));
    for lane in 0..WARP {
        out[lane] = f(T::from_bits(a[lane]), U::from_bits(b[lane])).into_bits();
    }
    rows.put(args.d, mask, &out);
}

#[inline(always)]
pub(crate) fn map3<T: Value, U: Value, V: Value, R: Value>(
    rows: &mut Rows<'_>,
    args: &Args,
    mask: u32,
    f: impl Fn(T, U, V) -> R,
) {
    let mut out = [0; WARP];
    let (a, b, c) = (rows.src(args.a), rows.src(args.b), rows.src(args.c));
    for lane in 0..WARP {
        let (x, y) = (T::from_bits(a[lane]), U::from_bits(b[lane]));
        out[lane] = f(x, y, V::from_bits(c[lane])).into_bits();
    }
    rows.put(args.d, mask, &out);
}

/// One bit per lane of what `f` says.
#[inline(always)]
pub(crate) fn test2<T: Value>(rows: &Rows<'_>, args: &Args, f: impl Fn(T, T) -> bool) -> u32 {
    let (a, b) = (rows.src(args.a), rows.src(args.b));
    let mut bits = [0u32; WARP];
    for lane in 0..WARP {
        bits[lane] = u32::from(f(T::from_bits(a[lane]), T::from_bits(b[lane]))) << lane;
    }
    bits.iter().fold(0, |all, bit| all | bit)
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
