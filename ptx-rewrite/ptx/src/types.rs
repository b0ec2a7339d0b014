//! What the fundamental types are called and how large they are.

use crate::ast::Type;

/// Every type with its suffix, size in bytes and class. The one place they are listed.
const TYPES: &[(Type, &str, u32, Class)] = &[
    (Type::B8, "b8", 1, Class::Bits),
    (Type::B16, "b16", 2, Class::Bits),
    (Type::B32, "b32", 4, Class::Bits),
    (Type::B64, "b64", 8, Class::Bits),
    (Type::B128, "b128", 16, Class::Bits),
    (Type::U8, "u8", 1, Class::Unsigned),
    (Type::U16, "u16", 2, Class::Unsigned),
    (Type::U32, "u32", 4, Class::Unsigned),
    (Type::U64, "u64", 8, Class::Unsigned),
    (Type::S8, "s8", 1, Class::Signed),
    (Type::S16, "s16", 2, Class::Signed),
    (Type::S32, "s32", 4, Class::Signed),
    (Type::S64, "s64", 8, Class::Signed),
    (Type::F16, "f16", 2, Class::Float),
    (Type::F16x2, "f16x2", 4, Class::Float),
    (Type::BF16, "bf16", 2, Class::Float),
    (Type::BF16x2, "bf16x2", 4, Class::Float),
    (Type::TF32, "tf32", 4, Class::Float),
    (Type::F32, "f32", 4, Class::Float),
    (Type::F64, "f64", 8, Class::Float),
    (Type::E4m3, "e4m3", 1, Class::Float),
    (Type::E5m2, "e5m2", 1, Class::Float),
    (Type::E4m3x2, "e4m3x2", 2, Class::Float),
    (Type::E5m2x2, "e5m2x2", 2, Class::Float),
    (Type::U16x2, "u16x2", 4, Class::Unsigned),
    (Type::S16x2, "s16x2", 4, Class::Signed),
    (Type::Pred, "pred", 1, Class::Predicate),
    (Type::TexRef, "texref", 8, Class::Opaque),
    (Type::SamplerRef, "samplerref", 8, Class::Opaque),
    (Type::SurfRef, "surfref", 8, Class::Opaque),
];

/// What kind of value a type holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `.b…`: untyped bits.
    Bits,
    /// Unsigned integer.
    Unsigned,
    /// Signed integer.
    Signed,
    /// Floating point.
    Float,
    /// `.pred`
    Predicate,
    /// Texture, sampler and surface references.
    Opaque,
}

impl Type {
    /// The type a suffix without its dot names.
    pub fn from_suffix(suffix: &str) -> Option<Self> {
        TYPES.iter().find(|row| row.1 == suffix).map(|&(ty, ..)| ty)
    }

    fn row(self) -> &'static (Self, &'static str, u32, Class) {
        // The table is in the order of the enum; a test says so.
        &TYPES[self as usize]
    }

    /// The suffix without its dot: `u32`.
    pub fn suffix(self) -> &'static str {
        self.row().1
    }

    /// Size in memory in bytes. A predicate has no size in memory; it counts as 1.
    pub fn bytes(self) -> u32 {
        self.row().2
    }

    /// What kind of value it holds.
    pub fn class(self) -> Class {
        self.row().3
    }

    /// True for signed integers.
    pub fn is_signed(self) -> bool {
        self.class() == Class::Signed
    }

    /// True for floating point, packed and alternate formats included.
    pub fn is_float(self) -> bool {
        self.class() == Class::Float
    }

    /// True for signed and unsigned integers and untyped bits.
    pub fn is_integer(self) -> bool {
        matches!(self.class(), Class::Bits | Class::Unsigned | Class::Signed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, &(ty, suffix, ..)) in TYPES.iter().enumerate() {
            assert_eq!(ty as usize, index);
            assert_eq!(Type::from_suffix(suffix), Some(ty));
            assert_eq!(ty.suffix(), suffix);
        }
    }
}
