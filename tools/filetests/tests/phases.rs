//! Kernels whose warps hand data over by mbarriers, and `verify`.
//!
//! Producers fill buffers in shared memory, by stores or by bulk copies, and consumers read them. Right kernels must be
//! proved for all schedules and all data; what is spoiled in one place must not be.

use std::fmt::Write as _;

use filetests::args::Arg;
use filetests::machine::{Checks, Launch, Machine};
use report::log::{Answer, Verified};

/// How a producer brings data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brings {
    /// Each thread loads and stores a word, and arrives.
    Stores,
    /// One thread expects bytes, and issues a bulk copy.
    Bulk,
    /// Each thread issues an asynchronous copy, for which the phase waits, and arrives.
    Copies,
    /// Each thread issues an asynchronous copy, whose end is the thread's arrival.
    Arrivals,
}
use Brings::{Arrivals, Bulk, Copies, Stores};

/// How threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// They test until the phase is over.
    Tests,
    /// The same, with a count of tests and a pause between them.
    Counts,
    /// They test once.
    Once,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoiled {
    Nothing,
    /// Producers do not wait for a buffer to be free.
    EarlyReuse,
    /// Consumers give a buffer back before they have read it.
    LateRead,
    /// Consumers do not wait for a buffer to be full.
    EarlyRead,
    /// Producers wait for the other parity.
    OtherParity,
    /// Bytes are expected behind the arrival instead of with it.
    LateExpectation,
    /// The mbarriers are not ordered behind their initialisation.
    EarlyUse,
    /// Data is stored, and what arrives are copies.
    StoresOnly,
    /// Threads wait for free buffers that then do nothing, so that nothing waits for them.
    IdleWaits,
}
use Spoiled::{
    EarlyRead, EarlyReuse, EarlyUse, IdleWaits, LateExpectation, LateRead, Nothing, OtherParity,
    StoresOnly,
};

#[derive(Clone, Copy, Debug)]
struct Pipeline {
    brings: Brings,
    waits: Waits,
    depth: u32,
    rounds: u32,
}

/// Threads that produce, and threads that consume.
const EACH: u32 = 32;

impl Pipeline {
    fn wait(self, number: &str, at: &str, parity: &str) -> String {
        let test = format!("mbarrier.try_wait.parity.shared.b64 %p, [{at}], {parity};\n");
        match self.waits {
            Waits::Tests => format!("w{number}: {test}@!%p bra w{number};\n"),
            Waits::Counts => format!(
                "mov.u32 %n, 0;\nw{number}: {test}selp.u32 %k, 1, 0, %p;\nsetp.ne.u32 %q, %k, 0;\n@%q bra d{number};\n\
                 add.u32 %n, %n, 1;\nsetp.gt.u32 %q, %n, 100;\n@%q nanosleep.u32 20;\nbra w{number};\nd{number}:\n"
            ),
            Waits::Once => test,
        }
    }

    fn text(self, spoiled: Spoiled) -> String {
        let Self {
            brings,
            depth,
            rounds,
            ..
        } = self;
        let arrivals = if brings == Bulk { 1 } else { EACH };
        let mut text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
             .reg .pred %p, %q, %one;\n.reg .b32 %t, %lane, %i, %b, %full, %empty, %parity, %other, %at, %v, %n, %k, %sum;\n\
             .reg .b64 %in, %out, %o, %state;\n.shared .align 16 .b8 tile[{}];\n.shared .align 8 .b8 bars[{}];\n\
             mov.u32 %t, %tid.x;\nand.b32 %lane, %t, 31;\nsetp.eq.u32 %one, %t, 0;\n\
             ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nmov.u32 %sum, 0;\nmov.u32 %i, 0;\n",
            4 * EACH * depth,
            16 * depth
        );
        for buffer in 0..depth {
            let _ = write!(
                text,
                "@%one mbarrier.init.shared.b64 [bars+{}], {arrivals};\n@%one mbarrier.init.shared.b64 [bars+{}], {EACH};\n",
                16 * buffer,
                16 * buffer + 8
            );
        }
        if spoiled != EarlyUse {
            text.push_str("bar.sync 0;\n");
        }
        let numbers = format!(
            "rem.u32 %b, %i, {depth};\nmov.u32 %full, bars;\nmad.lo.u32 %full, %b, 16, %full;\nadd.u32 %empty, %full, 8;\n\
             div.u32 %parity, %i, {depth};\nand.b32 %parity, %parity, 1;\nxor.b32 %other, %parity, 1;\n\
             mov.u32 %at, tile;\nmad.lo.u32 %at, %b, {}, %at;\n",
            4 * EACH
        );
        let empty = match spoiled {
            EarlyReuse => String::new(),
            OtherParity => self.wait("e", "%empty", "%parity"),
            _ => self.wait("e", "%empty", "%other"),
        };
        let source = format!(
            "mad.lo.u32 %k, %i, {EACH}, %lane;\nmul.wide.u32 %o, %k, 4;\nadd.u64 %o, %in, %o;\n"
        );
        let (idle, ends) = (
            "setp.ne.u32 %q, %lane, 0;\n@%q bra idle;\n",
            "setp.ne.u32 %q, %lane, 0;\n@%q ret;\n",
        );
        let (first, then) = match (brings, spoiled) {
            (Bulk, IdleWaits) => ("", idle),
            (Bulk, _) => (ends, ""),
            _ => ("", ""),
        };
        let brings = match brings {
            Stores => format!(
                "{source}ld.global.u32 %v, [%o];\nmad.lo.u32 %at, %lane, 4, %at;\nst.shared.u32 [%at], %v;\n\
                 mbarrier.arrive.shared.b64 %state, [%full];\n"
            ),
            Copies => format!(
                "{source}mad.lo.u32 %at, %lane, 4, %at;\ncp.async.ca.shared.global [%at], [%o], 4;\n\
                 cp.async.mbarrier.arrive.shared.b64 [%full];\nmbarrier.arrive.shared.b64 %state, [%full];\n"
            ),
            Arrivals => {
                let brings = match spoiled {
                    StoresOnly => "ld.global.u32 %v, [%o];\nst.shared.u32 [%at], %v;",
                    _ => "cp.async.ca.shared.global [%at], [%o], 4;",
                };
                format!(
                    "{source}mad.lo.u32 %at, %lane, 4, %at;\n{brings}\n\
                     cp.async.mbarrier.arrive.noinc.shared.b64 [%full];\n"
                )
            }
            Bulk => {
                let bytes = 4 * EACH;
                let expects = match spoiled {
                    LateExpectation => format!(
                        "mbarrier.arrive.shared.b64 %state, [%full];\nmbarrier.expect_tx.relaxed.cta.shared.b64 [%full], {bytes};\n"
                    ),
                    _ => {
                        format!("mbarrier.arrive.expect_tx.shared.b64 %state, [%full], {bytes};\n")
                    }
                };
                format!(
                    "{source}{expects}\
                     cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%at], [%o], {bytes}, [%full];\n"
                )
            }
        };
        let full = match spoiled {
            EarlyRead => String::new(),
            _ => self.wait("f", "%full", "%parity"),
        };
        let read = "mad.lo.u32 %at, %lane, 4, %at;\nxor.b32 %at, %at, 4;\nld.shared.u32 %v, [%at];\nadd.u32 %sum, %sum, %v;\n";
        let arrive = "mbarrier.arrive.shared.b64 %state, [%empty];\n";
        let uses = match spoiled {
            LateRead => [arrive, read],
            _ => [read, arrive],
        }
        .concat();
        let again = format!("add.u32 %i, %i, 1;\nsetp.lt.u32 %q, %i, {rounds};\n");
        let _ = write!(
            text,
            "setp.ge.u32 %q, %t, {EACH};\n@%q bra consume;\n\
             {first}produce:\n{numbers}{empty}{then}{brings}idle:\n{again}@%q bra produce;\nret;\n\
             consume:\n{numbers}{full}{uses}{again}@%q bra consume;\n\
             mul.wide.u32 %o, %lane, 4;\nadd.u64 %out, %out, %o;\nst.global.u32 [%out], %sum;\nret;\n}}\n"
        );
        text
    }

    fn verify(self, spoiled: Spoiled) -> Verified {
        let launch = Launch {
            kernel: None,
            then: None,
            grid: [1; 3],
            block: [2 * EACH, 1, 1],
            shared: 0,
            cooperative: false,
        };
        let arguments = [
            Arg::Buffer(vec![0; 4 * (EACH * self.rounds) as usize]),
            Arg::Buffer(vec![0; 4 * EACH as usize]),
        ];
        let machine = Machine::new(Some(Checks::verify()), 0).unwrap();
        let outcome = machine.run(&self.text(spoiled), &launch, &arguments);
        outcome.unwrap().verified.unwrap()
    }
}

fn all() -> impl Iterator<Item = Pipeline> {
    let ways = [Stores, Bulk, Copies, Arrivals].into_iter();
    let ways = ways.flat_map(|brings| [Waits::Tests, Waits::Counts].map(|waits| (brings, waits)));
    ways.flat_map(|(brings, waits)| {
        [(1, 5), (2, 7), (3, 12)].map(|(depth, rounds)| Pipeline {
            brings,
            waits,
            depth,
            rounds,
        })
    })
}

#[test]
fn pipelines_are_proved() {
    for pipeline in all() {
        let verified = pipeline.verify(Nothing);
        assert_eq!(
            verified.answer,
            Answer::AllData,
            "{pipeline:?} {verified:?}"
        );
    }
}

#[test]
fn nothing_that_is_spoiled_is_proved() {
    for pipeline in all() {
        let mut ways = vec![EarlyReuse, LateRead, EarlyRead, OtherParity, EarlyUse];
        ways.extend((pipeline.brings == Bulk).then_some(LateExpectation));
        ways.extend((pipeline.brings == Arrivals).then_some(StoresOnly));
        for spoiled in ways {
            let verified = pipeline.verify(spoiled);
            let proved = matches!(verified.answer, Answer::AllData | Answer::ThisData);
            assert!(!proved, "{spoiled:?} {pipeline:?}");
        }
        let once = Pipeline {
            waits: Waits::Once,
            ..pipeline
        };
        let verified = once.verify(Nothing);
        let proved = matches!(verified.answer, Answer::AllData | Answer::ThisData);
        assert!(!proved, "{once:?}");
    }
}

#[test]
fn the_obstacle_is_named() {
    let pipeline = Pipeline {
        brings: Bulk,
        waits: Waits::Tests,
        depth: 2,
        rounds: 8,
    };
    let Verified {
        answer, because, ..
    } = pipeline.verify(IdleWaits);
    assert_eq!(answer, Answer::Unknown);
    let text = &because[0].text;
    assert!(text.contains("nothing keeps the next phase"), "{text}");
}
