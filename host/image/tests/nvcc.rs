//! The readers on what nvcc really makes.

use std::path::Path;
use std::process::Command;

use image::elf::{self, ElfError, Runtime};
use image::fatbin::{EntryKind, Packing};

const PROGRAM: &str = r#"
__device__ int counter = 3;
__global__ void first(int* out) { out[threadIdx.x] = counter; }
__global__ void second(float* out, float x) { out[threadIdx.x] += x; }
int main() {
    int* out = nullptr;
    cudaMalloc(&out, 128);
    first<<<1, 32>>>(out);
    second<<<1, 32>>>((float*)out, 2.0f);
    return cudaDeviceSynchronize();
}
"#;

fn compile(nvcc: &Path, folder: &Path, name: &str, options: &[&str]) -> Vec<u8> {
    let source = folder.join("program.cu");
    std::fs::write(&source, PROGRAM).expect("a writable folder");
    let library = nvcc
        .parent()
        .and_then(Path::parent)
        .expect("bin/nvcc")
        .join("lib");
    let output = folder.join(name);
    let built = Command::new(nvcc)
        .args(options)
        .arg("-L")
        .arg(library)
        .arg("-o")
        .arg(&output)
        .arg(&source)
        .output()
        .expect("nvcc runs");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    std::fs::read(output).expect("nvcc wrote its output")
}

#[test]
fn what_nvcc_embeds_is_found() {
    let nvcc = toolkit::require("nvcc").unwrap_or_else(|why| panic!("{why}"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let both = "-gencode=arch=compute_90,code=[sm_90,compute_90]";
    let modes: [(&str, &[&str], Packing, Runtime); 3] = [
        (
            "default",
            &[both, "-cudart", "shared"],
            Packing::Zstd,
            Runtime::Shared,
        ),
        (
            "speed",
            &[both, "--compress-mode=speed"],
            Packing::Lz4,
            Runtime::Static,
        ),
        (
            "none",
            &[both, "--compress-mode=none"],
            Packing::Plain,
            Runtime::Static,
        ),
    ];
    for (name, options, packing, runtime) in modes {
        let bytes = compile(&nvcc, folder.path(), name, options);
        let found = elf::scan(&bytes).expect("an executable");
        assert_eq!(
            (found.runtime, found.dynamic, found.relocatable),
            (runtime, true, 0),
            "{name}"
        );
        assert!(!found.driver);
        let entries: Vec<_> = found
            .fatbins
            .iter()
            .flat_map(|fatbin| &fatbin.as_ref().expect(name).entries)
            .collect();
        let ptx = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Ptx)
            .find(|entry| {
                entry
                    .text()
                    .is_ok_and(|text| text.contains(".entry _Z5firstPi"))
            })
            .expect("PTX with the first kernel");
        assert_eq!((ptx.sm, ptx.packing), (90, packing), "{name}");
        let cubins: Vec<String> = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Elf)
            .flat_map(|entry| elf::kernels(&entry.bytes().expect(name)).expect("a cubin"))
            .collect();
        assert_eq!(cubins, ["_Z5firstPi", "_Z6secondPff"], "{name}");
        for cut in (0..bytes.len()).step_by(bytes.len() / 64) {
            let _ = elf::scan(&bytes[..cut]);
        }
    }
    let bytes = compile(
        &nvcc,
        folder.path(),
        "rdc",
        &[both, "-rdc=true", "-cudart", "shared"],
    );
    let found = elf::scan(&bytes).expect("an executable");
    assert!(found.relocatable > 0);
    assert_eq!(found.runtime, Runtime::Shared);
}

#[test]
fn what_is_no_cuda_program_is_told_apart() {
    assert_eq!(elf::scan(b"#!/bin/sh\n").err(), Some(ElfError::NotElf));
    assert_eq!(elf::scan(b"").err(), Some(ElfError::NotElf));
    assert_eq!(
        elf::scan(b"\x7fELF\x01\x01").err(),
        Some(ElfError::NotElf64)
    );
    assert!(matches!(
        elf::scan(b"\x7fELF\x02\x01\x01").err(),
        Some(ElfError::Broken(_))
    ));
    let myself = std::env::current_exe().expect("a running test");
    let bytes = std::fs::read(myself).expect("a readable test");
    let found = elf::scan(&bytes).expect("an executable");
    assert_eq!(found.runtime, Runtime::None);
    assert!(found.fatbins.is_empty());
}
