//! Where reports go.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use report::Report;
use report::source::Sources;
use report::text::{self, Style};

use report::escape::printable;

use crate::args::{Color, OutputArgs};
use crate::console;
use crate::exit::{INTERNAL, Stop};

/// One `--format`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    kind: Kind,
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Json,
}

impl Format {
    /// Reads `text`, `json` or `json:FILE`.
    pub(crate) fn parse(word: &str) -> Result<Self, String> {
        let (kind, file) = match word.split_once(':') {
            Some((_, "")) => return Err("the file name after `:` is missing".to_owned()),
            Some((kind, file)) => (kind, Some(PathBuf::from(file))),
            None => (word, None),
        };
        let kind = match kind {
            "text" => Kind::Text,
            "json" => Kind::Json,
            other => return Err(format!("unknown format `{other}`: text or json")),
        };
        Ok(Self { kind, file })
    }
}

/// The places a run's report goes to, opened before the run: whoever waits for hours must not lose
/// the report to a spelling mistake.
#[derive(Debug)]
pub(crate) struct Outputs {
    all: Vec<(Kind, Target)>,
    style: Style,
    color: Color,
}

/// Where reports go that no file takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard error: standard output belongs to the program that runs.
    Error,
    /// Standard output.
    Output,
}

impl Stream {
    fn is_terminal(self) -> bool {
        match self {
            Self::Error => std::io::stderr().is_terminal(),
            Self::Output => std::io::stdout().is_terminal(),
        }
    }

    fn write(self, text: &str) {
        // Nobody left to tell when it is closed.
        drop(match self {
            Self::Error => std::io::stderr().write_all(text.as_bytes()),
            Self::Output => std::io::stdout().write_all(text.as_bytes()),
        });
    }
}

#[derive(Debug)]
enum Target {
    Stream(Stream),
    File(PathBuf, File),
}

impl Outputs {
    /// Opens everything that the flags ask for.
    pub(crate) fn open(args: &OutputArgs, stream: Stream) -> Result<Self, Stop> {
        let log = args.log_file.as_deref().map(expand).transpose()?;
        let text = [Format {
            kind: Kind::Text,
            file: None,
        }];
        let formats = if args.format.is_empty() {
            &text[..]
        } else {
            &args.format
        };
        let mut all: Vec<(Kind, Target)> = Vec::new();
        for format in formats {
            let target = match format.file.as_ref().or(log.as_ref()) {
                None => Target::Stream(stream),
                Some(path) => Target::open(path, &all)?,
            };
            all.push((format.kind, target));
        }
        if let Some(path) = args.save.as_deref().map(expand).transpose()? {
            let target = Target::open(&path, &[])?;
            all.push((Kind::Json, target));
        }
        Ok(Self {
            all,
            style: Style {
                color: false,
                print_limit: args.print_limit,
                quiet: args.quiet,
            },
            color: args.color,
        })
    }

    /// Whether the standard stream takes nothing but JSON.
    pub(crate) fn is_json_only(&self) -> bool {
        let on_error = |(kind, target): &(Kind, Target)| match target {
            Target::Stream(_) => Some(*kind),
            Target::File(..) => None,
        };
        let mut kinds = self.all.iter().filter_map(on_error).peekable();
        kinds.peek().is_some() && kinds.all(|kind| kind == Kind::Json)
    }

    /// Writes the report everywhere. What a file does not take goes to standard error; the last such failure is
    /// returned.
    pub(crate) fn write(&mut self, report: &Report, sources: &Sources) -> Result<(), Stop> {
        let mut result = Ok(());
        for (kind, target) in &mut self.all {
            let color = match (self.color, &*target) {
                (Color::Always, _) => true,
                (Color::Never, _) | (Color::Auto, Target::File(..)) => false,
                (Color::Auto, Target::Stream(stream)) => {
                    stream.is_terminal()
                        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
                }
            };
            let what = match kind {
                Kind::Text => text::render(
                    report,
                    sources,
                    Style {
                        color,
                        ..self.style
                    },
                ),
                Kind::Json => report.to_json(),
            };
            let what = match kind {
                Kind::Text => printable(&what, color),
                // JSON escapes by itself.
                Kind::Json => what.into(),
            };
            if let Err(stop) = target.write(&what) {
                console::say(format_args!("cudarun-check: {}", stop.message));
                Stream::Error.write(&what);
                result = Err(stop);
            }
        }
        result
    }
}

impl Target {
    fn open(path: &Path, others: &[(Kind, Target)]) -> Result<Self, Stop> {
        // Two formats in one file follow each other.
        for (_, other) in others {
            if let Self::File(known, file) = other
                && known == path
                && let Ok(file) = file.try_clone()
            {
                return Ok(Self::File(path.to_owned(), file));
            }
        }
        match File::create(path) {
            Ok(file) => Ok(Self::File(path.to_owned(), file)),
            Err(error) => Err(cannot_write(path, &error)),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), Stop> {
        match self {
            Self::Stream(stream) => stream.write(text),
            Self::File(path, file) => file
                .write_all(text.as_bytes())
                .map_err(|error| cannot_write(path, &error))?,
        }
        Ok(())
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Stop {
    let text = format!("cannot write the report to {}: {error}", path.display());
    Stop::new(INTERNAL, text)
}

/// Fills in `%p` and `%q{NAME}`, as compute-sanitizer does.
fn expand(path: &Path) -> Result<PathBuf, Stop> {
    let Some(text) = path.to_str() else {
        return Ok(path.to_owned());
    };
    let usage = |what: String| Stop::new(crate::exit::USAGE, format!("{text}: {what}"));
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        expanded.push_str(before);
        rest = match after.chars().next() {
            Some('p') => {
                expanded.push_str(&std::process::id().to_string());
                &after[1..]
            }
            Some('%') => {
                expanded.push('%');
                &after[1..]
            }
            Some('q') => {
                let inside = after[1..]
                    .strip_prefix('{')
                    .and_then(|name| name.split_once('}'));
                let Some((name, after)) = inside else {
                    return Err(usage("expected %q{NAME}".to_owned()));
                };
                expanded.push_str(&std::env::var(name).unwrap_or_default());
                after
            }
            _ => return Err(usage("% is followed by p, q{NAME} or %".to_owned())),
        };
    }
    expanded.push_str(rest);
    Ok(PathBuf::from(expanded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        assert!(Format::parse("text").is_ok());
        let json = Format::parse("json:a:b.json").unwrap();
        assert_eq!(json.file, Some(PathBuf::from("a:b.json")));
        for bad in ["", "xml", "json:", "xml:a"] {
            assert!(Format::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn log_files_may_hold_the_process_id() {
        let of = |text: &str| expand(Path::new(text)).map(|path| path.display().to_string());
        let pid = std::process::id();
        assert_eq!(of("a%p.%%").unwrap(), format!("a{pid}.%"));
        assert_eq!(of("x%q{CUDARUN_CHECK_NO_SUCH}y").unwrap(), "xy");
        assert!(of("%").is_err() && of("%q{x").is_err() && of("%z").is_err());
    }
}
