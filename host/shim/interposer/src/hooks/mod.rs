//! What the hooked functions do. The table is in [`crate::hooked`].
//!
//! A hook never makes a call fail that would have succeeded without us: what cannot be checked runs as it
//! is, with one line for the user.

mod backend;
mod context;
mod function;
mod graph;
mod graph_exec;
mod jit;
mod launch;
mod link;
mod load;
mod memory;
mod module;
mod nodes;
mod proc_address;
mod queries;
mod steps;
mod version;

pub(crate) use context::*;
pub(crate) use function::*;
pub(crate) use graph::*;
pub(crate) use graph_exec::*;
pub(crate) use launch::*;
pub(crate) use link::*;
pub(crate) use memory::*;
pub(crate) use module::*;
pub(crate) use proc_address::*;
pub(crate) use queries::*;
pub(crate) use steps::*;
