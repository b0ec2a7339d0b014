//! Saved reports: reading them, and `report`, which shows them again.

use std::path::Path;

use report::Report;
use report::source::Sources;

use crate::args::{OutputArgs, ReportArgs};
use crate::exit::{self, BAD_INPUT, Stop};
use crate::output::{Outputs, Stream};

/// Shows the reports as one; the exit code is that of the worst.
pub(crate) fn run(args: &ReportArgs) -> Result<u8, Stop> {
    let report = read_all(&args.runs)?;
    let mut outputs = Outputs::open(&args.output, Stream::Output)?;
    outputs.write(&report, &sources(&args.output))?;
    let (outcome, exit) = (report.summary.outcome, report.run.exit);
    Ok(exit::of_run(outcome, exit, args.error_exitcode, false))
}

/// Where sources are looked for when the program's folder is not known.
fn sources(args: &OutputArgs) -> Sources {
    let mut roots = args.source_root.clone();
    roots.extend(std::env::current_dir());
    Sources::new(roots)
}

/// One report of several files.
pub(crate) fn read_all(paths: &[impl AsRef<Path>]) -> Result<Report, Stop> {
    let reports: Result<Vec<Report>, Stop> = paths.iter().map(|path| read(path.as_ref())).collect();
    Ok(Report::merge(reports?))
}

/// A report that `--save` has written.
pub(crate) fn read(path: &Path) -> Result<Report, Stop> {
    let bad = |what: String| {
        let text = format!("{}: {what}", path.display());
        Stop::new(BAD_INPUT, text)
    };
    let text =
        std::fs::read_to_string(path).map_err(|error| bad(format!("cannot read: {error}")))?;
    Report::from_json(&text).map_err(|error| {
        bad(format!(
            "no report that this version reads: {error}; make one with `cudarun-check --save FILE`"
        ))
    })
}
