//! Launches that the user has chosen not to check.

use serde::{Deserialize, Serialize};

use crate::log::Space;
use crate::words::number;

/// Why a launch is not among those that the user wants checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotChosen {
    /// `--kernel-name` names other kernels.
    KernelName,
    /// `--exclude-kernel` names its kernel.
    ExcludeKernel,
    /// It is launched outside of all ranges of `--nvtx-include`, or in one of `--nvtx-exclude`.
    NvtxRange,
    /// `--launch-skip` passes over it.
    LaunchSkip,
    /// As many launches as `--launch-count` says were chosen before it.
    LaunchCount,
    /// `--launch-sample` leaves it out.
    LaunchSample,
    /// The time of `--time-budget` was spent.
    TimeBudget,
}

impl NotChosen {
    /// One line for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::KernelName => "not selected by --kernel-name",
            Self::ExcludeKernel => "excluded by --exclude-kernel",
            Self::NvtxRange => "left out by --nvtx-include or --nvtx-exclude",
            Self::LaunchSkip => "skipped by --launch-skip",
            Self::LaunchCount => "beyond --launch-count",
            Self::LaunchSample => "left out by --launch-sample",
            Self::TimeBudget => "after --time-budget",
        }
    }
}

/// Launches that ran unchecked because the user wants it so, by the option that says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unchosen {
    /// `--kernel-name` names other kernels.
    pub kernel_name: u64,
    /// `--exclude-kernel` names their kernels.
    pub exclude_kernel: u64,
    /// Outside of the ranges of `--nvtx-include`, or in those of `--nvtx-exclude`.
    pub nvtx_range: u64,
    /// Passed over by `--launch-skip`.
    pub launch_skip: u64,
    /// Behind those of `--launch-count`.
    pub launch_count: u64,
    /// Left out by `--launch-sample`.
    pub launch_sample: u64,
    /// After the time of `--time-budget`.
    pub time_budget: u64,
}

impl Unchosen {
    pub(crate) fn add(&mut self, why: NotChosen) {
        *match why {
            NotChosen::KernelName => &mut self.kernel_name,
            NotChosen::ExcludeKernel => &mut self.exclude_kernel,
            NotChosen::NvtxRange => &mut self.nvtx_range,
            NotChosen::LaunchSkip => &mut self.launch_skip,
            NotChosen::LaunchCount => &mut self.launch_count,
            NotChosen::LaunchSample => &mut self.launch_sample,
            NotChosen::TimeBudget => &mut self.time_budget,
        } += 1;
    }

    fn all(&self) -> [(u64, NotChosen); 7] {
        [
            (self.kernel_name, NotChosen::KernelName),
            (self.exclude_kernel, NotChosen::ExcludeKernel),
            (self.nvtx_range, NotChosen::NvtxRange),
            (self.launch_skip, NotChosen::LaunchSkip),
            (self.launch_count, NotChosen::LaunchCount),
            (self.launch_sample, NotChosen::LaunchSample),
            (self.time_budget, NotChosen::TimeBudget),
        ]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.all().iter().map(|(launches, _)| launches).sum()
    }

    /// Whether this reason is among them.
    pub(crate) fn has(&self, reason: &str) -> bool {
        let mut all = self.all().into_iter();
        all.any(|(launches, why)| launches > 0 && why.text() == reason)
    }

    /// As COVERAGE has it.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        let all = self.all().into_iter().filter(|(launches, _)| *launches > 0);
        all.map(|(launches, why)| format!("{} {}", number(launches), why.text()))
    }
}

/// The memory whose races are reported.
pub(crate) fn spaces(only: Option<Space>) -> Vec<Space> {
    match only {
        Some(only) => vec![only],
        None => vec![Space::Global, Space::Shared],
    }
}
