//! Random kernels from fixed seeds: the oracles agree. `cargo xtask fuzz` goes on from there.

use filetests::args::Arg;
use filetests::machine::{Launch, Machine};
use filetests::random::kernel::{Act, FAR, Step};
use filetests::random::tally::Tally;
use filetests::random::{judge, make, text};

const KERNELS: u64 = 500;

/// Threads, each with its share of the seeds.
const THREADS: u64 = 4;

#[test]
fn the_oracles_agree_on_random_kernels() {
    let share = |first: u64| {
        let mut total = Tally::default();
        for seed in (first..KERNELS).step_by(THREADS as usize) {
            let kernel = make::kernel(seed);
            match judge::judge(&kernel, &[seed % 7]) {
                Ok(tally) => total += tally,
                Err(finding) => panic!("seed {seed}: {finding}; cargo xtask fuzz --seed {seed}"),
            }
        }
        total
    };
    let total = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|first| scope.spawn(move || share(first)))
            .collect();
        let mut total = Tally::default();
        for thread in threads {
            total += thread.join().unwrap();
        }
        total
    });
    assert_eq!(total.kernels, KERNELS);
    // Nothing is shown by kernels that all race, or never.
    assert!(total.racy_runs > KERNELS / 2 && total.racy_runs < KERNELS * 9 / 10);
    assert!(
        total.cells_racy > KERNELS / 2 && total.pairs > KERNELS / 2 && total.shared > KERNELS / 20
    );
    assert!(total.known > KERNELS / 4, "{total}");
    // Some arrive at an mbarrier more often than a phase expects, which is undefined.
    assert!(total.retraced > KERNELS * 9 / 10, "{total}");
    assert!(total.defined > KERNELS / 3, "{total}");
    assert!(total.scoped > KERNELS / 5, "{total}");
    assert!(total.strong > KERNELS / 20, "{total}");
}

/// Each has shown a fault that needs the kernel as a whole. A change of the generator makes other kernels of them.
#[test]
fn the_oracles_agree_on_kernels_that_have_shown_faults() {
    for seed in [70006884, 71009445, 71018998, 73016847, 75024405, 75035730] {
        if let Err(finding) = judge::judge(&make::kernel(seed), &[0, 1]) {
            panic!("seed {seed}: {finding}; cargo xtask fuzz --seed {seed}");
        }
    }
}

#[test]
fn the_kernel_of_a_seed_stays_the_same() {
    for seed in 0..50 {
        let (one, other) = (make::kernel(seed), make::kernel(seed));
        assert_eq!(text::write(&one).lines, text::write(&other).lines);
    }
}

#[test]
fn mbarriers_go_through_several_phases() {
    // After a second phase the parity is 0 again; the threads that see that are counted.
    let count = |line: &String| match line.trim().strip_prefix("xor.b32 %parity") {
        Some(gate) => format!(
            "{line}\n    sub.u32 %a, 1, %parity{};\n    red.global.add.u32 [%global0+{}], %a;",
            &gate[..1],
            FAR * 2
        ),
        None => line.clone(),
    };
    let (mut with, mut beyond) = (0, 0);
    for seed in 0..1000 {
        let kernel = make::kernel(seed);
        // A grid's barrier takes more than this launch has.
        if kernel.gates.is_empty() || kernel.cooperative() {
            continue;
        }
        let lines = text::write(&kernel).lines;
        let lines: Vec<String> = lines.iter().map(count).collect();
        let launch = Launch {
            kernel: Some(text::ENTRY.to_owned()),
            then: None,
            grid: [kernel.ctas, 1, 1],
            block: [kernel.threads(), 1, 1],
            shared: 0,
            cooperative: false,
        };
        let memory = Arg::Buffer(vec![0; FAR as usize * 2 + 4]);
        let machine = Machine::new(None, seed % 7).unwrap();
        let outcome = machine.run(&(lines.join("\n") + "\n"), &launch, &[memory]);
        let contents = outcome.unwrap().contents;
        with += 1;
        beyond += u32::from(contents[0][FAR as usize * 2..] != [0; 4]);
    }
    assert!(with > 50 && beyond > with / 4, "{beyond} of {with}");
}

#[test]
fn there_is_something_of_everything() {
    let kernels: Vec<_> = (0..1500).map(make::kernel).collect();
    let all: String = kernels.iter().map(|k| text::write(k).whole()).collect();
    for wanted in [
        "ld.global.nc.",
        "ld.volatile.",
        "ld.acquire.cta",
        "st.release.sys",
        "atom.acq_rel.",
        ".cas.b",
        "red.release.",
        "fence.sc.",
        "membar.gl",
        "fence.acq_rel.cluster",
        "bar.sync 0",
        "bar.red.",
        "barrier.cta.sync 0",
        "barrier.cta.arrive ",
        "bar.warp.sync ",
        "st.shared.u",
        "cvta.shared",
        ".reqnctapercluster",
        "barrier.cluster.arrive.relaxed",
        ".v2.",
        ".u8",
        ".u64",
        "@%got ",
        "cp.async.bulk.shared::cluster.global.",
        "cp.async.bulk.global.shared::cta.",
        "cp.async.bulk.wait_group",
        "fence.proxy.async",
        "mbarrier.arrive.noComplete.",
        "mbarrier.arrive_drop.",
        "mbarrier.expect_tx.",
        "mbarrier.try_wait.parity.",
        "mbarrier.test_wait.shared",
        ".acquire.cluster.shared",
        "[phases1]",
        "call k_does",
        "mov.u64 %target, k_does",
        "ld.global.u64 %target, [k_table0",
        "generic(k_table0)",
        ".visible .entry k1(",
        "st.async.shared::cluster.",
        "red.async.relaxed.cluster.",
        ".cas.b32 %v, [%global0+480], 0, 1;",
        "@%holds st.release.gpu.",
        "@%got st.volatile.",
    ] {
        assert!(all.contains(wanted), "no {wanted}");
    }
    let has = |wanted: fn(&Step) -> bool| kernels.iter().any(|k| k.steps.iter().any(wanted));
    assert!(has(|step| matches!(step, Step::Loop { .. })));
    let polls = |act: &&Act| matches!(act, Act::Poll { .. });
    assert!(kernels.iter().any(|kernel| kernel.acts().iter().any(polls)));
}
