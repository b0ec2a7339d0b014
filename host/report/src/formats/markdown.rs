//! GitHub-flavoured Markdown: a summary table, then each finding folded up.

use super::finding::{Finding, Level};
use crate::coverage;
use crate::model::{Report, RunOutcome};
use crate::words::{number, put_in};

/// Findings beyond this many are only counted: a job summary holds 1 MiB, a comment 64 KiB.
const SHOWN: usize = 50;

pub(super) fn render(report: &Report, findings: &[Finding<'_>]) -> String {
    let mut text = String::from("## cudarun-check: ");
    text += match report.summary.outcome {
        RunOutcome::Races => "races found",
        RunOutcome::Clean if report.summary.suppressions_fail => "unused or expired suppressions",
        RunOutcome::Clean if report.summary.warnings > 0 => "warnings",
        RunOutcome::Clean => "no races found",
        RunOutcome::Incomplete => "incomplete",
        RunOutcome::AppFailed => "the program failed",
        RunOutcome::ToolError => "internal error",
    };
    text += "\n";
    for program in report.run.programs() {
        put_in(&mut text, format_args!("\n`{}`\n", code(&program)));
    }
    let counted: Vec<&Finding<'_>> = { findings.iter() }
        .filter(|of| of.suppressed().is_none())
        .collect();
    if !counted.is_empty() {
        text += "\n| | rule | first access | second access | kernel | seen |\n|---|---|---|---|---|---:|\n";
    }
    for finding in counted.iter().take(SHOWN) {
        let level = match finding.level {
            Level::Error => "❌",
            Level::Warning => "⚠️",
            Level::Note => "ℹ️",
        };
        let place = |n: usize| {
            let spot = finding.spots.get(n);
            spot.map_or(String::new(), |spot| {
                format!("`{}:{}`", cell(&spot.path), spot.line)
            })
        };
        let seen = finding.race.map_or(String::new(), |race| {
            let least = if race.at_least { "≥ " } else { "" };
            format!("{least}{}", number(race.count))
        });
        put_in(
            &mut text,
            format_args!(
                "| {level} | {} {} | {} | {} | `{}` | {seen} |\n",
                finding.rule,
                finding.title(),
                place(0),
                place(1),
                cell(finding.kernel)
            ),
        );
    }
    for finding in counted.iter().take(SHOWN) {
        let id = finding.race.map_or("", |race| race.id.as_str());
        let fence = fence(&finding.text);
        put_in(
            &mut text,
            format_args!(
                "\n<details><summary>{} {id}: {}</summary>\n\n{fence}\n{}\n{fence}\n\n</details>\n",
                finding.rule,
                escaped(&finding.message),
                finding.text
            ),
        );
    }
    if counted.len() > SHOWN {
        let more = number((counted.len() - SHOWN) as u64);
        put_in(&mut text, format_args!("\n{more} more are not shown.\n"));
    }
    for warning in report.idle_suppressions() {
        put_in(&mut text, format_args!("\n⚠️ {}\n", escaped(&warning)));
    }
    put_in(
        &mut text,
        format_args!(
            "\n{}\n\n{}\n",
            escaped(&coverage::summary(report)),
            escaped(&coverage::coverage(report))
        ),
    );
    text
}

/// Text inside backquotes.
fn code(text: &str) -> String {
    text.replace('`', "'").replace('\n', " ")
}

/// Text inside backquotes in a cell of a table.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Text outside of backquotes that is shown as it is.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '*' | '_' | '\\' | '[' | ']' | '|' => safe.extend(['\\', c]),
            c => safe.push(c),
        }
    }
    safe
}

/// A fence of backquotes that a text does not hold.
fn fence(text: &str) -> String {
    let mut fence = String::from("```");
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_does_not_end_what_it_stands_in() {
        assert_eq!(cell("a`b|c"), "a'b\\|c");
        assert_eq!(escaped("k<int*>"), "k&lt;int\\*&gt;");
        assert_eq!(fence("x ``` y"), "````");
    }
}
