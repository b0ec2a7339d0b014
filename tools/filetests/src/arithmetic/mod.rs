//! Arithmetic on random operands: every form of every instruction that computes, comparison,
//! selection and conversion, on the simulated device, against [`reference`](crate::reference).
//!
//! [`forms`] lists the instructions, with the types of their operands. Each becomes a kernel in which
//! a lane loads a row of operands, executes the instruction and stores what it gives. The rows are
//! drawn from corners of the types and from random bits ([`values`]).

pub mod forms;
mod values;

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use simt::{Device, DeviceConfig, Launch};

use crate::reference::{self, Part, carry, width};
use simt::Random;

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What it is read as; `pred` for a predicate, `shift` for an amount in 32 bits, `lane` for a number
    /// below 32, `offset` for a small one of either sign.
    pub ty: &'static str,
    /// Bits of its register; those above the type's width are random.
    pub register: u32,
}

/// What a result must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// What the opcode gives.
    Value(String),
    /// What the opcode gives for some of the operands, by their numbers.
    Of {
        /// Opcode and suffixes.
        opcode: String,
        /// The operands, in its order.
        operands: Vec<usize>,
    },
    /// What the video instruction in the text gives.
    Video,
    /// The operand of this number.
    Operand(usize),
    /// The second predicate of the opcode.
    Second(String),
    /// The result of this one of the form's instructions, which hand a carry on.
    Step(usize),
}

/// A result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its type; `pred` for a predicate.
    pub ty: &'static str,
    /// Bits of its register, which it fills, with its sign or with zeros.
    pub register: u32,
    /// What it must be.
    pub want: Want,
}

/// An instruction, or several that hand a carry on, with operands `%a0` and so on, and results `%d0`
/// and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The instructions.
    pub text: String,
    /// What they are called in messages and in docs/instructions.md.
    pub opcodes: Vec<String>,
    /// The operands, each in a register of its own.
    pub sources: Vec<Source>,
    /// Operands behind them that stand in the text.
    pub constants: Vec<u64>,
    /// The results.
    pub outputs: Vec<Output>,
}

/// Bits of the smallest register that holds a type.
fn register(ty: &str) -> u32 {
    match ty {
        "pred" | "shift" | "lane" | "offset" => 32,
        ty => width(ty).unwrap_or(64).max(16),
    }
}

impl Source {
    fn new(ty: &'static str) -> Self {
        Self {
            ty,
            register: register(ty),
        }
    }
}

impl Output {
    fn new(ty: &'static str, want: Want) -> Self {
        Self {
            ty,
            register: register(ty),
            want,
        }
    }
}

impl Form {
    /// `opcode %d0, %a0, …;`
    fn new(opcode: impl Into<String>, to: &'static str, from: &[&'static str]) -> Self {
        let opcode = opcode.into();
        let operands: Vec<_> = (0..from.len()).map(|n| format!("%a{n}")).collect();
        Self {
            text: format!("{opcode} %d0, {};", operands.join(", ")),
            sources: from.iter().copied().map(Source::new).collect(),
            constants: Vec::new(),
            outputs: vec![Output::new(to, Want::Value(opcode.clone()))],
            opcodes: vec![opcode],
        }
    }

    /// With registers of these widths for its first operand and its result.
    fn in_registers(mut self, from: u32, to: u32) -> Self {
        self.sources[0].register = from;
        self.outputs[0].register = to;
        self
    }

    /// With a constant in place of the last operand.
    fn with(mut self, constant: &str, value: u64) -> Self {
        self.sources.pop();
        let operand = format!("%a{}", self.sources.len());
        self.text = self.text.replace(&operand, constant);
        self.constants = vec![value];
        self
    }

    /// The kernel of this name: `in` holds a row of operands per lane, 64 bits each, and `out` gets
    /// one of results.
    pub fn kernel(&self, name: &str) -> String {
        let mut text = format!(
            ".visible .entry {name}(.param .u64 in, .param .u64 out)\n{{\n    \
             .reg .b32 %t, %n, %c, %one;\n    .reg .b64 %in, %out;\n    .reg .pred %on;\n"
        );
        let sources = self.sources.iter().enumerate();
        let outputs = self.outputs.iter().enumerate();
        let mut declare = |name: &str, n: usize, ty: &str, bits: u32| {
            let class = if ty == "pred" {
                "pred".to_owned()
            } else {
                format!("b{bits}")
            };
            let _ = writeln!(text, "    .reg .{class} %{name}{n};");
        };
        for (n, source) in sources.clone() {
            declare("a", n, source.ty, source.register);
        }
        for (n, output) in outputs.clone() {
            declare("d", n, output.ty, output.register);
        }
        let slots = |count: usize| 8 * count;
        let _ = write!(
            text,
            "    mov.u32 %t, %tid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %c, %ctaid.x;
    mad.lo.u32 %t, %n, %c, %t;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mad.wide.u32 %in, %t, {}, %in;
    mad.wide.u32 %out, %t, {}, %out;
",
            slots(self.sources.len()),
            slots(self.outputs.len())
        );
        for (n, source) in sources {
            let at = slots(n);
            let _ = match source.ty {
                "pred" => writeln!(
                    text,
                    "    ld.global.b32 %one, [%in+{at}];\n    setp.ne.b32 %a{n}, %one, 0;"
                ),
                _ => writeln!(
                    text,
                    "    ld.global.b{} %a{n}, [%in+{at}];",
                    source.register
                ),
            };
        }
        for line in self.text.lines() {
            let _ = writeln!(text, "    {line}");
        }
        for (n, output) in outputs {
            let at = slots(n);
            let _ = match output.ty {
                "pred" => writeln!(
                    text,
                    "    selp.b32 %one, 1, 0, %d{n};\n    st.global.b32 [%out+{at}], %one;"
                ),
                _ => writeln!(
                    text,
                    "    st.global.b{} [%out+{at}], %d{n};",
                    output.register
                ),
            };
        }
        text.push_str("    ret;\n}\n");
        text
    }

    /// Compares the results for one row of operands with what they must be.
    ///
    /// # Errors
    /// When one is something else, or the reference does not know the instruction.
    pub fn judge(&self, row: &[u64], results: &[u64]) -> Result<()> {
        let mut inputs: Vec<u64> = row.to_vec();
        for (input, source) in inputs.iter_mut().zip(&self.sources) {
            *input &= keep(source.register);
        }
        inputs.extend(&self.constants);
        for (n, (output, &result)) in self.outputs.iter().zip(results).enumerate() {
            for part in self.parts(output, &inputs)? {
                let actual = result >> part.low & keep(part.bits);
                let ty = match part.bits {
                    1 => "pred",
                    16 if output.ty.starts_with("bf16") => "bf16",
                    16 if output.ty.starts_with("f16") => "f16",
                    _ => output.ty,
                };
                ensure!(
                    part.expected.accepts(actual, ty),
                    "{} of {row:x?} gave {actual:#x} in bits {} to {} of result {n}, expected {:x?}",
                    self.opcodes.join(", "),
                    part.low,
                    part.low + part.bits - 1,
                    part.expected
                );
            }
        }
        Ok(())
    }

    /// The parts of a result. What is smaller than its register fills it.
    fn parts(&self, output: &Output, inputs: &[u64]) -> Result<Vec<Part>> {
        let whole = |bits, value| Part {
            low: 0,
            bits,
            expected: reference::Expected::Exact(value),
        };
        let mut parts = match &output.want {
            Want::Value(opcode) => reference::parts(opcode, inputs)?,
            Want::Of { opcode, operands } => {
                let operands: Vec<u64> = operands.iter().map(|&n| inputs[n]).collect();
                reference::parts(opcode, &operands)?
            }
            Want::Video => vec![whole(32, reference::video(&self.text, inputs)?)],
            Want::Operand(number) => vec![whole(64, inputs[*number])],
            // Of packed comparisons each half has a predicate.
            Want::Second(opcode) => match reference::parts(opcode, inputs)?[..] {
                [_, high] => vec![Part { low: 0, ..high }],
                _ => vec![whole(1, reference::second(opcode, inputs)?.into())],
            },
            Want::Step(step) => {
                let steps = self.steps(inputs);
                vec![whole(64, carry::chain(&self.opcodes, &steps)?[*step])]
            }
        };
        if output.ty == "pred" {
            // The other one has an output of its own.
            parts.truncate(1);
            parts[0].bits = 1;
        } else if let [only] = &mut parts[..] {
            let bits = width(output.ty).unwrap_or(64);
            only.bits = bits;
            if let reference::Expected::Exact(value) = &mut only.expected {
                only.bits = output.register;
                let negative = *value >> (bits - 1) & 1 == 1;
                if output.ty.starts_with('s') && negative {
                    *value = (*value | !keep(bits)) & keep(output.register);
                }
            }
        }
        Ok(parts)
    }

    /// The operands of each instruction of a chain: three, or two, and zeros where they run out.
    fn steps(&self, inputs: &[u64]) -> Vec<Vec<u64>> {
        let mut left = inputs.iter().copied();
        let count = |opcode: &String| if opcode.starts_with('m') { 3 } else { 2 };
        let take = |opcode| {
            let mut next = || left.next().unwrap_or(0);
            (0..count(opcode)).map(|_| next()).collect()
        };
        self.opcodes.iter().map(take).collect()
    }
}

fn keep(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// A module with one kernel per form, `f0` and so on.
pub fn module(forms: &[Form]) -> String {
    let mut text = ".version 8.6\n.target sm_90\n.address_size 64\n".to_owned();
    for (n, form) in forms.iter().enumerate() {
        text.push_str(&form.kernel(&format!("f{n}")));
    }
    text
}

/// Lanes of a warp, which is also the CTA.
const LANES: u32 = 32;

/// Runs forms on `warps` warps of operands each, drawn from `seed`, and says what went wrong with
/// each of those that differ from the reference.
///
/// # Errors
/// When the module does not load, or the reference does not know a form.
pub fn run(forms: &[Form], seed: u64, warps: u32) -> Result<Vec<String>> {
    let (parsed, diagnostics) = ptx::parse(&module(forms));
    ensure!(diagnostics.is_empty(), "{diagnostics:?}");
    let mut device = Device::new(DeviceConfig {
        memory: 1 << 30,
        ..DeviceConfig::default()
    })?;
    let module = device.load(&parsed)?;
    let rows = (warps * LANES) as usize;
    let slots = |count: usize| (8 * count * rows) as u64;
    let most = |count: fn(&Form) -> usize| forms.iter().map(count).max().unwrap_or(0);
    let input = device
        .memory_mut()
        .alloc(slots(most(|form| form.sources.len())))?;
    let output = device
        .memory_mut()
        .alloc(slots(most(|form| form.outputs.len())))?;
    let mut wrong = Vec::new();
    for (n, form) in forms.iter().enumerate() {
        // A form's operands do not depend on the forms before it.
        let name = form.text.bytes().fold(seed, |name, byte| {
            name.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte)
        });
        let mut random = Random::new(name);
        let table: Vec<Vec<u64>> = (0..rows).map(|_| values::row(form, &mut random)).collect();
        let bytes: Vec<u8> = table
            .iter()
            .flatten()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        device.memory_mut().write(input, &bytes)?;
        let mut bytes = vec![0; 8 * form.outputs.len() * rows];
        device.memory_mut().write(output, &bytes)?;
        let params = [input, output].map(u64::to_le_bytes).concat();
        let launch = Launch::new([warps, 1, 1], [LANES, 1, 1], params);
        if let Err(error) = device.launch(module, &format!("f{n}"), &launch) {
            wrong.push(format!("{}: {error}", form.opcodes.join(", ")));
            continue;
        }
        device.memory().read(output, &mut bytes)?;
        let words = bytes.chunks_exact(8).map(|word| {
            let word: [u8; 8] = word.try_into().context("eight bytes")?;
            Ok(u64::from_le_bytes(word))
        });
        let words: Vec<u64> = words.collect::<Result<_>>()?;
        let results = words.chunks_exact(form.outputs.len());
        let judged = table.iter().zip(results);
        let first = judged
            .map(|(row, results)| form.judge(row, results))
            .find_map(Result::err);
        wrong.extend(first.map(|error| format!("{error:#}")));
    }
    Ok(wrong)
}
