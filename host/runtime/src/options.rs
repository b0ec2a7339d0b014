//! What a checked process gets from the command line, through one environment variable.

use std::path::PathBuf;

use os::run;
use serde::{Deserialize, Serialize};

use crate::choice::Choice;

pub use os::run::{DIRECTORY_VARIABLE, SPARE_VARIABLE};

/// Most words of which only one is checked.
pub const MAX_SAMPLE: u32 = 1024;
/// Holds [`Options`] as JSON.
pub const OPTIONS_VARIABLE: &str = "CUDARUN_CHECK_RUN";

/// How to check a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Check at all; without, the program runs on the device as it is and only counts are logged.
    pub check: bool,
    /// Who decides what races.
    pub mode: Mode,
    /// What is reported besides data races, and what counts as an acquire; none is the PTX ISA's model
    /// with warnings.
    pub model: Option<Model>,
    /// Size of the shadow memory.
    pub shadow: ShadowSize,
    /// Seed of the simulated device's schedule; none for round robin.
    pub seed: Option<u64>,
    /// What is checked.
    pub choice: Choice,
    /// Records per launch that are kept; one is made per pair of sites.
    pub records: u32,
    /// In precise mode, check as on a GPU: by the cells, and by a journal of those kernels whose
    /// order the cells do not follow.
    pub as_gpu: bool,
    /// One word of memory of so many is checked, a power of two; in `fast` mode.
    pub sample: u32,
    /// Wall-clock limit of one launch on the simulated device, in seconds.
    pub timeout: Option<f64>,
    /// Whether long launches show how far they are.
    pub progress: Show,
    /// Host threads that the simulated device runs a launch on, at most.
    pub sim_threads: u32,
    /// What becomes of a launch on the simulated device that accesses what is outside of all memory.
    pub outside: Outside,
    /// What becomes of accesses that a launch's arguments prove to be free of races.
    pub prove: Prove,
    /// Pairs that have raced are looked for in later launches too: suppressions tell their memory apart.
    pub look_again: bool,
    /// Report from where on the host launches are made.
    pub host_calls: bool,
    /// Whether to say of each launch what its run proves of all runs, and what is assumed for that.
    pub verify: Option<Verify>,
    /// What `verify` assumes of launches ([`prove::assume`]).
    pub assumptions: Vec<String>,
    /// Launches with races are recorded, as long as what their memory holds has no more bytes than this in all.
    pub record: Option<u64>,
    /// The first launch of each kernel is recorded too, whether it has races or not.
    pub record_first: bool,
    /// Other schedules under which a launch is run again if the order of its threads matters, where happens-before listens.
    pub explore: u32,
    /// Functions with more checks than this call them ([`rewrite::Config::most_inlined`]); for tests.
    #[serde(rename = "most_pasted")]
    pub most_inlined: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            check: true,
            mode: Mode::default(),
            model: None,
            shadow: ShadowSize::Fraction(0.125),
            seed: None,
            choice: Choice::default(),
            records: 4096,
            as_gpu: false,
            sample: 1,
            timeout: None,
            progress: Show::default(),
            sim_threads: 1,
            outside: Outside::default(),
            prove: Prove::default(),
            look_again: false,
            host_calls: false,
            verify: None,
            assumptions: Vec::new(),
            record: None,
            record_first: false,
            explore: 0,
            most_inlined: None,
        }
    }
}

impl Options {
    /// Whether happens-before listens to the simulated device.
    pub fn listens(&self) -> bool {
        self.mode == Mode::Precise && !self.as_gpu
    }

    /// How a module is rewritten whose sites are counted from `first_site`.
    pub fn rewriting(&self, first_site: u32) -> rewrite::Config {
        rewrite::Config {
            first_site,
            journal: self.mode == Mode::Precise && self.as_gpu,
            count_orders: self.mode == Mode::Fast,
            sample: self.sample > 1,
            // Happens-before decides then, so checks in the kernels would be of no use.
            list: self.listens(),
            most_inlined: self.most_inlined,
        }
    }
}

/// Who decides what races.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Happens-before over every access of the simulated device, which runs the program as it is. As on
    /// a GPU: the device's cells where all that orders threads is barriers, else happens-before over the
    /// journal that the device keeps.
    #[default]
    Precise,
    /// The device's cells alone: what they cannot follow is possible.
    Fast,
}

/// What `verify` assumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    /// What a volatile load or store is.
    pub volatile: Volatile,
    /// Lanes of a warp that execute an access together go on together, as if a barrier of the warp stood behind it.
    pub warp_synchronous: bool,
}

/// What a volatile load or store is to `verify`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Volatile {
    /// A plain one: it orders nothing, and it races.
    #[default]
    Plain,
    /// A strong one, as in the PTX ISA.
    Strong,
}

/// What becomes of accesses that a launch's arguments prove to be free of races.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prove {
    /// They are not checked.
    #[default]
    On,
    /// Nothing is proved, and all accesses are checked.
    Off,
    /// They are checked all the same, and a race that a proof excludes is an internal error.
    Audit,
}

/// What becomes of a launch that accesses what is outside of all memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outside {
    /// It ends there.
    #[default]
    Stop,
    /// The access is reported, and passed over.
    Continue,
}

/// Whether a launch that takes long shows on standard error how far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    /// It does not.
    #[default]
    Never,
    /// If that is a terminal.
    Terminal,
    /// Whatever it is.
    Always,
}

/// Which conflicts are reported, see docs/memory-model.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Data races by the PTX ISA, and nothing else.
    Ptx,
    /// Strong loads and stores that nothing orders are errors too; a strong read acquires what it
    /// observes.
    Scoped,
}

/// How much memory the cells get.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShadowSize {
    /// A share of the device's memory.
    Fraction(f64),
    /// So many bytes.
    Bytes(u64),
    /// One cell for every granule, never shared.
    Exact,
}

impl ShadowSize {
    /// Reads `25%`, `512MiB`, `8GiB`, `1048576` or `exact`.
    ///
    /// # Errors
    /// What the text should have been.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a size: write 25%, 512MiB, 8GiB or exact");
        if text == "exact" {
            return Ok(Self::Exact);
        }
        if let Some(percent) = text.strip_suffix('%') {
            let percent: f64 = percent.parse().map_err(|_| bad())?;
            return match percent > 0.0 && percent <= 90.0 {
                true => Ok(Self::Fraction(percent / 100.0)),
                false => Err(format!("`{text}` is not between 0% and 90%")),
            };
        }
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let shift = match &text[digits..] {
            "" | "B" => 0,
            "KiB" | "K" => 10,
            "MiB" | "M" => 20,
            "GiB" | "G" => 30,
            _ => return Err(bad()),
        };
        let count: u64 = text[..digits].parse().map_err(|_| bad())?;
        count
            .checked_shl(shift)
            .filter(|bytes| bytes >> shift == count)
            .map(Self::Bytes)
            .ok_or_else(bad)
    }
}

/// Reads `1/8`: the 8.
///
/// # Errors
/// What the text should have been.
pub fn parse_sample(text: &str) -> Result<u32, String> {
    let of = text
        .strip_prefix("1/")
        .and_then(|of| of.parse::<u32>().ok());
    of.filter(|of| of.is_power_of_two() && *of <= MAX_SAMPLE)
        .ok_or_else(|| format!("`{text}` is not 1/N with N a power of two, {MAX_SAMPLE} at most"))
}

/// What a process was asked for.
#[derive(Clone, Debug)]
pub struct RequestedCheck {
    /// How to check it.
    pub options: Options,
    /// The folder for its log.
    pub folder: PathBuf,
    /// Another one, for when that is full.
    pub spare: Option<PathBuf>,
}

/// What this process was asked for, if it is to be checked.
///
/// # Errors
/// When the variables are set but make no sense.
pub fn from_environment() -> Result<Option<RequestedCheck>, String> {
    let Some(folder) = run::variable(DIRECTORY_VARIABLE) else {
        return Ok(None);
    };
    let spare = run::variable(SPARE_VARIABLE).map(PathBuf::from);
    let options = match run::variable(OPTIONS_VARIABLE) {
        Some(text) => serde_json::from_slice(text.as_encoded_bytes()).map_err(|error| {
            format!("{OPTIONS_VARIABLE} is not what cudarun-check writes: {error}")
        })?,
        None => Options::default(),
    };
    Ok(Some(RequestedCheck {
        options,
        folder: folder.into(),
        spare,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples() {
        assert_eq!(parse_sample("1/8"), Ok(8));
        assert_eq!(parse_sample("1/1"), Ok(1));
        for bad in ["", "8", "2/8", "1/0", "1/3", "1/2048", "1/-8"] {
            assert!(parse_sample(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(ShadowSize::parse("25%"), Ok(ShadowSize::Fraction(0.25)));
        assert_eq!(
            ShadowSize::parse("512MiB"),
            Ok(ShadowSize::Bytes(512 << 20))
        );
        assert_eq!(ShadowSize::parse("exact"), Ok(ShadowSize::Exact));
        for bad in ["", "0%", "200%", "8XB", "99999999999GiB", "-1"] {
            assert!(ShadowSize::parse(bad).is_err(), "{bad}");
        }
    }
}
