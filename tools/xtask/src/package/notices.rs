//! The licences of the crates that are linked into what users get.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::command;
use crate::dist::PACKAGES;
use crate::workspace::Workspace;

/// The file in a package.
pub(super) const FILE: &str = "THIRD-PARTY-LICENSES.txt";

/// How files with licences begin, in capitals.
const TEXTS: [&str; 5] = ["LICEN", "COPYING", "COPYRIGHT", "NOTICE", "UNLICEN"];

/// What `cargo metadata` says of this workspace and all that it depends on.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    /// An SPDX expression.
    license: Option<String>,
    authors: Vec<String>,
    repository: Option<String>,
    manifest_path: PathBuf,
    /// Nothing for a crate that lies here.
    source: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `dev` or `build`; nothing for an ordinary dependency.
    kind: Option<String>,
}

/// The text of [`FILE`].
///
/// # Errors
/// When cargo fails, or a crate names no licence.
pub(super) fn text(workspace: &Workspace) -> Result<String> {
    let machine = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = workspace.cargo(&["metadata", "--format-version", "1", "--locked"]);
    let output = command::output(cargo.args(["--filter-platform", &machine]))?;
    let metadata: Metadata =
        serde_json::from_str(&output).context("cannot read what `cargo metadata` printed")?;
    notices(&linked(&metadata, &PACKAGES))
}

/// The crates from elsewhere that are linked into some crates of the workspace, in the order of their names.
fn linked<'a>(metadata: &'a Metadata, roots: &[&str]) -> Vec<&'a Package> {
    let packages = metadata.packages.iter().map(|of| (of.id.as_str(), of));
    let packages: BTreeMap<&str, &Package> = packages.collect();
    let nodes = metadata.resolve.nodes.iter().map(|of| (of.id.as_str(), of));
    let nodes: BTreeMap<&str, &Node> = nodes.collect();
    let is_root =
        |package: &&Package| package.source.is_none() && roots.contains(&package.name.as_str());
    let mut open: Vec<&Package> = metadata.packages.iter().filter(is_root).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(package) = open.pop() {
        // A macro runs in the compiler.
        if package.is_macro() || !seen.insert(package.id.as_str()) {
            continue;
        }
        if package.source.is_some() {
            found.push(package);
        }
        let node = nodes.get(package.id.as_str());
        let used = node.into_iter().flat_map(|node| &node.deps);
        let used = used.filter(|of| of.dep_kinds.iter().any(|of| of.kind.is_none()));
        open.extend(used.filter_map(|of| packages.get(of.pkg.as_str())));
    }
    found.sort_by_key(|package| (&package.name, &package.version));
    found
}

impl Package {
    fn is_macro(&self) -> bool {
        let mut kinds = self.targets.iter().flat_map(|target| &target.kind);
        kinds.any(|kind| kind == "proc-macro")
    }

    /// The files with its licences, in the order of their names.
    fn texts(&self) -> Result<Vec<PathBuf>> {
        let folder = self.manifest_path.parent();
        let folder = folder.context("a manifest lies in a folder")?;
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("cannot read {}", folder.display()))?;
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().to_uppercase();
            if entry.file_type()?.is_file() && TEXTS.iter().any(|text| name.starts_with(text)) {
                files.push(entry.path());
            }
        }
        files.sort();
        Ok(files)
    }
}

/// A list of crates with their licences, and each text once.
fn notices(packages: &[&Package]) -> Result<String> {
    let mut text = "The programs and libraries of cudarun-check contain the Rust standard library \
        (MIT OR Apache-2.0, https://github.com/rust-lang/rust) and the following crates. \
        Below the list are the licence files of the crates.\n\n"
        .to_owned();
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let named = format!("{} {}", package.name, package.version);
        let Some(license) = &package.license else {
            bail!("{named} names no licence in its manifest");
        };
        let repository = package.repository.as_deref().unwrap_or("no repository");
        writeln!(text, "{named}: {license}, {repository}")?;
        let files = package.texts()?;
        if files.is_empty() {
            let authors = package.authors.join(", ");
            writeln!(text, "    no licence file in the crate; authors: {authors}")?;
        }
        for file in files {
            users
                .entry(read(&file)?)
                .or_default()
                .push(format!("{named} ({})", name(&file)));
        }
    }
    for (license, users) in users {
        let line = "-".repeat(80);
        write!(
            text,
            "\n{line}\n{}\n{line}\n\n{license}\n",
            users.join("\n")
        )?;
    }
    Ok(text)
}

fn name(file: &Path) -> std::borrow::Cow<'_, str> {
    file.file_name().unwrap_or_default().to_string_lossy()
}

fn read(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).trim().replace("\r\n", "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, source: Option<&str>, kind: &str, folder: &Path) -> serde_json::Value {
        serde_json::json!({
            "id": name, "name": name, "version": "1.0.0", "license": "MIT", "authors": ["A. Uthor"],
            "repository": null, "manifest_path": folder.join(name).join("Cargo.toml"), "source": source,
            "targets": [{ "kind": [kind] }],
        })
    }

    fn uses(name: &str, used: &[(&str, Option<&str>)]) -> serde_json::Value {
        let deps = used.iter().map(
            |(name, kind)| serde_json::json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] }),
        );
        serde_json::json!({ "id": name, "deps": deps.collect::<Vec<_>>() })
    }

    #[test]
    fn what_is_linked_is_listed_with_each_text_once() {
        let folder = tempfile::tempdir().unwrap();
        for (name, files) in [
            ("direct", &["LICENSE-MIT"][..]),
            ("through", &["license.txt"]),
            ("bare", &[]),
        ] {
            let dir = folder.path().join(name);
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join("README.md"), "no licence").unwrap();
            for file in files {
                std::fs::write(dir.join(file), "Do what you like.\r\n").unwrap();
            }
        }
        let other = Some("registry");
        let of = |name, source, kind| package(name, source, kind, folder.path());
        let metadata = serde_json::from_value(serde_json::json!({
            "packages": [
                of("tool", None, "bin"), of("ours", None, "lib"), of("apart", None, "lib"),
                of("direct", other, "lib"), of("through", other, "lib"), of("bare", other, "lib"),
                of("derive", other, "proc-macro"), of("tests", other, "lib"), of("compiled-in", other, "lib"),
            ],
            "resolve": { "nodes": [
                uses("tool", &[("ours", None), ("direct", None), ("tests", Some("dev"))]),
                uses("ours", &[("through", None), ("derive", None), ("compiled-in", Some("build"))]),
                uses("through", &[("bare", None)]),
                uses("derive", &[("compiled-in", None)]),
                uses("apart", &[("compiled-in", None)]),
            ] },
        }));
        let metadata: Metadata = metadata.unwrap();
        let found = linked(&metadata, &["tool"]);
        let names: Vec<_> = found.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["bare", "direct", "through"]);
        let text = notices(&found).unwrap();
        assert!(text.contains("\nbare 1.0.0: MIT, no repository\n    no licence file in the crate; authors: A. Uthor\n"), "{text}");
        assert!(
            text.contains("\ndirect 1.0.0 (LICENSE-MIT)\nthrough 1.0.0 (license.txt)\n"),
            "{text}"
        );
        assert_eq!(text.matches("Do what you like.").count(), 1);
        assert!(!text.contains("\r"));
    }

    #[test]
    fn a_crate_without_a_licence_is_not_packed() {
        let folder = tempfile::tempdir().unwrap();
        let mut unlicensed = package("unlicensed", Some("registry"), "lib", folder.path());
        unlicensed["license"] = serde_json::Value::Null;
        let unlicensed: Package = serde_json::from_value(unlicensed).unwrap();
        let error = notices(&[&unlicensed]).unwrap_err().to_string();
        assert_eq!(error, "unlicensed 1.0.0 names no licence in its manifest");
    }
}
