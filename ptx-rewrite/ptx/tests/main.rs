//! All tests of this folder, as one program: linking one takes longer than most of them run.

mod any_text;
mod counts;
mod flow;
mod linking;
mod narrow;
mod reading;
mod signals;
mod tables;
mod tree;
mod versions;
mod waits;
