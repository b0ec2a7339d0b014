//! Kernels that launch kernels: the words that race, against reachability in a graph of all that is done.
//!
//! Random trees of kernels of one thread, which access a few words and launch others, each once: into the
//! block's stream, one of two of their own, the tail stream, or none. The graph has a node for each
//! access, and for the start and the completion of each grid; its edges are those that the CUDA C++
//! Programming Guide promises ("CUDA Dynamic Parallelism").

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::common::{launch, load};
use random::Random;
use runtime::Options;

const WORDS: u32 = 3;
const PROGRAMS: u64 = 400;
/// Handles: the block's stream, the tail stream, and none.
const STREAMS: [u64; 3] = [0, 3, 4];
const TAIL: u64 = 3;
const FORGET: u64 = 4;
/// The first of two streams that a grid has made.
const OWN: u64 = 10;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// A word, and whether it is written.
    Access(u64, bool),
    /// A kernel, and the stream.
    Launch(usize, u64),
    /// The only event of the grid is recorded in a stream.
    Record(u64),
    /// A stream waits for it.
    Wait(u64),
}

/// The kernels by number; 0 is launched by the host.
type Program = Vec<Vec<Op>>;

fn program(random: &mut Random) -> Program {
    let mut kernels: Program = vec![Vec::new()];
    let mut levels = vec![0];
    let mut at = 0;
    while at < kernels.len() {
        for _ in 0..2 + random.below(5) {
            let stream = match random.below(5) {
                n @ 0..=2 => STREAMS[n as usize],
                n => OWN + u64::from(n) - 3,
            };
            let in_order = if stream == TAIL || stream == FORGET {
                0
            } else {
                stream
            };
            let op = match random.below(8) {
                0..=3 if levels[at] < 3 && kernels.len() < 8 => {
                    kernels.push(Vec::new());
                    levels.push(levels[at] + 1);
                    Op::Launch(kernels.len() - 1, stream)
                }
                4 => Op::Record(in_order),
                5 => Op::Wait(in_order),
                _ => Op::Access(u64::from(random.below(WORDS)), random.below(3) == 0),
            };
            kernels[at].push(op);
        }
        at += 1;
    }
    kernels
}

/// Nodes of the graph, and what comes directly before each.
#[derive(Default)]
struct Graph {
    before: Vec<Vec<usize>>,
    /// Accesses: the node, the word, and whether it is written.
    accesses: Vec<(usize, u64, bool)>,
}

impl Graph {
    fn node(&mut self, before: Vec<usize>) -> usize {
        self.before.push(before);
        self.before.len() - 1
    }

    /// Adds a grid that starts behind some nodes; its completion.
    fn grid(&mut self, program: &Program, kernel: usize, after: Vec<usize>) -> usize {
        let mut last = self.node(after);
        let mut streams: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut event = Vec::new();
        let (mut done, mut tails) = (Vec::new(), Vec::new());
        for &op in &program[kernel] {
            match op {
                Op::Access(word, writes) => {
                    last = self.node(vec![last]);
                    self.accesses.push((last, word, writes));
                }
                Op::Launch(child, TAIL) => tails.push(child),
                Op::Launch(child, stream) => {
                    let mut after = vec![last];
                    if stream != FORGET {
                        after.extend(streams.entry(stream).or_default().iter());
                    }
                    let over = self.grid(program, child, after);
                    done.push(over);
                    if stream != FORGET {
                        streams.insert(stream, vec![over]);
                    }
                }
                Op::Record(stream) => event = streams.entry(stream).or_default().clone(),
                Op::Wait(stream) => streams.entry(stream).or_default().extend(&event),
            }
        }
        done.push(last);
        for child in tails {
            let over = self.grid(program, child, done.clone());
            done.push(over);
        }
        self.node(done)
    }

    /// The words with two accesses that conflict and of which neither comes before the other.
    fn races(&self) -> BTreeSet<u64> {
        // Every node comes behind those that it names, which have smaller numbers.
        let mut behind: Vec<BTreeSet<usize>> = Vec::new();
        for before in &self.before {
            let mut all: BTreeSet<usize> = before.iter().copied().collect();
            before.iter().for_each(|&at| all.extend(&behind[at]));
            behind.push(all);
        }
        let mut words = BTreeSet::new();
        for (n, one) in self.accesses.iter().enumerate() {
            for other in &self.accesses[n + 1..] {
                let conflict = one.1 == other.1 && (one.2 || other.2);
                let ordered = behind[one.0].contains(&other.0) || behind[other.0].contains(&one.0);
                if conflict && !ordered {
                    words.insert(one.1);
                }
            }
        }
        words
    }
}

/// The program's PTX.
fn text(program: &Program) -> String {
    let mut text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 a,\n\
        .param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);\n\
        .extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);\n\
        .extern .func (.param .b32 r) __cudaCDP2StreamCreateWithFlags(.param .b64 a, .param .b32 b);\n\
        .extern .func (.param .b32 r) __cudaCDP2EventCreateWithFlags(.param .b64 a, .param .b32 b);\n\
        .extern .func (.param .b32 r) __cudaCDP2EventRecord(.param .b64 a, .param .b64 b);\n\
        .extern .func (.param .b32 r) __cudaCDP2StreamWaitEvent(.param .b64 a, .param .b64 b, .param .b32 c);\n\
        .visible .global .align 4 .u32 words[8];\n"
        .to_owned();
    for kernel in 1..program.len() {
        let _ = writeln!(text, ".visible .entry k{kernel}();");
    }
    for (kernel, ops) in program.iter().enumerate().rev() {
        let name = if kernel == 0 {
            "k".to_owned()
        } else {
            format!("k{kernel}")
        };
        let _ = write!(
            text,
            ".visible .entry {name}() {{ .reg .b32 %r; .reg .b64 %buffer, %at, %event, %stream<2>;\n\
             .local .align 8 .b64 place;\n"
        );
        for (function, flag, into) in [
            ("Stream", 1, "%stream0"),
            ("Stream", 1, "%stream1"),
            ("Event", 2, "%event"),
        ] {
            let _ = writeln!(
                text,
                "mov.u64 %at, place; cvta.local.u64 %at, %at;\n\
                 {{ .param .b64 a; .param .b32 b; .param .b32 r; st.param.b64 [a], %at;\n\
                 st.param.b32 [b], {flag}; call (r), __cudaCDP2{function}CreateWithFlags, (a, b); }}\n\
                 ld.local.b64 {into}, [place];"
            );
        }
        for op in ops {
            let stream = |stream: u64| match stream {
                OWN.. => format!("%stream{}", stream - OWN),
                named => named.to_string(),
            };
            let _ = match *op {
                Op::Access(word, true) => {
                    writeln!(text, "st.global.u32 [words+{}], {kernel};", 4 * word)
                }
                Op::Access(word, false) => {
                    writeln!(text, "ld.global.u32 %r, [words+{}];", 4 * word)
                }
                Op::Launch(child, into) => writeln!(
                    text,
                    "mov.u64 %at, k{child};\n\
                     {{ .param .b64 a; .param .align 4 .b8 b[12]; .param .align 4 .b8 c[12];\n\
                     .param .b32 d; .param .b64 r; st.param.b64 [a], %at; st.param.b32 [b], 1;\n\
                     st.param.b32 [b+4], 1; st.param.b32 [b+8], 1; st.param.b32 [c], 1;\n\
                     st.param.b32 [c+4], 1; st.param.b32 [c+8], 1; st.param.b32 [d], 0;\n\
                     call (r), __cudaCDP2GetParameterBufferV2, (a, b, c, d);\n\
                     ld.param.b64 %buffer, [r]; }}\n\
                     {{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %buffer;\n\
                     st.param.b64 [b], {}; call (r), __cudaCDP2LaunchDeviceV2, (a, b); }}",
                    stream(into)
                ),
                Op::Record(of) => writeln!(
                    text,
                    "{{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %event;\n\
                     st.param.b64 [b], {}; call (r), __cudaCDP2EventRecord, (a, b); }}",
                    stream(of)
                ),
                Op::Wait(of) => writeln!(
                    text,
                    "{{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b32 r;\n\
                     st.param.b64 [a], {}; st.param.b64 [b], %event; st.param.b32 [c], 0;\n\
                     call (r), __cudaCDP2StreamWaitEvent, (a, b, c); }}",
                    stream(of)
                ),
            };
        }
        text.push_str("ret; }\n");
    }
    text
}

/// The words that race by the tool, and how many launches it has checked.
fn found(program: &Program) -> (BTreeSet<u64>, usize) {
    let mut rig = load(&text(program), Options::default());
    let base = rig.variable("words");
    rig.launch(&launch(1, 1, &[]));
    let races = rig.races();
    let words = races.iter().map(|race| (race.address - base) / 4);
    (words.collect(), rig.launches().len())
}

#[test]
fn what_kernels_launch_races_where_nothing_orders_it() {
    let mut random = Random::new(17);
    let (mut racy, mut clean) = (0, 0);
    for number in 0..PROGRAMS {
        let program = program(&mut random);
        let mut graph = Graph::default();
        graph.grid(&program, 0, Vec::new());
        let expected = graph.races();
        let (words, launches) = found(&program);
        assert_eq!(launches, program.len(), "program {number}: {program:?}");
        assert_eq!(words, expected, "program {number}: {program:?}");
        racy += expected.len();
        clean += WORDS as usize - expected.len();
    }
    assert!(
        racy > 100 && clean > 100,
        "{racy} words race, {clean} do not"
    );
}
