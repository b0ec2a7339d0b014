//! The figures as a table, ratios first.

use comfy_table::{CellAlignment, Table, presets};

use crate::measure::{Figures, Run};

const HEADINGS: [&str; 8] = [
    "program",
    "warp-instructions",
    "ratio",
    "sectors ratio",
    "wall time unchecked",
    "M thread-instructions/s unchecked",
    "launch time ratio",
    "wall time ratio",
];

/// One line per program and one for the geometric means.
pub(crate) fn render(figures: &[Figures]) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::ASCII_MARKDOWN)
        .set_header(HEADINGS);
    for one in figures {
        table.add_row([
            one.name.clone(),
            one.unchecked.counts.warp_instructions.to_string(),
            show(instructions(one)),
            show(sectors(one)),
            format!("{:.3} s", one.unchecked.seconds),
            format!("{:.1}", speed(one)),
            show(launch_seconds(one)),
            show(seconds(one)),
        ]);
    }
    let mean = |ratio: fn(&Figures) -> f64| show(geometric_mean(figures.iter().map(ratio)));
    let empty = String::new;
    table.add_row([
        "geometric mean".into(),
        empty(),
        mean(instructions),
        mean(sectors),
        empty(),
        empty(),
        mean(launch_seconds),
        mean(seconds),
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

fn instructions(figures: &Figures) -> f64 {
    ratio(figures, |run| run.counts.warp_instructions as f64)
}

fn sectors(figures: &Figures) -> f64 {
    ratio(figures, |run| run.counts.global_sectors as f64)
}

/// Millions of thread-instructions per second inside launches, without checks.
fn speed(figures: &Figures) -> f64 {
    let counts = figures.unchecked.counts;
    counts.thread_instructions as f64 / counts.launch_seconds / 1e6
}

fn launch_seconds(figures: &Figures) -> f64 {
    ratio(figures, |run| run.counts.launch_seconds)
}

fn seconds(figures: &Figures) -> f64 {
    ratio(figures, |run| run.seconds)
}

fn ratio(figures: &Figures, of: impl Fn(&Run) -> f64) -> f64 {
    of(&figures.checked) / of(&figures.unchecked)
}

fn show(ratio: f64) -> String {
    if ratio.is_finite() {
        format!("{ratio:.2}")
    } else {
        "-".to_owned()
    }
}

fn geometric_mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = ratios
        .filter(|ratio| ratio.is_finite())
        .fold((0.0, 0.0), |(s, n), r| (s + r.ln(), n + 1.0));
    f64::exp(sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_geometric_and_skips_what_has_no_ratio() {
        assert!((geometric_mean([2.0, 8.0, f64::NAN].into_iter()) - 4.0).abs() < 1e-12);
        assert_eq!(show(geometric_mean([].into_iter())), "-");
    }
}
