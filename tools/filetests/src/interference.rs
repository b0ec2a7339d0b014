//! What the simulated device says that values depend on, against runs in which that is something else.
//!
//! A run that follows values says of each byte of memory what it depends on, and tells where such a value decides what is
//! executed or where an access goes. Where none decides, a run with other input, or under another schedule, takes the
//! same way, and leaves another byte only where that depends on it. This is noninterference (Goguen and Meseguer,
//! "Security Policies and Security Models", S&P 1982), from which `verify` concludes "all data" and "all schedules".

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

/// What a run has told.
#[derive(Default)]
struct Follower {
    /// The memory of the arguments: first bytes, and how many.
    memory: Vec<(u64, u64)>,
    decides: Sources,
    /// What each byte depends on, by argument.
    on: Vec<Vec<Sources>>,
}

impl Observer for Follower {
    fn follows_values(&self) -> bool {
        true
    }

    fn depends(&mut self, _: Executing, _: Decides, on: Sources, _: u32) {
        self.decides.input |= on.input;
        self.decides.schedule |= on.schedule;
    }

    fn ends(&mut self, on: &dyn Fn(u64) -> Sources) {
        let bytes = |&(first, count): &(u64, u64)| (first..first + count).map(on).collect();
        self.on = self.memory.iter().map(bytes).collect();
    }
}

/// What a case was held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Runs with other input.
    pub inputs: bool,
    /// Runs under other schedules.
    pub schedules: bool,
}

/// Holds what a run of a case says against other runs, as far as nothing has decided; `ordered` says that its threads do
/// not race, so that the schedule is nothing but what the device takes for it.
///
/// # Errors
/// When such a run fails, or leaves a byte that is not said to depend on what was changed.
pub fn judge(case: &Case, ordered: bool) -> Result<Judged> {
    let (launch, arguments) = exec::launch(case)?;
    let ready = machine::ready(Parsed::new(&case.text), None);
    let run = |arguments: &[Arg], shared, schedule| {
        let follower = |memory| Follower {
            memory,
            ..Follower::default()
        };
        let machine = Machine::new(None, shared)?;
        machine.observed(&ready, &launch, arguments, schedule, follower)
    };
    let mut judged = Judged::default();
    let Some((contents, said)) = run(&arguments, 0, Schedule::RoundRobin)? else {
        return Ok(judged);
    };
    let compare = |other: &[Vec<u8>], of: fn(Sources) -> bool| {
        for (argument, (one, other)) in contents.iter().zip(other).enumerate() {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                ensure!(
                    one == other || of(said.on[argument][at]),
                    "byte {at} of argument {argument} is {one:#x} in one run and {other:#x} in another, and depends on nothing"
                );
            }
        }
        Ok(())
    };
    if !said.decides.input {
        judged.inputs = true;
        for seed in 1..=RUNS {
            let mut random = Random::new(seed);
            let changed: Vec<Arg> = arguments
                .iter()
                .map(|arg| other(arg, &mut random))
                .collect();
            let (contents, _) = run(&changed, seed, Schedule::RoundRobin)?
                .context("the launch fails with other input, which decides nothing")?;
            compare(&contents, |on| on.input).with_context(|| format!("other input, {seed}"))?;
        }
    }
    if ordered && !said.decides.schedule {
        judged.schedules = true;
        for seed in 1..=RUNS {
            let (contents, _) = run(&arguments, 0, Schedule::Seeded(seed))?
                .context("the launch fails under another schedule, which decides nothing")?;
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
