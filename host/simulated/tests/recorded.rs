//! Recorded launches: what is taken of a device, written, read and run again is the same launch.

use std::io::Cursor;

use crate::common::{Rig, launch, load};
use events::{AccessKind, Executing, Observer, Space};
use report::log::{self, Event, Race, Semantics};
use report::replay::{Did, FenceOrder, Op, Role};
use runtime::Options;
use runtime::between::Wanted;
use runtime::options::Verify;
use simt::Launch;
use simulated::recorded::{Recorded, Replayed};

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// Each thread adds its number to a variable, by way of a barrier and of memory of its own that it gets from `malloc`.
const ADDS: &str = "
.global .align 4 .u32 total = 40;
.extern .func (.param .b64 result) malloc (.param .b64 size);
.visible .entry k(.param .u64 p) {
    .reg .u32 %old, %me; .reg .u64 %data, %own;
    ld.param.u64 %data, [p];
    mov.u32 %me, %tid.x;
    { .param .b64 size; .param .b64 result; st.param.b64 [size], 16;
      call.uni (result), malloc, (size); ld.param.b64 %own, [result]; }
    st.u32 [%own], %me;
    ld.global.u32 %old, [total];
    bar.sync 0;
    ld.u32 %me, [%own];
    add.u32 %old, %old, %me;
    st.global.u32 [total], %old;
    st.global.u32 [%data], %old;
    ret;
}";

fn text(body: &str) -> String {
    format!("{HEAD}{body}")
}

/// Records the next launch, makes it, and gives what was recorded as it is read from a file.
fn record(rig: &mut Rig, launch: &Launch) -> Recorded {
    let taken = rig.record(launch).unwrap();
    rig.launch(launch);
    let mut file = Cursor::new(Vec::new());
    taken.write(&mut file).unwrap();
    let read = Recorded::read(file).unwrap();
    assert_eq!(read, taken);
    read
}

fn races(events: &[Event]) -> Vec<Race> {
    let races = events.iter().filter_map(|event| match event {
        Event::Race(race) => Some(Race::clone(race)),
        _ => None,
    });
    races.collect()
}

/// Replays a launch: it has the same races as when it ran.
fn replay(recorded: &Recorded, rig: &Rig) -> Replayed {
    let replayed = recorded.replay(None).unwrap();
    let now = races(&replayed.events);
    assert!(!now.is_empty());
    assert_eq!(now, rig.races());
    replayed
}

#[test]
fn a_launch_with_variables_and_a_heap_does_the_same_again() {
    for seed in [None, Some(1), Some(77)] {
        let options = Options {
            seed,
            ..Options::default()
        };
        let mut rig = load(&text(ADDS), options);
        // What was allocated and freed before decides where malloc finds room.
        let before: Vec<u64> = (0..4).map(|n| rig.memory(&[n; 300])).collect();
        rig.free(before[1]);
        let data = rig.memory(&[5]);
        rig.free(before[2]);
        let recorded = record(&mut rig, &launch(2, 64, &[data]));
        let (device, result) = recorded.run(&mut Counts::default()).unwrap();
        let stats = result.unwrap();
        assert_eq!(stats.warp_instructions, rig.launches()[0].warp_instructions);
        let total = rig.variable("total");
        let mut word = [0; 4];
        device.memory().read(total, &mut word).unwrap();
        assert_eq!(u32::from_le_bytes(word), rig.words(total, 1)[0], "{seed:?}");
        let now: Vec<simt::Region> = device.memory().regions().collect();
        let then: Vec<simt::Region> = rig.sim.device().memory().regions().collect();
        assert_eq!(now, then);
        let replayed = replay(&recorded, &rig);
        assert_eq!(replayed.stats.warp_instructions, stats.warp_instructions);
    }
}

/// Counts accesses to global memory.
#[derive(Default)]
struct Counts(u64);

impl Observer for Counts {
    fn access(&mut self, _: Executing, _: AccessKind, space: Space, _: &[u64; 32], _: u32) {
        self.0 += u64::from(space == Space::Global);
    }
}

#[test]
fn an_observer_sees_what_the_launch_does() {
    let mut rig = load(&text(ADDS), Options::default());
    let data = rig.memory(&[5]);
    let recorded = record(&mut rig, &launch(1, 32, &[data]));
    let mut counts = Counts::default();
    recorded.run(&mut counts).unwrap().1.unwrap();
    // One store to the thread's own memory and one load, and those of the variable and of the data.
    assert_eq!(counts.0, 5);
}

#[test]
fn memory_of_the_host_keeps_its_address_and_contents() {
    let body = "
.visible .entry k(.param .u64 p) {
    .reg .u32 %v, %me; .reg .u64 %data;
    ld.param.u64 %data, [p];
    ld.global.u32 %v, [%data];
    mov.u32 %me, %ctaid.x; add.u32 %v, %v, %me;
    st.global.u32 [%data], %v;
    ret;
}";
    let mut rig = load(&text(body), Options::default());
    let memory = rig.sim.device_mut().memory_mut();
    let shared = memory.alloc_host(10_000).unwrap();
    memory.write(shared + 8000, &41u32.to_le_bytes()).unwrap();
    let recorded = record(&mut rig, &launch(2, 1, &[shared + 8000]));
    let replayed = replay(&recorded, &rig);
    let race = &races(&replayed.events)[0];
    assert_eq!(race.address, shared + 8000);
    assert_eq!(race.previous_value.old.or(race.value.old), Some(41));
}

#[test]
fn the_steps_between_two_accesses_are_in_the_order_of_the_run() {
    // The second CTA waits for the flag of the first, but acquires nothing.
    let body = "
.visible .entry k(.param .u64 p) {
    .reg .u32 %v, %me; .reg .u64 %data; .reg .pred %q;
    ld.param.u64 %data, [p];
    mov.u32 %me, %ctaid.x; setp.ne.u32 %q, %me, 0;
    @%q bra second;
    st.global.u32 [%data], 1;
    fence.acq_rel.gpu;
    st.relaxed.gpu.global.u32 [%data+4], 1;
    ret;
second:
    ld.relaxed.gpu.global.u32 %v, [%data+4];
    setp.eq.u32 %q, %v, 0;
    @%q bra second;
    ld.global.u32 %v, [%data];
    ret;
}";
    let mut rig = load(&text(body), Options::default());
    let data = rig.memory(&[0, 0]);
    let recorded = record(&mut rig, &launch(2, 1, &[data]));
    let lines = |word: &str| {
        let all = recorded.ptx.lines().zip(1..);
        let mut found = all.filter_map(|(line, n)| line.contains(word).then_some(n));
        found.next().unwrap()
    };
    let wanted = Wanted {
        threads: [(0, 0), (1, 0)],
        lines: ["st.global.u32 [%data], 1", "ld.global.u32 %v, [%data]"].map(lines),
        space: log::Space::Global,
        address: data,
    };
    let steps = recorded
        .replay(Some(wanted.clone()))
        .unwrap()
        .steps
        .unwrap();
    let did: Vec<(Role, &Did)> = steps.steps.iter().map(|s| (s.role, &s.did)).collect();
    let [
        (Role::First, Did::Access { racing: true, .. }),
        middle @ ..,
        (Role::Second, Did::Access { racing: true, .. }),
    ] = &did[..]
    else {
        panic!("{did:#?}");
    };
    let fence = |(role, did): &(Role, &Did)| {
        *role == Role::First
            && matches!(did, Did::Fence { order, .. } if *order == FenceOrder::AcqRel)
    };
    let flag = |(role, did): &(Role, &Did)| {
        *role == Role::Second
            && matches!(did, Did::Access { op, order, .. } if (*op, *order) == (Op::Ld, Semantics::Relaxed))
    };
    let at = middle.iter().position(fence).unwrap();
    assert!(middle[at..].iter().any(flag), "{middle:?}");
    assert!(steps.steps.is_sorted_by_key(|step| step.number));
    let traced: Vec<Role> = steps.accesses.iter().map(|step| step.role).collect();
    assert_eq!(traced, [Role::First, Role::Second]);
    // Accesses that do not race have no steps in between that end with a race.
    let other = Wanted {
        lines: [wanted.lines[1], wanted.lines[0]],
        ..wanted
    };
    let steps = recorded.replay(Some(other)).unwrap().steps.unwrap();
    assert!(steps.steps.is_empty(), "{:?}", steps.steps);
}

#[test]
fn what_verify_takes_for_a_race_is_one_in_the_replay() {
    let kernel = "
.visible .entry k(.param .u64 p) {
    .reg .u64 %data; .reg .u32 %old;
    ld.param.u64 %data, [p];
    ld.volatile.global.u32 %old, [%data];
    st.volatile.global.u32 [%data], %old;
    ret;
}";
    let options = Options {
        verify: Some(Verify::default()),
        ..Options::default()
    };
    let mut rig = load(&text(kernel), options);
    let data = rig.memory(&[5]);
    let recorded = record(&mut rig, &launch(2, 1, &[data]));
    replay(&recorded, &rig);
}

#[test]
fn what_is_not_what_was_recorded_is_said() {
    let mut rig = load(&text(ADDS), Options::default());
    let data = rig.memory(&[5]);
    let mut recorded = record(&mut rig, &launch(2, 64, &[data]));
    assert_eq!(recorded.ended, None);
    recorded.ended = Some(simulated::recorded::Ended {
        warp_instructions: 1,
        ..Default::default()
    });
    let differences = recorded.replay(None).unwrap().differences;
    assert!(
        differences.iter().any(|what| what.contains("instructions")),
        "{differences:?}"
    );
}

#[test]
fn damaged_files_are_refused_with_a_reason() {
    let mut rig = load(&text(ADDS), Options::default());
    let data = rig.memory(&[5; 5000]);
    let recorded = record(&mut rig, &launch(2, 64, &[data]));
    let mut file = Cursor::new(Vec::new());
    recorded.write(&mut file).unwrap();
    let bytes = file.into_inner();
    let refused = |bytes: &[u8]| match Recorded::read(Cursor::new(bytes)) {
        Err(damaged) => !damaged.to_string().is_empty(),
        Ok(read) => read == recorded,
    };
    assert!(Recorded::read(Cursor::new(&bytes[..bytes.len() / 2])).is_err());
    assert!(Recorded::read(Cursor::new(b"{}")).is_err());
    // Each byte in turn; some say nothing that counts, such as a time.
    for at in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        assert!(refused(&changed), "byte {at} of {}", bytes.len());
    }
    // Parts that do not fit together.
    let mut lacks = recorded.clone();
    lacks.placement.variables.clear();
    assert!(lacks.replay(None).is_err());
    let mut lacks = recorded.clone();
    lacks.device.regions.clear();
    assert!(lacks.replay(None).is_err());
    let mut overlaps = recorded.clone();
    overlaps.device.regions[0].bytes += 1 << 20;
    assert!(overlaps.replay(None).is_err());
}

#[test]
fn memory_that_holds_more_than_the_limit_is_not_taken() {
    let mut rig = load(&text(ADDS), Options::default());
    let data = rig.memory(&[7; 4096]);
    let launch = launch(2, 64, &[data]);
    let taken = |rig: &Rig, limit| rig.record_within(&launch, limit);
    assert!(taken(&rig, 1 << 20).is_ok());
    let error = taken(&rig, 1 << 13).unwrap_err();
    assert!(error.to_string().contains("8192"), "{error}");
}
