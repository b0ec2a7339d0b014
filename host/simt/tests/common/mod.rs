//! Running small PTX: what the tests of this folder share.

#![allow(dead_code, reason = "every test file uses its own part")]

pub(crate) mod elements;

use simt::{Device, DeviceConfig, Launch, LaunchError, LaunchStats, ModuleId};

/// A device with one module.
pub(crate) struct Rig {
    pub(crate) device: Device,
    pub(crate) module: ModuleId,
}

/// Parses and loads a module; the header may be left out.
pub(crate) fn load(text: &str) -> Rig {
    let text = if text.contains(".version") {
        text.to_owned()
    } else {
        format!(".version 8.0\n.target sm_90\n.address_size 64\n{text}")
    };
    let (module, diagnostics) = ptx::parse(&text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let config = DeviceConfig {
        memory: 1 << 30,
        ..DeviceConfig::default()
    };
    let mut device = Device::new(config).unwrap();
    let module = device.load(&module).unwrap();
    Rig { device, module }
}

/// A kernel `k(.param .u64 out)` with registers of all types, `%tid.x` in `%t`, `%ctaid.x` in
/// `%b`, the global thread number in `%g`, `out` in `%out` and `out + 8 * %g` in `%mine`.
pub(crate) fn kernel(body: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 out) {{
            .reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %d<32>;
            .reg .f32 %f<16>; .reg .f64 %e<16>; .reg .b32 %t, %b, %g; .reg .b64 %out, %mine;
            ld.param.u64 %out, [out];
            mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %g, %ntid.x;
            mad.lo.s32 %g, %g, %b, %t;
            mad.wide.u32 %mine, %g, 8, %out;
            {body}
        }}"
    )
}

impl Rig {
    /// Launches `k` on a fresh array of `words` 64-bit words and returns what is in it.
    pub(crate) fn run(
        &mut self,
        grid: u32,
        block: u32,
        words: usize,
    ) -> Result<Vec<u64>, LaunchError> {
        self.run_with(words, |params| {
            Launch::new([grid, 1, 1], [block, 1, 1], params)
        })
        .map(|ran| ran.0)
    }

    /// As [`Rig::run`], with a say on the launch.
    pub(crate) fn run_with(
        &mut self,
        words: usize,
        launch: impl FnOnce(Vec<u8>) -> Launch,
    ) -> Result<(Vec<u64>, LaunchStats), LaunchError> {
        let out = self.device.memory_mut().alloc(8 * words as u64).unwrap();
        let launch = launch(out.to_le_bytes().to_vec());
        let stats = self.device.launch(self.module, "k", &launch)?;
        let mut bytes = vec![0; 8 * words];
        self.device.memory().read(out, &mut bytes).unwrap();
        let words = bytes
            .chunks(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        Ok((words.collect(), stats))
    }
}

/// Runs a kernel body with one CTA and returns one word per thread.
pub(crate) fn run(block: u32, body: &str) -> Vec<u64> {
    load(&kernel(body)).run(1, block, block as usize).unwrap()
}

/// Runs a kernel body that must fail.
pub(crate) fn fail(block: u32, body: &str) -> LaunchError {
    load(&kernel(body))
        .run(1, block, block as usize)
        .unwrap_err()
}
