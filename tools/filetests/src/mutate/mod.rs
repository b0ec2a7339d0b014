//! Synchronisation that is taken away or weakened, one instruction at a time, in the right files of `tests/race` and in
//! launches of right programs.
//!
//! A mutant is *reported* if a run of it shows a race, a misuse, a deadlock or a failure, *equivalent* if `verify`
//! proves that no schedule makes it race, and else *neither*: the tool has missed something, or the instruction was
//! not needed and that is not proved. [`cause`] says which.

mod cause;
mod mutations;
mod page;
mod subject;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use rayon::prelude::*;
use report::log::Answer;
use report::names::{base, demangle};
use simulated::recorded::Recorded;

use crate::files;
use crate::header;
use crate::race::{self, Verdict};

use cause::Explained;
use mutations::{Kind, Mutation};
use subject::Subject;

/// Schedules of each mutant: round robin and seeds.
const SCHEDULES: u64 = 17;
/// The first of them, as many as a run of the tool looks at by default: the program's own and those of `--explore`.
const DEFAULT_SCHEDULES: u64 = 9;
/// Launches with more warp instructions are left out, as each of their mutants runs many times.
const MOST_INSTRUCTIONS: u64 = 1_000_000;
/// Likewise bytes that memory holds.
const MOST_MEMORY: u64 = 1 << 26;
/// Further schedules of a mutant that is neither reported nor proved.
const MORE_SCHEDULES: u64 = 100;

/// What became of mutants of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Fates {
    /// By the first schedule, by the first [`DEFAULT_SCHEDULES`] and by all.
    reported: [u64; 3],
    equivalent: u64,
    neither: u64,
}

impl Fates {
    fn all(&self) -> u64 {
        self.reported[2] + self.equivalent + self.neither
    }

    fn count(&mut self, fate: Fate) {
        match fate {
            Fate::Reported(first) => {
                let least = [0, DEFAULT_SCHEDULES - 1, SCHEDULES];
                for (count, last) in self.reported.iter_mut().zip(least) {
                    *count += u64::from(first <= last);
                }
            }
            Fate::Equivalent => self.equivalent += 1,
            Fate::Neither => self.neither += 1,
        }
    }

    fn add(&mut self, other: &Self) {
        let counts = self.reported.iter_mut().zip(other.reported);
        counts.for_each(|(count, more)| *count += more);
        self.equivalent += other.equivalent;
        self.neither += other.neither;
    }
}

/// Is given a line for each file or launch when its mutants are judged.
pub type Progress = dyn Fn(&str) + Sync;

/// What became of all mutants.
#[derive(Debug, Default)]
pub struct Mutants {
    kinds: BTreeMap<Kind, Fates>,
    survivors: Vec<Survivor>,
    /// What was not mutated, and why.
    left_out: Vec<String>,
}

/// A mutant that is neither reported nor proved.
#[derive(Debug)]
struct Survivor {
    /// The file or program.
    file: String,
    /// Its revision or kernel.
    part: String,
    line: u32,
    what: String,
    explained: Explained,
}

/// How to make a subject.
struct Named<F> {
    /// The file, or the program, that it is of.
    file: String,
    /// The revision, or the kernel.
    part: String,
    subject: F,
}

/// What became of one mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// By this schedule first.
    Reported(u64),
    Equivalent,
    Neither,
}

impl Mutants {
    /// Makes and judges all mutants of the files in a folder of race tests.
    ///
    /// # Errors
    /// When a file cannot be read, or a right one does not run.
    pub fn of_files(&mut self, folder: &Path, progress: &Progress) -> Result<()> {
        let mut subjects = Vec::new();
        for path in files::below(folder, "ptx")? {
            let text = std::fs::read_to_string(&path)?;
            let file = path.strip_prefix(folder).unwrap_or(&path);
            let file = file.display().to_string();
            for case in header::cases(&text)? {
                let right = race::expected(&case)? == Verdict::NoRace;
                let quiet = case.all("misuse").is_empty() && case.marks.is_empty();
                if right && quiet {
                    subjects.push(Named {
                        file: file.clone(),
                        part: case.revision.clone(),
                        subject: move || Subject::of(&case),
                    });
                }
            }
        }
        self.judge_all(&subjects, progress)
    }

    /// Makes and judges all mutants of the recorded launches in a folder; those of one program lie in a folder with its
    /// name.
    ///
    /// # Errors
    /// When a file cannot be read or is damaged.
    pub fn of_launches(&mut self, folder: &Path, progress: &Progress) -> Result<()> {
        let mut subjects = Vec::new();
        for path in files::below(folder, Recorded::EXTENSION)? {
            let program = path.parent().and_then(Path::file_name).unwrap_or_default();
            let program = program.to_string_lossy().into_owned();
            let recorded = read(&path)?;
            let kernel = base(&demangle(&recorded.kernel)).into_owned();
            let instructions = recorded.ended.as_ref().map(|of| of.warp_instructions);
            let long = instructions.unwrap_or(0) > MOST_INSTRUCTIONS;
            let large = recorded.contents.len() > MOST_MEMORY;
            if long || large {
                self.left_out
                    .push(format!("{program} {kernel}: it takes too long"));
                continue;
            }
            // Not kept, as all together may be large.
            subjects.push(Named {
                file: program,
                part: kernel,
                subject: move || Ok(Subject::recorded(read(&path)?)),
            });
        }
        self.judge_all(&subjects, progress)
    }

    /// Judges the mutants of subjects on all cores. What becomes of them is kept in the order of the
    /// subjects.
    fn judge_all<F>(&mut self, subjects: &[Named<F>], progress: &Progress) -> Result<()>
    where
        F: Fn() -> Result<Subject> + Sync,
    {
        let judged = subjects.par_iter().map(|named| {
            let Named { file, part, .. } = named;
            let start = Instant::now();
            let mut mutants = Self::default();
            let result = (named.subject)().and_then(|subject| mutants.judge(&subject, file, part));
            result.with_context(|| format!("{file} {part}"))?;
            progress(&format!(
                "{file} {part}: {} mutants in {:.1} s",
                mutants.kinds.values().map(Fates::all).sum::<u64>(),
                start.elapsed().as_secs_f64()
            ));
            Ok(mutants)
        });
        for one in judged.collect::<Result<Vec<_>>>()? {
            self.add(one);
        }
        Ok(())
    }

    fn add(&mut self, other: Self) {
        for (kind, of) in other.kinds {
            self.kinds.entry(kind).or_default().add(&of);
        }
        self.survivors.extend(other.survivors);
        self.left_out.extend(other.left_out);
    }

    fn judge(&mut self, subject: &Subject, file: &str, part: &str) -> Result<()> {
        let module = ptx::parse(subject.text()).0;
        let all = mutations::mutations(&module, &subject.kernels(&module)?);
        if all.is_empty() {
            return Ok(());
        }
        if let Some(why) = subject.unfit()? {
            self.left_out.push(format!("{file} {part}: {why}"));
            return Ok(());
        }
        let fates = all.iter().map(|mutation| fate(subject, mutation));
        let fates: Vec<Fate> = fates.collect::<Result<_>>()?;
        let of = |fits: fn(&Fate) -> bool| -> Vec<&Mutation> {
            let both = all.iter().zip(&fates);
            both.filter(|(_, fate)| fits(fate)).map(|of| of.0).collect()
        };
        for (mutation, fate) in all.iter().zip(&fates) {
            self.kinds.entry(mutation.kind).or_default().count(*fate);
        }
        let survivors = of(|fate| *fate == Fate::Neither);
        let silent = of(|fate| !matches!(fate, Fate::Reported(_)));
        let explained = cause::explain(subject, &survivors, &silent, &all)?;
        for (mutation, explained) in survivors.into_iter().zip(explained) {
            self.survivors.push(Survivor {
                file: file.to_owned(),
                part: part.to_owned(),
                line: mutation.line,
                what: mutation.what.clone(),
                explained,
            });
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Recorded> {
    let recorded = Recorded::read(File::open(path)?);
    recorded.with_context(|| path.display().to_string())
}

fn fate(subject: &Subject, mutation: &Mutation) -> Result<Fate> {
    let text = mutations::apply(subject.text(), &[mutation]);
    if let Some(first) = subject.reported(&text, 0..SCHEDULES)? {
        return Ok(Fate::Reported(first));
    }
    let proved = matches!(
        subject.verified(&text)?.answer,
        Answer::ThisData | Answer::AllData
    );
    Ok(match proved {
        true => Fate::Equivalent,
        false => Fate::Neither,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cause::Cause;

    /// A message from one CTA to another, with more fences than it needs, and a ticket that needs none.
    const TEXT: &str = "
//@ grid: 2
//@ block: 1
//@ arg: u32[4] zero
//@ expect: no-race
.version 7.0
.target sm_70
.address_size 64
.visible .entry mp(.param .u64 buf) {
    .reg .u64 %data, %own;
    .reg .u32 %r<4>;
    .reg .pred %p<3>;
    ld.param.u64 %data, [buf];
    mov.u32 %r0, %ctaid.x;
    setp.ne.u32 %p0, %r0, 0;
    setp.gt.u32 %p2, %r0, 1;
    @%p0 bra reader;
    st.global.u32 [%data], 1;
    fence.acq_rel.gpu; // first
    fence.acq_rel.gpu; // second
    atom.relaxed.gpu.global.exch.b32 %r1, [%data+4], 1;
    ret;
reader:
    atom.relaxed.gpu.global.exch.b32 %r2, [%data+4], 0;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra reader;
    fence.sc.gpu; // third
    ld.global.u32 %r3, [%data];
    fence.acq_rel.gpu; // fourth
    @%p2 fence.acq_rel.gpu; // fifth
    ret;
}
";

    #[test]
    fn what_is_not_reported_is_explained() {
        let case = &header::cases(TEXT).unwrap()[0];
        let line = |what: &str| TEXT.lines().position(|line| line.ends_with(what)).unwrap() + 1;
        let mut mutants = Mutants::default();
        mutants
            .judge(&Subject::of(case).unwrap(), "mp", "")
            .unwrap();
        let removed = mutants
            .survivors
            .iter()
            .filter(|of| of.what.contains("removed"));
        let removed: Vec<_> = removed
            .map(|of| {
                (
                    of.line as usize,
                    of.explained.cause,
                    of.explained.about.clone(),
                )
            })
            .collect();
        let [first, second] = [line("first"), line("second")];
        let spare = removed.iter().find(|of| of.1 == Cause::Spare).unwrap();
        assert_eq!(spare.0, line("fourth"));
        assert!(spare.2.contains(&(line("third") as u64)), "{spare:?}");
        assert_eq!(
            removed.iter().map(|of| (of.0, of.1)).collect::<Vec<_>>(),
            [
                (first, Cause::Redundant),
                (second, Cause::Redundant),
                (line("fourth"), Cause::Spare),
                (line("fifth"), Cause::Idle),
            ]
        );
        assert_eq!(removed[0].2, [second as u64]);
        let weaker = mutants.survivors.iter().find(|of| of.what.contains(".sc"));
        let weaker = &weaker.unwrap().explained;
        assert_eq!(weaker.cause, Cause::Enough);
        let fences = mutants.kinds[&Kind::Fence];
        assert_eq!(
            [fences.reported[2], fences.equivalent, fences.neither],
            [1, 0, 4]
        );
        let page = mutants.survivors();
        assert!(
            page.contains(&format!("{first} `fence.acq_rel.gpu` removed [{second}]")),
            "{page}"
        );
    }

    #[test]
    fn where_nothing_has_to_be_ordered() {
        let text = "
//@ grid: 1
//@ block: 2
//@ arg: u32[4] zero
//@ expect: no-race
.version 7.0
.target sm_70
.address_size 64
.visible .entry numbers(.param .u64 buf) {
    .reg .u64 %buf, %own;
    .reg .u32 %r0;
    ld.param.u64 %buf, [buf];
    atom.relaxed.gpu.global.add.u32 %r0, [%buf], 1;
    fence.acq_rel.gpu;
    mad.wide.u32 %own, %r0, 4, %buf;
    st.global.u32 [%own+4], 1;
    ret;
}
";
        let case = &header::cases(text).unwrap()[0];
        let mut mutants = Mutants::default();
        mutants
            .judge(&Subject::of(case).unwrap(), "numbers", "")
            .unwrap();
        let fence = mutants
            .survivors
            .iter()
            .find(|of| of.what.ends_with("removed"));
        assert_eq!(fence.unwrap().explained.cause, Cause::Unneeded);
    }
}
