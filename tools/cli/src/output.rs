//! Where reports go.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, IsTerminal, Seek, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use report::Report;
use report::formats::Format;
use report::formats::jsonl::ReportedRaces;
use report::source::Sources;
use report::text::Style;

use report::escape::printable;

use crate::args::{Color, OutputArgs, PrintLevel};
use crate::console;
use crate::exit::{INTERNAL, Stop, USAGE};

/// One `--format`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    format: Format,
    file: Option<PathBuf>,
}

impl Wanted {
    /// Reads `text`, `json` or `json:FILE`.
    pub(crate) fn parse(word: &str) -> Result<Self, String> {
        let (name, file) = match word.split_once(':') {
            Some((_, "")) => return Err("the file name after `:` is missing".to_owned()),
            Some((name, file)) => (name, Some(PathBuf::from(file))),
            None => (word, None),
        };
        let format = Format::named(name).ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.iter().map(|(name, _)| *name).collect();
            format!("unknown format `{name}`: {}", names.join(", "))
        })?;
        Ok(Self { format, file })
    }
}

/// Reads a [`Wanted`]; shells complete the names of the formats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Formats;

impl TypedValueParser for Formats {
    type Value = Wanted;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Wanted, clap::Error> {
        let wanted = StringValueParser::new().try_map(|word| Wanted::parse(&word));
        wanted.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = Format::ALL.iter().map(|(name, _)| *name);
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

/// A report to write.
#[derive(Debug)]
struct Output {
    format: Format,
    /// Where it goes.
    target: Target,
}

impl Output {
    fn new(format: Format, target: Target) -> Self {
        Self { format, target }
    }
}

/// The places a run's report goes to, opened before the run: a user who waits for hours must not lose
/// the report to a spelling mistake.
#[derive(Debug)]
pub(crate) struct Outputs {
    all: Vec<Output>,
    /// Where a report goes that no file takes.
    stream: Stream,
    /// What the lines of races have reported.
    reported: ReportedRaces,
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

    fn write(self, text: &str) -> Result<(), Stop> {
        let (written, name) = match self {
            Self::Error => (os::terminal::try_write(text), "standard error"),
            Self::Output => (console::write(text), "standard output"),
        };
        match written {
            // A reader that has gone wants no more.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| cannot_write(Path::new(name), &error)),
        }
    }
}

#[derive(Debug)]
enum Target {
    Stream(Stream),
    File(PathBuf, File),
    /// A file that others write into as well.
    Added(PathBuf, File),
}

impl Outputs {
    /// Opens everything that the flags ask for.
    pub(crate) fn open(args: &OutputArgs, stream: Stream) -> Result<Self, Stop> {
        let log = args.log_file.as_deref().map(expand).transpose()?;
        let mut all: Vec<Output> = Vec::new();
        for mut wanted in by_default(&args.format) {
            wanted.file = wanted.file.as_deref().map(expand).transpose()?;
            // Annotations are for the reader of the stream.
            let log = log.as_ref().filter(|_| wanted.format != Format::Github);
            let target = match wanted.file.as_ref().or(log) {
                None => Target::Stream(stream),
                Some(path) => Target::open(path)?,
            };
            all.push(Output::new(wanted.format, target));
        }
        if let Some(path) = args.metrics_file.as_deref().map(expand).transpose()? {
            all.push(Output::new(Format::Prometheus, Target::open(&path)?));
        }
        if let Some(path) = args.save.as_deref().map(expand).transpose()? {
            all.push(Output::new(Format::Json, Target::open(&path)?));
        }
        for stream in [Stream::Error, Stream::Output] {
            one_document(&all, stream)?;
        }
        Ok(Self {
            all,
            stream,
            reported: ReportedRaces::default(),
            style: Style {
                color: false,
                width: None,
                print_limit: args.print_limit.filter(|&limit| limit > 0),
                quiet: args.quiet,
                new_only: args.new_only,
                errors_only: args.print_level == PrintLevel::Error,
            },
            color: args.color,
        })
    }

    /// Refuses files of reports that the command reads, which it would overwrite.
    pub(crate) fn may_overwrite<'a>(
        args: &OutputArgs,
        read: impl Iterator<Item = &'a PathBuf> + Clone,
    ) -> Result<(), Stop> {
        let formats = args.format.iter().filter_map(|wanted| wanted.file.as_ref());
        let others = [&args.log_file, &args.metrics_file, &args.save];
        for path in formats.chain(others.into_iter().flatten()) {
            let path = expand(path)?;
            if read.clone().any(|read| is_same_file(read, &path)) {
                let text = format!(
                    "{}: this command reads that file, and would overwrite it with its report; name another one",
                    path.display()
                );
                return Err(Stop::new(USAGE, text));
            }
        }
        Ok(())
    }

    /// Writes a report of a run that has not ended into the files of formats that programs read whole, so that the files
    /// of a process that is killed do not look like those of a clean run. Errors are left to [`Outputs::write`], which
    /// meets them again.
    pub(crate) fn begin(&mut self, report: &Report, sources: &Sources) {
        let style = self.style;
        for Output { format, target } in &mut self.all {
            if is_replaced(*format)
                && target.is_replaceable()
                && let Ok(text) = format.render(report, sources, style)
            {
                let _ = target.replace(&text);
            }
        }
    }

    /// Whether a program reads the standard stream, so that nothing but the report may be there.
    pub(crate) fn is_for_programs(&self) -> bool {
        let on_error = |Output { format, target }: &Output| match target {
            Target::Stream(stream) if *stream == self.stream => Some(*format),
            Target::Stream(_) | Target::File(..) | Target::Added(..) => None,
        };
        let mut formats = self.all.iter().filter_map(on_error).peekable();
        formats.peek().is_some() && !formats.any(is_for_people)
    }

    /// Whether people read a text somewhere.
    pub(crate) fn has_text(&self) -> bool {
        self.all.iter().any(|of| of.format == Format::Text)
    }

    /// Leaves out text on streams.
    pub(crate) fn leave_out_text(&mut self) {
        self.all
            .retain(|of| !matches!(of.target, Target::Stream(_)) || of.format != Format::Text);
    }

    /// Whether races are reported as they are found.
    pub(crate) fn is_live(&self) -> bool {
        self.all.iter().any(|of| of.format == Format::Jsonl)
    }

    /// Reports the races that a run has had by now.
    pub(crate) fn report_live(&mut self, so_far: &Report) {
        let lines = self.reported.races(so_far);
        let live = self.all.iter_mut();
        for output in live.filter(|of| of.format == Format::Jsonl) {
            if let Err(stop) = output.target.write(&lines) {
                console::say(format_args!("cudarun-check: {}", stop.message));
            }
        }
    }

    /// Writes the report everywhere. What a file does not take goes to standard error, unless a stream has the report;
    /// the last such failure is returned.
    pub(crate) fn write(&mut self, report: &Report, sources: &Sources) -> Result<(), Stop> {
        let mut result = Ok(());
        let lines = self.reported.rest(report);
        let checkout = std::env::var_os("GITHUB_WORKSPACE").filter(|of| !of.is_empty());
        let in_checkout = checkout.map(|root| sources.shown_below(root.into()));
        // Annotations are no whole report.
        let is_whole = |format: Format, target: &Target| {
            matches!(target, Target::Stream(_)) && format != Format::Github
        };
        let whole = self.all.iter();
        let whole = whole.filter(|of| is_whole(of.format, &of.target));
        let whole = whole.count();
        for Output { format, target } in &mut self.all {
            let color = match (self.color, &*target) {
                (color, Target::File(..) | Target::Added(..)) => color == Color::Always,
                (color, Target::Stream(stream)) => is_colored(color, *stream),
            };
            let width = match target {
                Target::Stream(stream) if stream.is_terminal() => Some(columns()),
                _ => None,
            };
            let style = Style {
                color,
                width,
                ..self.style
            };
            let sources = match (*format, &in_checkout) {
                // GitHub looks for their paths there, wherever a job has changed to.
                (Format::Github | Format::Sarif, Some(checkout)) => checkout,
                _ => sources,
            };
            let what = match format {
                Format::Jsonl => Ok(lines.clone()),
                _ => format.render(report, sources, style),
            };
            let what = match what {
                Ok(what) => what,
                Err(why) => {
                    let text = format!("cannot write the report as {format:?}: {why}");
                    console::say(format_args!("cudarun-check: {text}"));
                    result = Err(Stop::new(INTERNAL, text));
                    continue;
                }
            };
            let what = match format {
                Format::Text
                | Format::Github
                | Format::Markdown
                | Format::Sanitizer
                | Format::Prometheus => printable(&what, color),
                // They have escapes of their own.
                Format::Json | Format::Jsonl | Format::Sarif | Format::Junit | Format::Html => {
                    what.into()
                }
            };
            let written = match is_replaced(*format) {
                true => target.replace(&what),
                false => target.write(&what),
            };
            if let Err(stop) = written {
                console::say(format_args!("cudarun-check: {}", stop.message));
                let others = whole - usize::from(is_whole(*format, target));
                if others == 0 && !matches!(target, Target::Stream(Stream::Error)) {
                    os::terminal::write(&what);
                }
                result = Err(stop);
            }
        }
        result
    }
}

/// Whether the file of a format holds one document, which programs read whole.
const fn is_replaced(format: Format) -> bool {
    matches!(
        format,
        Format::Json | Format::Sarif | Format::Junit | Format::Html
    )
}

/// Empties a file.
pub(crate) fn emptied(mut file: &File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()
}

/// Whether people read the format where it is on a stream.
const fn is_for_people(format: Format) -> bool {
    matches!(format, Format::Text | Format::Github | Format::Sanitizer)
}

/// Columns of the terminal: what the user says, as for other commands, or what the terminal does.
fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|said| said.parse().ok());
    said.filter(|&columns| columns > 0)
        .unwrap_or_else(os::terminal::columns)
}

/// Whether to colour what goes to a stream.
pub(crate) fn is_colored(color: Color, stream: Stream) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            stream.is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

impl Target {
    fn open(path: &Path) -> Result<Self, Stop> {
        if path == Path::new("-") {
            return Ok(Self::Stream(Stream::Output));
        }
        // What earlier commands of a step have written into its summary stays.
        let summary = std::env::var_os("GITHUB_STEP_SUMMARY").map(PathBuf::from);
        let adds = summary.is_some_and(|summary| is_same_file(&summary, path));
        let file = match adds {
            true => File::options().append(true).create(true).open(path),
            false => return Ok(Self::File(path.to_owned(), create(path)?)),
        };
        match file {
            Ok(file) => Ok(Self::Added(path.to_owned(), file)),
            Err(error) => Err(cannot_write(path, &error)),
        }
    }

    /// Whether it is a file of which this process alone decides what is in it.
    fn is_replaceable(&self) -> bool {
        match self {
            Self::Stream(_) | Self::Added(..) => false,
            Self::File(_, file) => file.metadata().is_ok_and(|of| of.is_file()),
        }
    }

    /// Writes in the place of what it holds, if it is such a file.
    fn replace(&mut self, text: &str) -> Result<(), Stop> {
        let empty = |target: &Self| match target {
            Self::File(path, file) if target.is_replaceable() => {
                emptied(file).map_err(|error| cannot_write(path, &error))
            }
            Self::File(..) | Self::Added(..) | Self::Stream(_) => Ok(()),
        };
        empty(self)?;
        let written = self.write(text);
        if written.is_err() {
            // Half a document is none.
            let _ = empty(self);
        }
        written
    }

    fn write(&mut self, text: &str) -> Result<(), Stop> {
        match self {
            Self::Stream(stream) => stream.write(text),
            Self::Added(path, file) | Self::File(path, file) => file
                .write_all(text.as_bytes())
                .map_err(|error| cannot_write(path, &error)),
        }
    }
}

/// Annotations go along with text on a stream; any other format has it for itself.
///
/// # Errors
/// When two formats would mix there.
fn one_document(all: &[Output], stream: Stream) -> Result<(), Stop> {
    let here = all
        .iter()
        .filter_map(|Output { format, target }| match target {
            Target::Stream(of) if *of == stream => Some(*format),
            Target::Stream(_) | Target::File(..) | Target::Added(..) => None,
        });
    let here: Vec<Format> = here.collect();
    let annotated = |format| matches!(format, Format::Text | Format::Github);
    if here.len() < 2 || here.iter().copied().all(annotated) {
        return Ok(());
    }
    let stream = match stream {
        Stream::Error => "standard error",
        Stream::Output => "standard output",
    };
    let text = format!(
        "two formats would mix on {stream}; write all but one to files: --format FORMAT:FILE"
    );
    Err(Stop::new(USAGE, text))
}

/// Makes a file anew that no other output goes to, of this process or another one that runs.
///
/// # Errors
/// When one does, or the file cannot be made.
pub(crate) fn create(path: &Path) -> Result<File, Stop> {
    let failed = |error| cannot_write(path, &error);
    let options = File::options().write(true).create(true).to_owned();
    let file = options.open(path).map_err(failed)?;
    // Terminals, pipes and /dev/null take what several write.
    if file.metadata().map_err(failed)?.is_file() {
        // Where the file system knows no locks, that cannot be known.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let text = format!(
                "{}: another output goes to this file, of this command or of one that runs beside it; \
                 %p in the name is the process id, %h the host, %q{{NAME}} a variable such as the rank",
                path.display()
            );
            return Err(Stop::new(USAGE, text));
        }
        file.set_len(0).map_err(failed)?;
    }
    Ok(file)
}

/// Whether two paths name one file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize();
    one == other || whole(one).is_ok_and(|one| whole(other).is_ok_and(|other| one == other))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Stop {
    let text = format!("cannot write the report to {}: {error}", path.display());
    Stop::new(INTERNAL, text)
}

/// The formats that were asked for: without any, text, and annotations in a job of GitHub Actions.
fn by_default(asked: &[Wanted]) -> Vec<Wanted> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    let annotates = std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
    let formats = [Some(Format::Text), annotates.then_some(Format::Github)];
    let wanted = |format| Wanted { format, file: None };
    formats.into_iter().flatten().map(wanted).collect()
}

/// Fills in `%p`, `%h` and `%q{NAME}`, as compute-sanitizer does.
pub(crate) fn expand(path: &Path) -> Result<PathBuf, Stop> {
    let Some(text) = path.to_str() else {
        return Ok(path.to_owned());
    };
    let usage = |what: String| Stop::new(USAGE, format!("{text}: {what}"));
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        expanded.push_str(before);
        rest = match after.chars().next() {
            Some('p') => {
                expanded.push_str(&std::process::id().to_string());
                &after[1..]
            }
            Some('h') => {
                let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
                expanded.push_str(host.unwrap_or_default().trim());
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
                let value = std::env::var(name).ok().filter(|value| !value.is_empty());
                let unset = || usage(format!("the variable {name} of %q{{{name}}} is not set"));
                expanded.push_str(&value.ok_or_else(unset)?);
                after
            }
            _ => return Err(usage("% is followed by p, h, q{NAME} or %".to_owned())),
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
        assert!(Wanted::parse("text").is_ok());
        let json = Wanted::parse("json:a:b.json").unwrap();
        assert_eq!(json.file, Some(PathBuf::from("a:b.json")));
        for bad in ["", "xml", "json:", "xml:a"] {
            assert!(Wanted::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn log_files_may_hold_the_process_id() {
        let of = |text: &str| expand(Path::new(text)).map(|path| path.display().to_string());
        let pid = std::process::id();
        assert_eq!(of("a%p.%%").unwrap(), format!("a{pid}.%"));
        let unset = of("x%q{CUDARUN_CHECK_NO_SUCH}y").unwrap_err();
        assert_eq!(unset.code, USAGE);
        assert!(unset.message.contains("CUDARUN_CHECK_NO_SUCH"), "{unset:?}");
        assert!(!of("%h").unwrap().is_empty());
        assert!(of("%").is_err() && of("%q{x").is_err() && of("%z").is_err());
    }
}
