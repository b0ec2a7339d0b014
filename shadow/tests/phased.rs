//! One run of a program of mbarriers and accesses, against all interleavings of it.
//!
//! Every program of at most three threads and six commands is run once and judged: whether the phases of its mbarriers
//! are the same in every order, and whether its accesses race. The judge enumerates all interleavings. It looks for one
//! that deadlocks, for two in which an arrival belongs to different phases or a wait finds different ones over, and for
//! two conflicting accesses that can come next at the same time. What one run proves must hold in all.
//! The arrival of a thread's copies comes at any time after it is issued, and orders no accesses.
//! Semantics: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".

#![allow(clippy::print_stdout, reason = "the counts are for people")]

use std::collections::HashSet;

use shadow::hb::{
    Access, Engine, Generations, Location, MemoryOrder, OpKind, Operation, Scope, Shape, Thread,
    Warp,
};

/// Most commands of a program.
const COMMANDS: usize = 6;
/// Most threads, each in a warp of its own.
const THREADS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Command {
    /// At a barrier.
    Arrive(usize),
    /// Lets copies arrive at a barrier (`.noinc`).
    CopyArrive(usize),
    /// For the phase of a barrier with a parity.
    Wait(usize, usize),
    Write,
    Read,
}
use Command::{Arrive, CopyArrive, Read, Wait, Write};

/// The commands of a family of programs, and the arrivals that each barrier expects.
struct Family {
    commands: &'static [Command],
    counts: &'static [usize],
}

const FAMILIES: [Family; 3] = [
    Family {
        commands: &[Arrive(0), Wait(0, 0), Wait(0, 1), Write, Read],
        counts: &[2],
    },
    Family {
        commands: &[
            Arrive(0),
            Arrive(1),
            Wait(0, 0),
            Wait(1, 0),
            Wait(1, 1),
            Write,
        ],
        counts: &[1, 1],
    },
    Family {
        commands: &[
            Arrive(0),
            CopyArrive(0),
            CopyArrive(1),
            Wait(0, 0),
            Wait(1, 0),
            Write,
        ],
        counts: &[1, 1],
    },
];

type Program = [Vec<Command>];

/// A state of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    next: [usize; THREADS],
    arrived: [usize; 2],
    /// Phases that are over.
    over: [usize; 2],
    /// The phase of each arrival, those over at each wait, and 0 for an access, by thread.
    belongs: [Vec<usize>; THREADS],
    /// The commands of each thread whose copies have not arrived yet, and their barriers.
    under_way: [Vec<(usize, usize)>; THREADS],
}

impl State {
    fn enabled(&self, program: &Program, thread: usize) -> Option<Command> {
        let command = *program.get(thread)?.get(self.next[thread])?;
        match command {
            // The current phase has the parity of those that are over.
            Wait(barrier, parity) => (self.over[barrier] % 2 != parity).then_some(command),
            _ => Some(command),
        }
    }

    /// Executes a command; true if it ends a phase.
    fn step(&mut self, counts: &[usize], command: Command, thread: usize) -> bool {
        self.next[thread] += 1;
        let phase = match command {
            Write | Read => 0,
            CopyArrive(barrier) => {
                let number = self.belongs[thread].len();
                self.under_way[thread].push((number, barrier));
                // Not known yet.
                usize::MAX
            }
            Arrive(barrier) | Wait(barrier, _) => self.over[barrier],
        };
        self.belongs[thread].push(phase);
        match command {
            Arrive(barrier) => self.arrive(counts, barrier),
            _ => false,
        }
    }

    /// Copies of a thread arrive; true if that ends a phase.
    fn copies_arrive(&mut self, counts: &[usize], thread: usize, which: usize) -> bool {
        let (number, barrier) = self.under_way[thread].remove(which);
        self.belongs[thread][number] = self.over[barrier];
        self.arrive(counts, barrier)
    }

    fn arrive(&mut self, counts: &[usize], barrier: usize) -> bool {
        self.arrived[barrier] += 1;
        let ends = self.arrived[barrier] == counts[barrier];
        if ends {
            self.arrived[barrier] = 0;
            self.over[barrier] += 1;
        }
        ends
    }

    fn is_stuck(&self, program: &Program) -> bool {
        (0..program.len()).any(|thread| self.next[thread] < program[thread].len())
    }
}

/// What all interleavings of a program can do.
#[derive(Debug, Default)]
struct Truth {
    deadlocks: bool,
    races: bool,
    ends: HashSet<[Vec<usize>; THREADS]>,
}

impl Truth {
    fn of(program: &Program, counts: &[usize]) -> Self {
        let mut truth = Self::default();
        let mut seen = HashSet::new();
        let mut left = vec![State::default()];
        while let Some(state) = left.pop() {
            let enabled: Vec<(usize, Command)> = (0..program.len())
                .filter_map(|thread| Some((thread, state.enabled(program, thread)?)))
                .collect();
            let accesses = enabled.iter().filter(|(_, of)| matches!(of, Write | Read));
            let accesses: Vec<Command> = accesses.map(|(_, of)| *of).collect();
            truth.races |= accesses.len() > 1 && accesses.contains(&Write);
            if enabled.is_empty() && state.under_way.iter().all(Vec::is_empty) {
                truth.deadlocks |= state.is_stuck(program);
                truth.ends.insert(state.belongs.clone());
            }
            let stepped = enabled.into_iter().map(|(thread, command)| {
                let mut after = state.clone();
                after.step(counts, command, thread);
                after
            });
            let under_way = state.under_way.iter().enumerate();
            let under_way =
                under_way.flat_map(|(thread, of)| (0..of.len()).map(move |n| (thread, n)));
            let arrived = under_way.map(|(thread, which)| {
                let mut after = state.clone();
                after.copies_arrive(counts, thread, which);
                after
            });
            for after in stepped.chain(arrived) {
                if seen.insert(after.clone()) {
                    left.push(after);
                }
            }
        }
        truth
    }

    fn is_phased(&self) -> bool {
        !self.deadlocks && self.ends.len() == 1
    }
}

/// What one run shows.
struct Judged {
    phased: bool,
    races: bool,
}

/// Runs a program, each time the first of its threads that can run, counted from `first`.
fn judge(program: &Program, counts: &[usize], first: usize) -> Judged {
    let shape = Shape {
        grid: [1; 3],
        cluster: [1; 3],
        threads: 32 * THREADS as u32,
    };
    let mut engine = Engine::new(shape).following_phases();
    let mut generations = Generations::default();
    let location = |barrier: usize| Location::Shared {
        cta: 0,
        offset: 8 * barrier as u32,
    };
    let warp = |thread: usize| Warp {
        cta: 0,
        warp: thread as u32,
    };
    for barrier in 0..counts.len() {
        engine.mbarrier_init(warp(0).lane(0), location(barrier), 0, false, |_| ());
        generations.mbarrier_init(location(barrier));
    }
    let mut state = State::default();
    let (mut races, mut unphased) = (false, false);
    loop {
        let threads = (0..THREADS).map(|thread| (thread + first) % THREADS);
        let mut next = threads.filter_map(|thread| Some((thread, state.enabled(program, thread)?)));
        let Some((thread, command)) = next.next() else {
            break;
        };
        drop(next);
        let me: Thread = warp(thread).lane(0);
        let ends = state.step(counts, command, thread);
        match command {
            Write | Read => {
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
                engine.access(
                    warp(thread),
                    1,
                    &access,
                    |_| Location::Global(64),
                    |_| races = true,
                );
            }
            Arrive(barrier) => {
                let at = location(barrier);
                let wrong = generations.mbarrier_operate(&mut engine, me, 0, at, Operation::Arrive);
                unphased |= wrong.is_some();
                engine.mbarrier_arrive(me, at, MemoryOrder::Release(Scope::Cta), ends);
                if ends {
                    unphased |= generations.mbarrier_complete(at).count() > 0;
                }
            }
            CopyArrive(barrier) => {
                let at = location(barrier);
                let ends = state.copies_arrive(counts, thread, 0);
                let wrong = generations.mbarrier_operate(&mut engine, me, 0, at, Operation::Arrive);
                unphased |= wrong.is_some();
                engine.copies_arrive(me, at, ends);
                if ends {
                    unphased |= generations.mbarrier_complete(at).count() > 0;
                }
            }
            Wait(barrier, _) => {
                let at = location(barrier);
                unphased |= generations.mbarrier_wait(&mut engine, me, 0, at).is_some();
                engine.mbarrier_wait(me, at, MemoryOrder::Acquire(Scope::Cta));
            }
        }
    }
    Judged {
        phased: !state.is_stuck(program) && !unphased,
        races,
    }
}

/// All programs whose threads have so many commands, each thread's commands not before those of the one in front.
fn programs(commands: &[Command], lengths: &[usize], see: &mut impl FnMut(&Program)) {
    fn fill(
        program: &mut Vec<Vec<Command>>,
        commands: &[Command],
        lengths: &[usize],
        see: &mut impl FnMut(&Program),
    ) {
        let thread = program
            .iter()
            .zip(lengths)
            .position(|(of, &n)| of.len() < n);
        let Some(thread) = thread else {
            let sorted = program
                .windows(2)
                .all(|of| of[0].len() != of[1].len() || of[0] <= of[1]);
            if sorted {
                see(program);
            }
            return;
        };
        for &command in commands {
            program[thread].push(command);
            fill(program, commands, lengths, see);
            program[thread].pop();
        }
    }
    fill(&mut vec![Vec::new(); lengths.len()], commands, lengths, see);
}

/// Lengths of threads, longest first, that have so many commands together.
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
fn what_one_run_proves_holds_in_all_interleavings() {
    for Family { commands, counts } in FAMILIES {
        let mut counted = [0u64; 5];
        for number in 1..=COMMANDS {
            for lengths in lengths(number) {
                programs(commands, &lengths, &mut |program| {
                    let truth = Truth::of(program, counts);
                    let mut proved = false;
                    for first in 0..program.len() {
                        let judged = judge(program, counts, first);
                        if judged.phased {
                            proved = true;
                            assert!(truth.is_phased(), "{program:?} from {first}: {truth:?}");
                            // No interleaving has the accesses next that only arrivals of copies order.
                            let of_copies = { program.iter().flatten() }
                                .any(|command| matches!(command, CopyArrive(_)));
                            let races = truth.races || of_copies && judged.races;
                            assert_eq!(judged.races, races, "{program:?} from {first}");
                        }
                    }
                    counted[0] += 1;
                    counted[1] += u64::from(truth.is_phased());
                    counted[2] += u64::from(proved);
                    counted[3] += u64::from(proved && truth.races);
                    counted[4] += u64::from(!truth.deadlocks && truth.ends.len() > 1);
                });
            }
        }
        let [programs, phased, proved, racy, recycled] = counted;
        println!(
            "{programs} programs, {phased} with the same phases in every order, {proved} proved so, {racy} of them racy; \
             {recycled} that end in different phases"
        );
        assert!(proved > 1000 && racy > 100 && recycled > 10, "{counted:?}");
    }
}
