//! What was seen, and how far it was checked: modules, launches and their ends.

use super::{Builder, Log, LogIndex, host};
use crate::executed::Executed;
use crate::log::{self, Event};
use crate::model::{
    Accesses, DeviceName, Incomplete, LostEvents, Process, PtxSource, UncheckedFunction,
};
use crate::names::{demangle, readable};
use crate::verified;
use crate::{failure, stray, stuck};

impl Builder<'_> {
    /// What the log cannot say.
    pub(super) fn lost(&mut self, log: &Log) {
        let pid = log.events.iter().find_map(|event| match event {
            Event::Start { pid, .. } => Some(*pid),
            _ => None,
        });
        let coverage = &mut self.report.coverage;
        if let Some(lost) = &log.lost {
            coverage.lost.push(LostEvents {
                pid,
                events: lost.events,
                why: lost.why.clone(),
            });
        }
        coverage.running.extend(log.running);
    }

    pub(super) fn start(&mut self, pid: u32, argv: &[String], seed: u64) {
        let run = &mut self.report.run;
        run.pids.push(pid);
        run.processes.push(Process {
            pid,
            host: host(),
            seed,
            argv: argv.to_vec(),
        });
    }

    pub(super) fn device(&mut self, device: &str) {
        let devices = &mut self.report.run.devices;
        if !devices.iter().any(|known| known.name == device) {
            let index = devices.len() as u32;
            let name = device.to_owned();
            devices.push(DeviceName { index, name });
        }
    }

    pub(super) fn module(&mut self, module: &log::Module) {
        self.report.stats.rewrite_seconds += module.rewrite_seconds;
        for kernel in &module.kernels {
            let known = self.kernels.entry(kernel.name.clone()).or_default();
            known.ptx_source = PtxSource::Ptx;
            known.module.clone_from(&module.origin);
            known.instrumented = kernel.instrumented;
            known.why_not = kernel.why_not.as_deref().map(readable);
            known.accesses = Accesses {
                total: u64::from(kernel.accesses),
                checked: if kernel.instrumented {
                    u64::from(kernel.checked)
                } else {
                    0
                },
                shared: u64::from(kernel.shared),
            };
            let all = |texts: &[String]| texts.iter().map(|text| readable(text)).collect();
            known.unsupported = all(&kernel.not_understood);
            known.may_order = all(&kernel.release_sites);
        }
        for (name, why) in &module.unchecked_functions {
            let unchecked = UncheckedFunction {
                name: demangle(name),
                why: readable(why),
            };
            if !self
                .report
                .coverage
                .unchecked_functions
                .contains(&unchecked)
            {
                self.report.coverage.unchecked_functions.push(unchecked);
            }
        }
    }

    /// A launch without an end, or with one by a signal.
    pub(super) fn pending(&mut self, pending: &log::Pending, log_index: &LogIndex<'_>) {
        let end = log_index.launches.get(&pending.launch);
        // The end may be among the events that the log lacks.
        let unknown = end.is_none() && log_index.lacks;
        if end.is_some_and(|launch| !launch.interrupted) || unknown {
            return;
        }
        if end.is_none() {
            let kernel = self.kernels.entry(pending.kernel.clone()).or_default();
            kernel.launches += 1;
            self.report.coverage.launches.total += 1;
        }
        self.interrupted |= end.is_some();
        self.report.coverage.incomplete.push(Incomplete {
            kernel: demangle(&pending.kernel),
            mangled: pending.kernel.clone(),
            launch: pending.launch,
            blocks: pending.grid.iter().map(|&n| u64::from(n)).product(),
            ended: end.and_then(|launch| launch.ended),
            reported: end.is_some_and(|launch| !launch.unread),
            threads: end
                .and_then(|launch| launch.stuck.as_ref())
                .map_or(Vec::new(), |of| {
                    stuck::waits(of, &demangle(&pending.kernel)).collect()
                }),
        });
    }

    /// Adds launches of a kernel without PTX.
    pub(super) fn without_ptx(&mut self, kernel: &str, why: &str, launches: u64) {
        let known = self.kernels.entry(kernel.to_owned()).or_default();
        if known.ptx_source == PtxSource::Unknown {
            known.ptx_source = PtxSource::None;
            known.why_not = Some(readable(why));
        }
        known.launches += launches;
        known.skipped += launches;
        self.report.coverage.launches.total += launches;
    }

    pub(super) fn launch(&mut self, launch: &log::Launch) {
        let kernel = self.kernels.entry(launch.kernel.clone()).or_default();
        if kernel.ptx_source == PtxSource::Unknown {
            kernel.ptx_source = PtxSource::Ptx;
        }
        kernel.launches += 1;
        kernel.explored += u64::from(launch.explored > 0);
        if launch.checked {
            kernel.judged_by.add(launch.judge);
        }
        if let Some(proof) = &launch.proof {
            kernel.proofs.add(proof);
        }
        Executed::add(&mut kernel.executed, launch.executed);
        if !launch.checked {
            kernel.skipped += 1;
            let launches = &mut self.report.coverage.launches;
            match launch.not_chosen {
                Some(why) => self.report.coverage.unchosen.add(why),
                // One that was refused has run nothing.
                None => launches.unchecked += u64::from(!launch.invalid),
            }
            let why = launch.why_not.as_deref().map(readable).unwrap_or_default();
            if !kernel.skipped_because.contains(&why) {
                kernel.skipped_because.push(why);
            }
        }
        verified::add(&mut self.report.verified, launch);
        let coverage = &mut self.report.coverage;
        Executed::add(&mut coverage.executed, launch.executed);
        coverage.launches.total += 1;
        // What the device could not run was not checked either.
        let ran = !launch.unsupported && !launch.interrupted && !launch.invalid;
        coverage.launches.checked += u64::from(launch.checked && ran);
        let failed = launch.error.as_ref().filter(|_| !launch.interrupted);
        coverage.launches.failed += u64::from(failed.is_some() && !launch.invalid);
        coverage.launches.invalid += u64::from(launch.invalid);
        coverage.records.conflicts += launch.counters.conflicts;
        coverage.records.dropped += launch.counters.dropped;
        coverage.cells.evictions += launch.counters.evictions;
        coverage.cells.undecided += launch.counters.undecided;
        coverage.cells.outside += launch.counters.outside;
        coverage.cells.unreleased += launch.counters.unreleased;
        coverage.cells.ordered += launch.counters.ordered;
        coverage.cells.cleared += u64::from(launch.counters.cleared);
        coverage.cells.overlapped += u64::from(launch.counters.overlapped);
        coverage.unjudged.add(launch.unjudged);
        coverage.unjudged.barriers += u64::from(launch.barriers_unjudged);
        coverage.unjudged.copies += u64::from(launch.copies_unjudged);
        coverage.unjudged.sizes += u64::from(launch.sizes_unjudged);
        coverage.unjudged.read_only += u64::from(launch.read_only_unjudged);
        if let Some(counted) = &launch.clocks {
            let clocks = &mut coverage.clocks;
            clocks.launches += 1;
            clocks.accesses += counted.accesses;
            clocks.synchronisations += counted.synchronisations;
            clocks.warps += counted.warps;
            clocks.left_converged += counted.left_converged;
            clocks.converged += counted.warps.saturating_sub(counted.left_converged);
            clocks.diverged += counted.diverged;
            clocks.nested_diverged += counted.nested_diverged;
            clocks.sparse += counted.sparse;
            clocks.peak_resident = clocks.peak_resident.max(counted.peak_resident);
        }
        let stats = &mut self.report.stats;
        stats.warp_instructions += launch.warp_instructions;
        stats.thread_instructions += launch.thread_instructions;
        stats.global_sectors += launch.sectors;
        stats.device_fences += launch.device_fences;
        stats.launch_seconds += launch.seconds;
        stats.program_bytes = stats.program_bytes.max(launch.program_bytes);
        stats.shadow_bytes = stats.shadow_bytes.max(launch.shadow_bytes);
        self.latencies.record(&launch.kernel, launch.seconds);
        stray::add(&mut self.report.out_of_bounds, launch);
        if let Some(message) = failed {
            failure::add(&mut self.report.failures, launch, &readable(message));
        }
    }
}
