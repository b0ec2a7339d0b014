//! `golden/<pass>/x.ptx` becomes `x.out.ptx`, and both assemble. `BLESS=1` writes what comes out.
//!
//! The device's functions and the inlined fast path are left out of the expectation: they are
//! `device`'s, and change without any change here.

use std::fs;
use std::path::{Path, PathBuf};

use rewrite::{Config, erase, rewrite, stats};

#[test]
fn each_pass_inserts_what_is_expected() {
    let bless = std::env::var_os("BLESS").is_some();
    let inputs = inputs();
    assert!(inputs.len() > 5);
    let mut different = Vec::new();
    for input in inputs {
        let text = fs::read_to_string(&input).unwrap();
        let (module, diagnostics) = ptx::parse(&text);
        assert!(
            diagnostics.is_empty(),
            "{}: {diagnostics:?}",
            input.display()
        );
        let rewritten = rewrite(&module, &config(&input));
        assert!(
            erase(&rewritten.text) == text,
            "{}: erasing",
            input.display()
        );
        let (_, diagnostics) = ptx::parse(&rewritten.text);
        assert!(
            diagnostics.is_empty(),
            "{}: {diagnostics:?}",
            input.display()
        );
        let got = folded(&rewritten.text);
        let expected = input.with_extension("out.ptx");
        if bless {
            fs::write(&expected, &got).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != got {
            different.push(input.display().to_string());
        }
    }
    assert!(
        different.is_empty(),
        "see the change with `BLESS=1 cargo test -p rewrite` and git diff: {different:#?}"
    );
}

#[test]
fn inputs_and_outputs_assemble() {
    let assembler = toolkit::require("ptxas").unwrap();
    for input in inputs() {
        let text = fs::read_to_string(&input).unwrap();
        let (module, _) = ptx::parse(&text);
        // The oldest that this assembler knows, where the file allows it.
        let newer = module.target.iter().any(|target| target == "sm_90");
        let target = if newer { "sm_90" } else { "sm_75" };
        let sampled = Config {
            count_orders: true,
            sample: true,
            ..Config::default()
        };
        let [plain, sampled] = [config(&input), sampled].map(|c| rewrite(&module, &c).text);
        assert!(erase(&sampled) == text, "{}: erasing", input.display());
        let [before, after, _] = [text, plain, sampled].map(|text| {
            let result = stats::assemble(&assembler, &text, target);
            result.unwrap_or_else(|error| panic!("{}: {error}", input.display()))
        });
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before.name, after.name);
            assert!(before.registers > 0 && before.code_bytes > 0, "{before:?}");
            assert!(after.code_bytes > before.code_bytes, "{before:?} {after:?}");
        }
    }
}

/// The folder `journal` is for what keeps one, and `copies` for what the fence rule counts.
fn config(input: &Path) -> Config {
    let pass = |name: &str| input.parent().is_some_and(|pass| pass.ends_with(name));
    Config {
        journal: pass("journal"),
        count_orders: pass("copies"),
        ..Config::default()
    }
}

/// The text without the parts that belong to `device`.
fn folded(text: &str) -> String {
    // The text has their calls and the functions themselves: these call no others.
    let functions = device::functions([text]);
    let text = match functions.is_empty() {
        true => text.to_owned(),
        false => text.replace(&functions, "\n// the functions of device/check.ptx\n"),
    };
    let mut out = String::new();
    let mut fast = false;
    for line in text.lines() {
        // From the first line with a register of the fast path's to the branch on its result.
        let names = line.contains("%crc_f_") || line.starts_with("sub.s64 \t%crc_offset");
        if names && !fast && !line.contains(".reg") {
            out.push_str("// fast path\n");
            fast = true;
        }
        fast &= !line.contains("%crc_hit bra");
        if !fast && !names {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

fn inputs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folders = fs::read_dir(root).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let mut inputs: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    inputs.retain(|path| !path.to_string_lossy().ends_with(".out.ptx"));
    inputs.sort();
    inputs
}
