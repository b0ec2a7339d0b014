//! One run of a program of barriers and accesses, against all interleavings of it.
//!
//! Every program of at most three warps and six commands is run once and judged: whether its barriers are
//! well-synchronised, and whether its accesses race. The judge enumerates all interleavings. It looks for one that
//! deadlocks, one in which a warp arrives twice in a generation, and two in which a command belongs to different
//! generations; and for two conflicting accesses that can come next at the same time. Both must agree, both ways.
//! After the semantics of named barriers in "Verification of producer-consumer synchronization in GPU programs"
//! (PLDI 2015), section 3.

#![allow(clippy::print_stdout, reason = "the counts are for people")]

use std::collections::HashSet;

use shadow::hb::{
    Access, Active, Arrival, Engine, Generations, Location, MemoryOrder, OpKind, Shape, Warp,
};

/// Most commands of a program.
const COMMANDS: usize = 6;
/// Most warps.
const WARPS: usize = 3;
/// Warps that take part in each barrier.
const COUNTS: [usize; 2] = [2, 2];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Command {
    Sync(usize),
    Arrive(usize),
    Write,
    Read,
}
use Command::{Arrive, Read, Sync, Write};

const ALL: [Command; 6] = [Sync(0), Sync(1), Arrive(0), Arrive(1), Write, Read];

type Program = [Vec<Command>];

/// A state of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    next: [usize; WARPS],
    /// The barrier that each warp waits at.
    waits: [Option<usize>; WARPS],
    /// The warps that have arrived.
    arrived: [Vec<usize>; 2],
    generation: [usize; 2],
    /// The generation of each command of each warp, and 0 for an access.
    belongs: [Vec<usize>; WARPS],
    /// A warp has arrived twice in a generation.
    again: bool,
}

/// What a step of a warp has done.
enum Step {
    Access(Command),
    Arrived(usize, bool, Option<usize>),
}

impl State {
    fn enabled(&self, program: &Program, warp: usize) -> Option<Command> {
        let command = program.get(warp)?.get(self.next[warp])?;
        self.waits[warp].is_none().then_some(*command)
    }

    fn step(&mut self, command: Command, warp: usize) -> Step {
        self.next[warp] += 1;
        let (barrier, waits) = match command {
            Write | Read => {
                self.belongs[warp].push(0);
                return Step::Access(command);
            }
            Sync(barrier) => (barrier, true),
            Arrive(barrier) => (barrier, false),
        };
        self.belongs[warp].push(self.generation[barrier] + 1);
        self.again |= self.arrived[barrier].contains(&warp);
        self.arrived[barrier].push(warp);
        if waits {
            self.waits[warp] = Some(barrier);
        }
        let full = self.arrived[barrier].len() == COUNTS[barrier];
        if full {
            self.arrived[barrier].clear();
            self.generation[barrier] += 1;
            for waits in &mut self.waits {
                if *waits == Some(barrier) {
                    *waits = None;
                }
            }
        }
        Step::Arrived(barrier, waits, full.then_some(barrier))
    }
}

/// What all interleavings of a program can do.
#[derive(Debug, Default)]
struct Truth {
    deadlocks: bool,
    again: bool,
    races: bool,
    ends: HashSet<[Vec<usize>; WARPS]>,
}

impl Truth {
    fn of(program: &Program) -> Self {
        let mut truth = Self::default();
        let mut seen = HashSet::new();
        let mut left = vec![State::default()];
        while let Some(state) = left.pop() {
            truth.again |= state.again;
            let enabled: Vec<(usize, Command)> = (0..program.len())
                .filter_map(|warp| Some((warp, state.enabled(program, warp)?)))
                .collect();
            let accesses = enabled.iter().filter(|(_, of)| matches!(of, Write | Read));
            let accesses: Vec<Command> = accesses.map(|(_, of)| *of).collect();
            truth.races |= accesses.len() > 1 && accesses.contains(&Write);
            if enabled.is_empty() {
                truth.deadlocks |= state.waits.iter().any(Option::is_some);
                truth.ends.insert(state.belongs.clone());
            }
            for (warp, command) in enabled {
                let mut after = state.clone();
                after.step(command, warp);
                if seen.insert(after.clone()) {
                    left.push(after);
                }
            }
        }
        truth
    }

    fn is_well_synchronised(&self) -> bool {
        !self.deadlocks && !self.again && self.ends.len() == 1
    }
}

/// What one run shows.
struct Judged {
    well_synchronised: bool,
    races: bool,
}

/// Runs a program, each time the first of its warps that can run, counted from `first`.
fn judge(program: &Program, first: usize) -> Judged {
    let mut engine = Engine::new(Shape {
        grid: [1; 3],
        cluster: [1; 3],
        threads: 32 * WARPS as u32,
    });
    let mut generations = Generations::default();
    let mut state = State::default();
    let (mut races, mut early) = (false, false);
    loop {
        let warps = (0..WARPS).map(|warp| (warp + first) % WARPS);
        let mut next = warps.filter_map(|warp| Some((warp, state.enabled(program, warp)?)));
        let Some((number, command)) = next.next() else {
            break;
        };
        drop(next);
        let warp = Warp {
            cta: 0,
            warp: number as u32,
        };
        match state.step(command, number) {
            Step::Access(command) => {
                let access = Access {
                    kind: match command {
                        Write => OpKind::Store,
                        _ => OpKind::Load,
                    },
                    order: MemoryOrder::Weak,
                    bytes: 4,
                    elements: 1,
                    site: 0,
                };
                engine.access(warp, 1, &access, |_| Location::Global(64), |_| races = true);
            }
            Step::Arrived(barrier, waits, complete) => {
                let id = barrier as u32;
                let arrival = Arrival {
                    id,
                    waits,
                    counted: true,
                };
                early |= generations
                    .arrive(&mut engine, Active { warp, lanes: 1 }, id, 0)
                    .is_some();
                engine.arrive(warp, 1, arrival);
                if let Some(barrier) = complete {
                    generations.complete(0, barrier as u32);
                    engine.complete(0, barrier as u32);
                }
            }
        }
    }
    let deadlock = state.waits.iter().any(Option::is_some);
    Judged {
        well_synchronised: !deadlock && !state.again && !early,
        races,
    }
}

/// All programs whose warps have so many commands, each warp's commands not before those of the warp in front.
fn programs(lengths: &[usize], see: &mut impl FnMut(&Program)) {
    fn fill(program: &mut Vec<Vec<Command>>, lengths: &[usize], see: &mut impl FnMut(&Program)) {
        let warp = program
            .iter()
            .zip(lengths)
            .position(|(of, &n)| of.len() < n);
        let Some(warp) = warp else {
            let sorted = (1..program.len()).all(|warp| {
                program[warp].len() != program[warp - 1].len() || program[warp] >= program[warp - 1]
            });
            if sorted {
                see(program);
            }
            return;
        };
        for command in ALL {
            program[warp].push(command);
            fill(program, lengths, see);
            program[warp].pop();
        }
    }
    fill(&mut vec![Vec::new(); lengths.len()], lengths, see);
}

/// Lengths of warps, longest first, that have so many commands together.
fn lengths(commands: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for a in 1..=commands {
        for b in 0..=a.min(commands - a) {
            let c = commands - a - b;
            if c <= b {
                let lengths = [a, b, c].into_iter().filter(|&n| n > 0);
                all.push(lengths.collect());
            }
        }
    }
    all
}

#[test]
fn one_run_knows_of_all_interleavings() {
    let mut counted = [0u64; 4];
    for commands in 1..=COMMANDS {
        for lengths in lengths(commands) {
            programs(&lengths, &mut |program| {
                let truth = Truth::of(program);
                for first in 0..program.len() {
                    let judged = judge(program, first);
                    assert_eq!(
                        judged.well_synchronised,
                        truth.is_well_synchronised(),
                        "{program:?} from warp {first}: {truth:?}"
                    );
                    if judged.well_synchronised {
                        assert_eq!(judged.races, truth.races, "{program:?} from warp {first}");
                    }
                }
                counted[0] += 1;
                counted[1] += u64::from(truth.is_well_synchronised());
                counted[2] += u64::from(truth.is_well_synchronised() && truth.races);
                counted[3] += u64::from(!truth.deadlocks && !truth.again && truth.ends.len() > 1);
            });
        }
    }
    let [programs, well, racy, recycled] = counted;
    println!(
        "{programs} programs, {well} well-synchronised, {racy} of them racy, {recycled} that end in different generations"
    );
    assert!(well > 1000 && racy > 100 && recycled > 10, "{counted:?}");
}
