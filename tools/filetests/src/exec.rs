//! `tests/exec/`: what a kernel computes.
//!
//! Every case runs as written, and rewritten with the race checks, with cells and with a journal, on
//! one thread of the host and on several: all must give the expected result, which also shows that
//! rewriting changes nothing.

use anyhow::{Context, Result, bail, ensure};
use ptx::Parsed;
use runtime::{Mode, Prove};

use crate::args::{self, Arg};
use crate::header::{Case, bits};
use crate::inputs;
use crate::machine::{self, Checks, Launch, LaunchOutcome, Machine};
use crate::reference;

/// Threads of the host.
const THREADS: [u32; 3] = [1, 2, 4];

/// Runs one case on the original and on the rewritten text.
pub fn run(case: &Case) -> Result<()> {
    // All checks are to run, whatever is proved.
    let cells = Checks {
        prove: Prove::Off,
        called: true,
        ..Checks::by(Mode::Fast)
    };
    let journal = Checks {
        as_gpu: true,
        prove: Prove::Off,
        ..Checks::by(Mode::Precise)
    };
    let ways = [
        ("as written", None),
        ("with called checks of cells", Some(cells)),
        ("with a journal", Some(journal)),
        ("as far as it is not proved", Some(Checks::by(Mode::Fast))),
    ];
    let text = Parsed::new(&case.text);
    is_understood(&text)?;
    if let Some(why) = case.get("open-on-gpu") {
        ensure!(!why.is_empty(), "`open-on-gpu` gives no reason");
    }
    for (which, checks) in ways {
        // One instruction of one thread has nothing to record in a journal.
        if is_scalar(case) && checks == Some(journal) {
            continue;
        }
        let ready = machine::ready(&text, checks);
        for threads in threads(case)? {
            let machine = Machine::new(checks, 0)?.on_threads(*threads);
            judge(case, |launch, arguments| {
                machine.run_ready(&ready, launch, arguments)
            })
            .with_context(|| format!("{which}, on {threads} threads"))?;
        }
    }
    Ok(())
}

/// Fails when the parser has something to say about a text.
pub(crate) fn is_understood(text: &Parsed) -> Result<()> {
    match text.diagnostics.first() {
        None => Ok(()),
        Some(first) => {
            let (line, column) = text.module.line_column(first.span.start);
            bail!("{line}:{column}: {}", first.message)
        }
    }
}

/// How many threads of the host it runs on, in turn: one CTA has no use for more than one.
fn threads(case: &Case) -> Result<&'static [u32]> {
    let alone = !is_scalar(case) && case.dims("grid")? == [1; 3];
    Ok(if alone { &THREADS[..1] } else { &THREADS })
}

/// Whether a case is about one instruction.
pub fn is_scalar(case: &Case) -> bool {
    case.get("reference").is_some()
}

/// Launches a case once by `run`, and compares what came of it with what is expected.
///
/// # Errors
/// When it is something else.
pub fn judge(
    case: &Case,
    run: impl FnOnce(&Launch, &[Arg]) -> Result<LaunchOutcome>,
) -> Result<()> {
    match case.get("reference") {
        Some(opcode) => scalar(case, opcode, run),
        None => kernel(case, run),
    }
}

/// The launch of a case, and its arguments.
///
/// # Errors
/// When the header does not say them.
pub(crate) fn launch(case: &Case) -> Result<(Launch, Vec<Arg>)> {
    if is_scalar(case) {
        let Scalars {
            launch, arguments, ..
        } = scalars(case)?;
        return Ok((launch, arguments));
    }
    let functions = case.functions()?;
    let arguments = case.all("arg").iter();
    let arguments = arguments.map(|arg| args::parse(arg, &functions));
    Ok((Launch::of(case)?, arguments.collect::<Result<_>>()?))
}

/// Operands for one scalar instruction.
struct Scalars {
    rows: Vec<Vec<u64>>,
    /// The type of what it gives.
    result: String,
    launch: Launch,
    arguments: Vec<Arg>,
}

/// A template for one scalar instruction: `in` holds rows of 64-bit slots with the operands, `out`
/// one slot per row.
fn scalars(case: &Case) -> Result<Scalars> {
    const BLOCK: u32 = 128;
    let operands = case
        .get("operands")
        .context("`reference` needs `operands`")?;
    let result = case.get("result").context("`reference` needs `result`")?;
    let (operands, result) = (named_types(case, operands), named_types(case, result));
    let rows = inputs::rows(&operands)?;
    let input: Vec<u8> = rows
        .iter()
        .flatten()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let count = u32::try_from(rows.len())?;
    let arguments = vec![
        Arg::Buffer(input),
        Arg::Buffer(vec![0; rows.len() * 8]),
        Arg::Scalar(count.to_le_bytes().to_vec()),
    ];
    let launch = Launch {
        kernel: None,
        then: None,
        grid: [count.div_ceil(BLOCK), 1, 1],
        block: [BLOCK, 1, 1],
        shared: 0,
        cooperative: false,
    };
    Ok(Scalars {
        rows,
        result,
        launch,
        arguments,
    })
}

fn scalar(
    case: &Case,
    opcode: &str,
    run: impl FnOnce(&Launch, &[Arg]) -> Result<LaunchOutcome>,
) -> Result<()> {
    let Scalars {
        rows,
        result,
        launch,
        arguments,
    } = scalars(case)?;
    let buffers = run(&launch, &arguments)?;
    buffers.error?;
    let width = bits(&result).with_context(|| format!("unknown result type `{result}`"))?;
    for (row, slot) in rows.iter().zip(buffers.contents[1].chunks_exact(8)) {
        let slot = u64::from_le_bytes(slot.try_into()?) & (u64::MAX >> (64 - width));
        let expected = reference::eval(opcode, row)?;
        ensure!(
            expected.accepts(slot, &result),
            "{opcode} of {row:x?} gave {slot:#x}, expected {expected:x?}"
        );
    }
    Ok(())
}

/// `T`, `D` and `W` in `operands` and `result` stand for the revision's types.
fn named_types(case: &Case, text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let (name, rest) = word.split_at(1);
        match name {
            "T" | "D" | "W" => case.expand(&format!("${{{name}}}")) + rest,
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A whole kernel with literal arguments and expected buffers or an expected error.
fn kernel(case: &Case, run: impl FnOnce(&Launch, &[Arg]) -> Result<LaunchOutcome>) -> Result<()> {
    let (launch, arguments) = launch(case)?;
    let outcome = run(&launch, &arguments)?;
    match (case.get("error"), &outcome.error) {
        (None, Ok(())) => {}
        (None, Err(error)) => bail!("{error}"),
        (Some(expected), Ok(())) => bail!("the launch succeeded, expected error `{expected}`"),
        (Some(expected), Err(error)) => ensure!(
            error.kinds.contains(&expected),
            "the launch failed with `{}` ({error}), expected `{expected}`",
            error.kinds.join("` or `")
        ),
    }
    ensure!(
        case.get("error").is_some() || !case.all("out").is_empty(),
        "the case expects nothing: give `out` or `error`"
    );
    contents(case, &outcome)
}

/// Compares the arguments' contents with what `out` lines expect.
///
/// # Errors
/// When they differ.
pub(crate) fn contents(case: &Case, outcome: &LaunchOutcome) -> Result<()> {
    let functions = case.functions()?;
    for out in case.all("out") {
        let (index, value) = out.split_once(' ').context("expected `out: INDEX VALUE`")?;
        let index: usize = index
            .parse()
            .with_context(|| format!("bad argument index in `{out}`"))?;
        let Arg::Buffer(expected) = args::parse(value, &functions)? else {
            bail!("`out: {out}` is not a buffer");
        };
        let actual = outcome.contents.get(index).context("no such argument")?;
        let element = bits(value.split('[').next().unwrap_or_default()).unwrap_or(32) as usize / 8;
        let differs = actual
            .chunks(element)
            .zip(expected.chunks(element))
            .position(|(a, b)| a != b);
        if let Some(at) = differs {
            let show = |bytes: &[u8]| {
                bytes[at * element..][..element]
                    .iter()
                    .rev()
                    .map(|b| format!("{b:02x}"))
                    .collect::<String>()
            };
            bail!(
                "out {index}[{at}] is 0x{}, expected 0x{}",
                show(actual),
                show(&expected)
            );
        }
        ensure!(
            actual.len() == expected.len(),
            "out {index} has another length"
        );
    }
    Ok(())
}
