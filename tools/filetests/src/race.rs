//! `tests/race/`: which accesses race, judged by every oracle that can run.
//!
//! A file is run round robin and under seeds, and on several threads of the host. Whatever is reported must be a marked pair, every run
//! of a racy case must report a race or a predictive one, and all runs together every
//! label.
//! Warnings, `strong` and `predictive`, must be marked in the same way, and are no races.
//! `expect` is the truth by the memory model. An oracle that gives another verdict, or none, fails, unless the
//! file states that one, and why ([`claimed`], [`warns`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use ptx::Parsed;
use report::log::Answer;
use runtime::{Mode, Model, Prove};
use simulated::Ready;

use crate::args::{self, Arg};
use crate::exec;
use crate::header::{Case, Class, Mark};
use crate::machine::{self, Checks, Launch, LaunchOutcome, Machine};

/// Seeds tried after the deterministic schedule.
const SEEDS: u64 = 16;
/// Likewise, where much more is executed.
const FEW_SEEDS: u64 = 4;
/// Seeds whose runs are replayed.
const REPLAYED: [u64; 3] = [0, 1, 7];

/// Something that gives a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oracle {
    /// What a header calls it.
    pub name: &'static str,
    checks: Checks,
}

/// Who runs when, and where.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// 0 for round robin.
    seed: u64,
    /// Threads of the host.
    threads: u32,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.threads {
            1 => write!(f, "seed {}", self.seed),
            threads => write!(f, "on {threads} threads"),
        }
    }
}

/// Every oracle: happens-before over all accesses, and the ways of checking on the device.
pub const ORACLES: [Oracle; 3] = [
    Oracle {
        name: "precise",
        checks: Checks::by(Mode::Precise),
    },
    Oracle {
        name: "as-gpu",
        checks: Checks {
            as_gpu: true,
            ..Checks::by(Mode::Precise)
        },
    },
    Oracle {
        name: "fast",
        checks: Checks::by(Mode::Fast),
    },
];

impl Oracle {
    fn seeds(&self) -> u64 {
        if self.checks.as_gpu { FEW_SEEDS } else { SEEDS }
    }

    /// Round robin and seeds, and several threads of the host for those who do not listen.
    fn schedules(&self) -> impl Iterator<Item = Schedule> {
        let alone = (0..=self.seeds()).map(|seed| Schedule { seed, threads: 1 });
        let together = [2, 4].map(|threads| Schedule { seed: 0, threads });
        let listens = !self.is_lenient();
        alone.chain(together.into_iter().filter(move |_| !listens))
    }

    /// Whether it gets to know of a kind of misuse.
    fn learns_of(&self, misuse: &str) -> bool {
        match self.checks.as_gpu {
            true => matches!(misuse, "excess" | "not-mbarrier" | "departed"),
            false => !self.is_lenient(),
        }
    }

    /// What it does not decide it may leave open.
    fn is_lenient(&self) -> bool {
        self.checks.as_gpu || self.checks.mode == Mode::Fast
    }
}

/// Whether a case has no races and no warnings.
///
/// # Errors
/// When the case does not say whether it has races.
pub fn is_silent(case: &Case) -> Result<bool> {
    Ok(expected(case)? == Verdict::NoRace && case.marks.is_empty())
}

/// What an oracle says of a case, over all schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It cannot see all accesses of the kernel.
    NotChecked,
    /// Nothing was reported.
    NoRace,
    /// Conflicts that may be ordered.
    Undecided,
    /// Races.
    Race,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotChecked => "not-checked",
            Self::NoRace => "no-race",
            Self::Undecided => "undecided",
            Self::Race => "race",
        })
    }
}

/// Which of the warnings that a case is marked with are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warned {
    /// None, under any schedule.
    Silent,
    /// Some, or under some schedules.
    Some,
    /// Some under every schedule, and all under one or another.
    All,
}

impl fmt::Display for Warned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => "silent",
            Self::Some => "some",
            Self::All => "all",
        })
    }
}

/// What a header line says before its comma; the reason behind it must not be empty.
fn with_reason<'a>(case: &'a Case, key: &str) -> Result<Option<&'a str>> {
    let Some(line) = case.get(key) else {
        return Ok(None);
    };
    let (stated, reason) = line.split_once(',').unwrap_or((line, ""));
    ensure!(!reason.trim().is_empty(), "`{key}` gives no reason");
    Ok(Some(stated.trim()))
}

/// What a file states of an oracle that does not give the truth.
pub(crate) fn stated(case: &Case, oracle: &str) -> Result<Option<Verdict>> {
    let key = format!("expect({oracle})");
    let Some(text) = with_reason(case, &key)? else {
        return Ok(None);
    };
    let truth = expected(case)?;
    let all = [
        Verdict::Race,
        Verdict::NoRace,
        Verdict::Undecided,
        Verdict::NotChecked,
    ];
    let verdict = all.into_iter().find(|verdict| verdict.to_string() == text);
    let verdict = verdict.with_context(|| format!("`{key}`: unknown verdict `{text}`"))?;
    ensure!(verdict != truth, "`{key}` states the truth: take it out");
    let open = matches!(verdict, Verdict::Undecided | Verdict::NotChecked);
    ensure!(
        !open || oracle != "precise",
        "`{key}`: it decides everything"
    );
    Ok(Some(verdict))
}

/// True of a verdict that is stated and wrong, and not just open.
pub(crate) fn is_wrong(stated: Option<Verdict>) -> bool {
    matches!(stated, Some(Verdict::Race | Verdict::NoRace))
}

/// The verdict that an oracle gives: the truth, or what the file states.
///
/// # Errors
/// When the header makes no sense.
pub fn claimed(case: &Case, oracle: Oracle) -> Result<Verdict> {
    match stated(case, oracle.name)? {
        Some(verdict) => Ok(verdict),
        None => expected(case),
    }
}

/// Which warnings an oracle gives, for a case that has no race, and is checked, and is marked with some: `precise`
/// gives all, `fast` none, and `as-gpu` all or what the file states.
///
/// # Errors
/// When the header makes no sense.
pub fn warns(case: &Case, oracle: Oracle) -> Result<Option<Warned>> {
    let key = format!("warns({})", oracle.name);
    let stated = match with_reason(case, &key)? {
        None => None,
        Some("silent") => Some(Warned::Silent),
        Some("some") => Some(Warned::Some),
        Some(other) => bail!("`{key}`: `{other}` is neither `silent` nor `some`"),
    };
    let quiet = labels(case)?.is_empty() || expected(case)? == Verdict::Race;
    if quiet || claimed(case, oracle)? == Verdict::NotChecked {
        ensure!(stated.is_none(), "`{key}`: there is nothing to warn of");
        return Ok(None);
    }
    let all = match oracle.checks.mode {
        Mode::Fast => Warned::Silent,
        _ => Warned::All,
    };
    Ok(Some(stated.unwrap_or(all)))
}

/// Runs one case through every oracle.
///
/// # Errors
/// What the oracles say that the file does not.
pub fn run(case: &Case) -> Result<()> {
    let text = Parsed::new(&case.text);
    exec::is_understood(&text)?;
    let ready = ORACLES.map(|oracle| machine::ready(&text, Some(oracle.checks)));
    let wrong = ORACLES.iter().zip(&ready).filter_map(|(&oracle, ready)| {
        let error = one(case, &text, ready, oracle).err()?;
        Some(format!("{error:#}"))
    });
    let wrong: Vec<String> = wrong.collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    verify(case, &text)?;
    let [precise, ..] = &ready;
    replay(case, precise)?;
    help(case, precise)
}

/// What a file states that `verify` answers; less than a proof for all data needs a reason.
pub(crate) fn answer(case: &Case) -> Result<Option<Answer>> {
    let answer = match case.get("verify") {
        None => return Ok(None),
        Some("race") => Answer::Race,
        Some("all-data") => Answer::AllData,
        Some(_) => match with_reason(case, "verify")? {
            Some("this-data") => Answer::ThisData,
            Some("unknown") => Answer::Unknown,
            other => bail!("`verify`: unknown answer {other:?}"),
        },
    };
    let races = expected(case)? == Verdict::Race;
    ensure!(
        races == (answer == Answer::Race),
        "`verify` and `expect` disagree"
    );
    Ok(Some(answer))
}

/// Fails when `verify` proves what races, or what has a predictive race, or says that something races which does not,
/// and where a file states its answer, when it gives another one or a run of it does not show all races.
fn verify(case: &Case, text: &Parsed) -> Result<()> {
    let checks = Checks::verify();
    let schedule = Schedule {
        seed: 0,
        threads: 1,
    };
    let outcome = once(case, &machine::ready(text, Some(checks)), checks, schedule)?;
    let verified = outcome.verified.context("nothing was verified")?;
    let clean = expected(case)? == Verdict::NoRace && case.all("misuse").is_empty();
    let labels = labels(case)?;
    let right = match verified.answer {
        Answer::Race => !clean,
        Answer::Unknown => true,
        Answer::ThisData | Answer::AllData => clean && labels.is_empty(),
    };
    ensure!(right, "verify answers {:?}", verified.answer);
    let Some(stated) = answer(case)? else {
        return Ok(());
    };
    ensure!(
        verified.answer == stated,
        "verify answers {:?}, expected {stated:?}: {:?}",
        verified.answer,
        verified.because
    );
    let found = outcome.races.iter().map(|race| (race.class, race.lines));
    let found: BTreeSet<Pair> = found.collect();
    let missed = labels.iter().find(|(pair, _)| !found.contains(pair));
    if let Some((_, label)) = missed {
        bail!("verify does not report race {}", label.name);
    }
    Ok(())
}

/// Fails unless a replay of each launch with races has the same races.
fn replay(case: &Case, ready: &Ready) -> Result<()> {
    let checks = Some(Checks::by(Mode::Precise));
    let (launch, arguments) = (Launch::of(case)?, arguments(case)?);
    for seed in REPLAYED {
        let machine = Machine::under(model(case)?, checks, seed)?;
        let replayed = machine.replays(ready, &launch, &arguments);
        let compared = replayed.with_context(|| format!("replayed, seed {seed}"))?;
        let silent = claimed(case, ORACLES[0])? == Verdict::Race && compared == 0;
        ensure!(!silent, "seed {seed}: no race was replayed");
    }
    Ok(())
}

/// `ready` is the text as the oracle checks it, with proofs.
fn one(case: &Case, text: &Parsed, ready: &Ready, oracle: Oracle) -> Result<()> {
    let judged = judge(case, ready, oracle).with_context(|| oracle.name)?;
    agree(case, oracle, judged)?;
    let again = |checks: Checks, ready: &Ready| {
        let oracle = Oracle { checks, ..oracle };
        let what = || {
            let Checks { prove, called, .. } = checks;
            format!(
                "{}, with proofs: {prove:?}, checks called: {called}",
                oracle.name
            )
        };
        let judged = judge(case, ready, oracle).with_context(what)?;
        agree(case, oracle, judged).with_context(what)
    };
    // What is proved must not matter.
    if judged.proved {
        let audited = Checks {
            prove: Prove::Audit,
            ..oracle.checks
        };
        again(audited, ready)?;
    }
    // Neither must where the checks stand. Happens-before runs the program's own text: without proofs, it would execute
    // and judge what it does to audit them, and compare less. `as-gpu` runs few schedules, so there is time for all cases.
    if oracle.is_lenient() && (judged.proved || oracle.checks.as_gpu) {
        let called = Checks {
            prove: Prove::Off,
            called: true,
            ..oracle.checks
        };
        again(called, &machine::ready(text, Some(called)))?;
    }
    Ok(())
}

/// Fails unless the reports of a case advise what its `help` lines say, and nothing else, in as many entries as
/// `entries` says, or one.
fn help(case: &Case, ready: &Ready) -> Result<()> {
    let stated: BTreeSet<&str> = case.all("help").iter().map(String::as_str).collect();
    if stated.is_empty() {
        return Ok(());
    }
    let entries = case.get("entries").map_or(Ok(1), str::parse::<usize>);
    let entries = entries.context("`entries` is not a number")?;
    let context = report::Context {
        scoped: model(case)? == Some(Model::Scoped),
        ..report::Context::default()
    };
    let mut given = BTreeSet::new();
    let checks = Some(Checks::by(Mode::Precise));
    for seed in 0..=SEEDS {
        let machine = Machine::under(model(case)?, checks, seed)?;
        let report = machine.report(ready, &Launch::of(case)?, &arguments(case)?, &context)?;
        let helps: Vec<String> = report.races.into_iter().map(|race| race.help).collect();
        ensure!(
            helps.len() == entries,
            "seed {seed}: {} entries, expected {entries}: {helps:#?}",
            helps.len()
        );
        given.extend(helps);
    }
    ensure!(
        given.iter().map(String::as_str).eq(stated.iter().copied()),
        "the report advises {given:#?}, expected {stated:#?}"
    );
    Ok(())
}

/// The truth of a case.
pub fn expected(case: &Case) -> Result<Verdict> {
    match case.get("expect").context("a race test needs `expect`")? {
        "race" => Ok(Verdict::Race),
        "no-race" => Ok(Verdict::NoRace),
        other => bail!("unknown expectation `{other}`: race or no-race"),
    }
}

/// What an oracle says of a case, over all schedules.
#[derive(Clone, Copy, Debug)]
struct Judged {
    verdict: Verdict,
    /// Of the warnings that the case is marked with, if there is no race and some are.
    warned: Option<Warned>,
    /// A proof has spared an access its check.
    proved: bool,
}

/// Fails when what an oracle says is neither right nor stated.
fn agree(case: &Case, oracle: Oracle, judged: Judged) -> Result<()> {
    let (name, verdict) = (oracle.name, judged.verdict);
    let claimed = claimed(case, oracle)?;
    ensure!(
        verdict == claimed,
        "{name} says {verdict}, expected {claimed}"
    );
    if let (Some(given), Some(expected)) = (judged.warned, warns(case, oracle)?) {
        ensure!(
            given == expected,
            "{name} gives these of the warnings: {given}; expected {expected}"
        );
    }
    Ok(())
}

/// Runs a case under all schedules of an oracle.
///
/// # Errors
/// When it reports a pair that is not marked, misses a label in all schedules, or a schedule of a
/// racy case shows no race at all.
fn judge(case: &Case, ready: &Ready, oracle: Oracle) -> Result<Judged> {
    let truth = expected(case)?;
    let labels = labels(case)?;
    let racy = labels.keys().any(|(class, _)| *class == Class::Race);
    ensure!(
        racy == (truth == Verdict::Race),
        "`expect: {truth}` and the number of race marks disagree"
    );
    let stated = stated(case, oracle.name)?;
    let wrong = is_wrong(stated);
    // A conflict that is left open need not name its accesses.
    let open = stated == Some(Verdict::Undecided);
    let (mut seen, mut same) = (BTreeSet::new(), BTreeMap::new());
    let mut verdict = Verdict::NoRace;
    let (mut ever_hidden, mut ever_counted, mut proved, mut quiet) = (false, false, false, false);
    for schedule in oracle.schedules() {
        let outcome = once(case, ready, oracle.checks, schedule)?;
        if let Err(error) = &outcome.error {
            bail!("{schedule}: the launch failed: {error}");
        }
        if truth == Verdict::NoRace {
            exec::contents(case, &outcome).with_context(|| schedule.to_string())?;
        }
        misuses(case, oracle, &outcome).with_context(|| schedule.to_string())?;
        ensure!(
            outcome.refuted.is_empty(),
            "{schedule}: {:?}",
            outcome.refuted
        );
        proved |= outcome.proved;
        if outcome.unchecked.is_some() {
            return Ok(Judged {
                verdict: Verdict::NotChecked,
                warned: None,
                proved,
            });
        }
        for race in &outcome.races {
            let is_race = race.class == Class::Race;
            if is_race {
                *same.entry(race.lines).or_insert(true) &= race.same_value;
            }
            verdict = verdict.max(match race.decided {
                _ if race.class == Class::Predictive && truth == Verdict::Race => {
                    Verdict::Undecided
                }
                _ if !is_race => Verdict::NoRace,
                true => Verdict::Race,
                false => Verdict::Undecided,
            });
            match labels.get(&(race.class, race.lines)) {
                Some(label) => drop(seen.insert((race.class, label.name.clone()))),
                None if (race.decided || !is_race) && !wrong => {
                    let (class, lines) = (race.class, race.lines);
                    bail!("{schedule}: false alarm: {class:?} in lines {lines:?}")
                }
                None => {}
            }
        }
        // What a fence has hidden under this schedule is counted. It must be found under another, or
        // the file states that it may not be.
        let hidden = oracle.checks.mode == Mode::Fast && outcome.ordered > 0;
        let mut races = outcome.races.iter().map(|race| race.class);
        let found = races.any(|class| class != Class::Strong);
        let counted = open && outcome.undecided > 0;
        ever_counted |= counted;
        let silent = truth == Verdict::Race && !found && !wrong && !hidden && !counted;
        let warns = truth == Verdict::NoRace && !labels.is_empty() && !oracle.is_lenient();
        ensure!(
            !warns || !outcome.races.is_empty(),
            "{schedule}: nothing was reported"
        );
        ever_hidden |= hidden;
        quiet |= outcome.races.is_empty();
        ensure!(!silent, "{schedule}: no race was reported");
    }
    values(&labels, &same, !oracle.is_lenient())?;
    // What is not decided may well be another of several pairs.
    let lenient = wrong || open || oracle.is_lenient();
    let missing: Vec<_> = labels
        .iter()
        .map(|((class, _), label)| (*class, label.name.clone()))
        .filter(|label| !seen.contains(label))
        // The race itself says more.
        .filter(|(class, name)| {
            *class != Class::Predictive || !seen.contains(&(Class::Race, name.clone()))
        })
        .collect();
    ensure!(
        missing.is_empty() || lenient,
        "never reported under {} seeds: {missing:?}",
        oracle.seeds()
    );
    let warned = match (missing.is_empty() && !quiet, seen.is_empty()) {
        (true, _) => Warned::All,
        (false, true) => Warned::Silent,
        (false, false) => Warned::Some,
    };
    Ok(Judged {
        // Which schedules hide a race, or leave it open, changes with every change of the checks.
        verdict: match (wrong && ever_hidden, ever_counted) {
            (true, _) => Verdict::NoRace,
            (false, true) => Verdict::Undecided,
            (false, false) => verdict,
        },
        warned: (truth == Verdict::NoRace && !labels.is_empty()).then_some(warned),
        proved,
    })
}

fn once(case: &Case, ready: &Ready, checks: Checks, schedule: Schedule) -> Result<LaunchOutcome> {
    let machine = Machine::under(model(case)?, Some(checks), schedule.seed)?;
    let machine = machine.on_threads(schedule.threads);
    machine.run_ready(ready, &Launch::of(case)?, &arguments(case)?)
}

/// The arguments of a case.
pub fn arguments(case: &Case) -> Result<Vec<Arg>> {
    let functions = case.functions()?;
    let arguments = case.all("arg").iter();
    let arguments = arguments.map(|arg| args::parse(arg, &functions));
    arguments.collect()
}

/// The memory model that a case is judged under.
pub(crate) fn model(case: &Case) -> Result<Option<Model>> {
    match case.get("model") {
        None | Some("default") => Ok(None),
        Some("ptx") => Ok(Some(Model::Ptx)),
        Some("scoped") => Ok(Some(Model::Scoped)),
        Some(other) => bail!("unknown model `{other}`: default, ptx or scoped"),
    }
}

/// Fails unless exactly the misuses that `misuse` lines name, and that the oracle gets to know, were
/// found.
fn misuses(case: &Case, oracle: Oracle, outcome: &LaunchOutcome) -> Result<()> {
    let found: BTreeSet<String> = outcome
        .misuses
        .iter()
        .map(|(kind, _)| kind.clone())
        .collect();
    let stated = case.all("misuse").iter().map(|kind| &**kind);
    // A journal does not record that bytes have come to what is no mbarrier.
    let kind = |kind: &'_ str| kind.strip_suffix("-by-bytes").unwrap_or(kind).to_owned();
    let stated: BTreeSet<String> = stated
        .filter(|kind| oracle.learns_of(kind))
        .map(kind)
        .collect();
    ensure!(
        found == stated,
        "misuses {:?}, expected {stated:?}",
        outcome.misuses
    );
    Ok(())
}

/// A pair of lines, the smaller first, and what is said of it.
pub(crate) type Pair = (Class, (u32, u32));

/// Fails when a pair has written the same value in all schedules and is not marked so, or, where all values are
/// compared, the other way around.
fn values(
    labels: &BTreeMap<Pair, Label>,
    same: &BTreeMap<(u32, u32), bool>,
    compared: bool,
) -> Result<()> {
    for ((class, lines), label) in labels {
        if *class != Class::Race {
            continue;
        }
        let same = same.get(lines).is_some_and(|&same| same);
        ensure!(
            same == label.same_value || (!same && !compared),
            "race {} {} two writes of the same value each time",
            label.name,
            if same { "is" } else { "is not" }
        );
    }
    Ok(())
}

/// What a file says about a pair of lines.
pub(crate) struct Label {
    name: String,
    same_value: bool,
}

/// What marked pairs of lines are, with the label they carry; a label that stands once races with
/// itself.
pub(crate) fn labels(case: &Case) -> Result<BTreeMap<Pair, Label>> {
    let mut marks: BTreeMap<(Class, &str), Vec<&Mark>> = BTreeMap::new();
    for mark in &case.marks {
        let key = (mark.class, mark.label.as_str());
        marks.entry(key).or_default().push(mark);
    }
    let pairs = marks.into_iter().map(|((class, name), ends)| {
        let (a, b) = match ends[..] {
            [one] => (one, one),
            [a, b] => (a, b),
            _ => bail!("race {name} has {} ends", ends.len()),
        };
        ensure!(
            a.same_value == b.same_value,
            "the ends of race {name} are marked in different ways"
        );
        let label = Label {
            name: name.to_owned(),
            same_value: a.same_value,
        };
        let lines = (a.line.min(b.line), a.line.max(b.line));
        Ok(((class, lines), label))
    });
    pairs.collect()
}
