//! The two observers that the machine is compiled for: [`Unobserved`], and `dyn Observer` for all others.
//!
//! Both machines are compiled in this crate. A crate that observes launches compiles no machine of its own.

use events::{Observer, Unobserved};

/// An observer that the machine is compiled for.
pub(crate) trait Listener: Observer {
    /// False if nothing needs to be passed to it.
    const LISTENS: bool;
}

impl Listener for Unobserved {
    const LISTENS: bool = false;
}

impl Listener for dyn Observer + '_ {
    const LISTENS: bool = true;
}
