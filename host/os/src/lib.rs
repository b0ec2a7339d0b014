//! What the operating system gives: memory mappings, signals and the terminal.
//!
//! * [`mem`]: host mappings that a simulated device may share with the program.
//! * [`interrupts`]: signals that end a process which has something to write down first.
//! * [`run`]: the run of the tool that a process belongs to, and what that has missed.
//! * [`shared`]: memory that a process shares with others by a file.
//! * [`signals`]: of a process that waits for another one.
//! * [`python`]: the lines of Python that a thread executes.
//! * [`unwind`]: the calls that a thread is in.
//! * [`touches`]: the pages of memory that a process has touched.
//! * [`terminal`]: standard error, if it is one.

pub mod interrupts;
pub mod mem;
pub mod python;
pub mod run;
pub mod shared;
pub mod signals;
pub mod terminal;
pub mod touches;
pub mod unwind;
