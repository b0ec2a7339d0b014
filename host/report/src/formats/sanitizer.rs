//! The text of compute-sanitizer's racecheck ("Racecheck Tool" in its manual), for scripts that read it.

use super::finding::{Finding, Level, Spot};
use crate::coverage;
use crate::excerpt;
use crate::model::{Act, Report};
use crate::text::Style;
use crate::words::put_in;

/// What each line begins with there.
const PREFIX: &str = "========= ";

pub(super) fn render(report: &Report, findings: &[Finding<'_>], style: Style) -> String {
    let mut text = format!("{PREFIX}COMPUTE-SANITIZER\n");
    let counted: Vec<&Finding<'_>> = findings
        .iter()
        .filter(|of| of.suppressed().is_none() && of.level != Level::Note)
        .collect();
    let shown = counted.iter().filter(|of| match of.race {
        Some(race) => style.shows(race.level),
        None => true,
    });
    let mut displayed = 0;
    for finding in shown.take(style.print_limit.unwrap_or(usize::MAX)) {
        displayed += 1;
        put_in(&mut text, format_args!("{}\n", entry(finding)));
    }
    let of = |level| counted.iter().filter(|of| of.level == level).count();
    let (errors, warnings) = (of(Level::Error), of(Level::Warning));
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    put_in(
        &mut text,
        format_args!(
            "{PREFIX}RACECHECK SUMMARY: {displayed} hazard{} displayed ({errors} error{}, {warnings} warning{})\n\
             {PREFIX}{}\n{PREFIX}{}\n",
            plural(displayed),
            plural(errors),
            plural(warnings),
            coverage::summary(report),
            coverage::coverage(report)
        ),
    );
    text
}

/// The lines of a finding, each with the prefix.
fn entry(finding: &Finding<'_>) -> String {
    let level = match finding.level {
        Level::Error => "Error",
        Level::Warning | Level::Note => "Warning",
    };
    let at = |spot: &Spot<'_>| format!("{} in {}:{}", spot.function, spot.path, spot.line);
    let lines = match (finding.race, &finding.spots[..]) {
        // Misuse of barriers has places too, and no accesses.
        (Some(race), [first, second]) if race.space.memory().is_some() => {
            let [one, other] = race.accesses.each_ref().map(|access| match access.act() {
                Act::Read => "Read",
                Act::Write => "Write",
                Act::Atomic => "Atomic",
                Act::Copy => "Copy",
            });
            vec![
                format!(
                    "{level}: Race reported between {one} access at {}",
                    at(first)
                ),
                format!(
                    "    and {other} access at {} [{} hazards]",
                    at(second),
                    race.count
                ),
            ]
        }
        (_, spots) => {
            let heading = format!("{level}: {} in {}", finding.message, finding.kernel);
            let spots = spots.iter().map(|spot| format!("    at {}", at(spot)));
            std::iter::once(heading).chain(spots).collect()
        }
    };
    let rule = format!("    {} {}", finding.rule, finding.title());
    let processes = excerpt::listed(&finding.processes);
    let processes = processes.map(|of| format!("    Process {of}"));
    let lines = lines.into_iter().chain([rule]).chain(processes);
    let lines: String = lines.map(|line| format!("{PREFIX}{line}\n")).collect();
    format!("{lines}{}", PREFIX.trim_end())
}
