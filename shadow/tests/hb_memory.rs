//! The memory that the happens-before engine takes for large launches.

#[allow(dead_code, reason = "the benchmarks run all of them")]
#[path = "../benches/kernels/mod.rs"]
mod kernels;

#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

const MIB: usize = 1 << 20;

fn run(name: &str, ctas: u64) -> (shadow::hb::Stats, usize) {
    let kernel = kernels::KERNELS.iter().find(|kernel| kernel.name == name);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let engine = kernel.expect("a kernel of the list").run(ctas);
    (engine.stats(), MEMORY.peak_usage() - before)
}

// One test, as all tests of a file share the allocator.
#[test]
fn memory_follows_synchronisation_and_what_is_accessed() {
    // Ten million accesses and a thousand releases.
    let (stats, peak) = run("rare-releases", 1000);
    assert!(stats.accesses > 10_000_000 && stats.releases == 1000);
    // The releasing warps, of which one lane has fenced; nobody has observed a release.
    assert_eq!(
        (stats.warps, stats.left_converged(), stats.sparse),
        (8000, 1000, 0)
    );
    assert!(peak < 24 * MIB, "{peak} bytes");
    // The accesses are to 32 768 words per 128 CTAs, however often.
    let (stats, _) = run("rare-releases", 100);
    assert!(stats.kept < 100 * 8 * 22, "{stats:?}");

    // A million threads.
    for kernel in ["mixed", "last-block"] {
        let (stats, peak) = run(kernel, if kernel == "mixed" { 31_250 } else { 3907 });
        assert!(stats.warps * 32 >= 1_000_000);
        assert!(peak < 256 * MIB, "{kernel}: {peak} bytes");
    }

    // Memory per thread does not grow with the threads.
    let per_warp = |ctas| run("mixed", ctas).1 / ctas as usize;
    let (few, many) = (per_warp(1000), per_warp(8000));
    assert!(many < 2 * few, "{few} bytes per warp, then {many}");
}
