//! The parts of a core library that the device code uses: marker traits and integer operators.

#[lang = "pointee_sized"]
pub trait PointeeSized {}
#[lang = "meta_sized"]
pub trait MetaSized: PointeeSized {}
#[lang = "sized"]
pub trait Sized: MetaSized {}
#[lang = "legacy_receiver"]
pub trait LegacyReceiver {}
impl<T: PointeeSized> LegacyReceiver for &T {}
#[lang = "copy"]
pub trait Copy {}
impl<T: PointeeSized> Copy for *mut T {}
impl<T: PointeeSized> Copy for *const T {}
impl<T: PointeeSized> Copy for &T {}

#[lang = "freeze"]
pub unsafe auto trait Freeze {}

#[rustc_builtin_macro]
pub macro asm() {}
#[rustc_builtin_macro]
pub macro concat() {}

macro_rules! operator {
    ($item:literal, $name:ident, $method:ident, $op:tt, $($ty:ty, $rhs:ty;)*) => {
        #[lang = $item]
        pub const trait $name<Rhs = Self> {
            type Output;
            fn $method(self, rhs: Rhs) -> Self::Output;
        }
        $(impl const $name<$rhs> for $ty {
            type Output = $ty;
            #[inline(always)]
            fn $method(self, rhs: $rhs) -> $ty { self $op rhs }
        })*
    };
}

operator!("add", Add, add, +, u32, u32; u64, u64;);
operator!("sub", Sub, sub, -, u32, u32; u64, u64;);
operator!("mul", Mul, mul, *, u32, u32; u64, u64; u128, u128;);
operator!("bitand", BitAnd, bitand, &, u32, u32; u64, u64; bool, bool;);
operator!("bitor", BitOr, bitor, |, u32, u32; u64, u64; bool, bool;);
operator!("bitxor", BitXor, bitxor, ^, u32, u32; u64, u64;);
operator!("shl", Shl, shl, <<, u32, u32; u64, u32;);
operator!("shr", Shr, shr, >>, u32, u32; u64, u32; u128, u32;);

#[lang = "not"]
pub const trait Not {
    type Output;
    fn not(self) -> Self::Output;
}
impl const Not for u64 {
    type Output = u64;
    #[inline(always)]
    fn not(self) -> u64 { !self }
}
impl const Not for bool {
    type Output = bool;
    #[inline(always)]
    fn not(self) -> bool { !self }
}

#[lang = "eq"]
pub const trait PartialEq<Rhs: PointeeSized = Self>: PointeeSized {
    fn eq(&self, other: &Rhs) -> bool;
    fn ne(&self, other: &Rhs) -> bool;
}
#[lang = "partial_ord"]
pub const trait PartialOrd<Rhs: PointeeSized = Self>: PointeeSized {
    fn lt(&self, other: &Rhs) -> bool;
    fn le(&self, other: &Rhs) -> bool;
    fn gt(&self, other: &Rhs) -> bool;
    fn ge(&self, other: &Rhs) -> bool;
}
macro_rules! compare {
    ($($ty:ty)*) => {$(
        impl Copy for $ty {}
        impl const PartialEq for $ty {
            #[inline(always)]
            fn eq(&self, other: &$ty) -> bool { *self == *other }
            #[inline(always)]
            fn ne(&self, other: &$ty) -> bool { *self != *other }
        }
        impl const PartialOrd for $ty {
            #[inline(always)]
            fn lt(&self, other: &$ty) -> bool { *self < *other }
            #[inline(always)]
            fn le(&self, other: &$ty) -> bool { *self <= *other }
            #[inline(always)]
            fn gt(&self, other: &$ty) -> bool { *self > *other }
            #[inline(always)]
            fn ge(&self, other: &$ty) -> bool { *self >= *other }
        }
    )*};
}
compare!(u32 u64 bool);
impl Copy for u128 {}
