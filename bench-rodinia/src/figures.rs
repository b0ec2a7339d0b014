//! What is known of a program after its runs.

use report::model::{DeviceKind, Stats};
use serde::Serialize;

use crate::latency::Latencies;

/// What is known of one program.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// With `--check off`.
    pub(crate) unchecked: Option<Side>,
    pub(crate) checked: Option<Checked>,
    /// Why one or both of them are missing, in one line.
    pub(crate) not_measured: Option<String>,
}

/// The figures of the runs with checks.
#[derive(Debug, Serialize)]
pub(crate) struct Checked {
    #[serde(flatten)]
    pub(crate) side: Side,
    /// Races that the tool calls errors, and those that it warns of.
    pub(crate) races: usize,
    pub(crate) warnings: usize,
    /// Of one run's launches, those that were checked.
    pub(crate) launches_checked: u64,
    /// Median of the time that all modules took to be parsed and rewritten.
    pub(crate) rewrite_seconds: f64,
    /// Reserved for shadow cells, witnesses and what goes with them.
    pub(crate) shadow_bytes: u64,
}

/// The figures of one way to run it.
#[derive(Debug, Serialize)]
pub(crate) struct Side {
    /// Runs that there are figures of.
    pub(crate) runs: usize,
    /// Version of the tool.
    pub(crate) version: String,
    /// Whose clock launches are timed by: `sim`, or `gpu`.
    pub(crate) device: DeviceKind,
    /// Median of the whole process, with start and report.
    pub(crate) wall_seconds: f64,
    /// Median of the time inside launches; none without launches.
    pub(crate) kernel_seconds: Option<f64>,
    /// Of one run; none on a GPU, which does not count.
    pub(crate) counts: Option<Counts>,
    /// Launches of one run.
    pub(crate) launches: u64,
    /// Device memory that the program had allocated.
    pub(crate) program_bytes: u64,
    /// Most memory that the program, or the tool, had resident in the host.
    pub(crate) resident_bytes: u64,
    /// Launches of all runs; none without launches.
    pub(crate) latencies: Option<Latencies>,
}

impl Row {
    /// Both ways, as far as they are known.
    pub(crate) fn sides(&self) -> [Option<&Side>; 2] {
        let checked = self.checked.as_ref();
        [
            self.unchecked.as_ref(),
            checked.map(|checked| &checked.side),
        ]
    }
}

/// What the simulated device counted, over all launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) warp_instructions: u64,
    pub(crate) thread_instructions: u64,
    /// 32-byte sectors of global memory that the accesses touched.
    pub(crate) global_sectors: u64,
    /// Fences, acquires and releases of gpu or sys scope.
    pub(crate) device_fences: u64,
}

/// Checked over unchecked; none where either is not known, or nothing.
pub(crate) fn ratio(row: &Row, of: impl Fn(&Side) -> Option<f64>) -> Option<f64> {
    let [unchecked, checked] = row.sides();
    let ratio = of(checked?)? / of(unchecked?)?;
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

/// A figure of `T`, and what it is called in CSV and JSON.
pub(crate) type Named<T, Figure> = (&'static str, fn(&T) -> Figure);

/// The ratios there are.
pub(crate) const RATIOS: [Named<Row, Option<f64>>; 5] = [
    ("kernel_time", |row| ratio(row, |side| side.kernel_seconds)),
    ("wall_time", |row| {
        ratio(row, |side| Some(side.wall_seconds))
    }),
    ("warp_instructions", |row| {
        ratio(row, |side| Some(side.counts?.warp_instructions as f64))
    }),
    ("global_sectors", |row| {
        ratio(row, |side| Some(side.counts?.global_sectors as f64))
    }),
    ("resident_bytes", |row| {
        ratio(row, |side| Some(side.resident_bytes as f64))
    }),
];

/// The ratio of that name.
pub(crate) fn named_ratio(row: &Row, name: &str) -> Option<f64> {
    let (_, of) = RATIOS.iter().find(|(known, _)| *known == name)?;
    of(row)
}

impl From<&Stats> for Counts {
    fn from(stats: &Stats) -> Self {
        Self {
            warp_instructions: stats.warp_instructions,
            thread_instructions: stats.thread_instructions,
            global_sectors: stats.global_sectors,
            device_fences: stats.device_fences,
        }
    }
}

/// Whether no launch was timed by a GPU.
pub(crate) fn simulated(rows: &[Row]) -> bool {
    let mut sides = rows.iter().flat_map(Row::sides).flatten();
    sides.all(|side| side.device == DeviceKind::Sim)
}

/// The geometric mean of those that are known, and how many those are.
pub(crate) fn geometric_mean(ratios: impl Iterator<Item = Option<f64>>) -> Option<(f64, usize)> {
    let logarithms: Vec<f64> = ratios.flatten().map(f64::ln).collect();
    let count = logarithms.len();
    (count > 0).then(|| {
        (
            f64::exp(logarithms.iter().sum::<f64>() / count as f64),
            count,
        )
    })
}

/// The middle value, or the mean of the two in the middle; none of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        1 => Some(values[half]),
        _ => Some((values.get(half.checked_sub(1)?)? + values.get(half)?) / 2.0),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program that takes so many times longer with checks, and executes twice as much.
    pub(crate) fn row(name: &str, slowdown: f64) -> Row {
        let side = |kernel_seconds, warp_instructions| Side {
            runs: 3,
            version: "1".to_owned(),
            device: DeviceKind::Sim,
            wall_seconds: 1.0,
            kernel_seconds: Some(kernel_seconds),
            counts: Some(Counts {
                warp_instructions,
                thread_instructions: 32 * warp_instructions,
                global_sectors: 0,
                device_fences: 0,
            }),
            launches: 1,
            program_bytes: 4096,
            resident_bytes: 1 << 20,
            latencies: None,
        };
        Row {
            name: name.to_owned(),
            unchecked: Some(side(0.5, 100)),
            checked: Some(Checked {
                side: side(0.5 * slowdown, 200),
                races: 0,
                warnings: 0,
                launches_checked: 1,
                rewrite_seconds: 0.1,
                shadow_bytes: 1 << 20,
            }),
            not_measured: None,
        }
    }

    /// A program of which nothing is known.
    pub(crate) fn nothing(name: &str, why: &str) -> Row {
        Row {
            name: name.to_owned(),
            unchecked: None,
            checked: None,
            not_measured: Some(why.to_owned()),
        }
    }

    #[test]
    fn the_mean_is_geometric_and_skips_what_has_no_ratio() {
        let (mean, count) = geometric_mean([Some(2.0), Some(8.0), None].into_iter()).unwrap();
        assert!((mean - 4.0).abs() < 1e-12);
        assert_eq!(count, 2);
        assert_eq!(geometric_mean([None].into_iter()), None);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![3.0, 1.0]), Some(2.0));
        assert_eq!(median(vec![]), None);
    }
}
