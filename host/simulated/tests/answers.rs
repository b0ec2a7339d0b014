//! What the simulated device tells of kernels with checks is what it tells of them without.

use std::path::{Path, PathBuf};

use report::log::Writer;
use runtime::{Checker, Mode, Options};
use simt::{Device, DeviceConfig, KernelInfo};
use simulated::CheckedSim;

/// The texts of a folder under `tests`.
fn texts(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let files = std::fs::read_dir(root.join(folder)).expect("a folder");
    let paths = files.map(|file| file.expect("a file").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "ptx"))
        .collect();
    paths.sort_unstable();
    paths
}

/// All kernels of a text.
fn kernels_of(options: Option<Options>, text: &str) -> Vec<KernelInfo> {
    let device = Device::new(DeviceConfig::default()).expect("a device");
    let checker = options.map(|options| Checker::new(options, Writer::Memory(Vec::new())));
    let mut device = CheckedSim::new(device, checker);
    let id = device.load(text, "text").expect("PTX");
    let (module, _) = ptx::parse(text);
    let entries = module.functions().filter(|function| function.entry);
    let all = entries.filter_map(|entry| device.kernel(id, &entry.name));
    all.collect()
}

/// Registers of the kernels of a text with checks, as the device would tell if it stood for itself.
fn with_checks(options: Options, text: &str) -> Vec<u32> {
    let mut checker = Checker::new(options, Writer::Memory(Vec::new()));
    let (module, _) = ptx::parse(checker.prepare(text, "text").code.text());
    let mut device = Device::new(DeviceConfig::default()).expect("a device");
    let id = device.load(&module).expect("PTX");
    let entries = module.functions().filter(|function| function.entry);
    let all = entries.filter_map(|entry| device.kernel(id, &entry.name));
    all.map(|info| info.registers).collect()
}

#[test]
fn checks_change_no_answer() {
    let (mut kernels, mut differ) = (0, 0);
    for path in texts("exec").into_iter().chain(texts("race/cta")) {
        let text = std::fs::read_to_string(&path).expect("a text");
        if text.contains("${") {
            continue;
        }
        let fast = Options {
            mode: Mode::Fast,
            ..Options::default()
        };
        let alone = kernels_of(None, &text);
        kernels += alone.len();
        let more = with_checks(fast.clone(), &text);
        let own = alone.iter().map(|info| info.registers);
        differ += own.zip(more).filter(|(own, more)| own != more).count();
        assert_eq!(kernels_of(Some(fast), &text), alone, "{}", path.display());
    }
    // Or this could not fail.
    assert!(kernels > 50 && differ > 20, "{kernels} {differ}");
}
