//! `cargo xtask dist`: the folder that can be installed, stripped of symbols ([`crate::package`] packs it).
//!
//! ```text
//! <target>/dist/bin/cudarun-check
//! <target>/dist/lib/cudarun-check/{libcuda.so.1,libcuda.so,libcudart.so.12,libcudart.so.13,audit.so}
//! <target>/dist/lib/cudarun-check/gpu/{libcuda.so.1,libcuda.so}
//! <target>/dist/lib/cudarun-check/ptxas
//! ```
//! The libraries are linked here and not by cargo, for two reasons.
//! They need version nodes and sonames that cargo cannot give, and a `libcuda.so` in cargo's target folder would be
//! found by our own tests in place of the driver.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::command;
use crate::workspace::Workspace;

/// A shared library made from one of the shims.
struct Library {
    /// Where it is, below the folder of the libraries; empty for that folder.
    folder: &'static str,
    /// The file's name, and what programs ask for.
    soname: &'static str,
    /// The static library it is made of.
    archive: &'static str,
    /// The version node of every exported name; nothing for a library without versions.
    version: Option<&'static str>,
    /// What it exports, as patterns of the linker.
    exports: &'static [&'static str],
    /// Further names of the same file.
    links: &'static [&'static str],
}

const DRIVER: &str = "cudarun_shim_cuda";
const RUNTIME: &str = "cudarun_shim_cudart";
const AUDIT: &str = "cudarun_shim_audit";
const INTERPOSER: &str = "cudarun_shim_interposer";
/// What Triton runs in place of ptxas.
const PTXAS: &str = include_str!("dist/ptxas.sh");
/// What programs on a GPU get, apart from what stands in for one.
const GPU: &str = "gpu";

/// The crates that [`LIBRARIES`] and the command are made from.
pub const PACKAGES: [&str; 5] = [
    "cudarun-check",
    "shim-cuda",
    "shim-cudart",
    "shim-interposer",
    "shim-audit",
];

const LIBRARIES: [Library; 5] = [
    Library {
        folder: "",
        soname: "libcuda.so.1",
        archive: DRIVER,
        version: None,
        exports: &["cu*", "InitializeInjectionNvtx2"],
        links: &["libcuda.so"],
    },
    Library {
        folder: "",
        soname: "libcudart.so.12",
        archive: RUNTIME,
        version: Some("libcudart.so.12"),
        exports: &["cuda*", "__cuda*"],
        links: &[],
    },
    Library {
        folder: "",
        soname: "libcudart.so.13",
        archive: RUNTIME,
        version: Some("libcudart.so.13"),
        exports: &["cuda*", "__cuda*"],
        links: &[],
    },
    Library {
        folder: GPU,
        soname: "libcuda.so.1",
        archive: INTERPOSER,
        version: None,
        exports: &["cu*", "InitializeInjectionNvtx2"],
        links: &["libcuda.so"],
    },
    Library {
        folder: "",
        soname: "audit.so",
        archive: AUDIT,
        version: None,
        exports: &["la_*"],
        links: &[],
    },
];

/// How the command and its libraries are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As users get them.
    Release,
    /// As `cargo test` compiles them, with assertions and checks for overflow: nothing is compiled twice for tests of
    /// programs.
    Test,
}

impl Profile {
    /// The folder below the target folder.
    fn folder(self) -> &'static str {
        match self {
            Profile::Release => "dist",
            Profile::Test => "dist-test",
        }
    }

    /// Options of cargo that compile [`PACKAGES`].
    fn options(self) -> Vec<&'static str> {
        match self {
            Profile::Release => {
                let packages = PACKAGES.iter().flat_map(|name| ["-p", name]);
                ["build", "--release"].into_iter().chain(packages).collect()
            }
            // Of the whole workspace: for some of the packages cargo would choose other features, and compile again.
            Profile::Test => vec!["test", "--workspace", "--no-run"],
        }
    }
}

/// What [`build`] has made.
#[derive(Debug, Clone)]
pub struct Dist {
    /// The folder with `bin` and `lib`.
    pub root: PathBuf,
}

impl Dist {
    /// The folder that `build` fills, whether or not it has.
    pub fn of(workspace: &Workspace, profile: Profile) -> Dist {
        Dist {
            root: workspace.target.join(profile.folder()),
        }
    }

    /// The command.
    pub fn tool(&self) -> PathBuf {
        self.root.join("bin/cudarun-check")
    }

    /// The folder of the shared libraries.
    pub fn libraries(&self) -> PathBuf {
        self.root.join("lib/cudarun-check")
    }

    /// Prints where the command is; true, as a command's outcome.
    pub fn announce(&self) -> bool {
        println!("{}", self.tool().display());
        true
    }
}

/// Builds the command and the libraries.
pub fn build(workspace: &Workspace, profile: Profile) -> Result<Dist> {
    let built = cargo_build(workspace, profile)?;
    let dist = Dist::of(workspace, profile);
    std::fs::create_dir_all(dist.root.join("bin"))?;
    std::fs::create_dir_all(dist.libraries().join(GPU))?;
    let tool = built
        .get("cudarun-check")
        .context("cargo did not build cudarun-check")?;
    // Copied beside and renamed: a running command keeps its file.
    let beside = dist
        .root
        .join(format!("bin/.cudarun-check.{}", std::process::id()));
    let mut strip = Command::new(std::env::var_os("STRIP").unwrap_or_else(|| "strip".into()));
    command::output(strip.arg("-o").arg(&beside).arg(tool)).context(
        "stripping needs binutils, which come with a C compiler: install them, or set STRIP",
    )?;
    std::fs::rename(&beside, dist.tool())?;
    for library in &LIBRARIES {
        let archive = built
            .get(library.archive)
            .with_context(|| format!("cargo did not build {}", library.archive))?;
        link(library, archive, &dist.libraries().join(library.folder))?;
    }
    let ptxas = dist.libraries().join("ptxas");
    std::fs::write(&ptxas, PTXAS)?;
    std::fs::set_permissions(&ptxas, Permissions::from_mode(0o755))?;
    Ok(dist)
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    profile: Compiled,
    #[serde(default)]
    target: Target,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize, Default)]
struct Target {
    name: String,
}

#[derive(Deserialize, Default)]
struct Compiled {
    /// With the harness that runs the target's tests.
    test: bool,
}

/// The executable or static library of each target, by the target's name.
fn cargo_build(workspace: &Workspace, profile: Profile) -> Result<BTreeMap<String, PathBuf>> {
    let mut cargo = workspace.cargo(&profile.options());
    cargo.arg("--message-format=json-render-diagnostics");
    cargo.stderr(Stdio::inherit());
    let output = cargo.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("{} failed", command::describe(&cargo));
    }
    let mut built = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Message>(line) else {
            continue;
        };
        if message.reason != "compiler-artifact" || message.profile.test {
            continue;
        }
        let archive = message
            .filenames
            .into_iter()
            .find(|file| file.extension().is_some_and(|end| end == "a"));
        if let Some(file) = message.executable.or(archive) {
            built.insert(message.target.name, file);
        }
    }
    Ok(built)
}

/// Links one archive into a shared library with exactly the names we want outside.
fn link(library: &Library, archive: &Path, folder: &Path) -> Result<()> {
    let script = folder.join(format!(".{}.map.{}", library.soname, std::process::id()));
    let beside = folder.join(format!(".{}.{}", library.soname, std::process::id()));
    std::fs::write(&script, version_script(library))?;
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-shared", "-o"]).arg(&beside);
    cc.arg("-Wl,--whole-archive")
        .arg(archive)
        .arg("-Wl,--no-whole-archive");
    cc.arg(format!("-Wl,-soname,{}", library.soname));
    cc.arg(format!("-Wl,--version-script={}", script.display()));
    cc.args([
        "-Wl,-Bsymbolic",
        "-Wl,-z,nodelete",
        "-Wl,-z,now",
        "-Wl,-z,relro",
        "-Wl,--gc-sections",
        "-Wl,--strip-all",
    ]);
    cc.args([
        "-Wl,--as-needed",
        "-lgcc_s",
        "-lutil",
        "-lrt",
        "-lpthread",
        "-lm",
        "-ldl",
        "-lc",
    ]);
    let linked =
        command::output(&mut cc).context("linking needs a C compiler: install gcc, or set CC");
    std::fs::remove_file(&script)?;
    linked?;
    std::fs::rename(&beside, folder.join(library.soname))?;
    for name in library.links {
        let link = folder.join(name);
        if !link.is_symlink() {
            std::os::unix::fs::symlink(library.soname, link)?;
        }
    }
    Ok(())
}

fn version_script(library: &Library) -> String {
    let node = library
        .version
        .map(|version| format!("{version} "))
        .unwrap_or_default();
    format!(
        "{node}{{ global: {}; local: *; }};\n",
        library.exports.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_carries_a_version_node_and_the_driver_none() {
        let script = |soname| {
            version_script(
                LIBRARIES
                    .iter()
                    .find(|library| library.soname == soname)
                    .unwrap(),
            )
        };
        assert_eq!(
            script("libcuda.so.1"),
            "{ global: cu*; InitializeInjectionNvtx2; local: *; };\n"
        );
        assert_eq!(
            script("libcudart.so.13"),
            "libcudart.so.13 { global: cuda*; __cuda*; local: *; };\n"
        );
    }
}
