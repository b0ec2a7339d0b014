//! Programs as nvcc compiles them, optimised and not: what the rewriter makes of them parses,
//! comes apart again, and assembles.

use std::path::Path;
use std::process::Command;

use rewrite::{Config, Rewritten, erase, rewrite, stats};

const VARIANTS: [(&str, &[&str]); 4] = [
    ("sm_90", &["-O2", "-lineinfo"]),
    ("sm_75", &["-O2"]),
    ("sm_80", &["-G", "-g"]),
    ("sm_90", &["-O2", "-rdc=true"]),
];

/// Runs a program through all variants and gives the last, optimised one to look at.
fn program(name: &str) -> Rewritten {
    let [nvcc, ptxas] = ["nvcc", "ptxas"].map(|tool| toolkit::require(tool).unwrap());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cuda/{name}.cu"));
    let folder = std::env::temp_dir().join(format!("rewrite-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut last = None;
    for (architecture, options) in VARIANTS {
        let what = format!("{name} for {architecture} {options:?}");
        let output = folder.join("program.ptx");
        let result = Command::new(&nvcc)
            .args(options)
            .args(["-ptx", "-arch", architecture, "-o"])
            .args([&output, &source])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&result.stderr).into_owned();
        assert!(result.status.success(), "{what}: {said}");
        let text = std::fs::read_to_string(&output).unwrap();
        let (module, diagnostics) = ptx::parse(&text);
        assert!(diagnostics.is_empty(), "{what}: {diagnostics:?}");
        let rewritten = rewrite(&module, &Config::default());
        assert!(erase(&rewritten.text) == text, "{what}: erasing");
        let (_, diagnostics) = ptx::parse(&rewritten.text);
        assert!(diagnostics.is_empty(), "{what}: {diagnostics:?}");
        let kernels = stats::assemble(&ptxas, &rewritten.text, architecture);
        let kernels = kernels.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(kernels.len(), rewritten.kernels.len(), "{what}");
        last = Some(rewritten);
    }
    std::fs::remove_dir_all(folder).unwrap();
    last.unwrap()
}

fn kernel<'a>(all: &'a Rewritten, name: &str) -> &'a rewrite::KernelInfo {
    let mut kernels = all.kernels.iter();
    let mangled = format!("{}{name}", name.len());
    kernels
        .find(|kernel| kernel.name.contains(&mangled))
        .unwrap()
}

#[test]
fn calls() {
    let all = program("calls");
    assert!(all.kernels.iter().all(|kernel| kernel.instrumented));
    for name in ["direct", "pointer", "virtually", "large"] {
        let kernel = kernel(&all, name);
        assert!(
            kernel.checked > 0 && kernel.not_understood.is_empty(),
            "{kernel:?}"
        );
        assert_eq!(kernel.checked, kernel.accesses, "{name}");
    }
    assert_eq!(kernel(&all, "without_parameters").param_bytes, 0);
}

#[test]
fn inline_assembly() {
    let all = program("inline_assembly");
    let forms = kernel(&all, "forms");
    assert_eq!(forms.granule_log2, 0);
    assert_eq!(forms.checked, forms.accesses);
    assert!(forms.release_capable && forms.barriers && forms.warp_barriers);
    assert!(
        forms.not_understood.is_empty(),
        "{:?}",
        forms.not_understood
    );
}

#[test]
fn cooperation() {
    let all = program("cooperation");
    assert!(kernel(&all, "grid").grid_barriers && !kernel(&all, "grid").release_capable);
    assert!(kernel(&all, "atomics").release_capable);
    assert!(kernel(&all, "counts").barriers && kernel(&all, "counts").warp_barriers);
}

#[test]
fn shapes() {
    let all = program("shapes");
    let lines = |name: &str| kernel(&all, name).not_understood.len();
    assert!(lines("image") >= 2);
    assert_eq!(
        (lines("bounded"), lines("generic"), lines("matrix")),
        (0, 0, 0)
    );
    assert_eq!(kernel(&all, "bounded").granule_log2, 0);
    assert_eq!(kernel(&all, "generic").granule_log2, 2);
}
