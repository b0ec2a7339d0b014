//! All tests of this folder in one program, as linking a program takes longer than most tests run.

mod architectures;
mod captures;
mod checked;
mod common;
mod compiles;
mod contexts;
mod failures;
mod fake_driver;
mod loads;
mod own;
mod pass_through;
mod places;
mod queries;
mod relocatable;
mod room;
mod stack;
mod unwritten;
mod variables;
mod ways_in;
