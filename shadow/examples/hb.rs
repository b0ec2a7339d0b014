//! One kernel on the happens-before engine, with what it costs: events per second, peak memory,
//! warps by the furthest [`shadow::hb::Format`] of their clocks, where that is not the first.
//!
//! `cargo run --release -p shadow --example hb [-- KERNEL CTAS...]`

#![allow(clippy::print_stdout, reason = "it prints its results")]

use std::time::Instant;

#[path = "../benches/kernels/mod.rs"]
mod kernels;

#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

/// Seconds that this thread has run, where the system reports it; else the time of the day.
fn seconds(start: Instant) -> f64 {
    let ran = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = ran.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

fn main() {
    let begin = Instant::now();
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_else(|| "all".into());
    let counts: Vec<u64> = arguments
        .map(|count| count.parse().expect("a number of CTAs"))
        .collect();
    let counts = if counts.is_empty() {
        vec![16, 128, 1024]
    } else {
        counts
    };
    println!(
        "{:<20} {:>7} {:>9} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "kernel",
        "CTAs",
        "threads",
        "events",
        "events/s",
        "peak KiB",
        "warps",
        "diverged",
        "nested",
        "sparse",
        "releases",
        "kept"
    );
    for kernel in kernels::KERNELS {
        if wanted != "all" && wanted != kernel.name {
            continue;
        }
        for &ctas in &counts {
            MEMORY.reset_peak_usage();
            let engine = kernel.run(ctas);
            let peak = MEMORY.peak_usage() / 1024;
            let stats = engine.stats();
            let events = stats.accesses + stats.synchronisations;
            drop(engine);
            // The system counts in steps of some milliseconds.
            let (start, mut runs) = (seconds(begin), 0);
            while seconds(begin) - start < 0.3 {
                kernel.run(ctas);
                runs += 1;
            }
            let seconds = (seconds(begin) - start) / f64::from(runs);
            println!(
                "{:<20} {:>7} {:>9} {:>10} {:>9.2}M {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                kernel.name,
                ctas,
                ctas * u64::from(kernel.threads),
                events,
                events as f64 / seconds / 1e6,
                peak,
                stats.warps,
                stats.diverged,
                stats.nested_diverged,
                stats.sparse,
                stats.releases,
                stats.kept
            );
        }
    }
}
