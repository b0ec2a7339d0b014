//! Shared memory on the device's cells, `fast` mode: slots, and what is said of a race.

use crate::common::{launch, load};
use report::log::{Event, Launch as Logged, Level, Race, Space};
use runtime::{Choice, Mode, Options, Prove, ShadowSize};
use simt::Launch;

/// Lane 0 of each warp stores to its word in dynamic shared memory; after a barrier, if there is
/// one, each warp loads the word of the next.
fn kernel(barrier: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 4 .b8 words[];\n\
         .visible .entry k() {{ .reg .pred %p; .reg .b32 %t, %lane, %w, %at, %v;\n\
         .shared .align 4 .b8 pad[64];\n\
         mov.u32 %v, pad; mov.u32 %t, %tid.x; and.b32 %lane, %t, 31; shr.u32 %w, %t, 5;\n\
         setp.ne.u32 %p, %lane, 0; mad.lo.u32 %at, %w, 4, words;\n\
         @!%p st.shared.u32 [%at], %t;\n{barrier}\n\
         xor.b32 %w, %w, 1; mad.lo.u32 %at, %w, 4, words;\n\
         @!%p ld.shared.u32 %v, [%at];\n ret; }}"
    )
}

/// What is logged of `launches` launches of `grid` CTAs with two warps.
fn logged(text: &str, options: Options, grid: u32, launches: u32) -> (Vec<Logged>, Vec<Race>) {
    let options = Options {
        mode: Mode::Fast,
        // A launch that is proved needs no cells.
        prove: Prove::Off,
        ..options
    };
    let mut rig = load(text, options);
    for _ in 0..launches {
        rig.launch(&Launch {
            dynamic_shared: 8,
            ..launch(grid, 64, &[])
        });
    }
    for event in rig.events() {
        if let Event::Module(module) = event {
            assert_eq!(module.kernels[0].shared, 0);
        }
    }
    let (ended, races) = (rig.launches(), rig.races());
    assert_eq!(ended.len(), launches as usize);
    (ended, races)
}

fn small() -> Options {
    Options {
        shadow: ShadowSize::Bytes(1),
        ..Options::default()
    }
}

#[test]
fn a_race_says_that_it_is_in_shared_memory_and_where() {
    let (launches, races) = logged(&kernel(""), Options::default(), 3, 1);
    assert!(launches[0].counters.conflicts > 0);
    assert!(!races.is_empty());
    for race in races {
        assert_eq!((race.space, race.level), (Space::Shared, Level::Cta));
        let variable = race.allocation.as_ref().map(|of| of.api.as_str());
        assert!(
            race.decided && variable == Some("variable words"),
            "{variable:?}"
        );
        // Behind 64 bytes of static shared memory.
        assert!([64, 68].contains(&race.address), "{}", race.address);
        let before = race.previous_thread.unwrap();
        assert_eq!(before.block, race.thread.block);
        assert_eq!(before.thread[0] ^ race.thread.thread[0], 32);
    }
}

#[test]
fn with_enough_slots_nothing_is_evicted() {
    let (launches, races) = logged(&kernel("bar.sync 0;"), Options::default(), 100, 2);
    for launch in launches {
        assert_eq!(launch.counters, Default::default());
    }
    assert!(races.is_empty(), "{races:?}");
}

#[test]
fn ctas_that_share_a_slot_are_counted_and_never_race() {
    let (launches, races) = logged(&kernel("bar.sync 0;"), small(), 3000, 1);
    let counters = launches[0].counters;
    assert!(
        counters.evictions > 0 && counters.outside == 0,
        "{counters:?}"
    );
    assert!(races.is_empty(), "{races:?}");
    // What is evicted now and then is still found elsewhere.
    let (_, races) = logged(&kernel(""), small(), 3000, 1);
    assert!(!races.is_empty());
    assert!(races.iter().all(|race| race.level == Level::Cta));
}

/// The first thread of each CTA stores into the shared memory of the other one of its cluster; after a barrier, if there is
/// one, it loads its own.
fn cluster_kernel(barrier: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 4 .b8 words[];\n\
         .visible .entry k() .reqnctapercluster 2 {{ .reg .pred %p; .reg .b32 %c, %own, %far, %v;\n\
         mov.u32 %c, %tid.x; setp.eq.u32 %p, %c, 0;\n\
         mov.u32 %c, %cluster_ctarank; xor.b32 %c, %c, 1; mov.u32 %own, words;\n\
         mapa.shared::cluster.u32 %far, %own, %c;\n\
         @%p st.shared::cluster.u32 [%far+4], %c;\n{barrier}\n\
         @%p ld.shared.u32 %v, [words+4];\n\
         barrier.cluster.arrive.relaxed; barrier.cluster.wait; ret; }}"
    )
}

const CLUSTER_BARRIER: &str = "barrier.cluster.arrive; barrier.cluster.wait;";

#[test]
fn clusters_that_share_slots_are_counted_and_never_race() {
    let grid = 6000;
    let (launches, races) = logged(&cluster_kernel(CLUSTER_BARRIER), small(), grid, 1);
    assert_eq!(launches[0].counters.outside, 0);
    assert!(races.iter().all(|race| !race.decided), "{races:?}");
    let (launches, races) = logged(&cluster_kernel(""), small(), grid, 1);
    assert_eq!(launches[0].counters.outside, 0);
    assert!(!races.is_empty());
    for race in races {
        assert_eq!((race.space, race.level), (Space::Shared, Level::Grid));
        assert!(race.decided && race.address == 4, "{race:?}");
        // Clusters are pairs of neighbours.
        let before = race.previous_thread.unwrap().block[0];
        assert_eq!(before ^ race.thread.block[0], 1);
    }
}

#[test]
fn with_enough_slots_no_cluster_is_evicted() {
    let kernel = cluster_kernel(CLUSTER_BARRIER);
    let (launches, _) = logged(&kernel, Options::default(), 100, 2);
    for launch in launches {
        assert_eq!(launch.counters.evictions, 0);
        assert_eq!(launch.counters.unreleased, 0);
    }
}

#[test]
fn cells_are_cleared_when_the_generations_run_out() {
    let (launches, races) = logged(&kernel("bar.sync 0;"), small(), 2, 300);
    let cleared = launches.iter().filter(|launch| launch.counters.cleared);
    assert_eq!(cleared.count(), 1);
    assert!(races.is_empty(), "{races:?}");
}

#[test]
fn a_kernel_that_is_not_selected_runs_unchecked() {
    let options = Options {
        choice: Choice {
            kernels: vec!["other".parse().unwrap()],
            ..Choice::default()
        },
        ..Options::default()
    };
    let (launches, races) = logged(&kernel(""), options, 3, 1);
    assert!(!launches[0].checked && races.is_empty());
}
