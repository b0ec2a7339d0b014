//! A kernel in PTX under the tool, and its report.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// How a run ended, what it said, and its report.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) text: String,
    pub(crate) stdout: String,
    pub(crate) json: Value,
}

impl Ran {
    pub(crate) fn ends(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{}", self.text);
        for word in words {
            assert!(
                self.text.contains(word),
                "{word}\nis missing in\n{}",
                self.text
            );
        }
        self
    }
}

/// Runs a kernel whose body is `body` in two CTAs of one thread; its report follows the schema.
pub(crate) fn run(body: &str, options: &[&str]) -> Ran {
    run_as("--grid 2 --block 1", body, options)
}

/// The same in the CTAs and threads that `launch` says.
pub(crate) fn run_as(launch: &str, body: &str, options: &[&str]) -> Ran {
    tool(&format!("k.ptx {launch}"), body, options)
}

/// As [`run`], with `verify`.
pub(crate) fn verify(body: &str, options: &[&str]) -> Ran {
    tool("verify k.ptx --grid 2 --block 1", body, options)
}

fn tool(words: &str, body: &str, options: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 data, .param .u64 lock)\n{{\n\
         .reg .pred %p; .reg .b32 %n, %v; .reg .b64 %data, %lock;\n\
         ld.param.u64 %data, [data]; ld.param.u64 %lock, [lock]; mov.u32 %n, %ctaid.x;\n\
         {body}\nret;\n}}\n"
    );
    std::fs::write(folder.path().join("k.ptx"), text).unwrap();
    let launch = format!("{words} --arg u32[2] --arg u32[2]");
    let output = Command::new(env!("CARGO_BIN_EXE_cudarun-check"))
        .current_dir(folder.path())
        .args(launch.split(' '))
        .args(["--format", "text", "--format", "json:r.json"])
        .args(options)
        .output()
        .unwrap();
    let json = std::fs::read_to_string(folder.path().join("r.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_valid(&json);
    Ran {
        code: output.status.code().unwrap(),
        text: String::from_utf8(output.stderr).unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        json,
    }
}

/// A report follows the schema.
pub(crate) fn assert_valid(json: &Value) {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(json)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}
