//! Random kernels on the simulated device: every access is as its form says, and no proved access is part of a
//! conflict.
//!
//! `PROVE_KERNELS` and `PROVE_SEED` choose how many and which.

use std::fmt::Write;

use crate::machine::{Machine, Run};
use prove::assume::Quantity;
use random::Random;

/// Kernels in a plain run.
const KERNELS: u64 = 1_500;
/// Each with its share of the kernels.
const THREADS: u64 = 4;

/// Bytes of a buffer.
const BYTES: u64 = 4096;

/// A kernel while it is written.
struct Writer<'r> {
    random: &'r mut Random,
    text: String,
    /// Registers with a value, newest last.
    values: Vec<String>,
    registers: u32,
    labels: u32,
    wides: u32,
    predicates: u32,
    /// Loops and branches around.
    depth: u32,
    /// All threads of a block are here.
    together: bool,
}

impl Writer<'_> {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{text}");
    }

    fn fresh(&mut self) -> String {
        self.registers += 1;
        format!("%r{}", self.registers)
    }

    fn wide(&mut self) -> String {
        self.wides += 1;
        format!("%d{}", self.wides)
    }

    fn value(&mut self) -> String {
        // Newer ones more often.
        let count = self.values.len();
        let index = match self.random.one_in(2) {
            true => count - 1 - self.random.index(count.min(4)),
            false => self.random.index(count),
        };
        self.values[index].clone()
    }

    fn constant(&mut self) -> i64 {
        match self.random.below(6) {
            0 => self.random.pick(&[31, 63, 7, 15, 255]),
            1 => self
                .random
                .pick(&[-1, -2, -4, -32, 0x7fff_ffff, -0x8000_0000, 0x4000_0000]),
            _ => i64::from(self.random.below(20)) - 2,
        }
    }

    fn operand(&mut self) -> String {
        match self.random.one_in(2) {
            true => self.value(),
            false => self.constant().to_string(),
        }
    }

    /// A new value.
    fn compute(&mut self) {
        let (a, b) = (self.value(), self.operand());
        let signed = self.random.pick(&["s32", "u32"]);
        let small = 1 + self.random.below(12);
        let r = match self.random.one_in(12) && self.values.len() > 8 {
            // Written again, sometimes under a condition.
            true => self.values[6 + self.random.index(self.values.len() - 6)].clone(),
            false => self.fresh(),
        };
        let guard = match self.random.one_in(8) && self.values.contains(&r) {
            true => {
                let p = self.predicate();
                format!("@{p} ")
            }
            false => String::new(),
        };
        let most = if self.random.one_in(6) { 33 } else { 6 };
        let shift = self.random.below(most);
        let text = match self.random.below(20) {
            0..4 => format!("add.s32 {r}, {a}, {b};"),
            4 | 5 => format!("sub.s32 {r}, {a}, {b};"),
            6 | 7 => format!("mul.lo.s32 {r}, {a}, {small};"),
            8 => {
                let c = self.operand();
                format!("mad.lo.s32 {r}, {a}, {b}, {c};")
            }
            9 => format!("shl.b32 {r}, {a}, {shift};"),
            10 => format!("shr.{signed} {r}, {a}, {shift};"),
            11 => {
                let mask = self.random.pick(&[1, 3, 7, 15, 31, -2, -4, 6, 255]);
                format!("and.b32 {r}, {a}, {mask};")
            }
            12 => format!("div.{signed} {r}, {a}, {small};"),
            13 => format!("rem.{signed} {r}, {a}, {small};"),
            14 => {
                let op = self.random.pick(&["min", "max"]);
                format!("{op}.{signed} {r}, {a}, {b};")
            }
            15 => {
                let p = self.predicate();
                format!("selp.b32 {r}, {a}, {b}, {p};")
            }
            16 => {
                let op = self.random.pick(&["or", "xor"]);
                format!("{op}.b32 {r}, {a}, {b};")
            }
            17 => {
                let op = self.random.pick(&["neg.s32", "not.b32", "abs.s32"]);
                format!("{op} {r}, {a};")
            }
            18 => {
                let (from, bits) = (self.random.below(8), 1 + self.random.below(8));
                match self.random.below(2) {
                    0 => format!("bfe.u32 {r}, {a}, {from}, {bits};"),
                    _ => {
                        // Often up to the highest bit, as nvcc writes it.
                        let bits = self.random.pick(&[bits, 32 - from]);
                        format!("bfi.b32 {r}, {a}, {b}, {from}, {bits};")
                    }
                }
            }
            _ => {
                let ty = self.random.pick(&["u16", "s16"]);
                format!("cvt.{ty}.u32 %h1, {a}; cvt.{signed}.{ty} {r}, %h1;")
            }
        };
        match guard.is_empty() || text.starts_with("cvt") {
            true => self.line(format_args!("{text}")),
            false => self.line(format_args!("{guard}{text}")),
        }
        self.values.push(r);
    }

    fn predicate(&mut self) -> String {
        let (a, b) = (self.value(), self.operand());
        self.predicates += 1;
        let p = format!("%p{}", self.predicates);
        let comparison = self.random.pick(&["lt", "le", "gt", "ge", "eq", "ne"]);
        let signed = self.random.pick(&["s32", "s32", "u32"]);
        self.line(format_args!("setp.{comparison}.{signed} {p}, {a}, {b};"));
        match self.random.below(6) {
            0 => {
                let (c, d) = (self.value(), self.operand());
                let both = self.random.pick(&["and", "or"]);
                self.predicates += 1;
                let q = format!("%p{}", self.predicates);
                self.line(format_args!("setp.lt.{both}.s32 {q}, {c}, {d}, {p};"));
                q
            }
            1 => format!("!{p}"),
            _ => p,
        }
    }

    fn access(&mut self) {
        let mut index = self.value();
        if self.random.one_in(2) {
            // Within the buffer.
            let r = self.fresh();
            let text = match self.random.below(3) {
                0 => format!("and.b32 {r}, {index}, 255;"),
                1 => format!("rem.u32 {r}, {index}, 200;"),
                _ => format!("min.u32 {r}, {index}, 500;"),
            };
            self.line(format_args!("{text}"));
            index = r;
        }
        let shared = self.random.one_in(3);
        let scale = self.random.pick(&[4, 4, 4, 8]);
        let offset = self.random.pick(&[0, 0, 0, 4, 16, -4, 64]);
        let value = self.value();
        let address = match shared {
            true => {
                let (r, s) = (self.fresh(), self.fresh());
                self.line(format_args!("mul.lo.s32 {r}, {index}, {scale};"));
                self.line(format_args!("add.s32 {s}, %tile, {r};"));
                s
            }
            false => {
                let (wide, at) = (self.wide(), self.wide());
                let buffer = self.random.pick(&["%a", "%a", "%c"]);
                let signed = self.random.pick(&["s32", "u32"]);
                match self.random.below(3) {
                    0 => {
                        self.line(format_args!(
                            "cvt.{}.{signed} {wide}, {index};",
                            match signed {
                                "s32" => "s64",
                                _ => "u64",
                            }
                        ));
                        let shifted = self.wide();
                        self.line(format_args!("shl.b64 {shifted}, {wide}, 2;"));
                        self.line(format_args!("add.s64 {at}, {buffer}, {shifted};"));
                    }
                    1 => self.line(format_args!(
                        "mad.wide.{signed} {at}, {index}, {scale}, {buffer};"
                    )),
                    _ => {
                        self.line(format_args!("mul.wide.{signed} {wide}, {index}, {scale};"));
                        self.line(format_args!("add.s64 {at}, {wide}, {buffer};"));
                    }
                }
                at
            }
        };
        let space = if shared { "shared" } else { "global" };
        match self.random.below(7) {
            0..3 => self.line(format_args!(
                "st.{space}.u32 [{address}+{offset}], {value};"
            )),
            3 => {
                let r = self.fresh();
                self.line(format_args!("atom.{space}.add.u32 {r}, [{address}], 1;"));
                self.values.push(r);
            }
            4 if scale == 8 => {
                self.line(format_args!(
                    "st.{space}.v2.u32 [{address}], {{{value}, {value}}};"
                ));
            }
            _ => {
                let r = self.fresh();
                let ty = self.random.pick(&["u32", "s32", "u8", "s16"]);
                self.line(format_args!("ld.{space}.{ty} {r}, [{address}+{offset}];"));
                self.values.push(r);
            }
        }
    }

    fn branch(&mut self) {
        let p = self.predicate();
        let (p, not) = match p.strip_prefix('!') {
            Some(p) => (p.to_owned(), ""),
            None => (p, "!"),
        };
        self.labels += 1;
        let label = self.labels;
        let known = self.values.len();
        let together = std::mem::replace(&mut self.together, false);
        self.line(format_args!("@{not}{p} bra L{label};"));
        self.block(3);
        self.values.truncate(known);
        if self.random.one_in(3) {
            self.line(format_args!("bra.uni M{label};"));
            self.line(format_args!("L{label}:"));
            self.block(3);
            self.line(format_args!("M{label}:"));
        } else {
            self.line(format_args!("L{label}:"));
        }
        self.values.truncate(known);
        self.together = together;
    }

    fn repeat(&mut self) {
        self.labels += 1;
        let label = self.labels;
        let known = self.values.len();
        let counter = self.fresh();
        let uniform = self.random.one_in(2);
        let start = match uniform {
            true => self.random.pick(&["0", "0", "1", "9", "-3"]).to_owned(),
            false => self.operand(),
        };
        let bound = match self.random.below(4) {
            0 => self.value(),
            1 => "%n".to_owned(),
            _ => (i64::from(self.random.below(9)) - 1).to_string(),
        };
        let step = self.random.pick(&["1", "1", "2", "-1", "3", "-2", "%ntid"]);
        let comparison = self.random.pick(&["lt", "lt", "le", "ne", "gt", "ge"]);
        let signed = self.random.pick(&["s32", "s32", "u32"]);
        let spent = self.fresh();
        self.predicates += 2;
        let (p, q) = (self.predicates - 1, self.predicates);
        let together = self.together;
        // Only a loop of constants is the same for all threads.
        self.together &= uniform && (bound == "%n" || bound.parse::<i64>().is_ok());
        self.line(format_args!(
            "mov.u32 {counter}, {start}; mov.u32 {spent}, 0;"
        ));
        let in_front = self.random.one_in(2);
        self.line(format_args!("L{label}:"));
        if in_front {
            self.line(format_args!(
                "setp.{comparison}.{signed} %p{p}, {counter}, {bound};"
            ));
            self.line(format_args!("@!%p{p} bra M{label};"));
        }
        self.values.push(counter.clone());
        self.block(3);
        let step = match step {
            "%ntid" => {
                let r = self.fresh();
                self.line(format_args!("mov.u32 {r}, %ntid.x;"));
                r
            }
            step => step.to_owned(),
        };
        // Not for ever.
        if self.random.one_in(2) {
            self.line(format_args!("add.s32 {counter}, {counter}, {step};"));
            self.line(format_args!(
                "add.s32 {spent}, {spent}, 1; setp.gt.s32 %p{q}, {spent}, 9;"
            ));
            self.line(format_args!("@%p{q} bra M{label};"));
        } else {
            self.line(format_args!(
                "add.s32 {spent}, {spent}, 1; setp.gt.s32 %p{q}, {spent}, 9;"
            ));
            self.line(format_args!("@%p{q} bra M{label};"));
            self.line(format_args!("add.s32 {counter}, {counter}, {step};"));
        }
        match in_front {
            true => self.line(format_args!("bra.uni L{label};")),
            false => {
                self.line(format_args!(
                    "setp.{comparison}.{signed} %p{p}, {counter}, {bound};"
                ));
                self.line(format_args!("@%p{p} bra L{label};"));
            }
        }
        self.line(format_args!("M{label}:"));
        self.values.truncate(known);
        self.values.push(counter);
        self.together = together;
    }

    fn block(&mut self, most: u32) {
        self.depth += 1;
        for _ in 0..=self.random.below(most) {
            match self.random.below(12) {
                0..5 => self.compute(),
                5..9 => self.access(),
                9 if self.depth < 4 => self.branch(),
                10 if self.depth < 4 => self.repeat(),
                _ if self.together || self.random.one_in(40) => {
                    self.line(format_args!("bar.sync 0;"))
                }
                _ => self.compute(),
            }
        }
        self.depth -= 1;
    }
}

fn kernel(random: &mut Random) -> String {
    let mut writer = Writer {
        random,
        text: String::new(),
        values: ["%t", "%t", "%u", "%b", "%i", "%n", "%m"]
            .map(str::to_owned)
            .to_vec(),
        registers: 0,
        labels: 0,
        wides: 0,
        predicates: 0,
        depth: 0,
        together: true,
    };
    writer.block(9);
    writer.access();
    format!(
        ".visible .entry k(.param .u64 a, .param .u64 c, .param .u32 n, .param .u32 m) {{
.reg .pred %p<400>; .reg .b32 %r<2000>; .reg .b64 %d<2000>; .reg .b16 %h<4>;
.reg .b32 %t, %u, %b, %s, %i, %n, %m, %tile; .reg .b64 %a, %c;
.shared .align 8 .b8 tile[2048];
ld.param.u64 %a, [a]; ld.param.u64 %c, [c]; ld.param.u32 %n, [n]; ld.param.u32 %m, [m];
mov.u32 %t, %tid.x; mov.u32 %u, %tid.y; mov.u32 %b, %ctaid.x; mov.u32 %s, %ntid.x;
mad.lo.s32 %i, %b, %s, %t; mov.u32 %tile, tile;
{}ret;
}}",
        writer.text
    )
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Assumptions to take one of.
const ASSUMPTIONS: [&[&str]; 6] = [
    &["0 <= n <= 60", "0 <= m < 100"],
    &["0 <= n <= 60", "0 <= m < 100", "gridDim.x <= 3"],
    &["0 <= n <= 60", "n == m"],
    &["n % 4 == 1", "0 <= n < 64", "0 <= m", "m <= n"],
    &["gridDim.x == 1", "n == 16", "0 <= m < 100"],
    &["-2 <= n - m <= 2", "0 <= n <= 60", "gridDim.x <= 8"],
];

#[test]
fn no_launch_of_a_family_that_is_proved_has_a_race() {
    let (kernels, seed) = (number("PROVE_KERNELS", KERNELS), number("PROVE_SEED", 1));
    let (mut proved, mut ran) = (0, 0);
    for number in 0..kernels {
        let seed = seed.wrapping_mul(1 << 32).wrapping_add(number);
        let mut random = Random::new(seed);
        let text = kernel(&mut random);
        let mut machine = Machine::new(&text);
        // Far apart, as a family says nothing of accesses beyond an allocation.
        let [a, c] = [(); 2].map(|()| machine.buffer(1 << 22) + (1 << 21));
        let words: Vec<u8> = (0..BYTES / 4)
            .flat_map(|_| random.below(300).to_le_bytes())
            .collect();
        let memory = machine.device.memory_mut();
        memory.write(c, &words).expect("memory");
        let texts = random.pick(&ASSUMPTIONS);
        let assumed = machine.assumed(texts);
        let block = [random.pick(&[1, 4, 8, 33, 64]), 1 + random.below(2), 1];
        let aliases = random.one_in(5);
        let mut is_proved = false;
        for _ in 0..40 {
            let grid = 1 + random.below(4);
            let n = random.pick(&[0, 1, 5, 16, 17, 60]);
            let m = match random.one_in(2) {
                true => n,
                false => random.below(100),
            };
            let value = |of| match of {
                Quantity::Grid(0) => grid.into(),
                Quantity::Parameter(16, 4) => n.into(),
                Quantity::Parameter(20, 4) => m.into(),
                _ => panic!("{of:?} is not assumed"),
            };
            if assumed.iter().any(|of| of.holds(&value) != Some(true)) {
                continue;
            }
            let mut run = Run::new(grid, 1).long(a).long(if aliases { a } else { c });
            run.block = block;
            let run = run.word(n).word(m);
            if !is_proved && machine.family(&run, &assumed).is_err() {
                break;
            }
            proved += u64::from(!is_proved);
            is_proved = true;
            match machine.is_free(&run) {
                Ok(all) => ran += u64::from(all),
                Err(error) => {
                    let numbered = machine_text(&text);
                    panic!(
                        "kernel {number} of seed {seed}, {texts:?}: {error}\n{run:?}\n{numbered}"
                    );
                }
            }
        }
    }
    assert!(
        proved * 20 > kernels,
        "{proved} of {kernels} families are proved"
    );
    assert!(ran > 2 * proved, "{ran} launches of {proved} families ran");
}

/// What some launches have shown.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    ran: u64,
    events: usize,
    accesses: usize,
    proved: usize,
    whole: u64,
}

/// Runs one kernel, and holds what happens against its summary.
fn show(number: u64, seed: u64, shown: &mut Shown) {
    let seed = seed.wrapping_mul(1 << 32).wrapping_add(number);
    let mut random = Random::new(seed);
    let text = kernel(&mut random);
    let mut machine = Machine::new(&text);
    let (a, c) = (machine.buffer(BYTES), machine.buffer(BYTES));
    // Indices that differ.
    let words: Vec<u8> = (0..BYTES / 4)
        .flat_map(|_| random.below(300).to_le_bytes())
        .collect();
    machine
        .device
        .memory_mut()
        .write(c, &words)
        .expect("memory");
    let aliases = random.one_in(5);
    let mut run = Run::new(1 + random.below(3), random.pick(&[1, 4, 8, 33, 64]));
    if random.one_in(3) {
        run.block[1] = 2;
    }
    let n = random.pick(&[0, 1, 5, 16, 60, 0xffff_ffff]);
    let m = random.below(100);
    let run = run
        .long(a)
        .long(if aliases { a + 128 } else { c })
        .word(n)
        .word(m);
    match machine.check(&run, number.is_multiple_of(16)) {
        Ok(None) => {}
        Ok(Some((proof, executed))) => {
            let proved = proof.accesses.iter().filter(|result| result.is_ok());
            shown.ran += 1;
            shown.events += executed;
            shown.accesses += proof.accesses.len();
            shown.proved += proved.count();
            shown.whole += u64::from(proof.whole);
        }
        Err(error) => {
            let numbered: String = machine_text(&text);
            panic!("kernel {number} of seed {seed}: {error}\n{run:?}\n{numbered}");
        }
    }
}

#[test]
fn nothing_that_happens_contradicts_a_summary() {
    let (kernels, seed) = (number("PROVE_KERNELS", KERNELS), number("PROVE_SEED", 1));
    let share = |first: u64| {
        let mut shown = Shown::default();
        for number in (first..kernels).step_by(THREADS as usize) {
            show(number, seed, &mut shown);
        }
        shown
    };
    let mut all = Shown::default();
    std::thread::scope(|scope| {
        let threads = (0..THREADS).map(|first| scope.spawn(move || share(first)));
        for thread in threads.collect::<Vec<_>>() {
            let of = thread.join().expect("what has failed is printed above");
            all.ran += of.ran;
            all.events += of.events;
            all.accesses += of.accesses;
            all.proved += of.proved;
            all.whole += of.whole;
        }
    });
    assert!(
        all.ran * 3 > kernels,
        "{} of {kernels} launches ran",
        all.ran
    );
    assert!(all.proved * 10 > all.accesses, "{all:?}");
    assert!(all.whole > 0 && all.events > 0, "{all:?}");
}

/// The text as the machine loads it, with the numbers of its lines.
fn machine_text(text: &str) -> String {
    let lines = text.lines().enumerate();
    lines
        .map(|(number, line)| format!("{:4} {line}\n", number + 4))
        .collect()
}
