//! Tells the command which commit it is made of.

#![allow(
    clippy::print_stdout,
    reason = "cargo reads the output of build scripts"
)]

use std::process::Command;

fn main() {
    // Every commit, and every change to another one, writes here.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    let commit = git(&["log", "-1", "--format=%h, %cs"]);
    let commit = commit.map_or(String::new(), |commit| format!(" ({commit})"));
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo::rustc-env=CUDARUN_CHECK_VERSION={version}{commit}");
}

/// What git prints, if there is git and a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
