//! Options of `run` that the command line does not give: from the environment, and from a file.
//!
//! Both become words of the command line, so that each option is defined once, for clap. An option is taken from the
//! strongest place that has it: the command line, then the environment, then the file.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::exit::{BAD_INPUT, Stop, USAGE};
use crate::output::Wanted;
use crate::sanitizer;

/// Holds options as the command line has them.
pub(crate) const VARIABLE: &str = "CUDARUN_CHECK_OPTIONS";
/// The file, in the working folder or one above it.
pub(crate) const FILE: &str = "cudarun-check.toml";
/// What is for the command line, or for the environment too, but not for the file.
const NOT_IN_FILES: [&str; 3] = ["config", "no-config", "help"];
/// How much alike two names are, of 1, that one is taken for a misspelling of the other.
const ALIKE: f64 = 0.75;

/// What the command line lacks.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// To be put before the options of the command line.
    pub(crate) words: Vec<OsString>,
    /// The file that some are of.
    pub(crate) file: Option<PathBuf>,
}

/// An option of a place, and its words.
struct Given<'a> {
    arg: &'a Arg,
    words: Vec<OsString>,
}

/// Reads what the environment and the file say besides the command line, which is `given` and understood by `run`.
pub(crate) fn read(run: &Command, given: &ArgMatches) -> Result<Settings, Stop> {
    let alone = run.clone().mut_arg("app", |app| app.required(false));
    let text = std::env::var_os(VARIABLE).unwrap_or_default();
    let environment = environment(&alone, &text)?;
    let mut stronger: Vec<&Arg> = run
        .get_arguments()
        .filter(|arg| is_given(given, arg))
        .collect();
    let mut settings = Settings::default();
    let found = find(given, &environment)?;
    let of_environment = weaker(run, options(run, &environment), &mut stronger);
    if let Some(path) = found {
        let of_file = weaker(run, file(run, &alone, &path)?, &mut stronger);
        settings.file = (!of_file.is_empty()).then_some(path);
        settings.words.extend(of_file);
    }
    settings.words.extend(of_environment);
    Ok(settings)
}

/// The words of those options that no stronger place has, nor one that excludes them; now they are strong themselves.
fn weaker<'a>(run: &Command, given: Vec<Given<'a>>, stronger: &mut Vec<&'a Arg>) -> Vec<OsString> {
    let excludes = |one: &Arg, other: &Arg| {
        let conflicts = run.get_arg_conflicts_with(one);
        conflicts.iter().any(|arg| arg.get_id() == other.get_id())
    };
    let kept = given.into_iter().filter(|Given { arg, .. }| {
        !stronger.iter().any(|other| {
            other.get_id() == arg.get_id() || excludes(arg, other) || excludes(other, arg)
        })
    });
    let (args, words): (Vec<&Arg>, Vec<Vec<OsString>>) =
        kept.map(|Given { arg, words }| (arg, words)).unzip();
    stronger.extend(args);
    words.concat()
}

fn is_given(matches: &ArgMatches, arg: &Arg) -> bool {
    matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// The options in the environment.
fn environment(alone: &Command, text: &OsStr) -> Result<ArgMatches, Stop> {
    let wrong = |what: &str| Stop::new(USAGE, format!("{VARIABLE}: {what}"));
    let text = text.to_str().ok_or_else(|| wrong("it is not UTF-8"))?;
    let words = shlex::split(text).ok_or_else(|| wrong("a quotation mark is not closed"))?;
    let words = std::iter::once("cudarun-check".to_owned()).chain(words);
    let matches = alone.clone().try_get_matches_from(words);
    let matches = matches.map_err(|error| wrong(&message(&error)))?;
    match matches.get_raw("app").and_then(|mut app| app.next()) {
        Some(word) => Err(wrong(&format!(
            "`{}` is no option; programs are named on the command line only",
            word.to_string_lossy()
        ))),
        None => Ok(matches),
    }
}

/// What clap says, in one line.
pub(crate) fn message(error: &clap::Error) -> String {
    if let Some(stop) = sanitizer::instead(error) {
        return stop.message;
    }
    if error.kind() == ErrorKind::DisplayHelp {
        return "--help is for the command line".to_owned();
    }
    let text = error.to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join(" ")
}

/// Options that clap has understood, as words again.
fn options<'a>(run: &'a Command, matches: &ArgMatches) -> Vec<Given<'a>> {
    let given = run.get_arguments().filter(|arg| is_given(matches, arg));
    let given = given.filter_map(|arg| {
        let long = arg.get_long()?;
        let words = match arg.get_action().takes_values() {
            false => vec![format!("--{long}").into()],
            true => {
                let values = matches.get_raw(arg.get_id().as_str());
                values
                    .into_iter()
                    .flatten()
                    .map(|value| word(long, value))
                    .collect()
            }
        };
        Some(Given { arg, words })
    });
    given.collect()
}

/// `--long=value`.
fn word(long: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(format!("--{long}="));
    word.push(value);
    word
}

/// The file to read, if any.
fn find(given: &ArgMatches, environment: &ArgMatches) -> Result<Option<PathBuf>, Stop> {
    for matches in [given, environment] {
        if matches.get_flag("no_config") {
            return Ok(None);
        }
        if let Some(path) = matches.get_one::<PathBuf>("config") {
            return Ok(Some(path.clone()));
        }
    }
    // Without a working folder there is none above it.
    let here = std::env::current_dir().unwrap_or_default();
    let mut all = here.ancestors().map(|folder| folder.join(FILE));
    Ok(all.find(|path| path.is_file()))
}

/// The options of a file.
fn file<'a>(run: &'a Command, alone: &Command, path: &Path) -> Result<Vec<Given<'a>>, Stop> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Stop::new(BAD_INPUT, format!("{name}: cannot read options: {error}")))?;
    let wrong = |span: Range<usize>, what: &str| {
        let before = text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Stop::new(BAD_INPUT, format!("{name}:{line}: {what}"))
    };
    let table = DeTable::parse(&text).map_err(|error| {
        let what = error.message().replace('\n', ", ");
        wrong(error.span().unwrap_or_default(), &what)
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut all = Vec::new();
    for (key, value) in table.get_ref() {
        let long = key.get_ref().replace('_', "-");
        let arg = option(run, &long).ok_or_else(|| wrong(key.span(), &unknown(run, &long)))?;
        let values = values(arg, value.get_ref(), folder);
        let words = values.map_err(|what| wrong(value.span(), &format!("`{long}` {what}")))?;
        let line = std::iter::once(OsString::from("cudarun-check")).chain(words.iter().cloned());
        let understood = alone.clone().try_get_matches_from(line);
        match understood {
            // What it needs besides may be on the command line.
            Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => {
                return Err(wrong(value.span(), &message(&error)));
            }
            _ => {}
        }
        if !words.is_empty() {
            all.push(Given { arg, words });
        }
    }
    Ok(all)
}

/// The option of a key, which may be an alias.
fn option<'a>(run: &'a Command, long: &str) -> Option<&'a Arg> {
    keys(run).find_map(|(key, arg)| (key == long).then_some(arg))
}

/// All keys that a file may have.
fn keys(run: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let of = |arg| Some((Arg::get_long(arg)?, arg));
    let names = run.get_arguments().filter_map(of).flat_map(|(long, arg)| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        std::iter::once(long)
            .chain(aliases)
            .map(move |name| (name, arg))
    });
    names.filter(|(name, _)| !NOT_IN_FILES.contains(name))
}

fn unknown(run: &Command, long: &str) -> String {
    let alike = |(key, _): (&'_ str, &Arg)| (strsim::jaro(key, long), key.to_owned());
    let best = keys(run).map(alike).max_by(|a, b| a.0.total_cmp(&b.0));
    match best.filter(|(alike, _)| *alike >= ALIKE) {
        Some((_, key)) => format!("unknown key `{long}`; write `{key}`?"),
        None => format!(
            "unknown key `{long}`; keys are the options of `cudarun-check run --help` without the two dashes"
        ),
    }
}

/// The words for the value of a key; or what it should have been.
fn values(arg: &Arg, value: &DeValue<'_>, folder: &Path) -> Result<Vec<OsString>, String> {
    let long = arg.get_long().unwrap_or_default();
    let takes = arg.get_action().takes_values();
    let several = matches!(arg.get_action(), clap::ArgAction::Append);
    let one = |value: &DeValue<'_>| {
        let text = match value {
            DeValue::String(text) => text.clone().into_owned(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.as_str().to_owned(),
            _ => return Err("is a string or a number".to_owned()),
        };
        Ok(word(long, place(arg, &text, folder).as_os_str()))
    };
    match (takes, value) {
        (false, DeValue::Boolean(true)) => Ok(vec![format!("--{long}").into()]),
        (false, DeValue::Boolean(false)) => Ok(Vec::new()),
        (false, _) => Err("is true or false".to_owned()),
        // The value may be left out on the command line.
        (true, DeValue::Boolean(given))
            if arg.get_num_args().is_some_and(|of| of.min_values() == 0) =>
        {
            let word = given.then(|| format!("--{long}").into());
            Ok(word.into_iter().collect())
        }
        (true, DeValue::Array(all)) if several => {
            all.iter().map(Spanned::get_ref).map(one).collect()
        }
        (true, DeValue::Array(_)) => Err("has one value only; remove the brackets".to_owned()),
        (true, value) => Ok(vec![one(value)?]),
    }
}

/// A value, as seen from the working folder: paths in a file are relative to its folder.
fn place(arg: &Arg, text: &str, folder: &Path) -> OsString {
    let kind = arg.get_value_parser().type_id();
    if kind == TypeId::of::<PathBuf>() {
        return folder.join(text).into();
    }
    match text.split_once(':') {
        Some((format, file)) if kind == TypeId::of::<Wanted>() => {
            let mut text = OsString::from(format!("{format}:"));
            text.push(folder.join(file));
            text
        }
        _ => text.into(),
    }
}
