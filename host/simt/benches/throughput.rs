//! Thread-instructions per second of the simulated device, unobserved, on one thread of the host and
//! on two.
//!
//! `cargo bench -p simt --bench throughput [-- KERNEL]`. An item is an instruction executed by one
//! thread.

use divan::Bencher;
use divan::counter::ItemsCount;
use simt::{Device, DeviceConfig, Launch, ModuleId};

fn main() {
    divan::main();
}

macro_rules! benches {
    ($($name:ident: $sizes:expr;)*) => {
        $(#[divan::bench(args = $sizes, sample_count = 5, sample_size = 1)]
        fn $name(bencher: Bencher<'_, '_>, n: u32) {
            measure(bencher, Work::$name(n), 1);
        })*

        mod two_threads {
            use super::*;

            $(#[divan::bench(args = $sizes, sample_count = 5, sample_size = 1)]
            fn $name(bencher: Bencher<'_, '_>, n: u32) {
                measure(bencher, Work::$name(n), 2);
            })*
        }
    };
}

benches! {
    matrix_product: [64, 128, 256];
    n_body: [512, 1024, 2048];
    stencil: [256, 512, 1024];
    breadth_first: [10_000, 40_000, 160_000];
    sparse_product: [10_000, 40_000, 160_000];
    grid_size: [1, 4, 16, 64, 256, 1024];
    work_per_thread: [128, 512, 2048, 8192, 32768];
}

/// Launches, with their memory.
struct Work {
    device: Device,
    module: ModuleId,
    launches: Vec<(&'static str, Launch)>,
    /// Filled before the launches: address and bytes.
    initial: Vec<(u64, Vec<u8>)>,
}

fn measure(bencher: Bencher<'_, '_>, mut work: Work, threads: u32) {
    for (_, launch) in &mut work.launches {
        launch.threads.most = threads;
    }
    let instructions = work.run();
    bencher
        .counter(ItemsCount::new(instructions))
        .bench_local(|| work.run());
}

impl Work {
    fn new() -> Self {
        let (module, diagnostics) = ptx::parse(include_str!("kernels.ptx"));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let mut device = Device::new(DeviceConfig::default()).unwrap();
        let module = device.load(&module).unwrap();
        Self {
            device,
            module,
            launches: Vec::new(),
            initial: Vec::new(),
        }
    }

    /// Thread-instructions of all launches.
    fn run(&mut self) -> u64 {
        for (address, bytes) in &self.initial {
            self.device.memory_mut().write(*address, bytes).unwrap();
        }
        let launches = self.launches.iter();
        launches
            .map(|(kernel, launch)| {
                let stats = self.device.launch(self.module, kernel, launch).unwrap();
                stats.thread_instructions
            })
            .sum()
    }

    /// Memory with these words at the start of every run.
    fn array(&mut self, words: Vec<u32>) -> u64 {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let memory = self.device.memory_mut();
        let address = memory.alloc(bytes.len() as u64).unwrap();
        self.initial.push((address, bytes));
        address
    }

    fn floats(&mut self, count: u32) -> u64 {
        self.array(
            (0..count)
                .map(|n| (n as f32 * 0.37).sin().to_bits())
                .collect(),
        )
    }

    /// Pointers first, then 32-bit numbers, as all kernels here have them.
    fn launch(
        &mut self,
        kernel: &'static str,
        grid: [u32; 3],
        block: [u32; 3],
        pointers: &[u64],
        numbers: &[u32],
    ) {
        let pointers = pointers.iter().flat_map(|pointer| pointer.to_le_bytes());
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        let launch = Launch::new(grid, block, pointers.chain(numbers).collect());
        self.launches.push((kernel, launch));
    }

    fn matrix_product(n: u32) -> Self {
        let mut work = Self::new();
        let arrays = [0; 3].map(|_| work.floats(n * n));
        let (grid, block) = ([n / 16, n / 16, 1], [16, 16, 1]);
        work.launch("matrix_product", grid, block, &arrays, &[n]);
        work
    }

    fn n_body(n: u32) -> Self {
        Self::bodies(n / 128, n)
    }

    /// The n-body kernel with `n` CTAs, each thread with 512 others.
    fn grid_size(n: u32) -> Self {
        Self::bodies(n, 512)
    }

    /// The n-body kernel with 16 CTAs, each thread with `n` others.
    fn work_per_thread(n: u32) -> Self {
        Self::bodies(16, n)
    }

    fn bodies(ctas: u32, others: u32) -> Self {
        let mut work = Self::new();
        let arrays = [0; 2].map(|_| work.floats(4 * others.max(128 * ctas)));
        let (grid, block) = ([ctas, 1, 1], [128, 1, 1]);
        work.launch("n_body", grid, block, &arrays, &[others]);
        work
    }

    fn stencil(n: u32) -> Self {
        let mut work = Self::new();
        let [a, b] = [0; 2].map(|_| work.floats(n * n));
        for pair in [[a, b], [b, a], [a, b]] {
            work.launch("stencil", [n / 32, n / 8, 1], [32, 8, 1], &pair, &[n]);
        }
        work
    }

    /// A random graph of `n` nodes with up to 15 edges each: where each node's edges start, and
    /// where they lead.
    fn graph(&mut self, n: u32) -> (u64, u64, u32) {
        let mut state = 1u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((u64::from(state) * u64::from(below)) >> 32) as u32
        };
        let mut starts = vec![0];
        for node in 0..n as usize {
            starts.push(starts[node] + random(16));
        }
        let count = starts[n as usize];
        let edges = (0..count).map(|_| random(n)).collect();
        (self.array(starts), self.array(edges), count)
    }

    fn breadth_first(n: u32) -> Self {
        let mut work = Self::new();
        let (starts, edges, _) = work.graph(n);
        let mut levels = vec![u32::MAX; n as usize];
        levels[0] = 0;
        let level = work.array(levels);
        let changed = work.array(vec![0]);
        for depth in 0..8 {
            // A pointer comes behind the numbers, which fill eight bytes.
            let pointers = [starts, edges, level];
            let numbers = [n, depth, changed as u32, (changed >> 32) as u32];
            let (grid, block) = ([n.div_ceil(256), 1, 1], [256, 1, 1]);
            work.launch("breadth_first", grid, block, &pointers, &numbers);
        }
        work
    }

    fn sparse_product(n: u32) -> Self {
        let mut work = Self::new();
        let (starts, edges, count) = work.graph(n);
        let [values, x, y] = [count, n, n].map(|length| work.floats(length));
        let (grid, block) = ([n.div_ceil(256), 1, 1], [256, 1, 1]);
        work.launch(
            "sparse_product",
            grid,
            block,
            &[starts, edges, values, x, y],
            &[n],
        );
        work
    }
}
