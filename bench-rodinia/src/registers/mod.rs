//! A module as it is and as each mode loads it, assembled by ptxas.

pub mod table;

use std::path::Path;

use image::elf;
use report::log::Writer;
pub use rewrite::stats::Accepted;
use rewrite::stats::{self, Stats};
use runtime::{Checker, Mode, Options};

/// What is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The program's own text.
    Original,
    /// With `--mode precise` as on a GPU.
    Precise,
    /// With `--mode fast`.
    Fast,
}

impl Version {
    /// All of them, the original first.
    pub const ALL: [Self; 3] = [Self::Original, Self::Precise, Self::Fast];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Precise => "precise",
            Self::Fast => "fast",
        }
    }

    /// The text that is loaded in place of `text`.
    pub fn of(self, text: &str) -> String {
        let mode = match self {
            Self::Original => return text.to_owned(),
            Self::Precise => Mode::Precise,
            Self::Fast => Mode::Fast,
        };
        let options = Options {
            mode,
            as_gpu: true,
            ..Options::default()
        };
        let mut checker = Checker::new(options, Writer::Memory(Vec::new()));
        checker.prepare(text, "PTX").code.text().to_owned()
    }
}

/// What ptxas says of the kernels of each version, or why it refuses it.
pub type Assembled = [Result<Vec<Stats>, String>; 3];

/// Assembles all versions of `text` for `target`, such as `sm_90`. Equal texts are assembled once.
pub fn assemble(ptxas: &Path, text: &str, target: &str) -> Assembled {
    let texts = Version::ALL.map(|version| version.of(text));
    let mut done: Vec<(&str, Result<Vec<Stats>, String>)> = Vec::new();
    for text in &texts {
        if !done.iter().any(|(known, _)| known == text) {
            done.push((text, stats::assemble(ptxas, text, target)));
        }
    }
    texts.each_ref().map(|text| {
        let mut known = done.iter();
        match known.find(|(known, _)| known == text) {
            Some((_, result)) => result.clone(),
            None => Err("it was not assembled".to_owned()),
        }
    })
}

/// Whether ptxas takes what each mode loads in place of `text`, apart from functions that have been `accepted`; it does not
/// optimise, so it takes less time than [`assemble`].
///
/// # Errors
/// The version that it refuses, and its own words; or that a version has no check.
pub fn accepts(accepted: &Accepted, ptxas: &Path, text: &str, target: &str) -> Result<(), String> {
    for version in [Version::Precise, Version::Fast] {
        let loaded = version.of(text);
        if loaded == text {
            return Err(format!("{} checks nothing", version.name()));
        }
        accepted
            .accepts(ptxas, &loaded, target)
            .map_err(|why| format!("ptxas refuses {}: {why}", version.name()))?;
    }
    Ok(())
}

/// Whether PTX can be assembled for a target, by its own `.target`; both without letters at the end.
pub fn serves(text: &str, target: &str) -> bool {
    match (target_of(text).and_then(number), number(target)) {
        (Some(own), Some(target)) => own <= target,
        _ => false,
    }
}

/// The architecture that PTX names, such as `sm_75`.
pub fn target_of(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.strip_prefix(".target"))?;
    line.split(',').next().map(str::trim)
}

fn number(target: &str) -> Option<u32> {
    target.strip_prefix("sm_")?.parse().ok()
}

/// The PTX that a program carries for an architecture, such as 90, one text for each translation unit.
///
/// # Errors
/// When the file cannot be read as a program, or a part of it not as what it claims to be.
pub fn embedded(program: &[u8], sm: u32) -> Result<Vec<String>, String> {
    let found = elf::scan(program).map_err(|error| error.to_string())?;
    let mut texts = Vec::new();
    for fatbin in found.fatbins {
        let fatbin = fatbin.map_err(|error| error.to_string())?;
        if let Some(entry) = fatbin.best_ptx(sm) {
            texts.push(entry.text().map_err(|error| error.to_string())?);
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".version 7.0\n.target sm_80, debug\n.address_size 64\n\
        .visible .entry k(.param .u64 p) { .reg .u64 %a; ld.param.u64 %a, [p]; st.global.u32 [%a], 1; ret; }\n";

    #[test]
    fn ptx_serves_its_own_target_and_later_ones() {
        assert_eq!(target_of(TEXT), Some("sm_80"));
        let served = ["sm_75", "sm_80", "sm_100", "x"].map(|target| serves(TEXT, target));
        assert_eq!(served, [false, true, true, false]);
        assert!(!serves("", "sm_90"));
    }

    #[test]
    fn every_mode_puts_checks_in_that_come_out_again() {
        for version in Version::ALL {
            let text = version.of(TEXT);
            assert_eq!(text == TEXT, version == Version::Original, "{version:?}");
            assert_eq!(rewrite::erase(&text), TEXT);
        }
    }
}
