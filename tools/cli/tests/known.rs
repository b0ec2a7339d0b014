//! Races that are known: saved reports, suppressions and baselines.

mod place;

use place::{Place, RACY};

#[test]
fn saved_reports_are_shown_again_and_merged() {
    let place = Place::new();
    place
        .run_kernel(RACY, &["--save", "a.crr"])
        .ends(66, &["SUMMARY"]);
    place
        .run_kernel(RACY, &["--save", "b%%.crr", "--seed", "1", "-q"])
        .ends(66, &["SUMMARY"]);
    let one = place.tool(&["report", "a.crr"]);
    one.ends(66, &[]);
    assert!(one.stderr.is_empty(), "{}", one.stderr);
    assert!(one.stdout.contains("error[CR003]"), "{}", one.stdout);
    assert!(one.stdout.contains(", 1 launch checked"), "{}", one.stdout);
    let both = place.tool(&["report", "a.crr", "b%.crr", "--format", "json"]);
    both.ends(66, &[]);
    let json: serde_json::Value = serde_json::from_str(&both.stdout).unwrap();
    assert_eq!(json["coverage"]["launches"]["checked"], 2);
    assert_eq!(json["races"].as_array().unwrap().len(), 1);
    assert_eq!(json["races"][0]["launches"], serde_json::json!([1, 1]));
    assert_eq!(json["tool"]["schedules"], 2);
    // What was merged is a report again; any JSON report is.
    place
        .tool(&[
            "report", "a.crr", "b%.crr", "--save", "c.crr", "-o", "c.txt",
        ])
        .ends(66, &[]);
    let text = place.read("c.txt");
    assert!(text.contains("under 2 schedules"), "{text}");
    let again = place.tool(&["report", "c.crr", "--error-exitcode", "0"]);
    again.ends(0, &[]);
    assert_eq!(again.stdout, text);
}

#[test]
fn a_report_exits_as_its_run_did() {
    let place = Place::new();
    let atomic = "red.global.add.u32 [%word], %step;";
    place
        .run_kernel(atomic, &["--save", "clean.crr"])
        .ends(0, &[]);
    place.tool(&["report", "clean.crr"]).ends(0, &[]);
    place
        .run_kernel(atomic, &["--save", "none.crr", "--kernel-name", "other"])
        .ends(75, &[]);
    place
        .tool(&["report", "clean.crr", "none.crr"])
        .ends(75, &[]);
    place
        .run_kernel(RACY, &["--save", "racy.crr"])
        .ends(66, &[]);
    place
        .tool(&[
            "report",
            "none.crr",
            "racy.crr",
            "clean.crr",
            "--error-exitcode",
            "9",
        ])
        .ends(9, &[]);
}

#[test]
fn files_that_are_no_reports_are_refused() {
    let place = Place::new();
    place.run_kernel(RACY, &["--save", "a.crr"]);
    let newer = place
        .read("a.crr")
        .replace("\"schema_version\": \"1.", "\"schema_version\": \"2.");
    place.write("newer.crr", &newer);
    place.write("text.crr", "hello");
    for (file, words) in [
        ("newer.crr", "a report of schema version \"2."),
        ("text.crr", "no report that this version reads"),
        ("none.crr", "none.crr: cannot read"),
    ] {
        let ran = place.tool(&["report", "a.crr", file]);
        ran.ends(65, &[file, words]);
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    }
    place.tool(&["report"]).ends(64, &["<RUN>"]);
    place
        .run_kernel(RACY, &["--save", "no/such/a.crr"])
        .ends(70, &["no/such/a.crr"]);
}
