//! Options of compute-sanitizer that this command does not have, with what to do instead, for people who come from there.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::{Stop, USAGE};

/// Why such an option is not there, by the options (Compute Sanitizer's manual, "Command Line Options").
const INSTEAD: &[(&[&str], &str)] = &[
    (
        &["read"],
        "`cudarun-check report FILE` shows what --save has written",
    ),
    (
        &["xml"],
        "use --format with json, sarif or junit, and --log-file FILE",
    ),
    (
        &["racecheck-report"],
        "reports group hazards by their two source lines, as with `analysis`; leave it out, and list single accesses \
         with `cudarun-check replay --trace`",
    ),
    (
        &["racecheck-detect-level"],
        "use --fail-on and --print-level",
    ),
    (
        &["racecheck-deadlock-timeout"],
        "deadlocks are found without a time limit; --timeout ends a run",
    ),
    (
        &["launch-timeout"],
        "use --timeout, which ends the run with its report",
    ),
    (
        &["target-processes"],
        "all processes that the program starts are checked; leave it out",
    ),
    (
        &["target-processes-filter"],
        "all processes that the program starts are checked; choose kernels with --kernel-name",
    ),
    (
        &["demangle"],
        "names are shown as they are in the source, and JSON has the mangled ones too; leave it out",
    ),
    (
        &[
            "num-callers-host",
            "num-callers-device",
            "show-backtrace",
            "backtrace-short",
        ],
        "reports have the launch's line on the host (with -g) and all inlined frames (with -lineinfo); leave it out",
    ),
    (
        &["kernel-regex", "kernel-regex-exclude"],
        "use --kernel-name and --exclude-kernel with kns=NAME, kne=NAME or regex:EXPRESSION",
    ),
    (
        &["check-exit-code", "require-cuda-init"],
        "the program's exit code comes through, and a run that checks nothing ends with 75; leave it out",
    ),
    (
        &[
            "racecheck-indirect-barrier-dependency",
            "racecheck-memcpy-async",
            "racecheck-num-workers",
            "num-cuda-barriers",
            "force-blocking-launches",
            "force-synchronization-limit",
            "destroy-on-device-error",
            "print-session-details",
            "save-session-details",
            "prefix",
            "language",
            "strip-paths",
            "nvtx",
            "port",
            "max-connections",
            "kill",
            "injection-path",
            "injection-path32",
            "preload-library",
            "support-32bit",
        ],
        "it has no counterpart here; leave it out",
    ),
    (
        &[
            "leak-check",
            "padding",
            "report-api-errors",
            "check-api-memory-access",
            "check-device-heap",
            "check-warpgroup-mma",
            "track-stream-ordered-races",
            "track-unused-memory",
            "initcheck-address-space",
            "missing-barrier-init-is-fatal",
            "coredump",
            "generate-coredump",
            "coredump-name",
            "coredump-behavior",
            "check-cache-control",
            "check-bulk-copy",
            "check-optix",
            "check-optix-leaks",
        ],
        "it is for tools of compute-sanitizer other than racecheck",
    ),
];

/// What to report to a user of such an option, if that is what is wrong.
pub(crate) fn instead(error: &clap::Error) -> Option<Stop> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let name = option.split('=').next().unwrap_or(option);
    let name = name.strip_prefix("--")?;
    let mut all = INSTEAD.iter();
    let (_, instead) = all.find(|(options, _)| options.contains(&name))?;
    let text = format!("--{name} is an option of compute-sanitizer: {instead}");
    Some(Stop::new(USAGE, text))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::args::{self, Wrong};

    fn message(words: &[&str]) -> Option<String> {
        let words = ["cudarun-check"].iter().chain(words).map(OsString::from);
        match args::parse(words) {
            Err(Wrong::Usage(error)) => instead(&error).map(|stop| stop.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_from_there_have_an_answer() {
        for words in [["--demangle", "full"], ["--xml", "./app"]] {
            let text = message(&words).unwrap();
            assert!(text.starts_with(words[0]), "{text}");
        }
        let text = message(&["--racecheck-report=all", "./app"]).unwrap();
        assert!(text.contains("replay --trace"), "{text}");
        assert_eq!(message(&["--no-such-option", "./app"]), None);
    }

    #[test]
    fn none_of_them_is_an_option_here() {
        let named: Vec<&str> = { INSTEAD.iter() }
            .flat_map(|(of, _)| of.iter().copied())
            .collect();
        for name in named {
            let text = message(&[&format!("--{name}=x"), "./app"]);
            assert!(text.is_some(), "{name}");
        }
    }
}
