//! All tests of this folder, as one program: linking one takes longer than most of them run.

mod answers;
mod common;
mod costs;
mod executed;
mod journal;
mod nested;
mod own;
mod polling;
mod recorded;
mod sample;
mod scopes;
mod shared;
mod unwritten;
mod values;
