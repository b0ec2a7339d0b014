//! Which PTX of a fat binary is checked: one that every device can compile which the program may use.

use std::collections::BTreeMap;

use crate::common::program::Program;
use runtime::Options;

#[test]
fn a_library_is_checked_with_ptx_for_all_devices() {
    let program = Program::of("tests/c/fat.c");
    let file = program.workdir.path("image").display().to_string();
    for (architectures, image, origin) in [
        ("90", &["p70", "p90"][..], Some("embedded compute_90 code")),
        ("90,90", &["p70", "p90"], Some("embedded compute_90 code")),
        ("90,75", &["p70", "p90"], Some("embedded compute_70 code")),
        // Nothing for the older device, so that the program has no use for it.
        ("90,75", &["p90", "m90"], Some("embedded compute_90 code")),
        // It runs there as well, if we leave it as it is.
        ("90,75", &["p90", "m75"], None),
    ] {
        let devices = architectures.split(',').count().to_string();
        let more = [
            ("CUDARUN_SIM_DEVICES", devices.as_str()),
            ("CUDARUN_SIM_ARCHITECTURES", architectures),
        ];
        for from in ["", file.as_str()] {
            let what = format!("{architectures} {image:?} {from}");
            let arguments = [&[from], image].concat();
            let ran = program.run_with(&arguments, &Options::default(), &more);
            let said = (ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(said, ("512\n", ""), "{what}");
            match origin {
                Some(origin) => {
                    assert_eq!(ran.origins, [origin], "{what}");
                    assert_eq!(ran.racing(), ["racy"], "{what}");
                    assert!(ran.without_ptx.is_empty(), "{what}");
                    assert_eq!(ran.checked("fine"), [true], "{what}");
                }
                None => {
                    assert!(ran.origins.is_empty(), "{what}");
                    let noted = |note: &&String| note.contains("no PTX for sm_75");
                    assert_eq!(ran.notes.iter().filter(noted).count(), 1, "{what}");
                    // By itself and in a graph that is launched twice.
                    let launches = [("fine", 1), ("racy", 3)];
                    let launches = launches.map(|(kernel, count)| (kernel.to_owned(), count));
                    assert_eq!(ran.without_ptx, BTreeMap::from(launches), "{what}");
                }
            }
        }
    }
}

#[test]
fn ptx_that_is_older_than_the_machine_code_is_reported() {
    let program = Program::of("tests/c/fat.c");
    let noted = |image: [&str; 2]| {
        let ran = program.run(&["", image[0], image[1]], &Options::default(), "");
        assert_eq!(ran.stdout, "512\n", "{image:?}");
        let noted = |note: &&String| note.contains("PTX for compute_70 is checked; without checks");
        ran.notes.iter().filter(noted).count()
    };
    assert_eq!(noted(["p70", "m90"]), 1);
    assert_eq!(noted(["p70", "m75"]), 0);
    assert_eq!(noted(["p90", "m90"]), 0);
}
