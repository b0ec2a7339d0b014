//! A kernel that disagrees, as a test file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::Result;

use super::judge::{self, Finding};
use super::kernel::Kernel;
use super::text;

/// The file's name and its text. What it expects is what happens-before says, where it runs.
pub fn file(kernel: &Kernel, finding: &Finding) -> (String, String) {
    let name = format!("{}_{:x}.ptx", finding.wrong.name(), kernel.seed);
    let text = text::write(kernel);
    let mut lines = text.lines.clone();
    let pairs = pairs(kernel).unwrap_or_default();
    let mut marks: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (number, (a, b)) in pairs.iter().enumerate() {
        for line in BTreeSet::from([*a, *b]) {
            marks.entry(line).or_default().push(format!("R{number}"));
        }
    }
    for (line, labels) in marks {
        if let Some(line) = lines.get_mut(line as usize - 1) {
            for label in labels {
                let _ = write!(line, "  //~ race {label}");
            }
        }
    }
    let expect = if pairs.is_empty() { "no-race" } else { "race" };
    let header = format!(
        "//@ grid: {}\n//@ block: {}\n{}//@ kernel: {}\n//@ arg: u8[{}] zero\n//@ expect: {expect}\n//\n\
         // Found by `cargo xtask fuzz`, seed {}, made smaller: {}.\n",
        kernel.ctas,
        kernel.threads(),
        match kernel.cooperative() {
            true => "//@ cooperative: true\n",
            false => "",
        },
        text::ENTRY,
        kernel.bytes(),
        kernel.seed,
        finding.what,
    );
    (name, header + &lines.join("\n") + "\n")
}

/// Pairs of lines that race by happens-before, under the schedules of a file test.
fn pairs(kernel: &Kernel) -> Result<BTreeSet<(u32, u32)>> {
    let schedules: Vec<u64> = (0..=16).collect();
    judge::racing_lines(kernel, &schedules)
}
