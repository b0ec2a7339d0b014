//! Variables of libraries, which survive their contexts.

use crate::common::program::{Program, ptx};
use runtime::Options;
use runtime::options::Prove;

/// Managed ones have a call of their own, and after a reset the others are elsewhere.
#[test]
fn variables_are_known_wherever_they_are() {
    let program = Program::of("tests/c/resets.c");
    let plain = ".visible .global .align 4 .u32 word;";
    let managed = ".visible .global .attribute(.managed) .align 4 .u32 word;";
    for (variable, moved, how) in [
        (plain, "moved\n", "released"),
        (plain, "moved\n", "held"),
        (managed, "", "released"),
        (managed, "", "held"),
    ] {
        let bounds = ".maxntid 64";
        let text = ptx("7.0", bounds, bounds);
        let text = text.replacen(
            ".visible .entry",
            &format!("{variable}\n.visible .entry"),
            1,
        );
        let text = text.replacen("ld.param.u64 %a, [out];", "mov.u64 %a, word;", 1);
        let file = program.workdir.path("given.ptx");
        std::fs::write(&file, text).expect("a writable folder");
        let file = file.to_str().expect("a path");
        // Otherwise the second launch, whose race is known from the first, runs unchecked.
        let options = Options {
            prove: Prove::Off,
            ..Options::default()
        };
        let ran = program.run_with(&[file, how], &options, &[]);
        assert_eq!(ran.code, Some(0), "{variable}: {}", ran.stdout);
        assert!(ran.stdout.ends_with(moved), "{}", ran.stdout);
        assert_eq!(ran.checked("racy"), [true; 2], "{variable}");
        for launch in &ran.launches {
            let of = ran.races.iter().filter(|race| race.launch == launch.launch);
            let made: Vec<_> = of
                .map(|race| race.allocation.as_ref().map(|of| of.api.as_str()))
                .collect();
            assert!(!made.is_empty(), "{variable}: {:?}", ran.notes);
            assert!(
                made.iter().all(|api| *api == Some("variable word")),
                "{made:?}"
            );
            assert_eq!(launch.counters.outside, 0, "{variable}");
        }
        // What went with the context is forgotten: 1 MiB.
        let bytes: Vec<u64> = ran
            .launches
            .iter()
            .map(|launch| launch.program_bytes)
            .collect();
        assert!(bytes[0] > 1 << 20 && bytes[1] <= 256 + 2 * 4, "{bytes:?}");
    }
}
