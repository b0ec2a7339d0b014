//! Which launches of a process are checked, as the user says.
//!
//! A launch is *chosen* by its kernel's name, then by its number among the launches of such kernels, then by the time
//! that checking has taken. What is not chosen runs as it is, and keeps its place among the work of the streams.

use std::collections::HashMap;
use std::str::FromStr;

use driver::nvtx::{self, Range};
use regex::Regex;
use report::choice::NotChosen;
use report::names::{demangle, is_called};
use serde::{Deserialize, Serialize};

use crate::log::Space;

/// What the user wants checked: everything by default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Choice {
    /// Kernels to check, of which a launch's has to fit one; all when empty.
    pub kernels: Vec<Pattern>,
    /// Kernels not to check.
    pub excluded: Vec<Pattern>,
    /// Ranges of NVTX, of which the launching thread has to be in one; anywhere when empty.
    pub ranges: Vec<RangePattern>,
    /// Ranges of NVTX in which nothing is checked.
    pub excluded_ranges: Vec<RangePattern>,
    /// So many launches of these kernels are passed over first.
    pub skip: u64,
    /// At most so many launches are checked.
    pub count: Option<u64>,
    /// One launch of so many is checked, the first one included; at least 1.
    pub sample: u64,
    /// Races in this memory only are reported.
    pub space: Option<Space>,
    /// After so many seconds of checked launches, no further ones are checked.
    pub budget: Option<f64>,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            kernels: Vec::new(),
            excluded: Vec::new(),
            ranges: Vec::new(),
            excluded_ranges: Vec::new(),
            skip: 0,
            count: None,
            sample: 1,
            space: None,
            budget: None,
        }
    }
}

/// Names of kernels: a part of the name, mangled or demangled (also `kns=NAME`, `kernel_substring=NAME`); `kne=NAME` or
/// `kernel_name=NAME` for the whole name, with or without parameters, return type and template arguments; or
/// `regex:EXPRESSION`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: String,
    fits: Fits,
}

#[derive(Clone, Debug)]
enum Fits {
    Part(String),
    Whole(String),
    Expression(Regex),
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expression = ["regex:", "regex="];
        let expression = expression.iter().find_map(|kind| text.strip_prefix(kind));
        let one_of = |keys: [&str; 2]| keys.iter().find_map(|key| text.strip_prefix(key));
        let fits = match (expression, one_of(["kne=", "kernel_name="])) {
            (Some(expression), _) => Fits::Expression(Regex::new(expression).map_err(|error| {
                // The last line says what is wrong; those before show where.
                let error = error.to_string();
                let why = error.lines().last().unwrap_or_default();
                let why = why.strip_prefix("error: ").unwrap_or(why);
                format!("`{expression}` is no regular expression: {why}")
            })?),
            (None, Some(whole)) => Fits::Whole(whole.to_owned()),
            (None, None) => {
                let part = one_of(["kns=", "kernel_substring="]);
                Fits::Part(part.unwrap_or(text).to_owned())
            }
        };
        let text = text.to_owned();
        Ok(Self { text, fits })
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    fn fits(&self, mangled: &str, demangled: &str) -> bool {
        match &self.fits {
            Fits::Part(part) => mangled.contains(part) || demangled.contains(part),
            Fits::Whole(name) => is_called(mangled, name),
            Fits::Expression(regex) => regex.is_match(mangled) || regex.is_match(demangled),
        }
    }
}

/// Ranges of NVTX: `RANGE` in any domain, `DOMAIN@RANGE`, or `regex:EXPRESSION` for the name of the range.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RangePattern {
    text: String,
    domain: Option<String>,
    name: Fits,
}

impl FromStr for RangePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (domain, name) = match text.split_once('@') {
            Some((domain, name)) if !text.starts_with("regex") => (Some(domain.to_owned()), name),
            _ => (None, text),
        };
        let name = match Pattern::from_str(name)?.fits {
            Fits::Part(name) => Fits::Whole(name),
            other => other,
        };
        let text = text.to_owned();
        Ok(Self { text, domain, name })
    }
}

impl TryFrom<String> for RangePattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<RangePattern> for String {
    fn from(pattern: RangePattern) -> Self {
        pattern.text
    }
}

impl PartialEq for RangePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl RangePattern {
    fn fits(&self, range: &Range) -> bool {
        let domain = self.domain.as_ref();
        let named = match &self.name {
            Fits::Part(name) | Fits::Whole(name) => *name == range.name,
            Fits::Expression(regex) => regex.is_match(&range.name),
        };
        named && domain.is_none_or(|domain| *domain == range.domain)
    }
}

/// Reads `1/8`: the 8.
///
/// # Errors
/// What the text should have been.
pub fn parse_share(text: &str) -> Result<u64, String> {
    let of = text.strip_prefix("1/").and_then(|of| of.parse().ok());
    of.filter(|of| *of > 0)
        .ok_or_else(|| format!("`{text}` is not 1/N, such as 1/10"))
}

/// Decides about the launches of a process, in their order.
#[derive(Debug)]
pub(crate) struct Chooser {
    choice: Choice,
    /// What the name of a kernel says.
    names: HashMap<String, Option<NotChosen>>,
    /// Launches so far of kernels that the names choose.
    launches: u64,
    /// Seconds of checked launches.
    spent: f64,
}

impl Chooser {
    pub(crate) fn new(choice: Choice) -> Self {
        Self {
            choice,
            names: HashMap::new(),
            launches: 0,
            spent: 0.0,
        }
    }

    /// Whether the kernel is one to check.
    pub(crate) fn names(&self, kernel: &str) -> Result<(), NotChosen> {
        if let Some(known) = self.names.get(kernel) {
            return known.map_or(Ok(()), Err);
        }
        let Choice {
            kernels, excluded, ..
        } = &self.choice;
        if kernels.is_empty() && excluded.is_empty() {
            return Ok(());
        }
        let demangled = demangle(kernel);
        let fits = |pattern: &Pattern| pattern.fits(kernel, &demangled);
        match () {
            () if !kernels.is_empty() && !kernels.iter().any(fits) => Err(NotChosen::KernelName),
            () if excluded.iter().any(fits) => Err(NotChosen::ExcludeKernel),
            () => Ok(()),
        }
    }

    /// Whether the next launch, one of this kernel, is to be checked.
    pub(crate) fn chooses(&self, kernel: &str) -> Result<(), NotChosen> {
        self.names(kernel)?;
        if !self.is_in_range() {
            return Err(NotChosen::NvtxRange);
        }
        let Choice {
            skip,
            count,
            sample,
            budget,
            ..
        } = self.choice;
        let Some(behind) = self.launches.checked_sub(skip) else {
            return Err(NotChosen::LaunchSkip);
        };
        let sample = sample.max(1);
        match () {
            () if count.is_some_and(|count| behind.div_ceil(sample) >= count) => {
                Err(NotChosen::LaunchCount)
            }
            () if behind % sample != 0 => Err(NotChosen::LaunchSample),
            () if budget.is_some_and(|budget| self.spent >= budget) => Err(NotChosen::TimeBudget),
            () => Ok(()),
        }
    }

    /// Whether the calling thread launches in ranges of NVTX that are to be checked.
    fn is_in_range(&self) -> bool {
        let Choice {
            ranges,
            excluded_ranges,
            ..
        } = &self.choice;
        let is_in = |all: &[RangePattern]| {
            nvtx::is_open(|range| all.iter().any(|pattern| pattern.fits(range)))
        };
        (ranges.is_empty() || is_in(ranges))
            && (excluded_ranges.is_empty() || !is_in(excluded_ranges))
    }

    /// A launch has started, and the next one comes; with what was decided of it.
    pub(crate) fn started(&mut self, kernel: &str, decided: Option<NotChosen>) {
        let named = self.names(kernel);
        let counts = named.is_ok() && decided != Some(NotChosen::NvtxRange);
        self.launches += u64::from(counts);
        if !self.names.contains_key(kernel) {
            self.names.insert(kernel.to_owned(), named.err());
        }
    }

    /// Checking has taken so many seconds more.
    pub(crate) fn spend(&mut self, seconds: f64) {
        self.spent += seconds;
    }

    /// Whether races in a memory are to be reported.
    pub(crate) fn reports(&self, space: Space) -> bool {
        self.choice.space.is_none_or(|only| only == space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(all: &[&str]) -> Vec<Pattern> {
        all.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn kernels_are_chosen_by_part_whole_name_or_expression() {
        let wants = |pattern: &str| {
            let kernels = patterns(&[pattern]);
            let choice = Choice {
                kernels,
                ..Choice::default()
            };
            Chooser::new(choice).names("_Z9histogramPKhiPj").is_ok()
        };
        for yes in [
            "hist",
            "kns=gram(",
            "kne=histogram",
            "kne=_Z9histogramPKhiPj",
            "kernel_name=histogram",
            "kernel_substring=hist",
            "regex:^hist.*unsigned int\\*\\)$",
            "regex=^_Z9",
        ] {
            assert!(wants(yes), "{yes}");
        }
        for no in ["kne=hist", "reduce", "kne=", "regex:^gram"] {
            assert!(!wants(no), "{no}");
        }
        assert!(Chooser::new(Choice::default()).names("anything").is_ok());
        let error = "regex:(".parse::<Pattern>().unwrap_err();
        assert!(error.contains("is no regular expression"), "{error}");
    }

    #[test]
    fn exclusion_wins() {
        let chooser = Chooser::new(Choice {
            kernels: patterns(&["sum", "scan"]),
            excluded: patterns(&["regex:_tail$"]),
            ..Choice::default()
        });
        assert_eq!(chooser.names("sum"), Ok(()));
        assert_eq!(chooser.names("sum_tail"), Err(NotChosen::ExcludeKernel));
        assert_eq!(chooser.names("sort"), Err(NotChosen::KernelName));
    }

    #[test]
    fn launches_are_counted_among_those_of_chosen_kernels() {
        let mut chooser = Chooser::new(Choice {
            kernels: patterns(&["kne=sum"]),
            skip: 1,
            count: Some(2),
            sample: 2,
            ..Choice::default()
        });
        let mut launch = |kernel: &str| {
            let chosen = chooser.chooses(kernel);
            chooser.started(kernel, chosen.err());
            chosen
        };
        use NotChosen::*;
        assert_eq!(launch("other"), Err(KernelName));
        let all = [(); 6].map(|()| launch("sum"));
        let expected = [
            Err(LaunchSkip),
            Ok(()),
            Err(LaunchSample),
            Ok(()),
            Err(LaunchCount),
            Err(LaunchCount),
        ];
        assert_eq!(all, expected);
        assert_eq!(launch("other"), Err(KernelName));
    }

    #[test]
    fn a_budget_is_spent_by_checked_launches() {
        let mut chooser = Chooser::new(Choice {
            budget: Some(1.0),
            ..Choice::default()
        });
        chooser.spend(0.9);
        assert_eq!(chooser.chooses("k"), Ok(()));
        chooser.spend(0.1);
        assert_eq!(chooser.chooses("k"), Err(NotChosen::TimeBudget));
    }

    #[test]
    fn ranges_fit_by_name_domain_or_expression() {
        let range = Range {
            domain: "solver".to_owned(),
            name: "step 3".to_owned(),
        };
        let fits = |text: &str| text.parse::<RangePattern>().unwrap().fits(&range);
        for yes in [
            "step 3",
            "solver@step 3",
            "regex:^step [0-9]$",
            "solver@regex:3",
        ] {
            assert!(fits(yes), "{yes}");
        }
        for no in ["step", "other@step 3", "@step 3", "regex:^3"] {
            assert!(!fits(no), "{no}");
        }
    }

    #[test]
    fn patterns_survive_the_environment() {
        let choice = Choice {
            kernels: patterns(&["kne=a", "regex:b"]),
            ..Choice::default()
        };
        let text = serde_json::to_string(&choice).unwrap();
        assert_eq!(serde_json::from_str::<Choice>(&text).unwrap(), choice);
        assert!(serde_json::from_str::<Choice>(r#"{"kernels":["regex:("]}"#).is_err());
        assert_eq!(parse_share("1/10"), Ok(10));
        for bad in ["10", "1/0", "2/3", "1/x"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
    }
}
