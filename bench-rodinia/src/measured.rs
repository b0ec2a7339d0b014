//! The part of the tool's JSON report that is measured; docs/report.schema.json describes all of it.

use serde::Deserialize;

use crate::figures::Counts;

#[derive(Deserialize)]
pub(crate) struct Report {
    pub(crate) tool: Tool,
    pub(crate) run: Run,
    pub(crate) summary: Summary,
    pub(crate) coverage: Coverage,
    pub(crate) failures: Vec<Failure>,
    pub(crate) stats: Stats,
}

#[derive(Deserialize)]
pub(crate) struct Tool {
    pub(crate) version: String,
    pub(crate) device: Device,
}

/// Whose clock the kernel times are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Device {
    /// Wall time of the simulated device.
    Sim,
    /// A GPU's events.
    Gpu,
}

#[derive(Deserialize)]
pub(crate) struct Run {
    pub(crate) exit: Exit,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Exit {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

#[derive(Deserialize)]
pub(crate) struct Summary {
    pub(crate) errors: u64,
    pub(crate) warnings: u64,
}

#[derive(Deserialize)]
pub(crate) struct Coverage {
    pub(crate) launches: Launches,
}

#[derive(Deserialize)]
pub(crate) struct Launches {
    pub(crate) total: u64,
    pub(crate) checked: u64,
}

#[derive(Deserialize)]
pub(crate) struct Failure {
    pub(crate) kernel: String,
    pub(crate) message: String,
}

#[derive(Deserialize)]
pub(crate) struct Stats {
    #[serde(flatten)]
    pub(crate) counts: Counts,
    pub(crate) launch_seconds: f64,
    pub(crate) rewrite_seconds: f64,
    pub(crate) program_bytes: u64,
    pub(crate) shadow_bytes: u64,
    pub(crate) latencies: Vec<Latency>,
}

#[derive(Deserialize)]
pub(crate) struct Latency {
    pub(crate) kernel: String,
    pub(crate) bins: Vec<Bin>,
}

#[derive(Deserialize)]
pub(crate) struct Bin {
    pub(crate) nanoseconds: u64,
    pub(crate) launches: u64,
}
