//! Groups of a warp's lanes, of which one takes a lock while the others wait for it at an operation
//! that names the group: every group has to go on that can, whatever the others wait for.

use crate::common::{Rig, kernel, load};
use simt::{Launch, LaunchError, Limits, Schedule};

/// Operations at which the lanes of the mask `%m` wait for each other.
const MEETINGS: [&str; 6] = [
    "bar.warp.sync %m;",
    "shfl.sync.idx.b32 %r9, %t, 0, 0x1f, %m;",
    "vote.sync.ballot.b32 %r9, %p9, %m;",
    "match.any.sync.b32 %r9, %t, %m;",
    "match.all.sync.b64 %r9|%p8, %mine, %m;",
    "redux.sync.add.u32 %r9, %t, %m;",
];

/// Puts the lanes of the thread's group, one of `width` neighbours, into `%m`; `%p1` holds for those
/// that do not lead their group.
fn group(width: u32) -> String {
    let (ones, last) = (((1u64 << width) - 1) as u32, width - 1);
    format!(
        ".reg .b32 %m, %k; mov.u32 %k, %laneid;
         and.b32 %r0, %k, {last}; sub.u32 %r1, %k, %r0; mov.u32 %m, {ones}; shl.b32 %m, %m, %r1;
         setp.ne.u32 %p1, %r0, 0; setp.eq.u32 %p9, %r0, 0;\n"
    )
}

/// Waits for its turn at the lock whose tickets are at `out` and whose turns are at `out + 4`.
const LOCK: &str = "
    atom.global.add.u32 %r2, [%out], 1;
    turn: ld.volatile.global.u32 %r3, [%out+4]; setp.ne.u32 %p2, %r2, %r3; @%p2 bra turn;";

/// Counts at `out + 8`, under the lock, and ends the turn.
const UNLOCK: &str = "
    ld.global.u32 %r4, [%out+8]; add.u32 %r4, %r4, 1; st.global.u32 [%out+8], %r4;
    membar.gl; red.global.add.u32 [%out+4], 1;";

/// Runs under round robin and seeds; the lock was taken `turns` times.
fn agree(rig: &mut Rig, seeds: u64, [grid, block]: [u32; 2], turns: u32) {
    let schedules = std::iter::once(Schedule::RoundRobin).chain((0..seeds).map(Schedule::Seeded));
    for schedule in schedules {
        let ran = rig.run_with(2, |params| limited(grid, block, schedule, params));
        let (out, _) = ran.unwrap_or_else(|error| panic!("{schedule:?}: {error}"));
        let [asked, done, counted] = [out[0] as u32, (out[0] >> 32) as u32, out[1] as u32];
        assert_eq!([asked, done, counted], [turns; 3], "{schedule:?}");
    }
}

fn limited(grid: u32, block: u32, schedule: Schedule, params: Vec<u8>) -> Launch {
    Launch {
        schedule,
        limits: Limits {
            max_warp_instructions: Some(3_000_000),
            timeout: None,
            ..Limits::default()
        },
        ..Launch::new([grid, 1, 1], [block, 1, 1], params)
    }
}

#[test]
fn a_leader_keeps_its_lock_until_its_group_is_there() {
    for meeting in MEETINGS {
        for width in [2, 4, 16] {
            let mut rig = load(&kernel(&format!(
                "{} @%p1 bra meet; {LOCK} meet: {meeting} @%p1 bra done; {UNLOCK} done: ret;",
                group(width)
            )));
            agree(&mut rig, 12, [2, 64], 128 / width);
        }
    }
}

#[test]
fn a_leader_gives_its_lock_back_before_it_comes() {
    for meeting in MEETINGS {
        let mut rig = load(&kernel(&format!(
            "{} mov.u32 %r8, 3; again: @%p1 bra meet; {LOCK} {UNLOCK} meet: {meeting}
             sub.u32 %r8, %r8, 1; setp.ne.u32 %p3, %r8, 0; @%p3 bra again; ret;",
            group(8)
        )));
        agree(&mut rig, 12, [1, 96], 36);
    }
}

#[test]
fn groups_meet_at_operations_of_their_own() {
    // Each pair of groups comes by another instruction, of the same kind or of another one.
    for [a, b] in [[0, 0], [1, 1], [0, 3], [5, 2]] {
        let (a, b) = (MEETINGS[a], MEETINGS[b]);
        let mut rig = load(&kernel(&format!(
            "{} shr.u32 %r5, %k, 2; and.b32 %r5, %r5, 1; setp.ne.u32 %p4, %r5, 0;
             @%p1 bra meet; {LOCK} meet: @%p4 bra other;
             {a} bra met; other: {b} met: @%p1 bra done; {UNLOCK} done: ret;",
            group(4)
        )));
        agree(&mut rig, 12, [1, 64], 16);
    }
}

#[test]
fn lanes_of_a_group_exit_meanwhile() {
    // The last lane of each group never comes.
    for meeting in MEETINGS {
        let mut rig = load(&kernel(&format!(
            "{} setp.eq.u32 %p5, %r0, 3; @%p5 bra late; @%p1 bra meet; {LOCK}
             meet: {meeting} @%p1 bra done; {UNLOCK} done: ret;
             late: mov.u32 %r7, 200; more: sub.u32 %r7, %r7, 1; setp.ne.u32 %p6, %r7, 0;
             @%p6 bra more; ret;",
            group(4)
        )));
        agree(&mut rig, 12, [1, 64], 16);
    }
}

#[test]
fn a_function_is_entered_by_groups() {
    for meeting in MEETINGS {
        let text = kernel(&format!(
            "{} @%p1 bra meet; {LOCK}
             meet: {{ .param .b32 a; st.param.b32 [a], %m; call meet_there, (a); }}
             @%p1 bra done; {UNLOCK} done: ret;",
            group(4)
        ));
        let function = format!(
            ".func meet_there(.param .b32 a) {{
             .reg .pred %p<10>; .reg .b32 %m, %t, %r<10>; .reg .b64 %mine;
             ld.param.b32 %m, [a]; mov.u32 %t, %tid.x; cvt.u64.u32 %mine, %t;
             setp.eq.u32 %p9, %t, 0; {meeting} ret; }}\n"
        );
        let mut rig = load(&(function + &text));
        agree(&mut rig, 12, [1, 64], 16);
    }
}

#[test]
fn those_who_name_others_are_not_met() {
    // Lanes 0 and 1 come one by one and meet first, while 2 and 3 wait for all four already.
    let mut rig = load(&kernel(
        "add.u32 %r5, %t, 100; setp.gt.u32 %p0, %t, 1; @%p0 bra all;
         mad.lo.u32 %r7, %t, 300, 200; more: sub.u32 %r7, %r7, 1; setp.ne.u32 %p1, %r7, 0;
         @%p1 bra more;
         setp.eq.u32 %p2, %t, 1; @%p2 bra second;
         shfl.sync.idx.b32 %r6, %t, 0, 0x1f, 3; bra all;
         second: shfl.sync.idx.b32 %r6, %t, 0, 0x1f, 3;
         all: shfl.sync.idx.b32 %r8, %r5, 0, 0x1f, 15;
         cvt.u64.u32 %d0, %r8; st.global.u64 [%mine], %d0; ret;",
    ));
    for schedule in std::iter::once(Schedule::RoundRobin).chain((0..12).map(Schedule::Seeded)) {
        let (out, _) = rig
            .run_with(4, |params| limited(1, 4, schedule, params))
            .unwrap();
        assert_eq!(out, [100; 4], "{schedule:?}");
    }
}

#[test]
fn threads_that_wait_for_each_other_are_reported() {
    // The first lane waits for the second one by name, and that for a barrier of all the CTA.
    let mut rig = load(&kernel(
        "setp.ne.u32 %p0, %t, 0; @%p0 bra other; bar.warp.sync 3; bar.sync 0; ret;
         other: bar.sync 0; bar.warp.sync 3; ret;",
    ));
    for schedule in [Schedule::RoundRobin, Schedule::Seeded(3)] {
        let ran = rig.run_with(2, |params| limited(1, 2, schedule, params));
        let Err(LaunchError::Deadlock { waiting, .. }) = ran else {
            panic!("{ran:?}");
        };
        let mut lanes: Vec<_> = waiting.iter().map(|group| group.lanes).collect();
        lanes.sort_unstable();
        assert_eq!(lanes, [1, 2], "{waiting:?}");
    }
}

#[test]
fn who_spins_for_a_lane_that_waits_for_it_runs_out_of_time() {
    let mut rig = load(&kernel(
        "setp.ne.u32 %p0, %t, 0; @%p0 bra other;
         spin: ld.volatile.global.u32 %r0, [%out]; setp.eq.u32 %p1, %r0, 0; @%p1 bra spin;
         bar.warp.sync 3; ret;
         other: bar.warp.sync 3; st.volatile.global.u32 [%out], 1; ret;",
    ));
    for schedule in [Schedule::RoundRobin, Schedule::Seeded(3)] {
        let ran = rig.run_with(2, |params| limited(1, 2, schedule, params));
        assert!(matches!(ran, Err(LaunchError::Timeout { .. })), "{ran:?}");
    }
}
