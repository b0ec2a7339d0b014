//! A folder with files, and the tool in it.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Every thread increments a word.
pub(crate) const RACY: &str =
    "ld.global.u32 %old, [%word]; add.u32 %old, %old, %step; st.global.u32 [%word], %old;";

/// Runs the counting kernel on two blocks.
pub(crate) const COUNT: [&str; 9] = [
    "count.ptx",
    "--grid",
    "2",
    "--block",
    "1",
    "--arg",
    "u32[1]",
    "--arg",
    "u32:5",
];

pub(crate) struct Workdir(tempfile::TempDir);

/// How the tool ended, and what it said.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let ran = Self {
            code: output.status.code().expect("the tool itself is not killed"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        };
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{}", self.stderr);
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{word}\nis missing in\n{}",
                self.stderr
            );
        }
        self
    }

    #[track_caller]
    pub(crate) fn lacks(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(
                !self.stderr.contains(word),
                "{word}\nis in\n{}",
                self.stderr
            );
        }
        self
    }
}

impl Workdir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A report in JSON.
    pub(crate) fn json(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cudarun-check"));
        command.env("CUDARUN_CHECK_DRIVER", "/nowhere/libcuda.so.1");
        for of_job in ["GITHUB_ACTIONS", "GITHUB_WORKSPACE"] {
            command.env_remove(of_job);
        }
        command.args(arguments).current_dir(self.0.path());
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn tool(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs the counting kernel, with `op` for what it does, on two blocks.
    pub(crate) fn run_kernel(&self, op: &str, more: &[&str]) -> Ran {
        let kernel = include_str!("../c/count.ptx").replace("${op}", op);
        self.write("count.ptx", &kernel);
        self.tool(&[&COUNT, more].concat())
    }
}
