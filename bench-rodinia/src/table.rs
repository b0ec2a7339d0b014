//! The figures as tables for people, in Markdown.

use comfy_table::{CellAlignment, Table, presets};

use crate::figures::{Figures, RATIOS, Row, Side, geometric_mean, ratio};
use crate::report::Device;

/// What stands where there is no figure.
const NONE: &str = "not measured";

/// A column: its heading, what a program has there, and the ratio whose mean is below.
struct Column {
    heading: &'static str,
    cell: fn(&Figures) -> Option<String>,
    mean: Option<&'static str>,
}

const TIMES: [Column; 9] = [
    Column {
        heading: "kernel time",
        cell: |f| f.unchecked.kernel_seconds.map(seconds),
        mean: None,
    },
    Column {
        heading: "checked",
        cell: |f| f.checked.kernel_seconds.map(seconds),
        mean: None,
    },
    Column {
        heading: "ratio",
        cell: |f| ratio(f, |side| side.kernel_seconds).map(times),
        mean: Some("kernel_time"),
    },
    Column {
        heading: "wall time",
        cell: |f| Some(seconds(f.unchecked.wall_seconds)),
        mean: None,
    },
    Column {
        heading: "checked",
        cell: |f| Some(seconds(f.checked.wall_seconds)),
        mean: None,
    },
    Column {
        heading: "ratio",
        cell: |f| ratio(f, |side| Some(side.wall_seconds)).map(times),
        mean: Some("wall_time"),
    },
    Column {
        heading: "rewriting",
        cell: |f| Some(seconds(f.rewrite_seconds)),
        mean: None,
    },
    Column {
        heading: "launches checked",
        cell: |f| {
            Some(format!(
                "{} of {}",
                f.checked_launches[0], f.checked_launches[1]
            ))
        },
        mean: None,
    },
    Column {
        heading: "races",
        cell: |f| {
            Some(match f.warnings {
                0 => f.races.to_string(),
                warnings => format!("{} and {warnings} warnings", f.races),
            })
        },
        mean: None,
    },
];

const COUNTS: [Column; 9] = [
    Column {
        heading: "warp-instructions",
        cell: |f| Some(f.unchecked.counts?.warp_instructions.to_string()),
        mean: None,
    },
    Column {
        heading: "checked",
        cell: |f| Some(f.checked.counts?.warp_instructions.to_string()),
        mean: None,
    },
    Column {
        heading: "ratio",
        cell: |f| ratio(f, |side| Some(side.counts?.warp_instructions as f64)).map(times),
        mean: Some("warp_instructions"),
    },
    Column {
        heading: "sectors",
        cell: |f| Some(f.unchecked.counts?.global_sectors.to_string()),
        mean: None,
    },
    Column {
        heading: "checked",
        cell: |f| Some(f.checked.counts?.global_sectors.to_string()),
        mean: None,
    },
    Column {
        heading: "ratio",
        cell: |f| ratio(f, |side| Some(side.counts?.global_sectors as f64)).map(times),
        mean: Some("global_sectors"),
    },
    Column {
        heading: "program's memory",
        cell: |f| Some(bytes(f.unchecked.program_bytes)),
        mean: None,
    },
    Column {
        heading: "shadow reserved",
        cell: |f| Some(bytes(f.shadow_bytes)),
        mean: None,
    },
    Column {
        heading: "resident in the host",
        cell: |f| {
            let of = |side: &Side| bytes(side.resident_bytes);
            Some(format!("{} -> {}", of(&f.unchecked), of(&f.checked)))
        },
        mean: None,
    },
];

const LATENCIES: [Column; 7] = [
    Column {
        heading: "launches of a run",
        cell: |f| Some(f.checked_launches[1].to_string()),
        mean: None,
    },
    Column {
        heading: "median",
        cell: |f| Some(span(f.unchecked.latencies.as_ref()?.all.p50)),
        mean: None,
    },
    Column {
        heading: "99 %",
        cell: |f| Some(span(f.unchecked.latencies.as_ref()?.all.p99)),
        mean: None,
    },
    Column {
        heading: "longest",
        cell: |f| Some(span(f.unchecked.latencies.as_ref()?.all.most)),
        mean: None,
    },
    Column {
        heading: "median, checked",
        cell: |f| Some(span(f.checked.latencies.as_ref()?.all.p50)),
        mean: None,
    },
    Column {
        heading: "99 %, checked",
        cell: |f| Some(span(f.checked.latencies.as_ref()?.all.p99)),
        mean: None,
    },
    Column {
        heading: "longest, checked",
        cell: |f| Some(span(f.checked.latencies.as_ref()?.all.most)),
        mean: None,
    },
];

/// All tables, each under a line that says what it shows.
pub(crate) fn render(rows: &[Row]) -> String {
    let known: Vec<&Figures> = rows.iter().filter_map(Row::figures).collect();
    let simulated = known.iter().any(|f| f.device == Device::Sim);
    let clock = match simulated {
        true => "Kernel time is wall time inside launches on the simulated device, not a GPU's",
        false => "Kernel time is a GPU's, by events",
    };
    let mut text = format!("{clock}; ratios are checked over unchecked.\n\n");
    text += &table(rows, &TIMES);
    text += "\n\nExecuted warp-instructions, 32-byte sectors of global memory, and memory.\n\n";
    text += &table(rows, &COUNTS);
    text += "\n\nTime of single launches.\n\n";
    text += &table(rows, &LATENCIES);
    for row in rows {
        if let crate::figures::Outcome::NotMeasured(why) = &row.outcome {
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
        let cell = |column: &Column| row.figures().and_then(column.cell);
        let cells = columns.iter().map(cell);
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
    let of = RATIOS.iter().find(|(known, _)| *known == name);
    let ratios = rows
        .iter()
        .map(|row| row.figures().and_then(|f| of.and_then(|(_, of)| of(f))));
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
    use crate::figures::Outcome;

    #[test]
    fn spans_have_three_digits() {
        assert_eq!(span(1_234), "1.23 us");
        assert_eq!(span(56_789_000), "56.8 ms");
        assert_eq!(seconds(123.4), "123 s");
        assert_eq!(bytes(20 << 20), "20 MiB");
    }

    #[test]
    fn means_are_of_what_is_known() {
        let text = render(&[
            crate::figures::tests::row("a", 2.0),
            crate::figures::tests::row("b", 8.0),
        ]);
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
        let row = Row {
            name: "x".to_owned(),
            outcome: Outcome::NotMeasured("no such file".to_owned()),
        };
        let text = render(&[row]);
        assert!(text.contains("x: not measured: no such file"), "{text}");
        let cells = text.matches("not measured").count();
        // Every cell of the program, five means, and the line that says why.
        assert_eq!(cells, TIMES.len() + COUNTS.len() + LATENCIES.len() + 4 + 1);
    }
}
