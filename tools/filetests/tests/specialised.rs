//! Warp-specialised kernels, in which warps hand data over by named barriers, and `verify`.
//!
//! The kernels have the shapes and sizes of those in "Verification of producer-consumer synchronization in GPU programs"
//! (PLDI 2015), figures 9 and 10: numbers of barriers, threads and commands. They are written anew from what the paper
//! says of them. Right kernels must be proved for all schedules and all data; those with a race, and kernels that are
//! spoiled in one place, must not be.
//!
//! `SPECIALISED=full` takes the sizes of the paper, without it they are an eighth; with `--nocapture` there is a table.

#![allow(clippy::print_stdout, reason = "the table is for people")]

use std::fmt::Write as _;
use std::time::Instant;

use filetests::args::Arg;
use filetests::machine::{Checks, Launch, Machine};
use report::log::Answer;
use runtime::options::{Verify, Volatile};

/// Data goes from warps that load it to warps that compute, through buffers in shared memory.
#[derive(Clone, Copy, Debug)]
struct Pipeline {
    /// Completions of barriers.
    barriers: u32,
    /// Threads that compute, and threads that load.
    threads: [u32; 2],
    /// Buffers.
    depth: u32,
    /// Elements of a buffer.
    elements: u32,
    /// Elements of it that each thread reads.
    reads: u32,
}

/// Pairs of warps hand values over, other pairs in each round, straight on.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    rounds: u32,
    threads: u32,
    /// Values of a thread in a round.
    values: u32,
    /// How often each of them is stored and read.
    times: u32,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    Pipeline(Pipeline),
    Rounds(Rounds),
    /// The same, where also the lanes of a warp read each other's values, as lockstep allows.
    Lockstep(Rounds),
}

/// What is spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoiled {
    Nothing,
    /// Nobody says once that a buffer is free, or has been filled.
    DroppedArrival,
    /// A warp waits once at another barrier.
    SwappedBarriers,
    /// Nobody waits once for what is reused.
    EarlyReuse,
    /// A read stands behind the arrival that gives the buffer back.
    LateRead,
    /// Two threads store the same value to one place.
    Twice,
}
use Spoiled::{DroppedArrival, EarlyReuse, LateRead, Nothing, SwappedBarriers, Twice};

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

impl Pipeline {
    fn text(self, spoiled: Spoiled) -> String {
        let Self {
            threads: [compute, load],
            depth,
            elements,
            reads,
            ..
        } = self;
        let iterations = self.barriers / 2;
        let all = compute + load;
        let bytes = 4 * elements;
        let mut text = format!(
            "{HEAD}.visible .entry pipeline(.param .u64 in, .param .u64 out)\n{{\n\
             .reg .pred %p, %q, %spoils;\n.reg .b32 %t, %i, %b, %full, %empty, %at, %v, %sum, %k, %own;\n\
             .reg .b64 %in, %out, %o;\n.shared .align 4 .b8 tile[{}];\n\
             mov.u32 %t, %tid.x;\nmov.u32 %i, 0;\nmov.u32 %sum, 0;\n\
             setp.ge.u32 %p, %t, {compute};\n@%p bra load;\n",
            depth * bytes
        );
        let half = iterations / 2;
        // Buffers are free in the beginning.
        for buffer in 0..depth {
            let _ = writeln!(text, "bar.arrive {}, {all};", 2 * buffer + 1);
        }
        let numbers = format!(
            "rem.u32 %b, %i, {depth};\nshl.b32 %full, %b, 1;\nadd.u32 %empty, %full, 1;\n\
             setp.eq.u32 %spoils, %i, {half};\n"
        );
        let _ = write!(text, "compute:\n{numbers}");
        if spoiled == SwappedBarriers {
            text.push_str("@%spoils xor.b32 %full, %full, 1;\n");
        }
        let _ = writeln!(text, "bar.sync %full, {all};");
        let late = match spoiled {
            LateRead => 1,
            _ => 0,
        };
        let read = |count: u32, from: u32| {
            format!(
                "mov.u32 %k, {from};\n\
                 read{from}: add.u32 %at, %t, %k;\nrem.u32 %at, %at, {elements};\nshl.b32 %at, %at, 2;\n\
                 mad.lo.u32 %at, %b, {bytes}, %at;\nmov.u32 %v, tile;\nadd.u32 %at, %at, %v;\n\
                 ld.shared.u32 %v, [%at];\nadd.u32 %sum, %sum, %v;\nadd.u32 %k, %k, 1;\n\
                 setp.lt.u32 %q, %k, {};\n@%q bra read{from};\n",
                from + count
            )
        };
        text.push_str(&read(reads - late, 0));
        let _ = write!(
            text,
            "add.u32 %k, %i, {depth};\nsetp.ge.u32 %q, %k, {iterations};\n@%q bra given;\n"
        );
        if spoiled == DroppedArrival {
            text.push_str("@%spoils bra given;\n");
        }
        let _ = write!(text, "bar.arrive %empty, {all};\ngiven:\n");
        if late == 1 {
            text.push_str(&read(1, reads - 1));
        }
        let _ = write!(
            text,
            "add.u32 %i, %i, 1;\nsetp.lt.u32 %q, %i, {iterations};\n@%q bra compute;\n\
             ld.param.u64 %out, [out];\nmul.wide.u32 %o, %t, 4;\nadd.u64 %out, %out, %o;\n\
             st.global.u32 [%out], %sum;\nret;\n\
             load:\nsub.u32 %own, %t, {compute};\nld.param.u64 %in, [in];\nfill:\n{numbers}"
        );
        if spoiled == EarlyReuse {
            // Nobody waits for the buffer.
            text.push_str("@%spoils bra filled;\n");
        }
        let _ = write!(
            text,
            "bar.sync %empty, {all};\nfilled:\nmov.u32 %k, %own;\n\
             each:\nmad.lo.u32 %at, %i, {elements}, %k;\nmul.wide.u32 %o, %at, 4;\nadd.u64 %o, %in, %o;\n\
             ld.global.u32 %v, [%o];\nmul.lo.u32 %at, %b, {bytes};\nmad.lo.u32 %at, %k, 4, %at;\n\
             mov.u32 %full, tile;\nadd.u32 %at, %at, %full;\nst.shared.u32 [%at], %v;\n"
        );
        if spoiled == Twice {
            // All threads store the last element of the first buffer too.
            let _ = write!(
                text,
                "mov.u32 %v, 7;\nst.shared.u32 [tile+{}], %v;\n",
                bytes - 4
            );
        }
        let _ = write!(
            text,
            "shl.b32 %full, %b, 1;\nadd.u32 %k, %k, {load};\nsetp.lt.u32 %q, %k, {elements};\n@%q bra each;\n\
             bar.arrive %full, {all};\nadd.u32 %i, %i, 1;\nsetp.lt.u32 %q, %i, {iterations};\n@%q bra fill;\nret;\n}}\n"
        );
        text
    }
}

impl Rounds {
    fn text(self, spoiled: Spoiled, lockstep: bool) -> String {
        let Self {
            rounds,
            threads,
            values,
            times,
        } = self;
        let warps = threads / 32;
        // There are sixteen barriers; warps that are left over only meet the others.
        let half = (warps / 2).min(14);
        let bytes = 4 * threads * values;
        let mut text = format!(
            "{HEAD}.visible .entry rounds(.param .u64 in, .param .u64 out)\n{{\n\
             .reg .pred %p, %q;\n.reg .b32 %t, %w, %lane, %at, %from, %v, %sum, %id, %r, %k;\n.reg .b64 %in, %out, %o;\n\
             .shared .align 4 .b8 slots[{bytes}];\n\
             mov.u32 %t, %tid.x;\nshr.u32 %w, %t, 5;\nand.b32 %lane, %t, 31;\nmov.u32 %r, 0;\n\
             ld.param.u64 %in, [in];\nmul.wide.u32 %o, %t, 4;\nadd.u64 %in, %in, %o;\n\
             ld.global.u32 %sum, [%in];\nmad.lo.u32 %at, %t, {}, 0;\nmov.u32 %v, slots;\nadd.u32 %at, %at, %v;\n\
             round:\n",
            4 * values
        );
        // In each round warp w of the first half gives to warp (w + round) % half of the second half.
        let _ = write!(
            text,
            "setp.ge.u32 %p, %w, {};\n@%p bra meet;\nsetp.ge.u32 %p, %w, {half};\n@%p bra take;\n",
            2 * half
        );
        text.push_str("mov.u32 %k, 0;\nstore:\n");
        for value in 0..values {
            let _ = writeln!(text, "st.shared.u32 [%at+{}], %sum;", 4 * value);
        }
        let again = |label: &str| {
            format!("add.u32 %k, %k, 1;\nsetp.lt.u32 %q, %k, {times};\n@%q bra {label};\n")
        };
        text.push_str(&again("store"));
        if lockstep {
            // The next lane's first value, without a barrier of the warp.
            let _ = write!(
                text,
                "xor.b32 %from, %t, 1;\nmad.lo.u32 %from, %from, {}, 0;\nmov.u32 %v, slots;\nadd.u32 %from, %from, %v;\n\
                 ld.shared.u32 %v, [%from];\nadd.u32 %sum, %sum, %v;\n",
                4 * values
            );
        }
        let last = rounds / 2;
        let _ = write!(
            text,
            "rem.u32 %id, %w, 14;\nadd.u32 %id, %id, 1;\nsetp.eq.u32 %p, %r, {last};\n"
        );
        match spoiled {
            DroppedArrival => text.push_str("@%p bra meet;\n"),
            SwappedBarriers => text.push_str("@%p xor.b32 %id, %id, 1;\n"),
            _ => {}
        }
        let _ = write!(text, "bar.arrive %id, 64;\nbra meet;\ntake:\n");
        // (w - half - round) mod half, kept positive.
        let _ = write!(
            text,
            "rem.u32 %from, %r, {half};\nsub.u32 %from, {half}, %from;\nadd.u32 %from, %from, %w;\n\
             rem.u32 %from, %from, {half};\nrem.u32 %id, %from, 14;\nadd.u32 %id, %id, 1;\n\
             shl.b32 %from, %from, 5;\nadd.u32 %from, %from, %lane;\nmad.lo.u32 %from, %from, {}, 0;\n\
             mov.u32 %v, slots;\nadd.u32 %from, %from, %v;\nsetp.eq.u32 %p, %r, {last};\n",
            4 * values
        );
        if spoiled == LateRead {
            // One that stands in front of the barrier.
            text.push_str("ld.shared.u32 %v, [%from];\nadd.u32 %sum, %sum, %v;\n");
        }
        text.push_str("bar.sync %id, 64;\nmov.u32 %k, 0;\nload:\n");
        for value in 0..values {
            let _ = write!(
                text,
                "ld.shared.u32 %v, [%from+{}];\nadd.u32 %sum, %sum, %v;\n",
                4 * value
            );
        }
        text.push_str(&again("load"));
        text.push_str("meet:\n");
        if spoiled == EarlyReuse {
            let _ = write!(text, "setp.eq.u32 %p, %r, {last};\n@%p bra on;\n");
        }
        let _ = write!(
            text,
            "bar.sync 0;\non:\nadd.u32 %r, %r, 1;\nsetp.lt.u32 %p, %r, {rounds};\n@%p bra round;\n\
             ld.param.u64 %out, [out];\nadd.u64 %out, %out, %o;\nst.global.u32 [%out], %sum;\nret;\n}}\n"
        );
        text
    }
}

/// A kernel of the paper: its name, what it is like, whether something is wrong with it, and the paper's time in seconds.
type Row = (&'static str, Shape, Spoiled, f64);

fn pipeline(barriers: u32, threads: [u32; 2], depth: u32, elements: u32, reads: u32) -> Shape {
    Shape::Pipeline(Pipeline {
        barriers,
        threads,
        depth,
        elements,
        reads,
    })
}

/// Most values of a thread that have room in shared memory.
const VALUES: u32 = 16;

fn rounds(barriers: u32, threads: u32, commands: u32) -> Rounds {
    let pairs = (threads / 64).min(14);
    let rounds = (barriers / (pairs + 1)).max(1);
    // Half of the threads store, half load.
    let of_thread = (commands / (rounds * threads)).max(1);
    let values = of_thread.min(VALUES);
    Rounds {
        rounds,
        threads,
        values,
        times: of_thread.div_ceil(values),
    }
}

fn rows() -> Vec<Row> {
    let kepler = |barriers, threads, k: u32| Shape::Rounds(rounds(barriers, threads, 1000 * k));
    let fermi = |barriers, threads, k: u32| Shape::Lockstep(rounds(barriers, threads, 1000 * k));
    vec![
        (
            "saxpy_single",
            pipeline(8192, [256, 64], 1, 512, 2),
            Nothing,
            8.42,
        ),
        (
            "saxpy_double",
            pipeline(8192, [256, 128], 2, 512, 2),
            Nothing,
            8.99,
        ),
        (
            "sgemv_vecsingle",
            pipeline(257, [128, 32], 1, 128, 128),
            Nothing,
            46.42,
        ),
        (
            "sgemv_vecdouble",
            pipeline(514, [128, 64], 2, 128, 128),
            Nothing,
            95.19,
        ),
        (
            "sgemv_vecmanual",
            pipeline(258, [128, 32], 2, 512, 512),
            Nothing,
            147.81,
        ),
        (
            "sgemv_bothsingle",
            pipeline(514, [256, 32], 1, 4128, 16),
            Nothing,
            10.15,
        ),
        (
            "sgemv_bothdouble",
            pipeline(1028, [384, 64], 2, 4128, 8),
            Nothing,
            25.30,
        ),
        (
            "sgemv_bothmanual",
            pipeline(516, [384, 32], 2, 4128, 8),
            Nothing,
            7.74,
        ),
        (
            "rtm_1phase_single",
            pipeline(215, [128, 32], 1, 633, 20),
            Twice,
            0.43,
        ),
        (
            "rtm_1phase_manual",
            pipeline(214, [128, 32], 2, 633, 20),
            Twice,
            0.26,
        ),
        (
            "rtm_2phase_single",
            pipeline(215, [128, 32], 1, 633, 20),
            LateRead,
            0.39,
        ),
        (
            "rtm_2phase_manual",
            pipeline(214, [128, 32], 2, 633, 20),
            LateRead,
            0.32,
        ),
        (
            "rtm_2phase_quad",
            pipeline(208, [128, 32], 2, 633, 20),
            LateRead,
            0.28,
        ),
        ("dme_diff_fermi", fermi(352, 320, 2912), Nothing, 398.0),
        ("dme_diff_kepler", kepler(352, 320, 1075), Nothing, 1.40),
        ("dme_visc_kepler", kepler(128, 480, 2058), Nothing, 3.24),
        ("dme_chem_fermi", fermi(864, 512, 5156), Nothing, 53.74),
        (
            "dme_chem_kepler",
            kepler(1760, 256, 3866),
            EarlyReuse,
            11.91,
        ),
        ("hept_diff_kepler", kepler(416, 416, 1490), Nothing, 2.60),
        ("hept_visc_fermi", fermi(128, 416, 5897), Nothing, 416.92),
        ("hept_visc_kepler", kepler(128, 416, 2955), Nothing, 5.22),
        ("hept_chem_fermi", fermi(992, 640, 7572), Nothing, 135.03),
        (
            "hept_chem_kepler",
            kepler(928, 512, 5241),
            EarlyReuse,
            11.82,
        ),
        ("prf_diff_kepler", kepler(672, 928, 6414), Nothing, 22.18),
        ("prf_visc_fermi", fermi(4, 1024, 901), Nothing, 2.64),
        ("prf_visc_kepler", kepler(128, 1024, 14213), Nothing, 68.43),
    ]
}

impl Shape {
    /// An eighth of the barriers.
    fn smaller(self) -> Self {
        match self {
            Self::Pipeline(of) => Self::Pipeline(Pipeline {
                barriers: (of.barriers / 8).max(8 * of.depth),
                reads: of.reads.min(32),
                ..of
            }),
            Self::Rounds(of) => Self::Rounds(of.smaller()),
            Self::Lockstep(of) => Self::Lockstep(of.smaller()),
        }
    }

    fn text(self, spoiled: Spoiled) -> String {
        match self {
            Self::Pipeline(of) => of.text(spoiled),
            Self::Rounds(of) => of.text(spoiled, false),
            Self::Lockstep(of) => of.text(spoiled, true),
        }
    }

    fn threads(self) -> u32 {
        match self {
            Self::Pipeline(of) => of.threads.iter().sum(),
            Self::Rounds(of) | Self::Lockstep(of) => of.threads,
        }
    }

    /// Accesses to shared memory, of all threads.
    fn commands(self) -> u64 {
        let of = match self {
            Self::Pipeline(of) => [of.barriers / 2, of.elements + of.threads[0] * of.reads, 1],
            Self::Rounds(of) | Self::Lockstep(of) => {
                let threads = 64 * (of.threads / 64).min(14);
                [of.rounds, threads, of.values * of.times]
            }
        };
        of.into_iter().map(u64::from).product()
    }

    fn input(self) -> usize {
        match self {
            Self::Pipeline(of) => 4 * (of.barriers / 2 * of.elements) as usize,
            Self::Rounds(_) | Self::Lockstep(_) => 4 * self.threads() as usize,
        }
    }

    /// What `verify` answers.
    fn verify(self, spoiled: Spoiled, warp_synchronous: bool) -> Answer {
        let checks = Checks {
            verify: Some(Verify {
                volatile: Volatile::Plain,
                warp_synchronous,
            }),
            ..Checks::verify()
        };
        let launch = Launch {
            kernel: None,
            then: None,
            grid: [1; 3],
            block: [self.threads(), 1, 1],
            shared: 0,
            cooperative: false,
        };
        let arguments = [
            Arg::Buffer(vec![0; self.input()]),
            Arg::Buffer(vec![0; 4 * self.threads() as usize]),
        ];
        let machine = Machine::new(Some(checks), 0).unwrap();
        let outcome = machine.run(&self.text(spoiled), &launch, &arguments);
        outcome.unwrap().verified.unwrap().answer
    }
}

impl Rounds {
    fn smaller(self) -> Self {
        Self {
            rounds: (self.rounds / 8).max(2),
            times: 1,
            ..self
        }
    }
}

#[test]
fn kernels_of_the_paper_get_its_verdicts() {
    let full = std::env::var("SPECIALISED").is_ok_and(|size| size == "full");
    println!(
        "| kernel | threads | thousand accesses | answer | seconds | the paper's |\n|---|---:|---:|---|---:|---:|"
    );
    let mut sum = [0.0; 2];
    for (name, shape, spoiled, paper) in rows() {
        let shape = if full { shape } else { shape.smaller() };
        let lockstep = matches!(shape, Shape::Lockstep(_));
        let start = Instant::now();
        let answer = shape.verify(spoiled, lockstep);
        let seconds = start.elapsed().as_secs_f64();
        sum[0] += seconds;
        sum[1] += paper;
        println!(
            "| {name} | {} | {} | {answer:?} | {seconds:.2} | {paper:.2} |",
            shape.threads(),
            shape.commands() / 1000
        );
        let expected = match spoiled {
            Nothing => Answer::AllData,
            _ => Answer::Race,
        };
        assert_eq!(answer, expected, "{name}");
        if lockstep {
            assert_eq!(
                shape.verify(spoiled, false),
                Answer::Race,
                "{name} without lockstep"
            );
        }
    }
    println!("| sum | | | | {:.2} | {:.2} |", sum[0], sum[1]);
}

#[test]
fn nothing_that_is_spoiled_is_proved() {
    let shapes = [
        pipeline(32, [64, 32], 1, 64, 4),
        pipeline(64, [64, 64], 2, 64, 8),
        pipeline(96, [96, 32], 3, 48, 8),
        Shape::Rounds(rounds(60, 128, 2000)),
        Shape::Rounds(rounds(60, 320, 2000)),
        Shape::Rounds(rounds(64, 448, 4000)),
    ];
    for shape in shapes {
        assert_eq!(shape.verify(Nothing, false), Answer::AllData, "{shape:?}");
        for spoiled in [DroppedArrival, SwappedBarriers, EarlyReuse, LateRead] {
            assert_eq!(
                shape.verify(spoiled, false),
                Answer::Race,
                "{spoiled:?} {shape:?}"
            );
        }
    }
}

/// What `verify` answers for a kernel of 64 threads, of which `%first` holds for the first warp.
fn small(body: &str) -> Answer {
    let text = format!(
        "{HEAD}.visible .entry small()\n{{\n.reg .pred %first;\n.reg .b32 %t, %v;\n.shared .align 4 .b32 word;\n\
         mov.u32 %t, %tid.x;\nsetp.lt.u32 %first, %t, 32;\n{body}ret;\n}}\n"
    );
    let launch = Launch {
        kernel: None,
        then: None,
        grid: [1; 3],
        block: [64, 1, 1],
        shared: 0,
        cooperative: false,
    };
    let machine = Machine::new(Some(Checks::verify()), 0).unwrap();
    let outcome = machine.run(&text, &launch, &[]).unwrap();
    outcome.verified.unwrap().answer
}

#[test]
fn the_errors_of_the_paper_are_known() {
    // Each warp waits for the other at another barrier.
    let deadlock = "@%first bar.sync 1, 64;\n@!%first bar.sync 2, 64;\n@%first bar.sync 2, 64;\n@!%first bar.sync 1, 64;\n";
    assert_eq!(small(deadlock), Answer::Race);
    let different = "@%first bar.sync 1, 64;\n@!%first bar.sync 1, 96;\n";
    assert_eq!(small(different), Answer::Race);
    let over = "bar.arrive 1, 128;\nbar.arrive 1, 128;\nbar.sync 1, 128;\n";
    assert_eq!(small(over), Answer::Race);
    // Arrivals that nobody waits for complete a barrier too.
    assert_eq!(small("bar.arrive 1, 64;\n"), Answer::AllData);
}

#[test]
fn accesses_without_a_later_barrier_race_too() {
    // The first released tool of the paper takes these for free of races, but for the last one.
    assert_eq!(small("st.shared.u32 [word], %t;\n"), Answer::Race);
    assert_eq!(
        small("bar.sync 0;\nst.shared.u32 [word], %t;\n"),
        Answer::Race
    );
    let before = "st.shared.u32 [word], %t;\nbar.sync 0;\n";
    assert_eq!(small(before), Answer::Race);
    let ordered = "@%first bra first;\nbar.sync 0;\nsetp.eq.u32 %first, %t, 32;\n@%first st.shared.u32 [word], %t;\nret;\n\
         first:\nsetp.eq.u32 %first, %t, 0;\n@%first st.shared.u32 [word], %t;\nbar.sync 0;\n";
    assert_eq!(small(ordered), Answer::AllData);
}

#[test]
fn a_look_at_an_mbarrier_proves_nothing() {
    // What the first warp reads is ordered only if the second one has come before.
    let look = ".reg .pred %one, %over;\n.shared .align 8 .b64 bar;\nsetp.eq.u32 %one, %t, 32;\n\
         @%one mbarrier.init.shared.b64 [bar], 1;\nbar.sync 0;\n@%first bra look;\n\
         @%one st.shared.u32 [word], %t;\n@%one mbarrier.arrive.shared.b64 _, [bar];\nret;\n\
         look:\nmbarrier.try_wait.parity.shared.b64 %over, [bar], 0;\nld.shared.u32 %v, [word];\n";
    assert_eq!(small(look), Answer::Unknown);
}
