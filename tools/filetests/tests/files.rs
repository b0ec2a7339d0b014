//! Tests per file and revision under `tests/`: what is expected of it, its syntax, and what its values depend on.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result, ensure};
use filetests::{advised, exec, files, header, interference, race, syntax};
use libtest_mimic::{Arguments, Failed, Trial};

/// Cases that were held against runs with other input, and under other schedules.
static INPUTS: AtomicUsize = AtomicUsize::new(0);
static SCHEDULES: AtomicUsize = AtomicUsize::new(0);
/// Cases to which the advice of their reports was done.
static ADVISED: AtomicUsize = AtomicUsize::new(0);
/// As many at least, or following values has come to say that everything decides, or advice what nobody can do.
const LEAST: [usize; 3] = [3_900, 2_550, 650];

fn main() -> Result<()> {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut trials = Vec::new();
    for path in files::below(&root, "ptx")? {
        let text = std::fs::read_to_string(&path)?;
        let name = path
            .strip_prefix(&root)?
            .with_extension("")
            .display()
            .to_string();
        let whole = text.clone();
        trials.push(trial(format!("syntax/{name}"), move || {
            syntax::round_trip(&whole)
        }));
        let runner = match name.split('/').next() {
            Some("exec") => exec::run,
            Some("race") => race::run,
            _ => continue,
        };
        for case in header::cases(&text).with_context(|| path.display().to_string())? {
            let name = match case.revision.as_str() {
                "" => name.clone(),
                revision => format!("{name}[{revision}]"),
            };
            let followed = case.clone();
            let ordered = name.starts_with("exec/") || race::is_silent(&case)?;
            trials.push(trial(format!("follow/{name}"), move || {
                let judged = interference::judge(&followed, ordered)?;
                INPUTS.fetch_add(judged.inputs.into(), Relaxed);
                SCHEDULES.fetch_add(judged.schedules.into(), Relaxed);
                Ok(())
            }));
            if name.starts_with("race/") && !race::is_silent(&case)? {
                let advised = case.clone();
                trials.push(trial(format!("advice/{name}"), move || {
                    ADVISED.fetch_add(advised::judge(&advised)?.into(), Relaxed);
                    Ok(())
                }));
            }
            trials.push(trial(name, move || runner(&case)));
        }
    }
    let whole = arguments.filter.is_none() && !arguments.list;
    let ended = libtest_mimic::run(&arguments, trials);
    if whole {
        let counts = [&INPUTS, &SCHEDULES, &ADVISED].map(|count| count.load(Relaxed));
        ensure!(
            counts
                .iter()
                .zip(LEAST)
                .all(|(&count, least)| count >= least),
            "values were followed, under other schedules too, and advice was done in {counts:?} cases only, expected {LEAST:?} at least"
        );
    }
    ended.exit();
}

fn trial(name: String, test: impl FnOnce() -> Result<()> + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test().map_err(|error| Failed::from(format!("{error:#}")))
    })
}
