//! What both sides of a race have read and written, as `precise` mode logs it.

use crate::common::{launch, load};
use report::log::{Race, Value};
use runtime::{Mode, Options, ShadowSize};

/// Two CTAs of one thread run `first` and `second`, one after the other in round robin; `%data` is
/// memory that holds the words `before`.
fn races(before: &[u32], first: &str, second: &str) -> Vec<Race> {
    races_with(Options::default(), before, first, second)
}

fn races_with(options: Options, before: &[u32], first: &str, second: &str) -> Vec<Race> {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 p) {{ .reg .pred %p; .reg .b32 %cta, %r<4>; .reg .b64 %data, %d;\n\
         ld.param.u64 %data, [p]; mov.u32 %cta, %ctaid.x; setp.ne.u32 %p, %cta, 0;\n\
         @%p bra second;\n{first}\nret;\nsecond:\n\
         // The first one is through before.\n\
         nanosleep.u32 1000; nanosleep.u32 1000; nanosleep.u32 1000; nanosleep.u32 1000;\n\
         nanosleep.u32 1000; nanosleep.u32 1000; nanosleep.u32 1000; nanosleep.u32 1000;\n\
         {second}\nret; }}"
    );
    let options = Options {
        shadow: ShadowSize::Exact,
        ..options
    };
    let mut rig = load(&text, options);
    let data = rig.memory(before);
    rig.launch(&launch(2, 1, &[data]));
    rig.races()
}

fn read(value: u64) -> Value {
    Value {
        old: Some(value),
        new: None,
    }
}

fn wrote(value: u64) -> Value {
    Value {
        old: None,
        new: Some(value),
    }
}

fn updated(old: u64, new: u64) -> Value {
    Value {
        old: Some(old),
        new: Some(new),
    }
}

/// The values of the only race, the earlier side's first.
fn only(before: &[u32], first: &str, second: &str) -> [Value; 2] {
    let races = races(before, first, second);
    let [race] = &races[..] else {
        panic!("one race, and not {races:?}");
    };
    [race.previous_value, race.value]
}

#[test]
fn a_write_and_a_read_show_what_they_wrote_and_read() {
    let (store, load) = ("st.global.u32 [%data], 42;", "ld.global.u32 %r1, [%data];");
    assert_eq!(only(&[41], store, load), [wrote(42), read(42)]);
    // What was read is no longer there when the race is found.
    assert_eq!(only(&[41], load, store), [read(41), wrote(42)]);
}

#[test]
fn a_value_that_was_overwritten_since_is_still_known() {
    let increment = "ld.global.u32 %r1, [%data]; add.u32 %r1, %r1, 1; st.global.u32 [%data], %r1;";
    let store = "st.global.u32 [%data], 7;";
    let races = races(&[41], increment, store);
    let values: Vec<_> = races
        .iter()
        .map(|race| (race.previous_value, race.value))
        .collect();
    assert!(values.contains(&(read(41), wrote(7))), "{values:?}");
    assert!(values.contains(&(wrote(42), wrote(7))), "{values:?}");
}

#[test]
fn an_atomic_shows_what_it_found_and_left() {
    let (add, load) = (
        "red.relaxed.gpu.global.add.u32 [%data], 2;",
        "ld.global.u32 %r1, [%data];",
    );
    assert_eq!(only(&[41], add, load), [updated(41, 43), read(43)]);
    assert_eq!(only(&[41], load, add), [read(41), updated(41, 43)]);
    let wide = "mov.u64 %d, 0x100000001; red.relaxed.gpu.global.add.u64 [%data], %d;";
    let store = "st.global.u64 [%data], 3;";
    assert_eq!(
        races(&[41, 0], wide, store)[0].previous_value,
        updated(41, 0x1_0000_002a)
    );
}

#[test]
fn a_vector_shows_the_element_that_both_sides_access() {
    let vector = "mov.u32 %r0, 5; mov.u32 %r1, 6; mov.u32 %r2, 7; mov.u32 %r3, 8;\n\
                  st.global.v4.u32 [%data], {%r0, %r1, %r2, %r3};";
    let load = "ld.global.u32 %r0, [%data+8];";
    assert_eq!(only(&[0; 4], vector, load), [wrote(7), read(7)]);
    let half = "ld.global.u16 %r0, [%data+2];".replace("%r0", "%h");
    let half = format!("{{ .reg .b16 %h; {half} }}");
    let word = "st.global.u32 [%data], 0x00050004;";
    assert_eq!(only(&[0; 4], word, &half), [wrote(0x0005_0004), read(5)]);
}

#[test]
fn a_copy_says_nothing() {
    let copy = "{ .shared .align 16 .b8 box[16]; .reg .b32 %box; mov.u32 %box, box;\n\
                cp.async.ca.shared.global [%box], [%data], 16; cp.async.wait_all; }";
    let store = "st.global.u32 [%data+4], 9;";
    assert_eq!(only(&[1, 2, 3, 4], copy, store)[0], Value::default());
}

#[test]
fn precise_compares_what_stores_wrote() {
    let store = |value| format!("st.global.u32 [%data], {value};");
    for (second, same) in [(1, true), (2, false)] {
        let races = races(&[0], &store(1), &store(second));
        let [race] = &races[..] else {
            panic!("one race, and not {races:?}");
        };
        assert_eq!(race.same_value, same);
        assert_eq!([race.previous_value, race.value], [wrote(1), wrote(second)]);
    }
}

#[test]
fn stores_of_one_constant_are_known_in_every_mode() {
    let direct = "st.global.u32 [%data], 1;";
    let moved = "mov.b32 %r2, 1; st.global.u32 [%data], %r2;";
    let pair = "st.global.v2.u32 [%data], {1, 2};";
    let vector = "mov.b32 %r3, 1; st.global.v2.u32 [%data], {%r3, 2};";
    let other = "st.global.u32 [%data], 2;";
    let read = "ld.global.u32 %r1, [%data+8]; st.global.u32 [%data], %r1;";
    let changed = "mov.b32 %r2, 1; add.u32 %r2, %r2, %r2; st.global.u32 [%data], %r2;";
    let half = "st.global.u16 [%data], 1;";
    let journal = Options {
        mode: Mode::Precise,
        as_gpu: true,
        ..Options::default()
    };
    let of = |mode| Options {
        mode,
        ..Options::default()
    };
    // A fence makes the kernel keep its journal.
    let fenced = |text: &str| format!("fence.acq_rel.gpu; {text}");
    for (first, second, same) in [
        (direct, direct, true),
        (direct, moved, true),
        (pair, vector, true),
        (direct, other, false),
        (direct, changed, false),
        (direct, half, false),
        // Only who has seen the value knows.
        (direct, read, false),
    ] {
        for options in [of(Mode::Fast), journal.clone()] {
            let mode = format!("{options:?}");
            let races = races_with(options, &[0, 0, 3], &fenced(first), &fenced(second));
            let stores: Vec<bool> = races.iter().map(|race| race.same_value).collect();
            assert_eq!(stores, [same], "{first} {second} {mode}");
        }
    }
}
