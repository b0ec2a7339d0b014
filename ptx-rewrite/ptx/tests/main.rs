//! All tests of this folder in one program, as linking a program takes longer than most tests run.

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
