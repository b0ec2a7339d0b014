//! Tests per file and revision under `tests/`: its syntax, its expectations, the dependences of its values (`follow/`) and
//! the help of its reports (`advice/`).

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result, ensure};
use filetests::{advised, exec, files, header, interference, race, syntax};
use libtest_mimic::{Arguments, Failed, Trial};

/// Cases that were compared with runs with other input, and with runs under other schedules.
static INPUTS: AtomicUsize = AtomicUsize::new(0);
static SCHEDULES: AtomicUsize = AtomicUsize::new(0);
/// Cases to which the help of their reports was applied.
static ADVISED: AtomicUsize = AtomicUsize::new(0);
/// The least of the three. With fewer, the device reports that nearly everything depends on input and schedule, or the
/// help has a form that the test does not read.
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
    let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    let ended = libtest_mimic::run(&arguments, trials);
    if whole {
        let counts = [&INPUTS, &SCHEDULES, &ADVISED].map(|count| count.load(Relaxed));
        ensure!(
            counts
                .iter()
                .zip(LEAST)
                .all(|(&count, least)| count >= least),
            "only {counts:?} cases were compared with other input, compared with other schedules, and repaired by their help; expected at least {LEAST:?}"
        );
    }
    ended.exit();
}

fn trial(name: String, test: impl FnOnce() -> Result<()> + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test().map_err(|error| Failed::from(format!("{error:#}")))
    })
}
