//! Whether what is reported of a kernel depends on who came first.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use report::log;
use runtime::{Mode, Model};

use super::super::kernel::Kernel;
use super::super::text;
use super::bench::Bench;
use crate::machine::Checks;

/// A report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Report {
    /// What is said of it.
    pub what: &'static str,
    /// The smaller line first.
    pub lines: [u32; 2],
}

/// What was reported of a kernel under several schedules.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Schedules.
    pub schedules: usize,
    /// The schedules that reported anything.
    pub reporting: usize,
    /// Under which schedules a report was made.
    pub reports: BTreeMap<Report, BTreeSet<u64>>,
}

impl Orders {
    /// Some schedules report something and others nothing.
    pub fn differ(&self) -> bool {
        (1..self.schedules).contains(&self.reporting)
    }

    /// Reports that some schedules make and others do not.
    pub fn partial(&self) -> impl Iterator<Item = (&Report, usize)> {
        let reports = self
            .reports
            .iter()
            .map(|(report, under)| (report, under.len()));
        reports.filter(|(_, under)| *under < self.schedules)
    }
}

/// Runs a kernel as it was written, under several schedules and a memory model.
///
/// # Errors
/// When it does not run.
pub fn orders(kernel: &Kernel, schedules: &[u64], model: Option<Model>) -> Result<Orders> {
    let text = text::write(kernel);
    let mut bench = Bench::under(model, kernel, &text, Checks::by(Mode::Precise))?;
    let mut orders = Orders {
        schedules: schedules.len(),
        ..Orders::default()
    };
    for &schedule in schedules {
        let run = bench.run(schedule)?;
        orders.reporting += usize::from(!run.races.is_empty());
        for race in &run.races {
            let line = |site| run.lines.get(&site).copied().unwrap_or(0);
            let (a, b) = (line(race.site), line(race.previous_site));
            let what = match race.why {
                log::Why::Strong => "strong",
                log::Why::LockOrder => "lock-order",
                log::Why::Fences => "order of fences",
                log::Why::Counted => "order of counting",
                _ => "race",
            };
            let lines = [a.min(b), a.max(b)];
            let report = Report { what, lines };
            orders.reports.entry(report).or_default().insert(schedule);
        }
    }
    Ok(orders)
}
