//! All tests of this folder, as one program: linking one takes longer than most of them run.

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
