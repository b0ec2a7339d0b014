//! The figures as CSV: one line per program, empty where there is no figure.

use anyhow::Result;

use crate::figures::{Checked, Named, RATIOS, Row, Side};

/// What is known of one way to run it, by heading.
const SIDE: [Named<Side, Option<String>>; 14] = [
    ("device", |s| Some(s.device.to_string())),
    ("launches", |s| Some(s.launches.to_string())),
    ("runs", |s| Some(s.runs.to_string())),
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
    ("device_fences", |s| {
        Some(s.counts?.device_fences.to_string())
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

/// What is known of the checked runs alone.
const CHECKED: [Named<Checked, String>; 5] = [
    ("races", |c| c.races.to_string()),
    ("warnings", |c| c.warnings.to_string()),
    ("launches_checked", |c| c.launches_checked.to_string()),
    ("rewrite_seconds", |c| c.rewrite_seconds.to_string()),
    ("shadow_bytes", |c| c.shadow_bytes.to_string()),
];

/// The whole file.
pub(crate) fn render(rows: &[Row]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut headings = vec!["program".to_owned()];
    for way in ["unchecked", "checked"] {
        headings.extend(SIDE.map(|(name, _)| format!("{way}_{name}")));
    }
    headings.extend(CHECKED.map(|(name, _)| name.to_owned()));
    headings.extend(RATIOS.map(|(name, _)| format!("{name}_ratio")));
    headings.push("not_measured".to_owned());
    writer.write_record(&headings)?;
    for row in rows {
        let mut cells = vec![row.name.clone()];
        for side in row.sides() {
            cells.extend(SIDE.map(|(_, of)| side.and_then(of).unwrap_or_default()));
        }
        let checked = row.checked.as_ref();
        cells.extend(CHECKED.map(|(_, of)| checked.map(of).unwrap_or_default()));
        let ratios = RATIOS.map(|(_, of)| of(row).map(|ratio| ratio.to_string()));
        cells.extend(ratios.map(Option::unwrap_or_default));
        cells.push(row.not_measured.clone().unwrap_or_default());
        writer.write_record(&cells)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests;

    #[test]
    fn a_program_without_figures_has_a_line_with_the_reason() {
        let rows = [tests::nothing("a, b", "exit code 1"), tests::row("c", 2.5)];
        let text = render(&rows).unwrap();
        let [headings, nothing, line] = &text.lines().collect::<Vec<_>>()[..] else {
            panic!("three lines: {text}")
        };
        assert!(headings.starts_with("program,unchecked_device,"));
        assert!(nothing.starts_with("\"a, b\",,") && nothing.ends_with(",exit code 1"));
        let commas = |text: &str| text.matches(',').count();
        assert_eq!(commas(headings), commas(nothing) - 1);
        assert_eq!(commas(headings), commas(line));
        let column = |name| headings.split(',').position(|known| known == name).unwrap();
        let cell = |name| line.split(',').nth(column(name)).unwrap();
        assert_eq!(
            (cell("kernel_time_ratio"), cell("not_measured")),
            ("2.5", "")
        );
    }
}
