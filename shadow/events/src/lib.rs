//! The words that every crate speaks: what the threads of a launch do, where and with which scope, and what is wrong
//! with it.
//!
//! A launch is a sequence of events, passed to an [`Observer`] by whatever runs it: the simulated device, or the reader of
//! a journal that a GPU has kept. This crate knows neither of them, and no driver; it decides nothing.

mod cause;
mod misuse;
mod observer;
mod scope;
mod semantics;
mod space;
mod taint;

pub use cause::{Acquire, Cause, Gap};
pub use misuse::Misuse;
pub use observer::{
    AccessKind, Bytes, Exchange, Executing, Observer, SHARED_STEP, Unobserved, Updated,
};
pub use scope::Scope;
pub use semantics::Semantics;
pub use space::{Memory, Space};
pub use taint::{Decides, Sources};
