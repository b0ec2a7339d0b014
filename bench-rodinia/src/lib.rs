//! What checks cost before anything runs: registers, spills and code size, by the real assembler.
//! The command of the same name measures programs; this part is a library because tests use it too.

pub mod registers;
