//! Random kernels from fixed seeds: nothing is proved that their threads contradict. `cargo xtask fuzz --affine` goes
//! on from there.

use filetests::affine::judge::{Tally, judge};
use filetests::affine::make::kernel;
use filetests::affine::run::Runner;

const KERNELS: u64 = 3000;

#[test]
fn no_conflict_of_a_random_kernel_is_proved_away() {
    let mut runner = Runner::new().unwrap();
    let mut tally = Tally::default();
    for seed in 0..KERNELS {
        match judge(&kernel(seed), &mut runner) {
            Ok(found) => tally += found,
            Err(finding) => {
                panic!("seed {seed}: {finding:#}; cargo xtask fuzz --affine --seed {seed} --print")
            }
        }
    }
    // Nothing is shown by kernels that all conflict, or never, or do not run.
    assert!(tally.kernels * 10 > KERNELS * 8, "{tally}");
    assert!(
        tally.free * 10 > tally.accesses * 3 && tally.free * 10 < tally.accesses * 8,
        "{tally}"
    );
    // A proof of nothing would pass all of this.
    assert!(
        tally.proved * 10 > tally.free * 6 && tally.whole > 0,
        "{tally}"
    );
}
