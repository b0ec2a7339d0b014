//! Who listens to a launch: nobody, or whoever it is, behind a reference.
//!
//! The machine is compiled once for each, in this crate; what listens is no part of its type.

use events::{Observer, Unobserved};

/// An observer, as the machine knows it.
pub(crate) trait Listener: Observer {
    /// Whether anybody is there to be told anything.
    const LISTENS: bool;
}

impl Listener for Unobserved {
    const LISTENS: bool = false;
}

impl Listener for dyn Observer + '_ {
    const LISTENS: bool = true;
}
