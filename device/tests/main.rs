//! All tests of this folder, as one program: linking one takes longer than most of them run.

mod differential;
mod entry;
mod witness;
