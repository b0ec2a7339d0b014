//! Checks the dependences that the simulated device reports for `verify`, by noninterference.
//!
//! The device reports, for each byte of memory, whether it depends on the input or on the schedule, and whether such a
//! value decides a branch or an address. If no value that depends on the input decides anything, a run with other input
//! must execute the same instructions, and may differ only in bytes that depend on the input. The same holds for
//! schedules. `verify` concludes "all data" and "all schedules" from it. The property is that of Goguen and Meseguer,
//! "Security Policies and Security Models" (S&P 1982).

use std::ops::Range;

use anyhow::{Context, Result, ensure};
use events::{Decides, Executing, Observer, Sources};
use ptx::Parsed;
use simt::Schedule;

use crate::args::{self, Arg, Texels};
use crate::exec;
use crate::header::Case;
use crate::machine::{self, Machine};
use crate::random::Random;

/// Runs with other input, and under other schedules.
const RUNS: u64 = 3;

/// What the device reports in a run.
#[derive(Default)]
struct Dependences {
    /// The addresses of the arguments' memory.
    memory: Vec<Range<u64>>,
    /// What the values depend on that decide a branch or an address.
    decides: Sources,
    /// What each byte depends on, by argument.
    on: Vec<Vec<Sources>>,
}

impl Observer for Dependences {
    fn follows_values(&self) -> bool {
        true
    }

    fn depends(&mut self, _: Executing, _: Decides, on: Sources, _: u32) {
        self.decides.input |= on.input;
        self.decides.schedule |= on.schedule;
    }

    fn ends(&mut self, on: &dyn Fn(u64) -> Sources) {
        let memory = self.memory.iter().cloned();
        self.on = memory.map(|bytes| bytes.map(on).collect()).collect();
    }
}

/// With which other runs a case was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Runs with other input.
    pub inputs: bool,
    /// Runs under other schedules.
    pub schedules: bool,
}

/// Compares a run of a case with runs with other input and, if `ordered`, with runs under other schedules. `ordered` says
/// that the case has no races, because the device does not report what depends on the order of racing accesses.
///
/// # Errors
/// When such a run fails, or leaves another value in a byte that the device reports as independent.
pub fn judge(case: &Case, ordered: bool) -> Result<Judged> {
    let (launch, arguments) = exec::launch(case)?;
    let ready = machine::ready(Parsed::new(&case.text), None);
    let run = |arguments: &[Arg], shared, schedule| {
        let dependences = |memory| Dependences {
            memory,
            ..Dependences::default()
        };
        let machine = Machine::new(None, shared)?;
        machine.observed(&ready, &launch, arguments, schedule, dependences)
    };
    let mut judged = Judged::default();
    let Some((contents, reported)) = run(&arguments, 0, Schedule::RoundRobin)? else {
        return Ok(judged);
    };
    let compare = |other: &[Vec<u8>], of: fn(Sources) -> bool| {
        for (argument, (one, other)) in contents.iter().zip(other).enumerate() {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                ensure!(
                    one == other || of(reported.on[argument][at]),
                    "byte {at} of argument {argument} is {one:#x} in one run and {other:#x} in another, and is reported as independent"
                );
            }
        }
        Ok(())
    };
    if !reported.decides.input {
        judged.inputs = true;
        for seed in 1..=RUNS {
            let mut random = Random::new(seed);
            let changed: Vec<Arg> = arguments
                .iter()
                .map(|arg| other(arg, &mut random))
                .collect();
            let (contents, _) = run(&changed, seed, Schedule::RoundRobin)?
                .context("the launch fails with other input, although no input decides anything")?;
            compare(&contents, |on| on.input).with_context(|| format!("other input, {seed}"))?;
        }
    }
    if ordered && !reported.decides.schedule {
        judged.schedules = true;
        for seed in 1..=RUNS {
            let (contents, _) = run(&arguments, 0, Schedule::Seeded(seed))?.context(
                "the launch fails under another schedule, although the schedule decides nothing",
            )?;
            compare(&contents, |on| on.schedule).with_context(|| format!("schedule {seed}"))?;
        }
    }
    Ok(judged)
}

/// The argument with some bits of its memory changed.
fn other(argument: &Arg, random: &mut Random) -> Arg {
    let mut change = |bytes: &[u8]| -> Vec<u8> {
        let flip = |byte: &u8| match random.below(2) {
            0 => *byte,
            _ => byte ^ random.below(256) as u8,
        };
        bytes.iter().map(flip).collect()
    };
    match argument {
        Arg::Buffer(bytes) => Arg::Buffer(change(bytes)),
        Arg::Image(image) => Arg::Image(args::Image {
            texels: match &image.texels {
                Texels::Own(bytes) => Texels::Own(change(bytes)),
                of => of.clone(),
            },
            ..image.clone()
        }),
        scalar => scalar.clone(),
    }
}
