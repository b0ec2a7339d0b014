//! What the threads of a launch do: every access, with the barriers that its CTA has passed.

use anyhow::{Result, bail};
use events::{AccessKind, Executing, Observer};
use simt::{Device, DeviceConfig, Launch, Strays};

use super::make::{ENTRY, Kernel};
use crate::random::Random;

/// An access by one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// In shared memory of the thread's CTA; otherwise in global memory.
    pub shared: bool,
    /// The first byte.
    pub address: u64,
    /// How many.
    pub bytes: u32,
    /// Line in the PTX, from 1.
    pub line: u32,
    /// What it does.
    pub kind: AccessKind,
    /// Linear index of the CTA.
    pub cta: u64,
    /// Linear index of the thread in it.
    pub thread: u32,
    /// Barriers that the CTA has completed before.
    pub interval: u32,
}

/// A launch that has run.
pub struct Run {
    /// What was accessed, each once.
    pub accesses: Vec<Access>,
    /// The buffers: first byte and number of bytes.
    pub buffers: Vec<(u64, u64)>,
    /// The parameters as the kernel saw them.
    pub parameters: Vec<u8>,
}

/// A device for many launches.
pub struct Runner {
    device: Device,
}

struct Notes {
    lines: Vec<u32>,
    intervals: Vec<u32>,
    accesses: Vec<Access>,
}

impl Runner {
    /// A device of its own.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new() -> Result<Self> {
        let config = DeviceConfig {
            memory: 1 << 26,
            malloc_heap: 1 << 16,
            ..DeviceConfig::default()
        };
        Ok(Self {
            device: Device::new(config)?,
        })
    }

    /// Runs a kernel.
    ///
    /// # Errors
    /// When it does not run to its end.
    pub fn run(&mut self, kernel: &Kernel, module: &ptx::ast::Module) -> Result<Run> {
        let mut random = Random::new(kernel.contents);
        let mut buffers = Vec::new();
        for &bytes in &kernel.buffers {
            let address = self.device.memory_mut().alloc(bytes)?;
            // Small numbers, so that what is computed from them stays inside.
            let words = (0..bytes / 4).flat_map(|_| random.below(8).to_le_bytes());
            let words: Vec<u8> = words.collect();
            self.device.memory_mut().write(address, &words)?;
            buffers.push((address, bytes));
        }
        let pointers = kernel.pointers.iter();
        let mut parameters: Vec<u8> = pointers
            .flat_map(|&(buffer, offset)| (buffers[buffer].0 + offset).to_le_bytes())
            .collect();
        parameters.extend(
            kernel
                .numbers
                .iter()
                .flat_map(|number| number.to_le_bytes()),
        );
        let mut notes = Notes {
            lines: lines(&kernel.text),
            intervals: vec![0; kernel.grid.iter().product::<u32>() as usize],
            accesses: Vec::new(),
        };
        let mut launch = Launch::new(kernel.grid, kernel.block, parameters.clone());
        launch.dynamic_shared = kernel.dynamic_shared;
        launch.limits.max_warp_instructions = Some(100_000);
        launch.strays = Some(Strays::default());
        let id = self.device.load(module)?;
        let ended = self.device.launch_observed(id, ENTRY, &launch, &mut notes);
        self.device.unload(id);
        for &(address, _) in &buffers {
            self.device.memory_mut().free(address)?;
        }
        if let Err(error) = ended {
            bail!("{error}");
        }
        notes.accesses.sort_unstable();
        notes.accesses.dedup();
        Ok(Run {
            accesses: notes.accesses,
            buffers,
            parameters,
        })
    }
}

/// By byte of a text: its line, from 1.
fn lines(text: &str) -> Vec<u32> {
    let mut line = 1;
    let of = |byte: u8| {
        let own = line;
        line += u32::from(byte == b'\n');
        own
    };
    text.bytes().map(of).collect()
}

impl Observer for Notes {
    fn access(
        &mut self,
        threads: Executing,
        kind: AccessKind,
        space: ptx::ast::Space,
        addresses: &[u64; 32],
        bytes: u32,
    ) {
        let shared = match space {
            ptx::ast::Space::Global => false,
            ptx::ast::Space::Shared => true,
            _ => return,
        };
        for lane in (0..32).filter(|lane| threads.lanes >> lane & 1 != 0) {
            self.accesses.push(Access {
                shared,
                address: addresses[lane as usize],
                bytes,
                line: self.lines[threads.offset as usize],
                kind,
                cta: threads.cta,
                thread: threads.warp * 32 + lane,
                interval: self.intervals[threads.cta as usize],
            });
        }
    }

    fn complete(&mut self, cta: u64, _: u32) {
        self.intervals[cta as usize] += 1;
    }
}
