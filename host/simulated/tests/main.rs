//! All tests of this folder in one program, as linking a program takes longer than most tests run.

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
