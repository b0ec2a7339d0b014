//! What is written about mutants: a table of their fates, and a page with each that is neither reported nor proved.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::cause::Cause;
use super::{DEFAULT_SCHEDULES, Fates, Mutants, Survivor};

impl Mutants {
    /// All of it.
    pub fn section(&self) -> String {
        let (table, causes) = (self.table(), self.causes());
        format!("{table}\n{causes}\n{}", self.survivors())
    }

    /// How many mutants there are of each kind, and what became of them.
    fn table(&self) -> String {
        let mut text = String::from(
            "| what was done | mutants | reported by a run | proved equivalent | neither |\n|---|---:|---:|---:|---:|\n",
        );
        let mut row = |kind: &str, of: &Fates| {
            let all = of.all();
            let ([.., reported], equivalent, neither) = (of.reported, of.equivalent, of.neither);
            let _ = writeln!(
                text,
                "| {kind} | {all} | {reported} | {equivalent} | {neither} |"
            );
        };
        let mut sum = Fates::default();
        for (kind, of) in &self.kinds {
            row(&kind.to_string(), of);
            sum.add(of);
        }
        row("**all**", &sum);
        let [first, default, all] = sum.reported;
        let _ = writeln!(
            text,
            "\nOf these {all}, {first} are reported under the first schedule, which is round robin, and {default} under the first {DEFAULT_SCHEDULES}, as many as a run has by default (`--explore`)."
        );
        text
    }

    /// How many of those that are neither have which cause.
    fn causes(&self) -> String {
        let mut text = String::from("| cause | mutants |\n|---|---:|\n");
        for (cause, all) in self.by_cause() {
            let _ = writeln!(text, "| {cause} | {} |", all.len());
        }
        text
    }

    /// Those that are neither reported nor proved, by cause, file and line.
    pub(super) fn survivors(&self) -> String {
        let mut text = String::new();
        for (cause, all) in self.by_cause() {
            let _ = writeln!(text, "### {cause}\n\n{}\n", cause.meaning());
            let mut files: BTreeMap<(&str, &str), Vec<&Survivor>> = BTreeMap::new();
            for of in all {
                files.entry((&of.file, &of.part)).or_default().push(of);
            }
            for ((file, part), all) in files {
                let mut part = part.to_owned();
                if !part.is_empty() {
                    part.insert(0, ' ');
                }
                let lines: Vec<String> = all.iter().map(|of| of.show()).collect();
                let _ = writeln!(text, "- {file}{part}: {}", lines.join("; "));
            }
            text.push('\n');
        }
        if !self.left_out.is_empty() {
            text.push_str("### Not mutated\n\n");
        }
        for what in &self.left_out {
            let _ = writeln!(text, "- {what}");
        }
        text
    }

    fn by_cause(&self) -> BTreeMap<Cause, Vec<&Survivor>> {
        let mut causes: BTreeMap<Cause, Vec<&Survivor>> = BTreeMap::new();
        for of in &self.survivors {
            causes.entry(of.explained.cause).or_default().push(of);
        }
        causes
    }
}

impl Survivor {
    /// The line, what was done, and in brackets what the cause is about.
    fn show(&self) -> String {
        let about = self.explained.about.iter().map(u64::to_string);
        let about = about.collect::<Vec<_>>().join(", ");
        let about = match about.is_empty() {
            true => about,
            false => format!(" [{about}]"),
        };
        format!("{} {}{about}", self.line, self.what)
    }
}
