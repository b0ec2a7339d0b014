//! Every file of a crate's `tests` folder is part of one of its test programs.

use super::{File, Tree};

/// In the manifest of a crate that lists its test programs.
const BY_NAME: &str = "\nautotests = false\n";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let manifests = tree
        .with_extension("toml")
        .filter(|file| file.text.contains(BY_NAME));
    manifests
        .flat_map(|manifest| left_out(tree, manifest))
        .map(|path| format!("{path}: neither a `[[test]]` of its crate nor a module of main.rs"))
        .collect()
}

fn left_out<'a>(tree: &'a Tree, manifest: &'a File) -> impl Iterator<Item = &'a str> {
    let folder = manifest.path.trim_end_matches("Cargo.toml").to_owned() + "tests/";
    let main = folder.clone() + "main.rs";
    let main = tree.files.iter().find(|file| file.path == main);
    tree.with_extension("rs").filter_map(move |file| {
        let name = file.path.strip_prefix(&folder)?.strip_suffix(".rs")?;
        let ours = !name.contains('/');
        (ours && !is_run(name, &manifest.text, main.map_or("", |main| &main.text)))
            .then_some(file.path.as_str())
    })
}

/// Whether a test file is a program by its manifest, or a module of the one with all others.
fn is_run(name: &str, manifest: &str, main: &str) -> bool {
    let module = format!("mod {name};");
    manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"))
        || main.lines().any(|line| line == module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_program_has_is_seen() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let manifest = "[package]\nautotests = false\n\n[[test]]\nname = \"main\"\n\n[[test]]\nname = \"own\"\n";
        let mut tree = Tree {
            root: std::path::PathBuf::new(),
            files: vec![
                file("a/Cargo.toml", manifest),
                file("a/tests/main.rs", "mod one;\nmod common;\n"),
                file("a/tests/one.rs", ""),
                file("a/tests/own.rs", ""),
                file("a/tests/common/mod.rs", ""),
                file("b/Cargo.toml", "[package]\n"),
                file("b/tests/found.rs", ""),
            ],
        };
        assert_eq!(check(&tree), Vec::<String>::new());
        tree.files.push(file("a/tests/lost.rs", ""));
        let problems = check(&tree);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("a/tests/lost.rs: "), "{problems:?}");
    }
}
