//! Programs compiled ahead of their tests, in the time of processors that other steps leave.
//!
//! nvcc takes about half of the time of the programs' tests, and some of the steps before them keep one processor only.
//! So a process of its own, at the lowest priority, compiles what the tests of the programs will look for.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use super::build::Builder;
use super::{MEASURED, Program, discover};
use crate::toolkit;
use crate::workspace::Workspace;

/// The command of `cargo xtask` that runs [`compile`].
const COMMAND: &str = "compile-ahead";

/// The process; dropped, it ends when it has compiled what it is at.
pub struct Ahead(Child);

impl Ahead {
    /// Starts it; none where that fails: the tests compile what they do not find.
    pub fn start() -> Option<Ahead> {
        // The running program: a build may have replaced its file.
        let this = format!("/proc/{}/exe", std::process::id());
        let child = Command::new("nice")
            .args(["-n", "19"])
            .arg(this)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        child.ok().map(Ahead)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

/// Compiles all programs, one by one, until standard input ends. A program that does not compile is left to its test.
pub fn compile(workspace: &Workspace) -> Result<bool> {
    let toolkit = toolkit::find().context("no nvcc")?;
    let release = toolkit.release()?;
    let builder = Builder::of_tests(workspace, toolkit);
    let mut programs = discover(&workspace.root.join("tests/apps"))?;
    programs.extend(discover(&workspace.root.join(MEASURED))?);
    programs.retain(|program| program.oldest_cuda().is_none_or(|oldest| oldest <= release));
    // These wait for our driver library, which may still be compiled.
    let uses_driver = |program: &Program| {
        let mut variants = program.variants().into_iter();
        variants.any(|variant| program.words("nvcc", variant).contains(&"-lcuda"))
    };
    programs.sort_by_key(uses_driver);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Nobody writes anything.
            drop(std::io::stdin().read(&mut [0]));
            ended.store(true, Ordering::Relaxed);
        });
        for program in &programs {
            for variant in program.variants() {
                if !ended.load(Ordering::Relaxed) {
                    drop(builder.build(program, variant));
                }
            }
        }
    });
    Ok(true)
}
