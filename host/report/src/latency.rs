//! How long the launches of each kernel took, in bins of three significant digits (hdrhistogram), so that a report
//! stays small however many launches there are.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::model::{Bin, Latency};
use crate::names::demangle;

/// Significant decimal digits of a bin.
const DIGITS: u8 = 3;

/// The launches of each kernel, by mangled name.
#[derive(Default)]
pub(crate) struct Latencies(BTreeMap<String, Histogram<u64>>);

impl Latencies {
    /// One launch.
    pub(crate) fn record(&mut self, kernel: &str, seconds: f64) {
        // Clocks of zero length are not told from one nanosecond; `as` keeps within u64.
        let nanoseconds = ((seconds * 1e9) as u64).max(1);
        if !self.0.contains_key(kernel)
            && let Ok(mut empty) = Histogram::new(DIGITS)
        {
            empty.auto(true);
            self.0.insert(kernel.to_owned(), empty);
        }
        if let Some(histogram) = self.0.get_mut(kernel) {
            // It grows as needed; only what takes centuries does not fit.
            let _ = histogram.record(nanoseconds);
        }
    }

    pub(crate) fn finish(self) -> Vec<Latency> {
        let latency = |(kernel, histogram): (String, Histogram<u64>)| Latency {
            kernel: demangle(&kernel),
            bins: histogram
                .iter_recorded()
                .map(|bin| Bin {
                    nanoseconds: bin.value_iterated_to(),
                    launches: bin.count_at_value(),
                })
                .collect(),
        };
        self.0.into_iter().map(latency).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_of_about_the_same_time_share_a_bin() {
        let mut latencies = Latencies::default();
        for seconds in [0.0, 1e-3, 1.000_1e-3, 2.5, 1e9] {
            latencies.record("k", seconds);
        }
        let [latency] = &latencies.finish()[..] else {
            panic!("one kernel")
        };
        let counts: Vec<u64> = latency.bins.iter().map(|bin| bin.launches).collect();
        assert_eq!((&latency.kernel[..], &counts[..]), ("k", &[1, 2, 1, 1][..]));
        let off = latency.bins[2].nanoseconds as f64 / 2.5e9 - 1.0;
        assert!((0.0..1e-3).contains(&off), "{off}");
    }
}
