//! How long single launches took, over all runs of a program: hdrhistogram's quantiles.

use std::collections::BTreeMap;

use anyhow::Result;
use hdrhistogram::Histogram;
use report::model::Latency;
use serde::Serialize;

/// Of all launches, and of each kernel's.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Latencies {
    pub(crate) all: Quantiles,
    pub(crate) kernels: BTreeMap<String, Quantiles>,
    /// Of all launches: the longest time of each bin in nanoseconds, ascending, and how many it holds.
    pub(crate) histogram: Vec<(u64, u64)>,
}

/// Times in nanoseconds, to three significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Quantiles {
    /// In all runs together.
    pub(crate) launches: u64,
    pub(crate) least: u64,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) most: u64,
}

/// Joins the reports of several runs; none without launches.
pub(crate) fn merge<'a>(reports: impl Iterator<Item = &'a Latency>) -> Result<Option<Latencies>> {
    let mut all = empty()?;
    let mut kernels: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    for latency in reports {
        let kernel = match kernels.entry(latency.kernel.clone()) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => new.insert(empty()?),
        };
        for bin in &latency.bins {
            all.record_n(bin.nanoseconds, bin.launches)?;
            kernel.record_n(bin.nanoseconds, bin.launches)?;
        }
    }
    let kernels = kernels
        .into_iter()
        .filter(|(_, histogram)| !histogram.is_empty());
    Ok((!all.is_empty()).then(|| Latencies {
        all: quantiles(&all),
        kernels: kernels
            .map(|(name, histogram)| (name, quantiles(&histogram)))
            .collect(),
        histogram: all
            .iter_recorded()
            .map(|bin| (bin.value_iterated_to(), bin.count_at_value()))
            .collect(),
    }))
}

fn empty() -> Result<Histogram<u64>> {
    let mut histogram = Histogram::new(3)?;
    histogram.auto(true);
    Ok(histogram)
}

fn quantiles(histogram: &Histogram<u64>) -> Quantiles {
    Quantiles {
        launches: histogram.len(),
        least: histogram.min(),
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p99: histogram.value_at_quantile(0.99),
        most: histogram.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::model::Bin;

    #[test]
    fn runs_are_joined_by_kernel() {
        let latency = |kernel: &str, bins: &[(u64, u64)]| Latency {
            kernel: kernel.to_owned(),
            bins: bins
                .iter()
                .map(|&(nanoseconds, launches)| Bin {
                    nanoseconds,
                    launches,
                })
                .collect(),
        };
        let reports = [
            latency("a", &[(10, 98)]),
            latency("b", &[(1000, 1)]),
            latency("a", &[(500, 1)]),
        ];
        let merged = merge(reports.iter()).unwrap().unwrap();
        let Quantiles {
            launches, p50, p99, ..
        } = merged.all;
        assert_eq!((launches, p50, p99, merged.all.most), (100, 10, 500, 1000));
        assert_eq!(
            (merged.kernels["a"].most, merged.kernels["b"].least),
            (500, 1000)
        );
        assert_eq!(merged.histogram, [(10, 98), (500, 1), (1000, 1)]);
        assert!(merge([].iter()).unwrap().is_none());
        assert!(merge([latency("a", &[])].iter()).unwrap().is_none());
    }
}
