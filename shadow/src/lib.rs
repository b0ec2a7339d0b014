//! What we remember about memory, and when two accesses race.
//!
//! Pure, `no_std`, without `unsafe`, and without any knowledge of PTX.
//! [`rule`] is the decision, [`layout`] the bytes that host and device share, [`plan`] how a launch
//! divides the bits of a cell; [`hb`] decides without cells, from everything that happens; [`streams`]
//! says which launches may run at the same time, and where those race.
//!
//! What a cell can miss (tests/enumeration.rs counts it, and the device counts it at run time):
//! 1. after the first race on a granule, later races on it may go unreported;
//! 2. a granule that loses its cell to another one is forgotten ([`layout::Counters::evictions`]);
//! 3. when a CTA or warp has passed more barriers than its epoch field can count, conflicts inside
//!    it are left undecided, and so are conflicts with a mixed class
//!    ([`layout::Counters::undecided`]).

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

/// Makes a struct of [`layout`] plain old data for the host.
macro_rules! pod {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty,)* }
    };
}

pub mod hb;
pub mod layout;
pub mod order;
pub mod plan;
pub mod rule;
pub mod streams;
