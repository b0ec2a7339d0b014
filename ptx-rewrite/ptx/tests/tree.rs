//! Every `.ptx` file of the project: `print(parse(text)) == text`, and nothing in it that the
//! parser does not know, but for the files that are there to show errors.

use std::path::{Path, PathBuf};

#[test]
fn every_ptx_file_of_the_project() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    find(&root, &mut files);
    assert!(
        files.len() >= 3,
        "found only {files:?}, not even the samples of this crate"
    );
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8(bytes).unwrap_or_else(|_| panic!("{path:?} is not UTF-8"));
        let (module, diagnostics) = ptx::parse(&text);
        assert_eq!(ptx::print::module(&module), text, "{path:?}");
        let shows_errors = path.components().any(|part| part.as_os_str() == "err");
        // Test files with revisions hold `${revision}` where the language has a word.
        if !shows_errors && !text.contains("${") {
            let first = diagnostics.first().map(|one| {
                let (line, column) = module.line_column(one.span.start);
                format!("{}:{line}:{column}: {}", path.display(), one.message)
            });
            assert_eq!(first, None);
        }
    }
}

/// The `.ptx` files under `folder`, but for build outputs and hidden folders.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type();
        if kind.as_ref().is_ok_and(|kind| kind.is_dir()) {
            if name != "target" && !name.starts_with('.') {
                find(&path, files);
            }
        } else if kind.is_ok_and(|kind| kind.is_file()) && name.ends_with(".ptx") {
            files.push(path);
        }
    }
}
