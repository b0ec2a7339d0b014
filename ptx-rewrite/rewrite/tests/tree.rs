//! Every `.ptx` file of the tree that is not a template: the checks come out again, the rewritten
//! text parses without a remark, and the real assembler takes it for three architectures.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ptx::ast::Module;
use rewrite::stats::Accepted;
use rewrite::{Config, Rewritten, erase, rewrite, rewrite_provable};

const ARCHITECTURES: [&str; 3] = ["sm_75", "sm_80", "sm_90"];
/// The one for which modules are assembled as if all their accesses could be proved.
const PROVABLE: &str = "sm_80";
/// The one for which all checks are called.
const CALLED: &str = "sm_75";

#[test]
fn checks_can_be_erased_and_parse() {
    let files = files().len();
    assert!(files > 20, "only {files} files found");
    let mut checked = 0;
    let mut copies = 0;
    let ways = |of| [false, true].map(|provable| (of, provable));
    let all: Vec<_> = with_journal().collect();
    for ((path, text, journal), provable) in all.iter().flat_map(ways) {
        let (module, _) = ptx::parse(text);
        let config = Config {
            first_site: 7,
            journal: *journal,
            most_inlined: provable.then_some(0),
            ..Config::default()
        };
        let rewritten = made(&module, &config, provable);
        copies += rewritten.kernels.iter().filter(|kernel| kernel.own).count();
        assert!(
            erase(&rewritten.text) == *text,
            "{}: erasing",
            path.display()
        );
        let (again, diagnostics) = ptx::parse(&rewritten.text);
        assert!(
            ptx::print::module(&again) == rewritten.text,
            "{}: printing",
            path.display()
        );
        assert!(
            diagnostics.is_empty(),
            "{}: {diagnostics:?}",
            path.display()
        );
        assert!(
            rewritten
                .sites
                .iter()
                .zip(7..)
                .all(|(site, id)| site.id == id)
        );
        checked += rewritten.sites.len();
        let list = Config {
            list: true,
            ..config
        };
        let listed = made(&module, &list, provable);
        assert_eq!(listed.sites, rewritten.sites, "{}", path.display());
        assert_eq!(listed.kernels, rewritten.kernels, "{}", path.display());
    }
    assert!(checked > 50, "only {checked} sites");
    assert!(copies > 20, "only {copies} kernels have their own code");
}

/// Rewrites a module; `provable` tells that all its accesses may be proved.
fn made(module: &Module, config: &Config, provable: bool) -> Rewritten {
    match provable {
        true => rewrite_provable(module, config, &|_| Some((0..1 << 16).collect())),
        false => rewrite(module, config),
    }
}

#[test]
fn the_assembler_takes_what_we_emit() {
    let assembler = toolkit::require("ptxas").unwrap();
    let files = Mutex::new(with_journal());
    let next = || files.lock().unwrap().next();
    let accepted = Accepted::default();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((path, text, journal)) = next() {
                    assemble_all(&assembler, &path, &text, journal, &accepted);
                }
            });
        }
    });
    let functions = accepted.functions();
    assert!(functions > 40, "only {functions} functions were assembled");
}

/// Fails where ptxas takes a file without checks for an architecture, and not with them.
fn assemble_all(assembler: &Path, path: &Path, text: &str, journal: bool, accepted: &Accepted) {
    let (module, _) = ptx::parse(text);
    let target = text
        .lines()
        .find(|line| line.starts_with(".target"))
        .unwrap_or_default();
    for architecture in ARCHITECTURES {
        let config = Config {
            journal,
            most_inlined: (architecture == CALLED).then_some(0),
            ..Config::default()
        };
        let rewritten = made(&module, &config, architecture == PROVABLE);
        // A module for a newer target does not assemble for an older one.
        let retargeted = rewritten
            .text
            .replace(target, &format!(".target {architecture}"));
        let Err(error) = accepted.accepts(assembler, &retargeted, architecture) else {
            continue;
        };
        let original = text.replace(target, &format!(".target {architecture}"));
        assert!(
            accepted
                .accepts(assembler, &original, architecture)
                .is_err(),
            "{} for {architecture}: {error}",
            path.display()
        );
    }
}

/// The files, and once more those that have kernels that can keep a journal.
fn with_journal() -> impl Iterator<Item = (PathBuf, String, bool)> {
    let keeps = |text: &str| {
        let config = Config {
            journal: true,
            ..Config::default()
        };
        let kernels = rewrite(&ptx::parse(text).0, &config).kernels;
        kernels.iter().any(|kernel| kernel.journaled)
    };
    files().into_iter().flat_map(move |(path, text)| {
        let again = keeps(&text).then(|| (path.clone(), text.clone(), true));
        [(path, text, false)].into_iter().chain(again)
    })
}

/// The files under `tests/` without `${…}` placeholders.
fn files() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests"),
        &mut found,
    );
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        (!text.contains("${")).then_some((path, text))
    };
    found.into_iter().filter_map(read).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            found.push(path);
        }
    }
    found.sort();
}
