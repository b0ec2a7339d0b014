//! How fast the device runs a tiled matrix product: `cargo run --release -p simt --example speed`.

#![allow(clippy::print_stdout, reason = "printing is what the example is for")]

use std::time::Instant;

use simt::{Device, DeviceConfig, Launch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (module, diagnostics) = ptx::parse(include_str!("matmul.ptx"));
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let mut device = Device::new(DeviceConfig::default())?;
    let id = device.load(&module)?;
    let n = 512u32;
    let size = usize::try_from(n * n)?;
    let memory = device.memory_mut();
    let mut params = Vec::new();
    let mut arrays = Vec::new();
    for _ in 0..3 {
        let array = memory.alloc(4 * size as u64)?;
        params.extend_from_slice(&array.to_le_bytes());
        arrays.push(array);
    }
    params.extend_from_slice(&n.to_le_bytes());
    // Small integers, so that the sums are exact in any order.
    let value = |index: usize, by: usize| (index * by % 7) as f32;
    for (array, by) in [(arrays[0], 3), (arrays[1], 5)] {
        let bytes: Vec<u8> = (0..size)
            .flat_map(|at| value(at, by).to_le_bytes())
            .collect();
        memory.write(array, &bytes)?;
    }
    let launch = Launch::new([n / 32, n / 32, 1], [32, 32, 1], params);
    let start = Instant::now();
    let stats = device.launch(id, "matmul", &launch)?;
    let seconds = start.elapsed().as_secs_f64();
    let (row, column) = (17, 101);
    let mut bytes = [0; 4];
    let at = (row * n as usize + column) as u64 * 4;
    device.memory().read(arrays[2] + at, &mut bytes)?;
    let width = n as usize;
    let want: f32 = (0..width)
        .map(|k| value(row * width + k, 3) * value(k * width + column, 5))
        .sum();
    assert_eq!(f32::from_le_bytes(bytes), want);
    println!(
        "{n} x {n}: {seconds:.3} s, {} warp instructions, {:.0} million thread instructions/s",
        stats.warp_instructions,
        stats.thread_instructions as f64 / seconds / 1e6
    );
    Ok(())
}
