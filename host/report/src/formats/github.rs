//! Workflow commands of GitHub Actions: one annotation for each finding.
//!
//! GitHub documents them under "Workflow commands for GitHub Actions".

use super::finding::{Finding, Level};
use crate::coverage;
use crate::excerpt;
use crate::model::{Report, RunOutcome};
use crate::words::put_in;

pub(super) fn render(report: &Report, findings: &[Finding<'_>]) -> String {
    let mut text = String::new();
    for finding in findings.iter().filter(|of| of.suppressed().is_none()) {
        let level = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "notice",
        };
        let mut message = finding.message.clone();
        for spot in &finding.spots {
            put_in(
                &mut message,
                format_args!("\n{}:{}: {}", spot.path, spot.line, spot.label),
            );
        }
        if let Some(processes) = excerpt::listed(&finding.processes) {
            put_in(&mut message, format_args!("\nprocess: {processes}"));
        }
        if !finding.help.is_empty() {
            put_in(&mut message, format_args!("\nhelp: {}", finding.help));
        }
        let title = format!("{}: {}", finding.rule, finding.title());
        let property = |name, value| Property { name, value };
        let mut properties = vec![property("title", title)];
        if let Some(spot) = finding.spots.first() {
            properties.push(property("file", spot.path.clone()));
            properties.push(property("line", spot.line.to_string()));
            if let Some(columns) = &spot.columns {
                properties.push(property("col", columns.start.to_string()));
                properties.push(property("endColumn", columns.end.to_string()));
            }
        }
        command(&mut text, level, &properties, &message);
    }
    let level = match report.summary.suppressions_fail {
        true => "error",
        false => "warning",
    };
    for warning in report.idle_suppressions() {
        let title = Property {
            name: "title",
            value: "cudarun-check: suppression".to_owned(),
        };
        command(&mut text, level, &[title], &warning);
    }
    let because = &report.coverage.incomplete_because;
    if matches!(
        report.summary.outcome,
        RunOutcome::Incomplete | RunOutcome::Races
    ) && !because.is_empty()
    {
        let title = Property {
            name: "title",
            value: "cudarun-check: incomplete".to_owned(),
        };
        command(&mut text, "warning", &[title], &coverage::summary(report));
    }
    command(&mut text, "notice", &[], &coverage::coverage(report));
    text
}

/// What a command says about its message.
struct Property {
    name: &'static str,
    value: String,
}

fn command(text: &mut String, name: &str, properties: &[Property], message: &str) {
    put_in(text, format_args!("::{name}"));
    for (n, property) in properties.iter().enumerate() {
        let before = if n == 0 { ' ' } else { ',' };
        let value = escaped(&property.value);
        let value = value.replace(':', "%3A").replace(',', "%2C");
        put_in(text, format_args!("{before}{}={value}", property.name));
    }
    put_in(text, format_args!("::{}\n", escaped(message)));
}

/// A value without what ends a command.
fn escaped(text: &str) -> String {
    { text.replace('%', "%25") }
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stay_on_one_line() {
        let mut text = String::new();
        let file = Property {
            name: "file",
            value: "a,b:c".to_owned(),
        };
        command(&mut text, "error", &[file], "1\n2%");
        assert_eq!(text, "::error file=a%2Cb%3Ac::1%0A2%25\n");
    }
}
