//! Project automation, behind `cargo xtask`: one module per command.
//!
//! What the commands share: [`workspace`] knows where things are, [`toolkit`] finds or fetches nvcc, [`dist`] puts
//! the installable folder together, [`apps`] builds the programs under `tests/apps` and runs them under the tool.
//! Of the workspace's crates it uses only `device`, to compile it anew, so that it builds in seconds and works while
//! the others do not.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool says what it does"
)]

pub mod api_table;
pub mod apps;
pub mod bench;
pub mod browser;
pub mod command;
pub mod demo;
pub mod device;
pub mod dist;
pub mod gpu_kit;
pub mod headers;
pub mod mutants;
pub mod names;
pub mod oracles;
pub mod package;
pub mod python;
pub mod registers;
pub mod suite;
pub mod tidy;
pub mod toolkit;
pub mod workspace;
