//! `verify`: what one run proves of all runs, and what is in the way.

use crate::workdir::{Ran, Workdir};

/// Verifies a kernel of a file on one block.
fn verify(kernel: &str, block: &str, arguments: &[&str]) -> (Ran, serde_json::Value) {
    let (workdir, ran) = run(kernel, block, "json:report", arguments);
    (ran, workdir.json("report")["verified"][0].clone())
}

/// The same with a format and a file besides text.
fn run(kernel: &str, block: &str, format: &str, arguments: &[&str]) -> (Workdir, Ran) {
    let workdir = Workdir::new();
    workdir.write("verify.ptx", include_str!("c/verify.ptx"));
    let mut words = vec!["verify", "--format", "text", "--format", format];
    words.extend([
        "verify.ptx",
        "--kernel",
        kernel,
        "--grid",
        "1",
        "--block",
        block,
    ]);
    words.extend(arguments);
    let ran = workdir.tool(&words);
    (workdir, ran)
}

#[test]
fn warps_that_hand_over_by_named_barriers_are_proved() {
    let (ran, verified) = verify("ring", "64", &["--arg", "u32[32]", "--arg", "u32:100"]);
    ran.ends(0, &["PROVED (all schedules, all data): ring, 1 launch\n"]);
    assert_eq!(verified["answer"], "all-data");
    assert_eq!(verified["launches"]["all_data"], 1);
}

#[test]
fn a_barrier_that_another_order_completes_too_early_is_an_error() {
    // Of three warps two complete the barrier, and the last may be left alone.
    let (ran, verified) = verify("early", "96", &["--arg", "u32[1]"]);
    ran.ends(66, &["error[CR007]"]);
    assert_eq!(verified["answer"], "race");
}

#[test]
fn what_an_index_decides_is_proved_for_its_data_only() {
    let (ran, verified) = verify(
        "scatter",
        "4",
        &["--arg", "u32[4]", "--arg", "u32[4]:2,0,3,1"],
    );
    ran.ends(
        0,
        &[
            "PROVED (all schedules, this data): scatter, 1 launch\n",
            "where the access goes depends on what memory contains (from PTX line ",
        ],
    );
    assert_eq!(verified["because"][0]["launches"], 1);
    let (ran, verified) = verify(
        "scatter",
        "4",
        &["--arg", "u32[4]", "--arg", "u32[4]:2,0,2,1"],
    );
    ran.ends(66, &["error[CR001]", "RACE: scatter, 1 launch\n"]);
    assert_eq!(verified["answer"], "race");
}

#[test]
fn what_the_order_of_threads_decides_is_not_proved() {
    let tickets = ["--arg", "u32[64]", "--arg", "u32[1]"];
    let (ran, verified) = verify("tickets", "64", &tickets);
    ran.ends(
        75,
        &[
            "UNKNOWN: tickets, 1 launch\n",
            "where the access goes depends on the order in which threads run (from PTX line ",
            "incomplete: 1 launch not proved",
        ],
    );
    assert_eq!(verified["answer"], "unknown");
    let allowed = [&tickets[..], &["--allow-unknown"]].concat();
    verify("tickets", "64", &allowed).0.ends(0, &["UNKNOWN"]);
}

#[test]
fn sarif_has_a_result_for_what_is_in_the_way() {
    // The line that an instruction stands on.
    let line = |instruction: &str| {
        let before = include_str!("c/verify.ptx").split(instruction).next();
        before.unwrap().lines().count()
    };
    let sarif = |kernel: &str, block: &str, arguments: &[&str]| {
        let (workdir, ran) = run(kernel, block, "sarif:report", arguments);
        (ran, workdir.json("report")["runs"][0].clone())
    };
    let tickets = ["--arg", "u32[64]", "--arg", "u32[1]"];
    let allowed = [&tickets[..], &["--allow-unknown"]].concat();
    for (arguments, code, level) in [(&tickets[..], 75, "warning"), (&allowed, 0, "note")] {
        let (ran, sarif) = sarif("tickets", "64", arguments);
        ran.ends(code, &["UNKNOWN"]);
        let results = sarif["results"].as_array().unwrap();
        assert_eq!(results.len(), 1, "{sarif:#}");
        assert_eq!(results[0]["ruleId"], "not-proved");
        assert_eq!(results[0]["level"], level);
        for (locations, instruction) in [
            ("locations", "st.global.u32 [%out], %ticket"),
            ("relatedLocations", "atom.global.add"),
        ] {
            let workdir = &results[0][locations][0]["physicalLocation"];
            assert_eq!(workdir["artifactLocation"]["uri"], "verify.ptx");
            assert_eq!(workdir["region"]["startLine"], line(instruction));
        }
    }
    let (ran, raced) = sarif("neighbour", "32", &["--arg", "u32[32]"]);
    ran.ends(66, &["RACE"]);
    let result = &raced["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&"CR001".into(), &"error".into())
    );
    for (locations, instruction) in [
        ("locations", "st.volatile"),
        ("relatedLocations", "ld.volatile"),
    ] {
        let region = &result[locations][0]["physicalLocation"]["region"];
        assert_eq!(region["startLine"], line(instruction), "{raced:#}");
    }
    let (ran, proved) = sarif("ring", "64", &["--arg", "u32[32]", "--arg", "u32:100"]);
    ran.ends(0, &["PROVED"]);
    assert_eq!(proved["results"], serde_json::json!([]));
    assert_eq!(proved["properties"]["verified"][0]["answer"], "all-data");
}

#[test]
fn a_race_fails_though_all_values_were_the_same() {
    let arguments = ["--arg", "u32[1]", "--arg", "u32[32]"];
    for allow in [&[][..], &["--allow-unknown"]] {
        let (ran, verified) = verify("same", "32", &[&arguments, allow].concat());
        ran.ends(66, &["warning[CR001]", "RACE: same, 1 launch\n"]);
        assert_eq!(verified["answer"], "race");
    }
}

#[test]
fn races_that_are_suppressed_are_said_not_to_count() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("known.toml");
    std::fs::write(&list, "[[suppress]]\nrule = 'CR001'\nreason = 'a test'\n").unwrap();
    let list = list.to_str().unwrap();
    let arguments = [
        "--arg",
        "u32[1]",
        "--arg",
        "u32[32]",
        "--suppressions",
        list,
    ];
    let (ran, verified) = verify("same", "32", &arguments);
    let line = "RACE: same, 1 launch\n  its races do not count: they are known or suppressed\n";
    ran.ends(75, &[line]);
    assert_eq!(verified["answer"], "race");
}

#[test]
fn volatile_data_races_unless_it_is_said_to_be_strong() {
    let (ran, verified) = verify("neighbour", "32", &["--arg", "u32[32]"]);
    ran.ends(66, &["error[CR001]", "RACE: neighbour"]);
    assert_eq!(verified["answer"], "race");
    let strong = ["--arg", "u32[32]", "--volatile", "strong"];
    let (ran, verified) = verify("neighbour", "32", &strong);
    // No data race by the PTX ISA, and no proof either: nothing orders the accesses.
    ran.ends(75, &["UNKNOWN: neighbour"]);
    assert_eq!(verified["answer"], "unknown");
}

#[test]
fn lockstep_orders_what_lanes_do_together() {
    let (ran, verified) = verify(
        "neighbour",
        "32",
        &["--arg", "u32[32]", "--warp-synchronous"],
    );
    ran.ends(
        0,
        &["PROVED (all schedules, all data): neighbour, 1 launch, \
           if lanes of a warp that execute an access together go on together\n"],
    );
    // The last lane reads a word that nobody writes.
    assert_eq!(verified["answer"], "all-data");
    assert_eq!(verified["warp_synchronous"], true);
}

#[test]
fn flags_that_cannot_prove_anything_are_refused() {
    for flags in [
        &["--as-gpu"][..],
        &["--mode", "fast"],
        &["--check", "off"],
        &["--prove", "audit"],
        &["--model", "scoped"],
        &["--space", "shared"],
    ] {
        let workdir = Workdir::new();
        workdir.write("verify.ptx", include_str!("c/verify.ptx"));
        let words = [&["verify"], flags, &["verify.ptx"]].concat();
        let ran = workdir.tool(&words);
        ran.ends(64, &["verify does not go with --"]);
    }
}

/// Two parts of a buffer: one is read, the other written.
const PARTS: &str = ".version 8.0
.target sm_90
.address_size 64
.visible .entry parts(.param .u64 to, .param .u32 n, .param .u32 m) {
    .reg .pred %p; .reg .b32 %i, %b, %s, %n, %m, %v; .reg .b64 %to, %d;
    ld.param.u64 %to, [to]; ld.param.u32 %n, [n]; ld.param.u32 %m, [m];
    mov.u32 %i, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %s, %ntid.x;
    mad.lo.s32 %i, %b, %s, %i;
    setp.ge.s32 %p, %i, %m;
    @%p ret;
    mul.wide.s32 %d, %i, 4; add.s64 %to, %to, %d;
    ld.global.u32 %v, [%to];
    mul.wide.s32 %d, %n, 4; add.s64 %to, %to, %d;
    st.global.u32 [%to], %v;
    ret;
}
";

/// Verifies that kernel under assumptions.
fn assume(numbers: [u32; 2], assumptions: &[&str]) -> (Ran, serde_json::Value) {
    let workdir = Workdir::new();
    workdir.write("parts.ptx", PARTS);
    let mut words = vec!["verify", "--format", "text", "--format", "json:report"];
    for of in assumptions {
        words.extend(["--assume", of]);
    }
    let numbers = numbers.map(|of| format!("u32:{of}"));
    words.extend([
        "parts.ptx",
        "--grid",
        "2",
        "--block",
        "32",
        "--arg",
        "u32[200]",
    ]);
    words.extend(["--arg", &numbers[0], "--arg", &numbers[1]]);
    let ran = workdir.tool(&words);
    let verified = match ran.code {
        64 => serde_json::Value::Null,
        _ => workdir.json("report")["verified"][0].clone(),
    };
    (ran, verified)
}

#[test]
fn all_launches_that_fulfil_an_assumption_are_proved() {
    let (ran, verified) = assume([100, 40], &["n >= m"]);
    ran.ends(
        0,
        &[
            "PROVED for launches with blockDim == (32,1,1), gridDim.y == 1, gridDim.z == 1, n >= m, \
             gridDim.x * blockDim.x < 2147483648: parts, 1 launch\n",
            "  assumption `n >= m` held in 1 launch\n",
        ],
    );
    assert_eq!(verified["answer"], "all-data");
    assert_eq!(verified["families"][0]["launches"], 1);
    assert_eq!(verified["families"][0]["conditions"][3], "n >= m");
    assert_eq!(verified["assumptions"][0]["held"], 1);
}

#[test]
fn an_assumption_that_does_not_suffice_proves_the_launch_alone() {
    let (ran, verified) = assume([100, 40], &["n >= 0"]);
    ran.ends(
        75,
        &[
            "PROVED (all schedules, all data): parts, 1 launch\n",
            "  not proved for all launches that fulfil the assumptions: PTX line ",
            "incomplete: not all launches of parts that fulfil the assumptions are proved",
        ],
    );
    assert_eq!(verified["families"], serde_json::json!([]));
}

#[test]
fn a_launch_that_breaks_an_assumption_is_not_proved_under_it() {
    let (ran, verified) = assume([39, 40], &["n >= m", "m < 50"]);
    ran.ends(
        66,
        &[
            "RACE: parts, 1 launch\n",
            "  assumption `n >= m` is broken in 1 of 1 launch, first by n = 39, m = 40\n",
            "  assumption `m < 50` held in 1 launch\n",
        ],
    );
    assert_eq!(verified["assumptions"][0]["values"], "n = 39, m = 40");
    // Its own numbers still prove it, but the run is not what the user takes it for.
    let (ran, verified) = assume([100, 40], &["n == m"]);
    ran.ends(
        75,
        &[
            "PROVED (all schedules, all data): parts, 1 launch\n",
            "  assumption `n == m` is broken in 1 of 1 launch, first by n = 100, m = 40\n",
        ],
    );
    assert_eq!(verified["families"], serde_json::json!([]));
}

#[test]
fn a_wrong_assumption_is_an_error_with_its_place() {
    for (text, wrong) in [
        ("n = m", "column 3: a comparison is expected"),
        (
            "n == rows",
            "column 6: unknown name `rows`; the kernel has to or arg0, n or arg1, m or arg2, gridDim.x",
        ),
    ] {
        let (ran, _) = assume([100, 40], &[text]);
        assert_eq!(ran.code, 64, "{}", ran.stderr);
        assert!(ran.stderr.contains(wrong), "{}", ran.stderr);
    }
}

/// A tile whose columns are exchanged by row; the branch depends on data, so that one run says nothing of others.
fn swizzled(exchange: &str) -> String {
    format!(
        ".version 8.0
.target sm_90
.address_size 64
.visible .entry tile(.param .u64 from) {{
    .reg .pred %p; .reg .b32 %t, %row, %column, %v; .reg .b64 %from;
    .shared .align 4 .b8 words[256];
    ld.param.u64 %from, [from];
    mov.u32 %t, %tid.x; shr.u32 %row, %t, 3; and.b32 %column, %t, 7;
    ld.global.u32 %v, [%from];
    setp.eq.u32 %p, %v, 7;
    @%p ret;
    {exchange}.b32 %column, %column, %row;
    mad.lo.u32 %row, %row, 8, %column; shl.b32 %row, %row, 2;
    mov.u32 %column, words; add.u32 %row, %row, %column;
    st.shared.u32 [%row], %t;
    ret;
}}
"
    )
}

#[test]
fn a_right_swizzle_is_proved_and_a_wrong_one_has_a_witness() {
    let words = ["--grid", "2", "--block", "64", "--arg", "u32[1]"];
    let workdir = Workdir::new();
    workdir.write("tile.ptx", &swizzled("xor"));
    let ran = workdir.tool(&[&["verify", "--format", "text", "tile.ptx"][..], &words].concat());
    ran.ends(0, &["PROVED (all schedules, all data): tile, 1 launch\n"]);
    workdir.write("tile.ptx", &swizzled("or"));
    let save = [
        "verify", "--record", "--save", "run.crr", "--format", "text", "tile.ptx",
    ];
    let ran = workdir.tool(&[&save[..], &words].concat());
    ran.ends(66, &["RACE: tile, 1 launch\n", "tile.ptx:15"]);
    // Another process sees the race again.
    let again = workdir.tool(&["replay", "run.crr", "--format", "json"]);
    again.ends(66, &[]);
    let again: serde_json::Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!(again["faithful"], true);
    assert_eq!(again["race"]["accesses"][0]["op"], "st");
}
