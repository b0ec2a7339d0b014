//! A kernel and a launch for a seed.
//!
//! Strides, guards, loops, barriers, values that differ by branch, loaded values, atomics, buffers that overlap,
//! quotients and remainders; and numbers that wrap around, now and then.

use std::fmt::Write as _;

use crate::random::Random;

/// The kernel's name.
pub const ENTRY: &str = "affine";

/// A kernel, and how to launch it.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The PTX.
    pub text: String,
    /// CTAs.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// Bytes of the buffers that are allocated.
    pub buffers: Vec<u64>,
    /// The pointers: index of a buffer and offset in it.
    pub pointers: [(usize, u64); 3],
    /// The scalars.
    pub numbers: [u32; 2],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Seed of what memory holds.
    pub contents: u64,
}

/// A 32-bit register that code may use.
#[derive(Clone)]
struct Value {
    register: String,
    /// All threads of a block have the same.
    uniform: bool,
}

struct Maker {
    random: Random,
    text: String,
    values: Vec<Value>,
    /// Registers used so far: 32 bits, 64 bits, predicates; and labels.
    counts: [u32; 4],
    /// Accesses that may still be made.
    left: u32,
    /// Threads may have exited: no barrier any more.
    exited: bool,
    dynamic: bool,
}

/// The kernel of a seed.
pub fn kernel(seed: u64) -> Kernel {
    let mut random = Random::new(seed);
    let block = [random.pick(&[2, 3, 4, 8, 8]), random.pick(&[1, 1, 1, 2]), 1];
    let grid = [random.pick(&[1, 2, 2, 3]), random.pick(&[1, 1, 1, 2]), 1];
    let size = random.pick(&[256, 1024, 4096, 4096]);
    let buffers = vec![size, random.pick(&[64, 1024, 4096]), 2048];
    let pointers = [0, 1, 2].map(|buffer| match random.below(10) {
        0..6 => (buffer, 0),
        6 => (buffer, 4 * u64::from(random.below(8))),
        7 => (0, 0),
        8 => (0, 4 * u64::from(random.below(40))),
        _ => (1, 16),
    });
    let width = random.below(30) + 2;
    let wide = random.pick(&[u32::MAX, 1 << 31, 0x4000_0001, 0x2000_0000, 65_536]);
    let numbers = [
        random.below(6),
        if random.percent(5) { wide } else { width },
    ];
    let contents = random.number();
    let dynamic = random.percent(20);
    let left = random.below(6) + 1;
    let mut maker = Maker {
        random,
        text: String::new(),
        values: Vec::new(),
        counts: [0; 4],
        left,
        exited: false,
        dynamic,
    };
    maker.start();
    while maker.left > 0 {
        maker.statement(0, true);
    }
    Kernel {
        text: maker.whole(),
        grid,
        block,
        buffers,
        pointers,
        numbers,
        dynamic_shared: if dynamic { 1024 } else { 0 },
        contents,
    }
}

impl Maker {
    fn whole(self) -> String {
        let [r, rd, p, _] = self.counts;
        let shared = if self.dynamic {
            ".extern .shared .align 16 .b8 tile[];\n"
        } else {
            ""
        };
        let own = if self.dynamic {
            ""
        } else {
            "    .shared .align 16 .b8 tile[2048];\n"
        };
        format!(
            ".version 7.8\n.target sm_90\n.address_size 64\n{shared}.visible .entry {ENTRY}(\n    .param .u64 a,\n    \
             .param .u64 b,\n    .param .u64 c,\n    .param .u32 n,\n    .param .u32 w\n) {{\n    .reg .b32 %r<{}>;\n    \
             .reg .b64 %rd<{}>;\n    .reg .pred %p<{}>;\n{own}{}    ret;\n}}\n",
            r + 1,
            rd + 1,
            p + 1,
            self.text
        )
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    fn r(&mut self) -> String {
        self.counts[0] += 1;
        format!("%r{}", self.counts[0])
    }

    fn rd(&mut self) -> String {
        self.counts[1] += 1;
        format!("%rd{}", self.counts[1])
    }

    fn p(&mut self) -> String {
        self.counts[2] += 1;
        format!("%p{}", self.counts[2])
    }

    fn label(&mut self) -> String {
        self.counts[3] += 1;
        format!("L{}", self.counts[3])
    }

    /// A new register with what an instruction gives.
    fn give(&mut self, instruction: &str, operands: &str, uniform: bool) -> Value {
        let register = self.r();
        self.line(&format!("{instruction} {register}, {operands};"));
        Value { register, uniform }
    }

    fn start(&mut self) {
        for (register, parameter) in [("%rd1", "a"), ("%rd2", "b"), ("%rd3", "c")] {
            self.line(&format!("ld.param.u64 {register}, [{parameter}];"));
            if self.random.percent(50) {
                self.line(&format!("cvta.to.global.u64 {register}, {register};"));
            }
        }
        self.counts[1] = 3;
        for parameter in ["n", "w"] {
            let value = self.give("ld.param.u32", &format!("[{parameter}]"), true);
            self.values.push(value);
        }
        for (register, uniform) in [
            ("%tid.x", false),
            ("%tid.y", false),
            ("%ctaid.x", true),
            ("%ctaid.y", true),
            ("%ntid.x", true),
        ] {
            let value = self.give("mov.u32", register, uniform);
            self.values.push(value);
        }
        let (tx, bx, nx) = (self.named(2), self.named(4), self.named(6));
        let operands = format!("{bx}, {nx}, {tx}");
        let global = self.give("mad.lo.s32", &operands, false);
        self.values.push(global);
        if self.random.percent(20) {
            // Threads beyond the end exit.
            let p = self.p();
            let limit = self.random.below(20);
            let global = self.named(7);
            self.line(&format!("setp.ge.u32 {p}, {global}, {limit};"));
            self.line(&format!("@{p} ret;"));
            self.exited = true;
        }
    }

    fn named(&self, at: usize) -> String {
        self.values[at].register.clone()
    }

    fn value(&mut self) -> Value {
        let at = self.random.below(self.values.len() as u32) as usize;
        self.values[at].clone()
    }

    /// A number, now and then one that wraps.
    fn number(&mut self) -> u32 {
        match self.random.below(40) {
            0 => self
                .random
                .pick(&[0x4000_0000, 0x8000_0000, 0xffff_ffff, 0x1000_0000]),
            1..4 => 0_u32.wrapping_sub(self.random.below(5) + 1),
            _ => self.random.below(9),
        }
    }

    /// Some computation.
    fn compute(&mut self) -> Value {
        let a = self.value();
        let (b, number) = (self.value(), self.number());
        let small = self.random.pick(&[2, 2, 3, 4, 8]);
        let both = a.uniform && b.uniform;
        let (a, b, one) = (&a.register, &b.register, a.uniform);
        match self.random.below(20) {
            0..3 => self.give("add.s32", &format!("{a}, {b}"), both),
            3 | 4 => self.give("add.s32", &format!("{a}, {number}"), one),
            5 => self.give("sub.s32", &format!("{a}, {b}"), both),
            6 | 7 => self.give("mul.lo.s32", &format!("{a}, {number}"), one),
            8 => self.give("shl.b32", &format!("{a}, {}", number % 5), one),
            9 => self.give("shr.u32", &format!("{a}, {}", number % 4), one),
            10 => self.give("and.b32", &format!("{a}, {}", small.max(2) * 2 - 1), one),
            11 => self.give("div.u32", &format!("{a}, {small}"), one),
            12 => self.give("rem.u32", &format!("{a}, {small}"), one),
            13 => {
                let name = self
                    .random
                    .pick(&["min.s32", "max.s32", "min.u32", "max.u32"]);
                self.give(name, &format!("{a}, {b}"), both)
            }
            14 => {
                let (p, uniform) = self.condition();
                self.give("selp.b32", &format!("{a}, {b}, {p}"), both && uniform)
            }
            15 => {
                let w = self.named(1);
                self.give("mad.lo.s32", &format!("{a}, {w}, {b}"), both)
            }
            16 => {
                let name = self
                    .random
                    .pick(&["div.s32", "rem.s32", "shr.s32", "xor.b32"]);
                self.give(name, &format!("{a}, {small}"), one)
            }
            17 => {
                // What compilers make of divisions, and numbers that almost are such.
                let (factor, shift) = self.random.pick(&[
                    ("0xaaaaaaab", 1),
                    ("0xcccccccd", 2),
                    ("0x55555556", 0),
                    ("0x24924925", 0),
                    ("0x80000001", 1),
                    ("0xaaaaaaaa", 1),
                ]);
                let name = self
                    .random
                    .pick(&["mul.hi.u32", "mul.hi.u32", "mul.hi.s32"]);
                let high = self.give(name, &format!("{a}, {factor}"), one).register;
                let quotient = self.give("shr.u32", &format!("{high}, {shift}"), one);
                let by = self.random.pick(&["3", "5"]);
                let whole = self.give("mul.lo.s32", &format!("{}, {by}", quotient.register), one);
                match self.random.percent(50) {
                    true => quotient,
                    false => self.give("sub.s32", &format!("{a}, {}", whole.register), one),
                }
            }
            18 => {
                let (factor, shift) =
                    self.random
                        .pick(&[(43691, 17), (52429, 18), (171, 9), (5, 3)]);
                let operands = format!("{a}, {factor}");
                let product = self.give("mul.lo.u32", &operands, one).register;
                self.give("shr.u32", &format!("{product}, {shift}"), one)
            }
            _ => {
                let operands = format!("{a}, {}, {b}", number.max(1));
                self.give("mad.lo.s32", &operands, both)
            }
        }
    }

    /// A predicate, and whether all threads of a block have the same.
    fn condition(&mut self) -> (String, bool) {
        let p = self.p();
        let a = self.value();
        let compare = self
            .random
            .pick(&["lt", "ge", "eq", "ne", "gt", "le", "lt"]);
        let kind = self.random.pick(&["s32", "u32", "u32"]);
        if self.random.percent(15) {
            // Of two at once: their signs, whether both are 0, or the greater one.
            let other = self.compute();
            let operands = format!("{}, {}", a.register, other.register);
            let name = self
                .random
                .pick(&["or.b32", "or.b32", "and.b32", "max.s32", "min.u32"]);
            let with = self.random.pick(&["0", "-1", "0", "5"]);
            let both = a.uniform && other.uniform;
            let whole = self.give(name, &operands, both).register;
            self.line(&format!("setp.{compare}.{kind} {p}, {whole}, {with};"));
            return (p, both);
        }
        let (b, uniform) = if self.random.percent(60) {
            let most = self.random.pick(&[3, 8, 20]);
            (self.random.below(most).to_string(), true)
        } else {
            let b = self.value();
            (b.register, b.uniform)
        };
        self.line(&format!("setp.{compare}.{kind} {p}, {}, {b};", a.register));
        (p, a.uniform && uniform)
    }

    /// An index that tends to differ by thread.
    fn index(&mut self) -> Value {
        let [w, tx, ty, bx, by, nx, global] = [1, 2, 3, 4, 5, 6, 7].map(|at| self.named(at));
        let mut index = match self.random.below(12) {
            0..4 => self.values[7].clone(),
            4 => {
                let global = format!("{by}, {}, {global}", self.random.pick(&["24", "32", "16"]));
                self.give("mad.lo.s32", &global, false)
            }
            5 => {
                let row = self
                    .give("mad.lo.s32", &format!("{by}, 2, {ty}"), false)
                    .register;
                self.give("mad.lo.s32", &format!("{row}, {w}, {global}"), false)
            }
            6 => self.give("mad.lo.s32", &format!("{ty}, {nx}, {tx}"), false),
            7 => {
                let tile = self
                    .give("mad.lo.s32", &format!("{tx}, {w}, {ty}"), false)
                    .register;
                self.give("mad.lo.s32", &format!("{bx}, 64, {tile}"), false)
            }
            8 => self.values[2].clone(),
            _ => self.compute(),
        };
        for _ in 0..self.random.below(3) {
            let with = self.values[self.values.len() - 1].clone();
            let (a, number) = (index.register, self.number());
            index = match self.random.below(6) {
                0 => self.give(
                    "mul.lo.s32",
                    &format!("{a}, {}", number.max(1)),
                    index.uniform,
                ),
                1 => self.give("add.s32", &format!("{a}, {number}"), index.uniform),
                2 => self.give(
                    "mad.lo.s32",
                    &format!("{a}, {}, {}", number.max(1), with.register),
                    false,
                ),
                3 => self.give(
                    "mad.lo.s32",
                    &format!("{}, {}, {a}", with.register, number.wrapping_mul(8)),
                    false,
                ),
                _ => Value {
                    register: a,
                    uniform: index.uniform,
                },
            };
        }
        index
    }

    /// A global address.
    fn global(&mut self, bytes: u32) -> String {
        let base = format!("%rd{}", self.random.below(3) + 1);
        let index = self.index().register;
        let address = self.rd();
        let offset = self.rd();
        match self.random.below(8) {
            0..4 => self.line(&format!("mul.wide.s32 {offset}, {index}, {bytes};")),
            4 | 5 => self.line(&format!("mul.wide.u32 {offset}, {index}, {bytes};")),
            6 => {
                self.line(&format!("cvt.u64.u32 {offset}, {index};"));
                self.line(&format!(
                    "shl.b64 {offset}, {offset}, {};",
                    bytes.trailing_zeros()
                ));
            }
            _ => {
                let scaled = self.give("mul.lo.s32", &format!("{index}, {bytes}"), false);
                self.line(&format!("cvt.s64.s32 {offset}, {};", scaled.register));
            }
        }
        self.line(&format!("add.s64 {address}, {base}, {offset};"));
        let further = match self.random.below(4) {
            0 => format!("+{}", bytes * self.random.below(10)),
            1 if self.random.percent(30) => format!("+-{bytes}"),
            _ => String::new(),
        };
        format!("[{address}{further}]")
    }

    /// A shared address.
    fn shared(&mut self, bytes: u32) -> String {
        let index = self.index().register;
        let base = self.give("mov.u32", "tile", true).register;
        let address = self.give("mad.lo.s32", &format!("{index}, {bytes}, {base}"), false);
        let further = if self.random.percent(30) {
            format!("+{}", bytes * self.random.below(10))
        } else {
            String::new()
        };
        format!("[{}{further}]", address.register)
    }

    fn access(&mut self, guard: &str) {
        self.left = self.left.saturating_sub(1);
        let bytes = self.random.pick(&[1, 2, 4, 4, 4, 4, 8]);
        let space = self.random.pick(&["global", "global", "shared"]);
        let address = if space == "global" {
            self.global(bytes)
        } else {
            self.shared(bytes)
        };
        let value = self.value().register;
        match self.random.below(10) {
            0..4 => {
                if bytes == 4 {
                    let register = self.r();
                    // A register that a guard may leave as it was.
                    self.line(&format!("mov.u32 {register}, 0;"));
                    self.line(&format!("{guard}ld.{space}.u32 {register}, {address};"));
                    if self.random.percent(40) {
                        let operands = format!("{register}, {}", self.random.pick(&[3, 7, 255]));
                        let value = self.give("and.b32", &operands, false);
                        self.values.push(value);
                    }
                } else {
                    let (kind, register) = self.held(bytes, &value);
                    self.line(&format!("{guard}ld.{space}.{kind} {register}, {address};"));
                }
            }
            4..9 => {
                let (kind, register) = self.held(bytes, &value);
                let how = self.random.pick(&["", "", "", ".volatile"]);
                self.line(&format!(
                    "{guard}st{how}.{space}.{kind} {address}, {register};"
                ));
            }
            _ => {
                let scope = self.random.pick(&["gpu", "gpu", "cta"]);
                let (kind, register) = match bytes {
                    8 => self.held(8, &value),
                    _ => ("u32".to_owned(), value),
                };
                let register = register.as_str();
                let result = if kind == "u64" { self.rd() } else { self.r() };
                match self.random.below(2) {
                    0 => self.line(&format!("{guard}red.relaxed.{scope}.{space}.add.{kind} {address}, {register};")),
                    _ => self.line(&format!(
                        "{guard}atom.relaxed.{scope}.{space}.add.{kind} {result}, {address}, {register};"
                    )),
                }
            }
        }
    }

    /// The type and a register for so many bytes.
    fn held(&mut self, bytes: u32, value: &str) -> (String, String) {
        if bytes < 8 {
            return (format!("u{}", bytes * 8), value.to_owned());
        }
        let wide = self.rd();
        self.line(&format!("cvt.u64.u32 {wide}, {value};"));
        ("u64".to_owned(), wide)
    }

    /// A statement; `uniform` where all threads of a block come to it together.
    fn statement(&mut self, depth: u32, uniform: bool) {
        match self.random.below(20) {
            0..4 => {
                let value = self.compute();
                self.values.push(value);
            }
            4..6 => {
                let (p, _) = self.condition();
                let not = self.random.pick(&["", "!"]);
                self.access(&format!("@{not}{p} "));
            }
            6..8 if uniform && !self.exited => {
                let id = self.random.pick(&[0, 0, 0, 0, 0, 1]);
                self.line(&format!("bar.sync {id};"));
            }
            8..11 if depth < 3 => self.branch(depth, uniform),
            11..14 if depth < 2 => self.repeat(depth, uniform),
            _ => self.access(""),
        }
    }

    fn body(&mut self, depth: u32, uniform: bool) {
        let known = self.values.len();
        for _ in 0..self.random.below(3) + 1 {
            self.statement(depth, uniform);
        }
        self.values.truncate(known);
    }

    /// A branch, with or without another side; one value may differ by side.
    fn branch(&mut self, depth: u32, uniform: bool) {
        let (p, same) = self.condition();
        let (other, end) = (self.label(), self.label());
        let differs = self.r();
        let (one, two) = (self.value(), self.value());
        self.line(&format!("mov.u32 {differs}, {};", two.register));
        self.line(&format!("@{p} bra {other};"));
        self.body(depth + 1, uniform && same);
        if self.random.percent(50) {
            let by = self.random.below(4);
            self.line(&format!("add.s32 {differs}, {}, {by};", one.register));
        }
        if self.random.percent(50) {
            self.line(&format!("bra {end};"));
            let _ = writeln!(self.text, "{other}:");
            self.body(depth + 1, uniform && same);
            let _ = writeln!(self.text, "{end}:");
        } else {
            let _ = writeln!(self.text, "{other}:");
        }
        if self.random.percent(50) {
            self.values.push(Value {
                register: differs,
                uniform: same && one.uniform && two.uniform,
            });
        }
    }

    /// Starts a counter at a thread's own stretch of a range; returns the stretch's end.
    fn stretch(&mut self, counter: &str, length: u32) -> (String, bool) {
        let most = self.random.below(20);
        let id = self.named(2);
        let start = self.give("mul.lo.s32", &format!("{id}, {length}"), false);
        self.line(&format!("min.s32 {counter}, {}, {most};", start.register));
        let end = self.give("add.s32", &format!("{counter}, {length}"), false);
        let end = self.give("min.s32", &format!("{}, {most}", end.register), false);
        (end.register, false)
    }

    /// A loop that counts, or halves, with a value that is carried along.
    fn repeat(&mut self, depth: u32, uniform: bool) {
        let (head, end) = (self.label(), self.label());
        let (k, carried, p) = (self.r(), self.r(), self.p());
        let start = self.value();
        let step = self.random.pick(&[1, 1, 1, 2, 3]);
        let trips = self.random.below(4) + 1;
        let halving = self.random.percent(15);
        let first = if halving {
            1 << trips
        } else {
            self.random.below(3)
        };
        // How often: a number, a parameter, or by thread.
        let (bound, same) = match self.random.below(10) {
            0..5 => ((first + trips * step).to_string(), true),
            5..8 => (self.named(0), true),
            _ => (self.named(2), false),
        };
        let (bound, same) = match !halving && self.random.percent(20) {
            true => self.stretch(&k, trips),
            false => {
                self.line(&format!("mov.u32 {k}, {first};"));
                (bound, same)
            }
        };
        self.line(&format!("mov.u32 {carried}, {};", start.register));
        let before = !halving && (self.random.percent(50) || !same);
        let _ = writeln!(self.text, "{head}:");
        if before {
            self.line(&format!("setp.ge.u32 {p}, {k}, {bound};"));
            self.line(&format!("@{p} bra {end};"));
        }
        let advance = self.random.below(8);
        let follows = start.uniform && !matches!(advance, 5 | 6);
        let known = self.values.len();
        for register in [&carried, &k] {
            if *register == k || self.random.percent(40) {
                self.values.push(Value {
                    register: register.clone(),
                    uniform: same && (*register == k || follows),
                });
            }
        }
        self.body(depth + 1, uniform && same);
        self.values.truncate(known);
        let by = self.random.pick(&[1, 4, 16, 32]);
        match advance {
            0..4 => self.line(&format!("add.s32 {carried}, {carried}, {by};")),
            4 => self.line(&format!("add.s32 {carried}, {carried}, {k};")),
            5 | 6 => {
                // What memory holds at a place that it says itself, sometimes of two of which one is known.
                let place = self.give("and.b32", &format!("{carried}, 31"), false);
                let (base, address) = (self.random.below(3) + 1, self.rd());
                self.line(&format!(
                    "mad.wide.u32 {address}, {}, 4, %rd{base};",
                    place.register
                ));
                let kind = self.random.pick(&["u8", "s8", "u32"]);
                let value = self.give(&format!("ld.global.{kind}"), &format!("[{address}]"), false);
                let mut value = value.register;
                if self.random.percent(30) {
                    let operands = format!("{value}, {}, {p}", self.random.pick(&[5, 300]));
                    self.line(&format!("setp.lt.u32 {p}, {k}, 2;"));
                    value = self.give("selp.b32", &operands, false).register;
                }
                let mask = self.random.pick(&[15, 255]);
                let masked = self.random.percent(50);
                self.line(&match masked {
                    true => format!("and.b32 {carried}, {value}, {mask};"),
                    false => format!("mov.u32 {carried}, {value};"),
                });
            }
            _ => self.line(&format!("shl.b32 {carried}, {carried}, 1;")),
        }
        let equal = step == 1 && self.random.percent(20);
        if halving {
            self.line(&format!("shr.u32 {k}, {k}, 1;"));
            self.line(&format!("setp.ne.u32 {p}, {k}, 0;"));
            self.line(&format!("@{p} bra {head};"));
        } else {
            self.line(&format!("add.s32 {k}, {k}, {step};"));
            if before && !equal {
                self.line(&format!("bra {head};"));
            } else if equal {
                self.line(&format!("setp.ne.u32 {p}, {k}, {bound};"));
                self.line(&format!("@{p} bra {head};"));
            } else {
                self.line(&format!("setp.lt.u32 {p}, {k}, {bound};"));
                self.line(&format!("@{p} bra {head};"));
            }
        }
        let _ = writeln!(self.text, "{end}:");
        if self.random.percent(30) {
            self.values.push(Value {
                register: if self.random.percent(50) { carried } else { k },
                uniform: same && follows,
            });
        }
    }
}
