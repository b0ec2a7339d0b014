//! Summaries of all kernels of PTX files: refused kernels, and how long a summary and a launch take.
//!
//! `cargo run --release -p prove --example survey -- FILE...`. The launches are made up: every 8-byte parameter is a
//! buffer of its own, every other one is 64.

use std::io::Write;
use std::time::Instant;

use prove::{Launch, Summary};

const BUFFER: u64 = 1 << 26;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path)?;
        let (module, _) = ptx::parse(&text);
        for kernel in module
            .functions()
            .filter(|function| function.entry && function.body.is_some())
        {
            let start = Instant::now();
            let summary = Summary::new(&module, kernel);
            let made = start.elapsed();
            let (layout, bytes) = ptx::param_layout(&kernel.params);
            let mut parameters = vec![0; bytes as usize];
            for (n, param) in layout.iter().enumerate() {
                let at = param.offset as usize;
                let value = if param.bytes == 8 {
                    (n as u64 + 1) * BUFFER * 2
                } else {
                    64
                };
                let end = at + param.bytes.min(8) as usize;
                parameters[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
            }
            let allocation = |address: u64| {
                let start = address / (2 * BUFFER) * 2 * BUFFER;
                (start > 0 && address < start + BUFFER).then_some((start, BUFFER))
            };
            let launch = Launch {
                grid: [4, 1, 1],
                block: [64, 1, 1],
                cluster: [0; 3],
                parameters: &parameters,
                dynamic_shared: 1024,
                allocation: &allocation,
                variable: &|_| Some((BUFFER / 2, 4096)),
            };
            let best = |work: &dyn Fn()| {
                let times = (0..20).map(|_| {
                    let start = Instant::now();
                    work();
                    start.elapsed()
                });
                times.min().unwrap_or_default()
            };
            let posed = best(&|| drop(summary.pose(&launch)));
            let proof = summary.prove(&launch);
            let decided = best(&|| drop(summary.prove(&launch)));
            let proved = proof
                .accesses
                .iter()
                .filter(|result| result.is_ok())
                .count();
            writeln!(
                out,
                "{path} {}: {proved} of {} accesses{}; summary {made:?}, forms {posed:?}, proof {decided:?}",
                kernel.name,
                proof.accesses.len(),
                if proof.whole { ", whole" } else { "" },
            )?;
            if let Some(refused) = &summary.refused {
                writeln!(out, "    refused: {refused}")?;
                continue;
            }
            for (access, result) in summary.accesses.iter().zip(&proof.accesses) {
                if let Err(reason) = result {
                    writeln!(out, "    PTX line {}: {}", access.ptx_line, reason.text)?;
                }
            }
        }
    }
    Ok(())
}
