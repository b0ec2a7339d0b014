//! One test per file and revision under `tests/`.

use std::path::Path;

use anyhow::{Context, Result};
use filetests::{exec, files, header, race, syntax};
use libtest_mimic::{Arguments, Failed, Trial};

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
            trials.push(trial(name, move || runner(&case)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(name: String, test: impl FnOnce() -> Result<()> + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test().map_err(|error| Failed::from(format!("{error:#}")))
    })
}
