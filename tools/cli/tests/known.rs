//! Races that are known: saved reports, suppressions and baselines.

use crate::workdir::{RACY, Workdir};

#[test]
fn saved_reports_are_shown_again_and_merged() {
    let workdir = Workdir::new();
    workdir
        .run_kernel(RACY, &["--save", "a.crr"])
        .ends(66, &["SUMMARY"]);
    workdir
        .run_kernel(RACY, &["--save", "b%%.crr", "--seed", "1", "-q"])
        .ends(66, &["SUMMARY"]);
    let one = workdir.tool(&["report", "a.crr"]);
    one.ends(66, &[]);
    assert!(one.stderr.is_empty(), "{}", one.stderr);
    assert!(one.stdout.contains("error[CR003]"), "{}", one.stdout);
    assert!(one.stdout.contains(", 1 launch checked"), "{}", one.stdout);
    let both = workdir.tool(&["report", "a.crr", "b%.crr", "--format", "json"]);
    both.ends(66, &[]);
    let json: serde_json::Value = serde_json::from_str(&both.stdout).unwrap();
    assert_eq!(json["coverage"]["launches"]["checked"], 2);
    assert_eq!(json["races"].as_array().unwrap().len(), 1);
    assert_eq!(json["races"][0]["launches"], serde_json::json!([1, 1]));
    assert_eq!(json["tool"]["schedules"], 2);
    // What was merged is a report again; any JSON report is.
    workdir
        .tool(&[
            "report", "a.crr", "b%.crr", "--save", "c.crr", "-o", "c.txt",
        ])
        .ends(66, &[]);
    let text = workdir.read("c.txt");
    assert!(text.contains("under 2 schedules"), "{text}");
    let again = workdir.tool(&["report", "c.crr", "--error-exitcode", "0"]);
    again.ends(0, &[]);
    assert_eq!(again.stdout, text);
}

#[test]
fn a_run_that_is_given_twice_counts_once() {
    let workdir = Workdir::new();
    workdir
        .run_kernel(RACY, &["--save", "a.crr"])
        .ends(66, &["SUMMARY"]);
    workdir.write("copy.crr", &workdir.read("a.crr"));
    let once = workdir.tool(&["report", "a.crr"]);
    for again in ["a.crr", "./a.crr", "copy.crr"] {
        let twice = workdir.tool(&["report", "a.crr", again]);
        let said = format!("warning: {again} has the same run as a.crr, which counts once");
        twice.ends(66, &[&said]);
        assert_eq!(twice.stdout, once.stdout);
    }
    // Another run of the same program is another one.
    workdir
        .run_kernel(RACY, &["--save", "b.crr"])
        .ends(66, &["SUMMARY"]);
    let two = workdir.tool(&["report", "a.crr", "b.crr"]);
    two.ends(66, &[]).lacks(&["warning"]);
    assert!(two.stdout.contains("2 launches checked"), "{}", two.stdout);
}

#[test]
fn a_report_exits_as_its_run_did() {
    let workdir = Workdir::new();
    let atomic = "red.global.add.u32 [%word], %step;";
    workdir
        .run_kernel(atomic, &["--save", "clean.crr"])
        .ends(0, &[]);
    workdir.tool(&["report", "clean.crr"]).ends(0, &[]);
    workdir
        .run_kernel(atomic, &["--save", "none.crr", "--kernel-name", "other"])
        .ends(75, &[]);
    workdir
        .tool(&["report", "clean.crr", "none.crr"])
        .ends(75, &[]);
    // A report never takes the place of one that it shows.
    let before = workdir.read("clean.crr");
    for output in [
        "--log-file=clean.crr",
        "--save=./clean.crr",
        "--format=html:clean.crr",
    ] {
        workdir
            .tool(&["report", "none.crr", "clean.crr", output])
            .ends(64, &["clean.crr: this command reads that file"]);
        assert_eq!(workdir.read("clean.crr"), before);
    }
    let allowed = ["report", "none.crr", "--allow-incomplete"];
    workdir.tool(&allowed).ends(0, &[]);
    workdir
        .run_kernel(RACY, &["--save", "racy.crr"])
        .ends(66, &[]);
    workdir
        .tool(&[
            "report",
            "none.crr",
            "racy.crr",
            "clean.crr",
            "--error-exitcode",
            "9",
        ])
        .ends(9, &[]);
    let report = |fail_on, run| workdir.tool(&["report", run, "--fail-on", fail_on]);
    report("never", "racy.crr").ends(0, &[]);
    report("error", "racy.crr").ends(66, &[]);
    // Writes that always store the same value are a warning.
    let same = "st.global.u32 [%word], 7;";
    workdir
        .run_kernel(same, &["--save", "same.crr"])
        .ends(0, &["warning["]);
    workdir.tool(&["report", "same.crr"]).ends(0, &[]);
    report("warning", "same.crr").ends(66, &[]);
    workdir
        .run_kernel(same, &["--save", "fails.crr", "--fail-on", "warning"])
        .ends(66, &[]);
    workdir.tool(&["report", "fails.crr"]).ends(66, &[]);
    report("error", "fails.crr").ends(0, &[]);
}

#[test]
fn a_run_that_has_not_come_to_its_end_removes_nothing_from_a_baseline() {
    let workdir = Workdir::new();
    workdir
        .run_kernel(RACY, &["--save", "one.crr"])
        .ends(66, &[]);
    // A loop that asks who is together is not proved to have no end.
    let busy = "again: activemask.b32 %old; bra again;";
    workdir
        .run_kernel(busy, &["--timeout", "0.3", "--save", "late.crr"])
        .ends(124, &[]);
    workdir.tool(&["report", "late.crr"]).ends(124, &[]);
    workdir
        .tool(&["report", "late.crr", "one.crr"])
        .ends(66, &[]);
    let why = "the time of --timeout was over";
    workdir
        .tool(&["diff", "one.crr", "late.crr"])
        .ends(0, &["late.crr is incomplete", why]);
    workdir
        .tool(&["baseline", "create", "one.crr"])
        .ends(0, &[]);
    let before = workdir.read("cudarun-baseline.json");
    let prune = ["baseline", "prune", "late.crr"];
    workdir
        .tool(&prune)
        .ends(75, &[why, "no race was removed", "--allow-incomplete"]);
    assert_eq!(workdir.read("cudarun-baseline.json"), before);
    let pruned = workdir.tool(&[&prune[..], &["--allow-incomplete"]].concat());
    pruned.ends(0, &[why]);
    assert!(pruned.stdout.contains("removed CR-"), "{}", pruned.stdout);
}

#[test]
fn a_run_that_has_not_checked_a_race_does_not_remove_it_from_a_baseline() {
    let workdir = Workdir::new();
    workdir
        .run_kernel(RACY, &["--save", "one.crr"])
        .ends(66, &[]);
    workdir
        .tool(&["baseline", "create", "one.crr"])
        .ends(0, &[]);
    let before = workdir.read("cudarun-baseline.json");
    for (options, why) in [
        (&["--check", "off"][..], "nothing was checked"),
        (&["--kernel-name", "other"], "nothing was checked"),
        (&["--space", "shared"], "shared memory only"),
        (&["--sample", "1/4"], "granules checked"),
    ] {
        let options = [options, &["--save", "part.crr", "--mode", "fast"]].concat();
        workdir.run_kernel(RACY, &options);
        let prune = workdir.tool(&["baseline", "prune", "part.crr"]);
        prune.ends(75, &[why, "no race was removed", "--allow-incomplete"]);
        let diff = workdir.tool(&["diff", "one.crr", "part.crr"]);
        assert!(diff.stderr.contains(why), "{}", diff.stderr);
        assert_eq!(workdir.read("cudarun-baseline.json"), before);
    }
    // Another kernel.
    let mut other = workdir.json("one.crr");
    other["coverage"]["kernels"] = serde_json::json!([]);
    other["races"] = serde_json::json!([]);
    workdir.write("other.crr", &other.to_string());
    let prune = workdir.tool(&["baseline", "prune", "other.crr"]);
    prune.ends(0, &["of accesses kept, because", "--allow-incomplete"]);
    assert_eq!(workdir.read("cudarun-baseline.json"), before);
}

#[test]
fn files_that_are_no_reports_are_refused() {
    let workdir = Workdir::new();
    workdir.run_kernel(RACY, &["--save", "a.crr"]);
    let newer = workdir
        .read("a.crr")
        .replace("\"schema_version\": \"1.", "\"schema_version\": \"2.");
    workdir.write("newer.crr", &newer);
    workdir.write("text.crr", "hello");
    for (file, words) in [
        ("newer.crr", "a report of schema version \"2."),
        ("text.crr", "no report that this version reads"),
        ("none.crr", "none.crr: cannot read"),
    ] {
        let ran = workdir.tool(&["report", "a.crr", file]);
        ran.ends(65, &[file, words]);
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    }
    workdir.tool(&["report"]).ends(64, &["<RUN>"]);
    workdir
        .run_kernel(RACY, &["--save", "no/such/a.crr"])
        .ends(70, &["no/such/a.crr"]);
}

/// The id of the only race of a saved report.
fn id(workdir: &Workdir, report: &str) -> String {
    let races = &workdir.json(report)["races"];
    assert_eq!(races.as_array().unwrap().len(), 1, "{races}");
    races[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_suppressed_race_is_counted_and_kept_but_does_not_fail() {
    let workdir = Workdir::new();
    workdir.run_kernel(RACY, &["--save", "a.crr"]).ends(66, &[]);
    let text = workdir.tool(&["suppress", "a.crr", "--id", &id(&workdir, "a.crr")]);
    text.ends(0, &[]);
    workdir.write("mine.toml", &text.stdout);
    let quiet = workdir.run_kernel(RACY, &["--suppressions", "mine.toml", "--save", "b.crr"]);
    quiet
        .ends(0, &["SUMMARY: cudarun-check: 0 races, 1 suppressed"])
        .lacks(&["CR003", "warning"]);
    let json = workdir.json("b.crr");
    let by = &json["races"][0]["suppressed_by"];
    assert_eq!(by["source"], "mine.toml");
    assert_eq!(by["line"], 2);
    assert!(by["reason"].as_str().unwrap().contains("count.ptx"), "{by}");
    assert_eq!(json["summary"]["suppressed"], 1);
    assert_eq!(json["suppressions"][0]["pairs"], 1);
    // It does not count in a saved report either.
    workdir.tool(&["report", "b.crr"]).ends(0, &[]);
    // Of another run it does.
    workdir.tool(&["report", "b.crr", "a.crr"]).ends(66, &[]);
}

#[test]
fn suppress_prints_the_races_that_count_or_those_that_are_named() {
    let workdir = Workdir::new();
    workdir
        .run_kernel(RACY, &["--format", "json:a.json"])
        .ends(66, &[]);
    let all = workdir.tool(&["suppress", "a.json", "--reason", "a \"quoted\" reason"]);
    all.ends(0, &[]);
    let id = id(&workdir, "a.json");
    assert!(
        all.stdout.starts_with(&format!("# error[CR003] {id}: ")),
        "{}",
        all.stdout
    );
    assert!(
        all.stdout.contains(&format!("id = \"{id}\"")),
        "{}",
        all.stdout
    );
    workdir.write("s.toml", &all.stdout);
    workdir
        .run_kernel(RACY, &["--suppressions", "s.toml", "--save", "b.crr"])
        .ends(0, &["1 suppressed"]);
    let by = &workdir.json("b.crr")["races"][0]["suppressed_by"];
    assert_eq!(by["reason"], "a \"quoted\" reason");
    workdir
        .tool(&["suppress", "a.json", "--id", "CR-00000000"])
        .ends(64, &["no race has the id `CR-00000000`; there are ", &id]);
    // All pairs of accesses of the cause belong together, by whichever of their ids, or its beginning.
    let race = &workdir.json("a.json")["races"][0];
    let listed = race["related"][0]["id"].as_str().unwrap();
    for id in [&id, listed, &listed[..10], &listed[3..9]] {
        let text = workdir.tool(&[
            "suppress",
            "a.json",
            "--id",
            id,
            "--reason",
            "a \"quoted\" reason",
        ]);
        text.ends(0, &[]);
        assert_eq!(text.stdout, all.stdout, "{id}");
    }
    let none = workdir.tool(&["suppress", "b.crr"]);
    none.ends(0, &["nothing to suppress"]);
    assert!(none.stdout.is_empty());
}

#[test]
fn unused_and_expired_suppressions_are_reported() {
    let workdir = Workdir::new();
    let entry = |keys: &str| format!("[[suppress]]\nreason = \"x\"\n{keys}\n");
    workdir.write("old.toml", &entry("rule = \"CR003\"\nexpires = 2020-01-01"));
    workdir.run_kernel(RACY, &["--suppressions", "old.toml"]).ends(
        66,
        &[
            "error[CR003]",
            "warning: old.toml:1: the suppression `rule = \"CR003\"` has expired on 2020-01-01; 2 pairs of accesses that it fits count again",
        ],
    );
    workdir
        .run_kernel(RACY, &["--quiet", "--suppressions", "old.toml"])
        .ends(66, &["warning: old.toml:1: ", "has expired"]);
    workdir.write("new.toml", &entry("rule = \"CR003\"\nexpires = 2999-01-01"));
    workdir.write("tsan.txt", "# of another tool\nrace:no_such_kernel\n");
    let both = ["--suppressions", "new.toml", "--suppressions", "tsan.txt"];
    let unused =
        "tsan.txt:2: the suppression `race:no_such_kernel` is unused: no race of this run fits it";
    workdir
        .run_kernel(RACY, &both)
        .ends(0, &["1 suppressed", &format!("warning: {unused}")]);
    let files = ["junit:a.xml", "markdown:a.md", "github:a.txt"];
    let files = files.map(|file| ["--format", file]).concat();
    let strict = ["--strict", "--format", "text", "--save", "a.crr"];
    let strict = [&both[..], &files, &strict].concat();
    workdir
        .run_kernel(RACY, &strict)
        .ends(65, &[unused, "--strict: 1 suppression"]);
    let json = workdir.json("a.crr");
    assert_eq!(json["suppressions"][1]["pairs"], 0);
    assert_eq!(json["summary"]["suppressions_fail"], true);
    for (file, failure) in [
        ("a.xml", "type=\"suppressions\""),
        ("a.md", "## cudarun-check: unused or expired suppressions"),
        ("a.txt", "::error title=cudarun-check%3A suppression::"),
    ] {
        let text = std::fs::read_to_string(workdir.path(file)).unwrap();
        let line = "is unused: no race of this run fits it";
        assert!(text.contains(failure) && text.contains(line), "{text}");
    }
    workdir.tool(&["report", "a.crr"]).ends(65, &[]);
    // A race comes first.
    workdir
        .run_kernel(RACY, &["--strict", "--suppressions", "tsan.txt"])
        .ends(66, &[unused]);
    workdir
        .run_kernel(RACY, &["--strict", "--suppressions", "new.toml"])
        .ends(0, &[]);
}

#[test]
fn a_suppression_of_memory_fits_races_in_no_other_memory() {
    // The threads of two blocks write to one memory, or to two.
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .visible .entry spread(.param .u64 a, .param .u64 b) { .reg .b64 %a, %b; .reg .b32 %t; .reg .pred %p;\n\
        ld.param.u64 %a, [a]; ld.param.u64 %b, [b];\n\
        cvta.to.global.u64 %a, %a; cvta.to.global.u64 %b, %b;\n\
        mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; selp.b64 %a, %a, %b, %p;\n\
        mov.u32 %t, %ctaid.x;\n\
        st.global.u32 [%a], %t;\n\
        ret; }";
    let workdir = Workdir::new();
    workdir.write("spread.ptx", text);
    workdir.write(
        "s.toml",
        "[[suppress]]\nallocation = '--arg 0'\nreason = 'scratch'\n",
    );
    let modes: [&[&str]; 3] = [&[], &["--as-gpu"], &["--mode", "fast"]];
    for mode in modes {
        for (threads, code) in [("1", 0), ("2", 66)] {
            let options = ["spread.ptx", "--grid", "2", "--block", threads];
            let arguments = ["--arg", "u32[1]", "--arg", "u32[1]"];
            let list = ["--suppressions", "s.toml"];
            workdir
                .tool(&[mode, &options, &arguments, &list].concat())
                .ends(code, &[]);
        }
    }
}

#[test]
fn lines_of_thread_sanitizer_are_suppressions() {
    let workdir = Workdir::new();
    for (line, code) in [
        ("race:^count$", 0),
        ("race:coun", 0),
        ("race:count.ptx$", 0),
        ("race:^ount", 66),
    ] {
        workdir.write("tsan.txt", line);
        workdir
            .run_kernel(RACY, &["--suppressions", "tsan.txt"])
            .ends(code, &[]);
    }
}

#[test]
fn files_of_suppressions_that_make_no_sense_stop_the_run() {
    let workdir = Workdir::new();
    for (text, said) in [
        (
            "[[suppress]]\nrule = \"CR003\"\n",
            "bad.toml:1: the reason is missing; add `reason = ",
        ),
        (
            "[[suppress]]\nreason = \"x\"\nkernal = \"k\"\n",
            "bad.toml:3: unknown key `kernal`",
        ),
        (
            "race:x\nrase:y\n",
            "bad.toml:2: `rase:y` is not understood; write `race:PATTERN`",
        ),
    ] {
        workdir.write("bad.toml", text);
        let ran = workdir.run_kernel(RACY, &["--suppressions", "bad.toml", "--save", "a.crr"]);
        ran.ends(65, &[said]);
        assert!(!workdir.path("a.crr").exists());
    }
    workdir
        .run_kernel(RACY, &["--suppressions", "none.toml"])
        .ends(65, &["none.toml: cannot read suppressions"]);
}

/// Another statement that races besides.
const MORE: &str = "ld.global.u32 %old, [%word]; add.u32 %old, %old, %step; st.global.u32 [%word], %old;\n\
     st.volatile.global.u32 [%word], %step;";

#[test]
fn races_of_a_baseline_do_not_fail_and_new_ones_do() {
    let workdir = Workdir::new();
    workdir.run_kernel(RACY, &["--save", "a.crr"]).ends(66, &[]);
    let made = workdir.tool(&["baseline", "create", "a.crr"]);
    made.ends(0, &[]);
    assert_eq!(made.stdout, "cudarun-baseline.json: 2 pairs of accesses\n");
    let known = ["--baseline", "cudarun-baseline.json", "--save", "b.crr"];
    let shown = workdir.run_kernel(RACY, &known);
    shown.ends(
        0,
        &[
            "CR003",
            "= baseline: known, does not count",
            "SUMMARY: cudarun-check: 0 races, 1 in baseline",
        ],
    );
    let json = workdir.json("b.crr");
    assert_eq!(json["races"][0]["baseline"], "known");
    assert_eq!(json["summary"]["baseline"], 1);
    assert_eq!(json["summary"]["outcome"], "clean");
    let new_only = [&known[..], &["--new-only"]].concat();
    workdir
        .run_kernel(RACY, &new_only)
        .ends(0, &["1 in baseline"])
        .lacks(&["CR003"]);
    let more = workdir.run_kernel(MORE, &new_only);
    more.ends(66, &["= baseline: new", "1 in baseline"])
        .lacks(&["known, does not count"]);
    let races = workdir.json("b.crr")["races"].as_array().unwrap().clone();
    let of = |standing: &str| {
        races
            .iter()
            .filter(|race| race["baseline"] == standing)
            .count()
    };
    assert_eq!((of("new") > 0, of("known")), (true, 1));
    // The new ones are counted first and shown first.
    assert_eq!(races[0]["baseline"], "new");
    workdir
        .tool(&["report", "b.crr", "--new-only"])
        .ends(66, &[]);
    workdir
        .run_kernel(RACY, &["--new-only"])
        .ends(64, &["--new-only needs --baseline FILE"]);
}

#[test]
fn baselines_are_made_kept_and_printed() {
    let workdir = Workdir::new();
    workdir
        .run_kernel(RACY, &["--save", "one.crr"])
        .ends(66, &[]);
    workdir
        .run_kernel(MORE, &["--save", "more.crr"])
        .ends(66, &[]);
    let file = ["--baseline", "b.json"];
    let tool = |words: &[&str]| workdir.tool(&[words, &file].concat());
    tool(&["baseline", "create", "one.crr"]).ends(0, &[]);
    tool(&["baseline", "create", "one.crr"]).ends(
        64,
        &["b.json is there already; add to it by `baseline update`"],
    );
    let updated = tool(&["baseline", "update", "more.crr"]);
    updated.ends(0, &[]);
    assert!(
        updated.stdout.contains(" pairs of accesses, ") && updated.stdout.contains(" added"),
        "{}",
        updated.stdout
    );
    let shown = tool(&["baseline", "show"]);
    shown.ends(0, &[]);
    assert!(shown.stdout.lines().count() > 1, "{}", shown.stdout);
    assert!(
        shown.stdout.contains("error[CR003] CR-"),
        "{}",
        shown.stdout
    );
    assert!(
        shown.stdout.contains("write at count.ptx:"),
        "{}",
        shown.stdout
    );
    workdir
        .run_kernel(MORE, &["--baseline", "b.json"])
        .ends(0, &[" in baseline"]);
    let pruned = tool(&["baseline", "prune", "one.crr"]);
    pruned.ends(0, &[]);
    assert!(pruned.stdout.contains("removed CR-"), "{}", pruned.stdout);
    assert!(
        pruned.stdout.contains("b.json: 2 pairs of accesses, "),
        "{}",
        pruned.stdout
    );
    workdir
        .run_kernel(MORE, &["--baseline", "b.json"])
        .ends(66, &["1 in baseline"]);
    workdir.write("bad.json", "{}");
    for (file, words) in [
        ("bad.json", "no baseline that this version reads"),
        (
            "one.crr",
            "this is a saved report; `cudarun-check baseline create",
        ),
        ("none.json", "`cudarun-check baseline create RUN` makes one"),
    ] {
        workdir
            .run_kernel(RACY, &["--baseline", file])
            .ends(65, &[file, words]);
        workdir
            .tool(&["baseline", "update", "one.crr", "-b", file])
            .ends(65, &[file]);
    }
}

#[test]
fn a_difference_of_reports_names_new_races_and_those_that_are_gone() {
    let workdir = Workdir::new();
    workdir
        .run_kernel(RACY, &["--save", "one.crr"])
        .ends(66, &[]);
    workdir
        .run_kernel(MORE, &["--save", "more.crr"])
        .ends(66, &[]);
    let atomic = "red.global.add.u32 [%word], %step;";
    workdir
        .run_kernel(atomic, &["--save", "none.crr"])
        .ends(0, &[]);
    workdir
        .run_kernel(RACY, &["--save", "unseen.crr", "--kernel-name", "other"])
        .ends(75, &[]);
    for (old, new, code, has, lacks) in [
        (
            "one.crr",
            "one.crr",
            0,
            vec!["same error[CR003] CR-"],
            vec!["new  ", "gone "],
        ),
        (
            "one.crr",
            "more.crr",
            66,
            vec!["new  ", "same "],
            vec!["gone "],
        ),
        (
            "more.crr",
            "one.crr",
            0,
            vec!["gone ", "same "],
            vec!["new  "],
        ),
        (
            "one.crr",
            "none.crr",
            0,
            vec!["gone error[CR003]", "SUMMARY: 0 new, "],
            vec!["new  "],
        ),
        (
            "none.crr",
            "one.crr",
            66,
            vec!["new  error[CR003]", " 0 gone, 0 same"],
            vec!["gone ."],
        ),
    ] {
        let ran = workdir.tool(&["diff", old, new]);
        ran.ends(code, &[]);
        for word in has {
            assert!(
                ran.stdout.contains(word),
                "{old} {new}: {word}\n{}",
                ran.stdout
            );
        }
        for word in lacks {
            assert!(
                !ran.stdout.contains(word),
                "{old} {new}: {word}\n{}",
                ran.stdout
            );
        }
    }
    // The unit is that of the report, which lists several pairs of accesses under one race.
    let one = workdir.tool(&["report", "one.crr"]);
    assert!(one.stdout.contains("check: 1 race ("), "{}", one.stdout);
    let ran = workdir.tool(&["diff", "none.crr", "one.crr"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        matches!(lines[..], [new, also, "SUMMARY: 1 new, 0 gone, 0 same"]
            if new.starts_with("new  error") && also.starts_with("also error")),
        "{}",
        ran.stdout
    );
    workdir
        .tool(&["baseline", "create", "one.crr", "-b", "b.json"])
        .ends(0, &[]);
    workdir
        .run_kernel(RACY, &["--baseline", "b.json", "--save", "known.crr"])
        .ends(0, &[]);
    let ran = workdir.tool(&["diff", "known.crr", "known.crr"]);
    ran.ends(0, &[]);
    let left_out = "0 same; left out as suppressed or in a baseline: ";
    assert!(ran.stdout.contains(left_out), "{}", ran.stdout);
    let ran = workdir.tool(&["diff", "one.crr", "unseen.crr"]);
    ran.ends(
        0,
        &["warning: unseen.crr is incomplete and may lack races: nothing was checked"],
    );
    workdir
        .tool(&["diff", "one.crr", "no.crr"])
        .ends(65, &["no.crr"]);
}
