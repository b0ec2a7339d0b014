//! Each failure of what the tool needs from the system, at each point of a run: a race that was seen is reported, or the
//! run does not end with 0, and says why; and the program ends as it would have without us.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{WAYS, Way, command, compile, in_shell, text};
use serde_json::Value;

/// What a failure does to the program that it comes upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    /// It races, whatever point the failure comes at.
    Races,
    /// It races, unless the failure comes before it has used the device: then it may be refused.
    RacesOnceBegun,
    /// It races if the failure comes before it has used the device; later it is refused, as without us.
    RacesUnlessBegun,
    /// It ends at the point, in this way.
    Ends(i32),
}

use Program::{Ends, Races, RacesOnceBegun, RacesUnlessBegun};

/// The failures of `c/failures.c`.
const FAILURES: [(&str, Program); 20] = [
    ("none", Races),
    ("limit", RacesOnceBegun),
    ("ignored", RacesOnceBegun),
    ("then", RacesOnceBegun),
    ("close", Races),
    ("files", RacesOnceBegun),
    ("mask", Races),
    ("user", RacesOnceBegun),
    ("closed", RacesOnceBegun),
    ("left", RacesOnceBegun),
    ("root", RacesOnceBegun),
    ("cut-off", RacesOnceBegun),
    ("gone", RacesOnceBegun),
    ("fork", RacesUnlessBegun),
    ("daemon", RacesUnlessBegun),
    ("exec", Races),
    ("other", Races),
    ("_exit", Ends(0)),
    ("abort", Ends(134)),
    ("kill", Ends(137)),
];

/// Before the device is used, before the first launch, before the race, behind it, behind the last launch.
const POINTS: std::ops::Range<u32> = 0..5;
/// The first point at which the race has been.
const RACED: u32 = 3;

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = compile("failures", include_str!("c/channel.ptx"));
        // Other users may run it, and read our libraries beside it.
        let folder = program.parent().unwrap();
        std::fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        program
    })
}

/// What is wrong with a run, if anything is.
fn wrong(way: Way, failure: &str, program_is: Program, point: u32) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut tool = command(way, folder.path());
    tool.arg(program()).args([failure, &point.to_string()]);
    let output = tool.output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let report = std::fs::read_to_string(folder.path().join("report.json")).unwrap_or_default();
    let report: Value = serde_json::from_str(&report).unwrap_or_default();
    let code = output.status.code();
    let outcome = report["summary"]["outcome"].as_str().unwrap_or_default();
    let because = &report["coverage"]["incomplete_because"];
    let found = report["races"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    let raced = match program_is {
        Races => true,
        RacesOnceBegun => stdout.contains("raced"),
        RacesUnlessBegun => point == 0 || point >= RACED,
        Ends(_) => point >= RACED,
    };
    let is_root = Path::new("/proc/self").metadata().unwrap().uid() == 0;
    // Who is not root cannot be another user, and keeps the other program from its log instead.
    let kept_out = failure == "other" && !is_root;
    let program_is = if kept_out { RacesOnceBegun } else { program_is };
    let again = matches!(failure, "exec" | "other");
    let said = match program_is {
        Ends(_) if point < 4 => "",
        // The one program says so, and then the one in its place.
        Races if again && point == 4 => "raced\nraced\n",
        _ if raced => "raced\n",
        _ => "refused\n",
    };
    let what = match () {
        () if stdout != said && !kept_out => "the program did not do what it does without us",
        () if program_is == RacesOnceBegun && point > 0 && !raced && !kept_out => {
            "the program was refused"
        }
        () if found != (code == Some(66)) => "a race that was found has another exit code",
        () if found && outcome != "races" => "the outcome is not that there are races",
        // What was killed in the middle may have been in a launch.
        () if raced && !found && code == Some(0) => "a race was lost",
        () if code == Some(75) && because.as_array().is_none_or(Vec::is_empty) => {
            "it is not said why"
        }
        () if !raced && matches!(program_is, RacesOnceBegun) && code != Some(75) => {
            "a process was not checked"
        }
        () => return None,
    };
    Some(format!(
        "{way:?} {failure} {point}: {what}: {code:?} {outcome} {because}\n{stdout}{stderr}\n"
    ))
}

/// The tool itself may write no files, or none that are larger than its logs.
#[test]
fn a_limit_on_the_size_of_files_hides_no_race() {
    for way in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let mut tool = command(way, folder.path());
        tool.args(["--save", "saved.json"])
            .arg(program())
            .args(["none", "9"]);
        // In units of 512 bytes.
        for (limit, codes) in [(0, &[70, 75][..]), (16, &[66, 70, 75]), (64, &[66])] {
            let mut shell = in_shell(&tool, &format!("ulimit -f {limit}; exec \"$@\""));
            let output = shell.current_dir(folder.path()).output().unwrap();
            let said = text(&output.stderr);
            let code = output.status.code();
            assert!(
                code.is_some_and(|code| codes.contains(&code)),
                "{way:?} {limit}: {:?} {said}",
                output.status
            );
            assert!(said.contains("SUMMARY: "), "{way:?} {limit}: {said}");
            let whole =
                std::fs::read_to_string(folder.path().join("saved.json")).unwrap_or_default();
            let whole = serde_json::from_str::<Value>(&whole).is_ok();
            assert!(
                whole || said.contains("File too large"),
                "{way:?} {limit}: {said}"
            );
        }
    }
}

#[test]
fn whatever_fails_at_whatever_point_a_race_is_reported_or_the_run_does_not_pass() {
    program();
    let all: Vec<(Way, &str, Program, u32)> = WAYS
        .into_iter()
        .flat_map(|way| FAILURES.map(|(failure, program)| (way, failure, program)))
        .flat_map(|(way, failure, program)| POINTS.map(move |point| (way, failure, program, point)))
        .collect();
    let next = AtomicUsize::new(0);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let run = || {
            let mut found = Vec::new();
            while let Some(&(way, failure, program, point)) =
                all.get(next.fetch_add(1, Ordering::Relaxed))
            {
                found.extend(wrong(way, failure, program, point));
            }
            found
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.concat());
}
