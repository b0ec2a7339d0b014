//! A crate uses crates of lower levels, and none of its own.

use crate::workspace::Workspace;

/// The levels of ARCHITECTURE.md, lowest first.
const LEVELS: [&[&str]; 6] = [
    &["shadow", "ptx", "driver"],
    &["device", "simt", "prove", "report"],
    &["rewrite"],
    &["runtime"],
    &[
        "cudarun-check",
        "shim-audit",
        "shim-cuda",
        "shim-cudart",
        "shim-interposer",
        "filetests",
        "bench-rodinia",
    ],
    &["xtask"],
];

/// Arrows inside a level that tests alone may use.
const TEST_ARROWS: [(&str, &str); 6] = [
    ("cudarun-check", "shim-audit"),
    ("cudarun-check", "shim-cuda"),
    ("cudarun-check", "shim-interposer"),
    ("device", "simt"),
    ("shim-interposer", "shim-cuda"),
    ("shim-interposer", "shim-audit"),
];

pub(super) fn check(workspace: &Workspace) -> Vec<String> {
    let arrows = workspace.packages.iter().flat_map(|package| {
        let inside = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some());
        inside.map(|dependency| {
            (
                package.name.as_str(),
                dependency.name.as_str(),
                dependency.kind.as_deref(),
            )
        })
    });
    let unknown = workspace
        .packages
        .iter()
        .filter(|package| level(&package.name).is_none());
    let unknown = unknown.map(|package| {
        format!(
            "Cargo.toml: crate {} has no level in ARCHITECTURE.md",
            package.name
        )
    });
    unknown
        .chain(arrows.filter_map(|(from, to, kind)| complaint(from, to, kind)))
        .collect()
}

fn complaint(from: &str, to: &str, kind: Option<&str>) -> Option<String> {
    let allowed = match (level(from), level(to)) {
        (Some(from), Some(to)) if from > to => true,
        _ => kind == Some("dev") && TEST_ARROWS.contains(&(from, to)),
    };
    (!allowed).then(|| format!("Cargo.toml: crate {from} must not use {to}"))
}

fn level(name: &str) -> Option<usize> {
    LEVELS.iter().position(|level| level.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_down() {
        assert_eq!(complaint("runtime", "rewrite", None), None);
        assert!(complaint("ptx", "rewrite", None).is_some());
        assert!(complaint("ptx", "shadow", None).is_some());
        assert_eq!(complaint("device", "simt", Some("dev")), None);
        assert!(complaint("device", "simt", None).is_some());
        assert!(complaint("runtime", "runtime-helpers", None).is_some());
    }
}
