//! Reports in the formats of the tools that read them.
//!
//! All of them show the same [`Finding`]s; the text report ([`crate::text`]) and the JSON have all the rest as well.

mod finding;
mod github;
mod html;
pub mod jsonl;
mod junit;
mod map;
mod markdown;
mod prometheus;
mod sanitizer;
mod sarif;

use crate::Report;
use crate::source::Sources;
use crate::text::{self, Style};

/// A format of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For a person at a terminal.
    Text,
    /// All facts, by `docs/report.schema.json`.
    Json,
    /// The same in lines, those of races as they are found.
    Jsonl,
    /// SARIF 2.1.0, for code scanning and editors.
    Sarif,
    /// JUnit XML, for the test pages of CI services.
    Junit,
    /// Workflow commands that become annotations on GitHub.
    Github,
    /// GitHub-flavoured Markdown, for job summaries and comments.
    Markdown,
    /// One self-contained page.
    Html,
    /// As compute-sanitizer's racecheck, for scripts that read its text.
    Sanitizer,
    /// Counts for Prometheus.
    Prometheus,
}

impl Format {
    /// All of them, by the names that `--format` takes.
    pub const ALL: &[(&str, Self)] = &[
        ("text", Self::Text),
        ("json", Self::Json),
        ("jsonl", Self::Jsonl),
        ("sarif", Self::Sarif),
        ("junit", Self::Junit),
        ("github", Self::Github),
        ("markdown", Self::Markdown),
        ("html", Self::Html),
        ("sanitizer", Self::Sanitizer),
        ("prometheus", Self::Prometheus),
    ];

    /// The format of a name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(of, _)| *of == name).map(|&(_, format)| format)
    }

    /// A report in this format, ending in a newline; `style` is that of text.
    ///
    /// # Errors
    /// When the report holds what the format cannot say.
    pub fn render(
        self,
        report: &Report,
        sources: &Sources,
        style: Style,
    ) -> Result<String, String> {
        let findings = || finding::all(report, sources);
        Ok(match self {
            Self::Text => text::render(report, sources, style),
            Self::Json => report.to_json(),
            Self::Jsonl => jsonl::ReportedRaces::default().rest(report),
            Self::Sarif => sarif::render(report, &findings()),
            Self::Junit => junit::render(report, &findings())?,
            Self::Github => github::render(report, &findings()),
            Self::Markdown => markdown::render(report, &findings()),
            Self::Html => html::render(report, sources, &findings()),
            Self::Sanitizer => sanitizer::render(report, &findings(), style),
            Self::Prometheus => prometheus::render(report),
        })
    }
}
