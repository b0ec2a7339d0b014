//! PTX text to and from a lossless tree, instruction table, control flow, dataflow.
pub mod ast;
