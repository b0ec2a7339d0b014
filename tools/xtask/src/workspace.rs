//! Where things are: what `cargo metadata` says about this workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::command;

/// The workspace this crate was built from.
#[derive(Debug)]
pub struct Workspace {
    /// The folder of the root manifest.
    pub root: PathBuf,
    /// Where cargo builds, wherever CARGO_TARGET_DIR or a configuration file put it.
    pub target: PathBuf,
    /// The member crates.
    pub packages: Vec<Package>,
}

/// A crate of the workspace.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name in its manifest.
    pub name: String,
    /// Its manifest.
    pub manifest_path: PathBuf,
    /// What it depends on, other workspaces' crates included.
    pub dependencies: Vec<Dependency>,
}

/// One dependency of a crate.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The name of the crate depended on.
    pub name: String,
    /// `dev` or `build`; nothing for an ordinary dependency.
    pub kind: Option<String>,
    /// Where it is, for a crate of this workspace.
    pub path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    target_directory: PathBuf,
    packages: Vec<Package>,
}

impl Workspace {
    /// Asks cargo.
    pub fn locate() -> Result<Workspace> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let output = command::output(
            Command::new(cargo())
                .args([
                    "metadata",
                    "--no-deps",
                    "--format-version",
                    "1",
                    "--manifest-path",
                ])
                .arg(manifest),
        )?;
        let metadata: Metadata =
            serde_json::from_str(&output).context("cannot read what `cargo metadata` printed")?;
        Ok(Workspace {
            root: metadata.workspace_root,
            target: metadata.target_directory,
            packages: metadata.packages,
        })
    }

    /// A cargo command that runs in the root folder.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo());
        command.current_dir(&self.root).args(arguments);
        command
    }
}

/// The cargo that runs us, else the one on PATH.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
