//! PTX text to and from a lossless tree, instruction table, control flow, dataflow.
pub mod ast;
pub mod callgraph;
pub mod cfg;
pub mod dataflow;
pub mod isa;
pub mod lexer;
mod module;
mod parse;
pub mod print;
pub mod scope;
mod types;

pub use module::{Frame, ParamLayout, param_layout};
pub use parse::parse;
pub use types::Class;
