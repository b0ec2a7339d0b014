//! The header of a program's file: its keys and its marks of races. Its revisions are its variants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use header::{Grammar, Header, Line};
use report::log::Answer;

use crate::toolkit;

/// One of the two programs that a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// As it should be.
    Clean,
    /// Compiled with `-DRACY`.
    Racy,
}

impl Variant {
    const ALL: [Variant; 2] = [Variant::Clean, Variant::Racy];

    /// The revision that it is in the file.
    fn name(self) -> &'static str {
        match self {
            Variant::Clean => "clean",
            Variant::Racy => "racy",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the tool must say about a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    NoRace,
    /// Exactly the marked races.
    Race,
    /// Races, and what `says` lines say of them, under the first schedule.
    Advised,
    /// No race, but perhaps possible ones.
    NotDecided,
    /// That it did not check.
    NotChecked,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLine {
    /// The last component of its path, as paths differ between machines.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Two source lines in order; a race is an unordered pair.
pub type Pair = [SourceLine; 2];

/// The races marked in a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// Those that must be reported.
    pub must: BTreeSet<Pair>,
    /// Those that may be: whether they show depends on which thread comes first.
    pub may: BTreeSet<Pair>,
    /// Those whose two writes write the same: they must be reported, as warnings or, where the tool does not know
    /// what was written, as errors.
    pub same_value: BTreeSet<Pair>,
}

/// One file of `tests/apps` and what it says.
#[derive(Debug, Clone)]
pub struct Program {
    /// The main file.
    pub path: PathBuf,
    /// Its name without folder and extension.
    pub name: String,
    /// The races of the racy variant.
    pub marks: Marks,
    lines: Vec<Line>,
}

/// What a program may need of the system.
const PAGE_TABLE: &str = "page-table";

/// See docs/adding-a-test.md.
const GRAMMAR: Grammar<'_> = Grammar {
    keys: &[
        "variants",
        "expect",
        "exit",
        "not-as-on-gpu",
        "not-on-gpu",
        "not-assembled",
        "unseen-in-fast",
        "says",
        "stdout",
        "nvcc",
        "cuda",
        "needs",
        "with",
        "ptx",
        "args",
        "options",
        "bench-args",
        "verify",
        "demo",
    ],
    kinds: &["race", "race-with-call", "may", "same-value"],
};

impl Program {
    /// Reads a file and those it is compiled with.
    pub fn read(path: &Path) -> Result<Program> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let header = read_header(path, &text)?;
        let mut program = Program {
            path: path.to_path_buf(),
            name,
            marks: Marks::default(),
            lines: header.lines,
        };
        let mut ends = ends(&file_name(path), &header.marks)?;
        for file in program.files().iter().skip(1) {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let header = read_header(file, &text)?;
            ends.extend(self::ends(&file_name(file), &header.marks)?);
        }
        program.marks = pair_up(ends).with_context(|| path.display().to_string())?;
        program
            .validate()
            .with_context(|| path.display().to_string())?;
        Ok(program)
    }

    /// The variants that are built and run.
    pub fn variants(&self) -> Vec<Variant> {
        match self.value("variants", None) {
            Some("clean") => vec![Variant::Clean],
            _ => Variant::ALL.to_vec(),
        }
    }

    /// What the tool must say.
    pub fn expect(&self, variant: Variant) -> Result<Expect> {
        match self.value("expect", Some(variant)) {
            Some("no-race") => Ok(Expect::NoRace),
            Some("race") => Ok(Expect::Race),
            Some("advised") => Ok(Expect::Advised),
            Some("not-decided") => Ok(Expect::NotDecided),
            Some("not-checked") => Ok(Expect::NotChecked),
            Some(other) => bail!("unknown expectation `{other}`"),
            None => bail!("no `//@[{variant}] expect: …`"),
        }
    }

    /// The tool's exit code.
    pub fn exit(&self, variant: Variant) -> Result<i32> {
        match self.value("exit", Some(variant)) {
            Some(code) => code
                .parse()
                .with_context(|| format!("`{code}` is not an exit code")),
            None => match self.expect(variant)? {
                Expect::Race | Expect::Advised => Ok(66),
                Expect::NoRace | Expect::NotDecided => Ok(0),
                Expect::NotChecked => bail!("`expect: not-checked` needs an `exit:`"),
            },
        }
    }

    /// What `verify` says of the weakest launch, if it is asked.
    pub fn verify(&self, variant: Variant) -> Result<Option<Answer>> {
        let answer = match self.value("verify", Some(variant)) {
            None => return Ok(None),
            Some("all-data") => Answer::AllData,
            Some("this-data") => Answer::ThisData,
            Some("unknown") => Answer::Unknown,
            Some("race") => Answer::Race,
            Some(other) => bail!("`{other}` is no answer of verify"),
        };
        Ok(Some(answer))
    }

    /// All values of a key that hold for this variant.
    pub fn values(&self, key: &str, variant: Variant) -> impl Iterator<Item = &str> {
        let lines = self.lines.iter();
        lines
            .filter(move |line| line.key == key && line.selection.holds(variant.name()))
            .map(|line| line.value.as_str())
    }

    /// The words of a key's value; empty without the key.
    pub fn words(&self, key: &str, variant: Variant) -> Vec<&str> {
        self.values(key, variant)
            .flat_map(str::split_whitespace)
            .collect()
    }

    /// The main file and those compiled with it.
    pub fn files(&self) -> Vec<PathBuf> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let others = self
            .words("with", Variant::Clean)
            .into_iter()
            .map(|name| folder.join(name));
        std::iter::once(self.path.clone()).chain(others).collect()
    }

    /// Their names without folders, as marks name them.
    pub fn file_names(&self) -> Vec<String> {
        self.files().iter().map(|file| file_name(file)).collect()
    }

    /// Whether it stands in the folder of programs that end badly.
    pub fn ends_badly(&self) -> bool {
        self.path
            .parent()
            .is_some_and(|folder| folder.ends_with("bad"))
    }

    /// Whether ptxas is asked about its kernels: what ends badly may do so because its PTX is wrong, and others say
    /// why not.
    pub fn is_assembled(&self) -> bool {
        !self.ends_badly() && self.value("not-assembled", None).is_none()
    }

    /// The oldest release of CUDA that can compile it, if not every one can.
    pub fn oldest_cuda(&self) -> Option<(u32, u32)> {
        toolkit::parse_release(self.value("cuda", None)?)
    }

    /// Whether it needs a system that says which pages a process touches.
    pub fn needs_page_table(&self) -> bool {
        self.value("needs", None) == Some(PAGE_TABLE)
    }

    /// Whether it stands among the programs that are there to be measured.
    pub fn is_measured(&self) -> bool {
        let folder = self.path.parent();
        folder.is_some_and(|folder| folder.ends_with(super::MEASURED))
    }

    fn value(&self, key: &str, variant: Option<Variant>) -> Option<&str> {
        let holds = |line: &&Line| match variant {
            None => line.selection.is_all(),
            Some(variant) => line.selection.holds(variant.name()),
        };
        let mut lines = self.lines.iter().filter(|line| line.key == key);
        lines.find(holds).map(|line| line.value.as_str())
    }

    fn validate(&self) -> Result<()> {
        ensure!(
            matches!(
                self.value("variants", None),
                None | Some("clean" | "clean racy")
            ),
            "`variants` is `clean` or `clean racy`"
        );
        ensure!(
            self.oldest_cuda().is_some() == self.value("cuda", None).is_some(),
            "`cuda` is a release, such as 12.8"
        );
        ensure!(
            self.needs_page_table() == self.value("needs", None).is_some(),
            "`needs` is `{PAGE_TABLE}`"
        );
        let mut any_race = false;
        for variant in self.variants() {
            self.exit(variant)?;
            self.verify(variant)?;
            any_race |= self.expect(variant)? == Expect::Race;
        }
        ensure!(
            any_race != (self.marks.must.is_empty() && self.marks.same_value.is_empty()),
            "`expect: race` and marked races go together"
        );
        Ok(())
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn read_header(path: &Path, text: &str) -> Result<Header> {
    let read = || {
        let header = GRAMMAR.read(text)?;
        header.check(&Variant::ALL.map(Variant::name))?;
        Ok(header)
    };
    let header: Result<Header> = read();
    header.with_context(|| path.display().to_string())
}

/// What a mark says of its race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Race,
    May,
    SameValue,
}

/// One end of a race.
struct End {
    label: String,
    mark: Mark,
    at: SourceLine,
}

/// Where a call on the host is, which is no line of a kernel.
pub(super) fn call() -> SourceLine {
    SourceLine {
        file: "?".to_owned(),
        line: 0,
    }
}

/// The ends of races that the marks of one file name.
fn ends(file: &str, marks: &[header::Mark]) -> Result<Vec<End>> {
    let mut ends = Vec::new();
    for said in marks {
        let source_line = SourceLine {
            file: file.to_owned(),
            line: said.line,
        };
        ensure!(
            said.selection.is_all(),
            "{file}:{}: the marks of a program are those of its racy variant",
            said.line
        );
        let mark = match said.kind.as_str() {
            "may" => Mark::May,
            "same-value" => Mark::SameValue,
            _ => Mark::Race,
        };
        for label in &said.labels {
            let end = |at| End {
                label: label.clone(),
                mark,
                at,
            };
            ends.push(end(source_line.clone()));
            if said.kind == "race-with-call" {
                ends.push(end(call()));
            }
        }
    }
    Ok(ends)
}

/// Joins the two ends of each label.
fn pair_up(ends: Vec<End>) -> Result<Marks> {
    let mut labels: BTreeMap<String, (Mark, Vec<SourceLine>)> = BTreeMap::new();
    for End { label, mark, at } in ends {
        let entry = labels.entry(label.clone()).or_insert((mark, Vec::new()));
        ensure!(entry.0 == mark, "label {label} has marks of two kinds");
        entry.1.push(at);
    }
    let mut marks = Marks::default();
    for (label, (mark, mut source_lines)) in labels {
        source_lines.sort();
        let Ok(pair) = Pair::try_from(source_lines) else {
            bail!("label {label} needs exactly two ends; a line that is both has it twice");
        };
        let kind = match mark {
            Mark::Race => &mut marks.must,
            Mark::May => &mut marks.may,
            Mark::SameValue => &mut marks.same_value,
        };
        kind.insert(pair);
    }
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Program> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cu");
        std::fs::write(&path, text).unwrap();
        Program::read(&path)
    }

    const GOOD: &str = "//@[clean] expect: no-race\n//@[racy] expect: race\nx++; //~ race A A, may B\ny; //~ may B\n";

    #[test]
    fn a_label_joins_two_lines_or_one_line_with_itself() {
        let program = read(GOOD).unwrap();
        let source_line = |line| SourceLine {
            file: "x.cu".to_owned(),
            line,
        };
        assert_eq!(
            program.marks.must,
            BTreeSet::from([[3, 3].map(source_line)])
        );
        assert_eq!(program.marks.may, BTreeSet::from([[3, 4].map(source_line)]));
        assert_eq!(program.exit(Variant::Racy).unwrap(), 66);
        assert_eq!(program.exit(Variant::Clean).unwrap(), 0);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let wrong = |from: &str, to: &str| {
            read(&GOOD.replacen(from, to, 1))
                .unwrap_err()
                .root_cause()
                .to_string()
        };
        assert_eq!(
            wrong("[clean]", "[claen]"),
            "line 1: unknown revision `claen`"
        );
        assert_eq!(wrong("no-race", "norace"), "unknown expectation `norace`");
        assert_eq!(
            wrong("A A", "A"),
            "label A needs exactly two ends; a line that is both has it twice"
        );
        assert_eq!(
            wrong("[racy] expect: race", "[racy] expect: no-race"),
            "`expect: race` and marked races go together"
        );
        assert_eq!(
            wrong("//@[racy] expect: race\n", ""),
            "no `//@[racy] expect: …`"
        );
        assert_eq!(
            wrong("[racy] expect: race", "[racy] expect: not-checked"),
            "`expect: not-checked` needs an `exit:`"
        );
    }
}
