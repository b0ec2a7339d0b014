//! Throughput of the happens-before engine, by kernel and number of CTAs.
//!
//! `cargo bench -p shadow --bench hb [-- KERNEL]`. An item is an access of one thread, or a fence,
//! barrier or arrival of one warp.

use divan::Bencher;
use divan::counter::ItemsCount;

mod kernels;

fn main() {
    divan::main();
}

macro_rules! benches {
    ($($name:ident: $kernel:literal, $ctas:expr;)*) => {
        $(#[divan::bench(args = $ctas, sample_count = 5, sample_size = 1)]
        fn $name(bencher: Bencher<'_, '_>, ctas: u64) {
            measure(bencher, $kernel, ctas);
        })*
    };
}

benches! {
    streaming: "streaming", [32, 256, 2048];
    tiled: "tiled", [4, 32, 256];
    gather: "gather", [4, 32, 256];
    few_bins: "few-bins", [4, 32, 256];
    many_bins: "many-bins", [4, 32, 256];
    few_bins_fenced: "few-bins-fenced", [4, 32, 256];
    many_bins_fenced: "many-bins-fenced", [4, 32, 256];
    flags: "flags", [16, 128, 1024];
    cas_lock: "cas-lock", [16, 128, 1024];
    release_lock: "release-lock", [16, 128, 1024];
    last_block: "last-block", [16, 128, 1024];
    last_block_forced: "last-block-forced", [16, 128, 1024];
    last_block_acq_rel: "last-block-acq-rel", [16, 128, 1024];
    grid_barrier: "grid-barrier", [16, 128, 1024];
    grid_barrier_sc: "grid-barrier-sc", [16, 128, 1024];
    grid_barrier_forced: "grid-barrier-forced", [16, 128, 1024];
    cp_async: "cp-async", [4, 32, 256];
    producer_consumer: "producer-consumer", [4, 32, 256];
    shared_histogram: "shared-histogram", [4, 32, 256];
    rare_releases: "rare-releases", [16, 128, 1000];
    mixed: "mixed", [128, 1024, 8192];
}

fn measure(bencher: Bencher<'_, '_>, kernel: &str, ctas: u64) {
    let found = kernels::KERNELS.iter().find(|of| of.name == kernel);
    let kernel = found.expect("a kernel of the list");
    let stats = kernel.run(ctas).stats();
    bencher
        .counter(ItemsCount::new(stats.accesses + stats.synchronisations))
        .bench(|| kernel.run(ctas));
}
