//! The figures as CSV: one line per program, empty where there is no figure.

use anyhow::Result;

use crate::figures::{Figures, Named, Outcome, RATIOS, Row, Side};

/// What is known of one way to run it, by heading.
const SIDE: [Named<Side, Option<String>>; 10] = [
    ("kernel_seconds", |s| Some(s.kernel_seconds?.to_string())),
    ("wall_seconds", |s| Some(s.wall_seconds.to_string())),
    ("warp_instructions", |s| {
        Some(s.counts?.warp_instructions.to_string())
    }),
    ("thread_instructions", |s| {
        Some(s.counts?.thread_instructions.to_string())
    }),
    ("global_sectors", |s| {
        Some(s.counts?.global_sectors.to_string())
    }),
    ("program_bytes", |s| Some(s.program_bytes.to_string())),
    ("resident_bytes", |s| Some(s.resident_bytes.to_string())),
    ("latency_p50_ns", |s| {
        Some(s.latencies.as_ref()?.all.p50.to_string())
    }),
    ("latency_p99_ns", |s| {
        Some(s.latencies.as_ref()?.all.p99.to_string())
    }),
    ("latency_most_ns", |s| {
        Some(s.latencies.as_ref()?.all.most.to_string())
    }),
];

/// What is known of both together.
const BOTH: [Named<Figures, String>; 7] = [
    ("device", |f| format!("{:?}", f.device).to_lowercase()),
    ("races", |f| f.races.to_string()),
    ("warnings", |f| f.warnings.to_string()),
    ("launches", |f| f.checked_launches[1].to_string()),
    ("launches_checked", |f| f.checked_launches[0].to_string()),
    ("rewrite_seconds", |f| f.rewrite_seconds.to_string()),
    ("shadow_bytes", |f| f.shadow_bytes.to_string()),
];

/// The whole file.
pub(crate) fn render(rows: &[Row]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut headings = vec!["program".to_owned()];
    headings.extend(BOTH.map(|(name, _)| name.to_owned()));
    for way in ["unchecked", "checked"] {
        headings.extend(SIDE.map(|(name, _)| format!("{way}_{name}")));
    }
    headings.extend(RATIOS.map(|(name, _)| format!("{name}_ratio")));
    headings.push("not_measured".to_owned());
    writer.write_record(&headings)?;
    for row in rows {
        let mut cells = vec![row.name.clone()];
        match &row.outcome {
            Outcome::Measured(figures) => {
                cells.extend(BOTH.map(|(_, of)| of(figures)));
                for side in [&figures.unchecked, &figures.checked] {
                    cells.extend(SIDE.map(|(_, of)| of(side).unwrap_or_default()));
                }
                let ratio = |of: fn(&Figures) -> Option<f64>| of(figures).map(|r| r.to_string());
                cells.extend(RATIOS.map(|(_, of)| ratio(of).unwrap_or_default()));
                cells.push(String::new());
            }
            Outcome::NotMeasured(why) => {
                cells.resize(headings.len() - 1, String::new());
                cells.push(why.clone());
            }
        }
        writer.write_record(&cells)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_figures_has_a_line_with_the_reason() {
        let row = Row {
            name: "a, b".to_owned(),
            outcome: Outcome::NotMeasured("exit code 1".to_owned()),
        };
        let text = render(&[row]).unwrap();
        let [headings, line] = &text.lines().collect::<Vec<_>>()[..] else {
            panic!("two lines: {text}")
        };
        assert!(headings.starts_with("program,device,races"));
        assert!(line.starts_with("\"a, b\",,") && line.ends_with(",exit code 1"));
        let commas = |text: &str| text.matches(',').count();
        assert_eq!(commas(headings), commas(line) - 1);
    }
}
