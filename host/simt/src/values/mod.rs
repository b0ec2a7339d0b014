//! What values mean: floating point in all formats, and numbers in text.

pub(crate) mod approx;
pub(crate) mod directed;
pub(crate) mod mods;
pub(crate) mod narrow;
pub(crate) mod soft;
