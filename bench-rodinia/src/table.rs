//! The figures as tables for people, in Markdown.

use comfy_table::{CellAlignment, Table, presets};

use crate::figures::{Row, geometric_mean, named_ratio, ratio, simulated};

/// What stands where there is no figure.
const NONE: &str = "not measured";

/// A column: its heading, what a program has there, and the ratio whose mean is below.
struct Column {
    heading: &'static str,
    cell: fn(&Row) -> Option<String>,
    mean: Option<&'static str>,
}

const TIMES: [Column; 10] = [
    Column {
        heading: "runs",
        cell: |row| match row.sides().map(|side| side.map(|side| side.runs)) {
            [Some(unchecked), Some(checked)] if unchecked != checked => {
                Some(format!("{unchecked}, {checked} checked"))
            }
            [unchecked, checked] => unchecked.or(checked).map(|runs| runs.to_string()),
        },
        mean: None,
    },
    Column {
        heading: "kernel time",
        cell: |row| row.unchecked.as_ref()?.kernel_seconds.map(seconds),
        mean: None,
    },
    Column {
        heading: "checked",
        cell: |row| row.checked.as_ref()?.side.kernel_seconds.map(seconds),
        mean: None,
    },
    Column {
        heading: "ratio",
        cell: |row| ratio(row, |side| side.kernel_seconds).map(times),
        mean: Some("kernel_time"),
    },
    Column {
        heading: "wall time",
        cell: |row| Some(seconds(row.unchecked.as_ref()?.wall_seconds)),
        mean: None,
    },
    Column {
        heading: "checked",
        cell: |row| Some(seconds(row.checked.as_ref()?.side.wall_seconds)),
        mean: None,
    },
    Column {
        heading: "ratio",
        cell: |row| ratio(row, |side| Some(side.wall_seconds)).map(times),
        mean: Some("wall_time"),
    },
    Column {
        heading: "rewriting",
        cell: |row| Some(seconds(row.checked.as_ref()?.rewrite_seconds)),
        mean: None,
    },
    Column {
        heading: "launches checked",
        cell: |row| {
            Some(format!(
                "{} of {}",
                row.checked.as_ref()?.launches_checked,
                row.checked.as_ref()?.side.launches
            ))
        },
        mean: None,
    },
    Column {
        heading: "races",
        cell: |row| {
            let found = row.checked.as_ref()?;
            Some(match found.warnings {
                0 => found.races.to_string(),
                warnings => format!("{} and {warnings} warnings", found.races),
            })
        },
        mean: None,
    },
];

const COUNTS: [Column; 11] = [
    Column {
        heading: "warp-instructions",
        cell: |row| {
            Some(
                row.unchecked
                    .as_ref()?
                    .counts?
                    .warp_instructions
                    .to_string(),
            )
        },
        mean: None,
    },
    Column {
        heading: "checked",
        cell: |row| {
            Some(
                row.checked
                    .as_ref()?
                    .side
                    .counts?
                    .warp_instructions
                    .to_string(),
            )
        },
        mean: None,
    },
    Column {
        heading: "ratio",
        cell: |row| ratio(row, |side| Some(side.counts?.warp_instructions as f64)).map(times),
        mean: Some("warp_instructions"),
    },
    Column {
        heading: "sectors",
        cell: |row| Some(row.unchecked.as_ref()?.counts?.global_sectors.to_string()),
        mean: None,
    },
    Column {
        heading: "checked",
        cell: |row| {
            Some(
                row.checked
                    .as_ref()?
                    .side
                    .counts?
                    .global_sectors
                    .to_string(),
            )
        },
        mean: None,
    },
    Column {
        heading: "ratio",
        cell: |row| ratio(row, |side| Some(side.counts?.global_sectors as f64)).map(times),
        mean: Some("global_sectors"),
    },
    Column {
        heading: "fences",
        cell: |row| Some(row.unchecked.as_ref()?.counts?.device_fences.to_string()),
        mean: None,
    },
    Column {
        heading: "checked",
        cell: |row| Some(row.checked.as_ref()?.side.counts?.device_fences.to_string()),
        mean: None,
    },
    Column {
        heading: "program's memory",
        cell: |row| Some(bytes(row.unchecked.as_ref()?.program_bytes)),
        mean: None,
    },
    Column {
        heading: "shadow reserved",
        cell: |row| Some(bytes(row.checked.as_ref()?.shadow_bytes)),
        mean: None,
    },
    Column {
        heading: "resident in the host",
        cell: |row| {
            let [unchecked, checked] = row.sides();
            let (before, after) = (unchecked?.resident_bytes, checked?.resident_bytes);
            Some(format!("{} -> {}", bytes(before), bytes(after)))
        },
        mean: None,
    },
];

const LATENCIES: [Column; 7] = [
    Column {
        heading: "launches of a run",
        cell: |row| Some(row.unchecked.as_ref()?.launches.to_string()),
        mean: None,
    },
    Column {
        heading: "median",
        cell: |row| Some(span(row.unchecked.as_ref()?.latencies.as_ref()?.all.p50)),
        mean: None,
    },
    Column {
        heading: "99 %",
        cell: |row| Some(span(row.unchecked.as_ref()?.latencies.as_ref()?.all.p99)),
        mean: None,
    },
    Column {
        heading: "longest",
        cell: |row| Some(span(row.unchecked.as_ref()?.latencies.as_ref()?.all.most)),
        mean: None,
    },
    Column {
        heading: "median, checked",
        cell: |row| Some(span(row.checked.as_ref()?.side.latencies.as_ref()?.all.p50)),
        mean: None,
    },
    Column {
        heading: "99 %, checked",
        cell: |row| Some(span(row.checked.as_ref()?.side.latencies.as_ref()?.all.p99)),
        mean: None,
    },
    Column {
        heading: "longest, checked",
        cell: |row| {
            Some(span(
                row.checked.as_ref()?.side.latencies.as_ref()?.all.most,
            ))
        },
        mean: None,
    },
];

/// All tables, each under a line that says what it shows.
pub(crate) fn render(rows: &[Row]) -> String {
    let clock = match simulated(rows) {
        true => "Kernel time is wall time inside launches on the simulated device, not a GPU's",
        false => "Kernel time is a GPU's, by events",
    };
    let mut text = format!("{clock}; ratios are checked over unchecked.\n\n");
    text += &table(rows, &TIMES);
    text += "\n\nExecuted warp-instructions, 32-byte sectors of global memory, fences (acquires and releases too) of gpu or sys scope, and memory.\n\n";
    text += &table(rows, &COUNTS);
    text += "\n\nTime of single launches.\n\n";
    text += &table(rows, &LATENCIES);
    for row in rows {
        if let Some(why) = &row.not_measured {
            text += &format!("\n{}: {NONE}: {why}", row.name);
        }
    }
    text
}

/// One line per program and one for the geometric means.
fn table(rows: &[Row], columns: &[Column]) -> String {
    let mut table = Table::new();
    let headings = columns.iter().map(|column| column.heading);
    table
        .load_preset(presets::ASCII_MARKDOWN)
        .set_header(std::iter::once("program").chain(headings));
    for row in rows {
        let cells = columns.iter().map(|column| (column.cell)(row));
        let cells = cells.map(|cell| cell.unwrap_or_else(|| NONE.to_owned()));
        table.add_row(std::iter::once(row.name.clone()).chain(cells));
    }
    if columns.iter().any(|column| column.mean.is_some()) {
        let cells = columns.iter().map(|column| match column.mean {
            Some(name) => mean(rows, name),
            None => String::new(),
        });
        table.add_row(std::iter::once("geometric mean".to_owned()).chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

fn mean(rows: &[Row], name: &str) -> String {
    let ratios = rows.iter().map(|row| named_ratio(row, name));
    match geometric_mean(ratios) {
        Some((mean, count)) if count == rows.len() => times(mean),
        Some((mean, count)) => format!("{} of {count}", times(mean)),
        None => NONE.to_owned(),
    }
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2} x")
}

fn seconds(seconds: f64) -> String {
    span((seconds * 1e9) as u64)
}

/// Three significant digits and a unit.
fn span(nanoseconds: u64) -> String {
    let (unit, value) = match nanoseconds {
        0..1_000_000 => ("us", nanoseconds as f64 / 1e3),
        1_000_000..1_000_000_000 => ("ms", nanoseconds as f64 / 1e6),
        _ => ("s", nanoseconds as f64 / 1e9),
    };
    let digits = match value {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests;

    #[test]
    fn spans_have_three_digits() {
        assert_eq!(span(1_234), "1.23 us");
        assert_eq!(span(56_789_000), "56.8 ms");
        assert_eq!(seconds(123.4), "123 s");
        assert_eq!(bytes(20 << 20), "20 MiB");
    }

    #[test]
    fn means_are_of_what_is_known() {
        let text = render(&[tests::row("a", 2.0), tests::row("b", 8.0)]);
        let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap();
        assert!(line("| geometric mean |").contains(" 4.00 x |"), "{text}");
        assert!(
            line("| b ").contains("500 ms |  4.00 s | 8.00 x |"),
            "{text}"
        );
        // No sectors were touched, so there is no ratio.
        assert!(text.contains("not measured"));
    }

    #[test]
    fn what_is_not_measured_says_so() {
        let row = tests::nothing("x", "no such file");
        let text = render(&[row]);
        assert!(text.contains("x: not measured: no such file"), "{text}");
        let cells = text.matches("not measured").count();
        // Every cell of the program, five means, and the line that says why.
        assert_eq!(cells, TIMES.len() + COUNTS.len() + LATENCIES.len() + 4 + 1);
    }
}
