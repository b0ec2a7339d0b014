//! `--explore`: launches that run again under other schedules.

use crate::kernel::{Ran, run, verify};

/// Block 0 hands a word over twice: at once, by a flag of 1 without the fence that it needs, and by one of 2 behind a
/// fence. Round robin lets it come that far before block 1 looks.
const TWO_FLAGS: &str = "\
    setp.ne.u32 %p, %n, 0; @%p bra reader;\n\
    st.global.u32 [%data], 7;\n\
    st.relaxed.gpu.global.u32 [%lock], 1;\n\
    mov.u32 %v, 8;\n\
    work: sub.u32 %v, %v, 1; setp.ne.u32 %p, %v, 0; @%p bra work;\n\
    fence.acq_rel.gpu;\n\
    st.relaxed.gpu.global.u32 [%lock], 2;\n\
    ret;\n\
    reader: ld.relaxed.gpu.global.u32 %v, [%lock]; setp.eq.u32 %p, %v, 0; @%p bra reader;\n\
    fence.acq_rel.gpu;\n\
    ld.global.u32 %v, [%data];";

fn explored(ran: &Ran) -> u64 {
    let kernel = &ran.json["coverage"]["kernels"][0];
    kernel["explored"].as_u64().unwrap()
}

#[test]
fn a_race_that_round_robin_hides_is_found() {
    let own = run(TWO_FLAGS, &["--explore", "0"]);
    own.ends(0, &["0 races", "1 launch checked, 5 accesses"]);
    assert_eq!(explored(&own), 0);
    let ran = run(TWO_FLAGS, &[]);
    ran.ends(
        66,
        &[
            "error[CR006]",
            "seen: 1 time in 1 launch, when it ran again under another schedule (--seed ",
            "1 launch checked, 1 also run under other schedules",
        ],
    );
    assert_eq!(explored(&ran), 1);
    let race = &ran.json["races"][0];
    assert_eq!(race["seeds"].as_array().unwrap().len(), 0);
    // The seed that it names shows the race in the program's own run.
    let seed = race["explored"][0].as_u64().unwrap().to_string();
    let again = run(TWO_FLAGS, &["--seed", &seed, "--explore", "0"]);
    again.ends(66, &["seen: 1 time in 1 launch\n"]);
    assert_eq!(again.json["races"][0]["seeds"][0].to_string(), seed);
    assert_eq!(again.json["races"][0]["id"], race["id"]);
}

/// Two locks, which block 0 takes in one order, and block 1 in the other one after so many turns of a loop.
fn two_locks(late: u32) -> String {
    let take = |name: &str, lock: &str| {
        format!(
            "{name}: atom.acquire.gpu.global.cas.b32 %v, [%lock+{lock}], 0, 1;\n\
             setp.ne.u32 %p, %v, 0; @%p bra {name};\n"
        )
    };
    let release = "st.release.gpu.global.u32 [%lock], 0; st.release.gpu.global.u32 [%lock+4], 0;\n";
    let first = [take("a", "0"), take("b", "4")].concat();
    let second = [take("c", "4"), take("d", "0")].concat();
    format!(
        "setp.ne.u32 %p, %n, 0; @%p bra other;\n\
         {first}{release}ret;\n\
         other: mov.u32 %n, {late};\n\
         wait: sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra wait;\n\
         {second}{release}"
    )
}

#[test]
fn a_run_that_never_ends_makes_the_report_incomplete() {
    let locks = two_locks(8);
    run(&locks, &["--explore", "0"]).ends(0, &["0 races"]);
    let ran = run(&locks, &["--explore", "4"]);
    let never = "never ended when it ran again under another schedule: run with --seed ";
    ran.ends(75, &["0 races", "incomplete: ", "launch #1 (k) ", never]);
    let (_, after) = ran.text.split_once(never).unwrap();
    let seed = after.split(' ').next().unwrap();
    run(&locks, &["--seed", seed]).ends(66, &["1 deadlock"]);
}

#[test]
fn verify_runs_launches_again_too() {
    verify(TWO_FLAGS, &[]).ends(66, &["RACE: k, 1 launch", "error[CR006]"]);
    verify(TWO_FLAGS, &["--explore", "0"]).ends(75, &["UNKNOWN"]);
}
