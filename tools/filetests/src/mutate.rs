//! Synchronisation that is taken away or weakened, one instruction at a time, in the right files of `tests/race`.
//!
//! A mutant is *reported* if a run of it shows a race, a misuse, a deadlock or a failure, *equivalent* if `verify`
//! proves that no schedule makes it race, and else *neither*: the tool has missed something, or the instruction was
//! not needed and that is not proved.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Result;
use ptx::ast::{Instruction, Module, Span, Statement};
use report::log::Answer;
use runtime::Mode;

use crate::files;
use crate::header::{self, Case};
use crate::machine::{self, Checks, Launch, Machine};
use crate::race::{self, Verdict};

/// Schedules of each mutant: round robin and seeds.
const SCHEDULES: u64 = 17;

/// What became of mutants of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Fates {
    reported: u64,
    equivalent: u64,
    neither: u64,
}

/// What became of all mutants.
#[derive(Clone, Debug, Default)]
pub struct Mutants {
    kinds: BTreeMap<String, Fates>,
    /// Those that are neither reported nor proved: file and case, line, and what was done.
    pub neither: Vec<String>,
}

impl fmt::Display for Mutants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| what was done | mutants | reported | proved equivalent | neither |\n|---|---:|---:|---:|---:|"
        )?;
        let mut sum = Fates::default();
        let row = |f: &mut fmt::Formatter<'_>, kind: &str, of: Fates| {
            let all = of.reported + of.equivalent + of.neither;
            writeln!(
                f,
                "| {kind} | {all} | {} | {} | {} |",
                of.reported, of.equivalent, of.neither
            )
        };
        for (kind, of) in &self.kinds {
            row(f, kind, *of)?;
            sum.reported += of.reported;
            sum.equivalent += of.equivalent;
            sum.neither += of.neither;
        }
        row(f, "all", sum)
    }
}

/// What became of one mutant.
enum Fate {
    Reported,
    Equivalent,
    Neither,
}

/// Makes and judges all mutants of the files in a folder.
///
/// # Errors
/// When a file cannot be read, or a right one does not run.
pub fn run(folder: &Path) -> Result<Mutants> {
    let mut all = Mutants::default();
    for path in files::below(folder, "ptx")? {
        let text = std::fs::read_to_string(&path)?;
        for case in header::cases(&text)? {
            let right = race::expected(&case)? == Verdict::NoRace;
            let quiet = case.all("misuse").is_empty() && case.marks.is_empty();
            if !right || !quiet {
                continue;
            }
            let module = ptx::parse(&case.text).0;
            for (span, new, kind) in mutations(&module) {
                let mut mutant = case.clone();
                mutant.text.replace_range(span, &new);
                let fates = all.kinds.entry(kind.clone()).or_default();
                match judge(&mutant)? {
                    Fate::Reported => fates.reported += 1,
                    Fate::Equivalent => fates.equivalent += 1,
                    Fate::Neither => {
                        fates.neither += 1;
                        let file = path.strip_prefix(folder).unwrap_or(&path);
                        let name = file.display();
                        let line = module
                            .line_column(u32::try_from(span_start(&mutant, &case))?)
                            .0;
                        let variant = case.get("case").unwrap_or_default();
                        all.neither
                            .push(format!("{name} {variant} line {line}: {kind}"));
                    }
                }
            }
        }
    }
    Ok(all)
}

/// Where two texts begin to differ.
fn span_start(mutant: &Case, case: &Case) -> usize {
    let differ = mutant.text.bytes().zip(case.text.bytes());
    differ.take_while(|(a, b)| a == b).count()
}

/// What can be done to a module: bytes, what takes their place, and a name.
fn mutations(module: &Module) -> Vec<(std::ops::Range<usize>, String, String)> {
    let mut all = Vec::new();
    let bodies = module
        .functions()
        .filter_map(|function| function.body.as_ref());
    for statement in bodies.flat_map(|body| &body.statements) {
        let Statement::Instruction(instruction) = statement else {
            continue;
        };
        let range = range(instruction.span);
        let text = module.slice(instruction.span);
        if let Some(name) = removable(instruction) {
            let blank = text.chars().map(|c| if c == '\n' { '\n' } else { ' ' });
            all.push((range.clone(), blank.collect(), format!("`{name}` removed")));
        }
        for (from, to) in WEAKER {
            let has = instruction.has(&from[1..]);
            if let Some(at) = text.find(from).filter(|_| has && orders(instruction)) {
                let at = range.start + at;
                let kind = format!("`{from}` made `{to}`");
                all.push((at..at + from.len(), (*to).to_owned(), kind));
            }
        }
    }
    all
}

/// What a suffix is weakened to.
const WEAKER: [(&str, &str); 8] = [
    (".acquire", ".relaxed"),
    (".release", ".relaxed"),
    (".acq_rel", ".relaxed"),
    (".sc", ".acq_rel"),
    (".gpu", ".cta"),
    (".sys", ".cta"),
    (".cluster", ".cta"),
    (".gl", ".cta"),
];

fn range(span: Span) -> std::ops::Range<usize> {
    span.start as usize..span.end as usize
}

/// The name of an instruction that does nothing but order others, and can be taken away.
fn removable(instruction: &Instruction) -> Option<String> {
    let first = instruction.suffixes.iter().take(2);
    let name = first.fold(instruction.opcode.to_string(), |name, suffix| {
        name + "." + suffix
    });
    let removable = match instruction.opcode.as_str() {
        "bar" | "barrier" => !instruction.has("red"),
        "membar" | "fence" => true,
        "cp" => instruction.has("wait_all") || instruction.has("wait_group"),
        _ => false,
    };
    removable.then_some(name)
}

/// Whether a suffix of an instruction says how it orders others.
fn orders(instruction: &Instruction) -> bool {
    matches!(
        instruction.opcode.as_str(),
        "ld" | "st" | "atom" | "red" | "fence" | "membar" | "mbarrier"
    )
}

fn judge(mutant: &Case) -> Result<Fate> {
    let model = race::model(mutant)?;
    let (launch, arguments) = (Launch::of(mutant)?, race::arguments(mutant)?);
    let checks = Checks::by(Mode::Precise);
    let ready = machine::ready(&mutant.text, Some(checks));
    for seed in 0..SCHEDULES {
        let machine = Machine::under(model, Some(checks), seed)?;
        // What does not load any more cannot go unnoticed either.
        let Ok(outcome) = machine.run_ready(&ready, &launch, &arguments) else {
            return Ok(Fate::Reported);
        };
        if outcome.error.is_err() || !outcome.races.is_empty() || !outcome.misuses.is_empty() {
            return Ok(Fate::Reported);
        }
    }
    let checks = Checks::verify();
    let machine = Machine::under(model, Some(checks), 0)?;
    let ready = machine::ready(&mutant.text, Some(checks));
    let outcome = machine.run_ready(&ready, &launch, &arguments)?;
    let proved = matches!(
        outcome.verified.map(|of| of.answer),
        Some(Answer::ThisData | Answer::AllData)
    );
    Ok(match proved {
        true => Fate::Equivalent,
        false => Fate::Neither,
    })
}
