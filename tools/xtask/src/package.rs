//! `cargo xtask package`: what users install. Each package is installed in a temporary folder and tried.

mod notices;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::command;
use crate::dist::{self, Profile};
use crate::tidy::papers::links;
use crate::workspace::Workspace;

/// A kind of package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PackageKind {
    /// A `.tar.xz` that runs wherever it is unpacked.
    Archive,
    /// A Debian package.
    Deb,
    /// A Python wheel; `pip install` puts the command on PATH.
    Wheel,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
const README: &str = "README.md";
/// What is packed beside `docs`.
const TEXTS: [&str; 5] = [
    README,
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];
const SUMMARY: &str = "Finds data races in CUDA programs";
/// What a wheel is made with.
const PYPROJECT: &str = include_str!("package/pyproject.toml");
const HOOK: &str = include_str!("package/hatch_build.py");

/// Makes packages in `<target>/package`; all kinds, if none is given.
pub fn run(workspace: &Workspace, kinds: &[PackageKind]) -> Result<bool> {
    let made = workspace.target.join("package");
    std::fs::create_dir_all(&made)?;
    let scratch = tempfile::tempdir()?;
    let root = staged(workspace, scratch.path())?;
    let all = PackageKind::value_variants();
    for kind in if kinds.is_empty() { all } else { kinds } {
        let (path, tool) = match kind {
            PackageKind::Archive => archive(&root, &made, scratch.path())?,
            PackageKind::Deb => deb(&root, &made, scratch.path())?,
            PackageKind::Wheel => wheel(&root, &made, scratch.path())?,
        };
        command::run(Command::new(&tool).arg("doctor"))
            .with_context(|| format!("{} does not work once installed", path.display()))?;
        let size = std::fs::metadata(&path)?.len();
        println!("{}  {:.1} MB", path.display(), size as f64 / 1e6);
    }
    Ok(true)
}

/// The machine's architecture, as `uname -m` calls it.
fn architecture() -> &'static str {
    std::env::consts::ARCH
}

/// A folder with `bin`, `lib` and `share`.
fn staged(workspace: &Workspace, scratch: &Path) -> Result<PathBuf> {
    let dist = dist::build(workspace, Profile::Release)?;
    let root = scratch.join(format!("cudarun-check-{VERSION}"));
    copy(&dist.root, &root)?;
    let share = root.join("share");
    for (shell, path) in [
        ("bash", "bash-completion/completions/cudarun-check"),
        ("zsh", "zsh/site-functions/_cudarun-check"),
        ("fish", "fish/vendor_completions.d/cudarun-check.fish"),
    ] {
        let path = share.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(&share))?;
        let mut tool = Command::new(dist.tool());
        std::fs::write(path, command::output(tool.args(["completions", shell]))?)?;
    }
    let manual = share.join("man/man1");
    std::fs::create_dir_all(&manual)?;
    command::output(Command::new(dist.tool()).arg("manual").arg(&manual))?;
    let about = share.join("doc/cudarun-check");
    std::fs::create_dir_all(&about)?;
    for file in TEXTS {
        std::fs::copy(workspace.root.join(file), about.join(file))?;
    }
    std::fs::write(about.join(notices::FILE), notices::text(workspace)?)?;
    copy(&workspace.root.join("docs"), &about.join("docs"))?;
    links_lead_somewhere(&about.join(README))?;
    Ok(root)
}

/// Complains about a link of a page to a file that is not beside it.
fn links_lead_somewhere(page: &Path) -> Result<()> {
    let text = std::fs::read_to_string(page)?;
    let folder = page.parent().context("a page lies in a folder")?;
    match text
        .lines()
        .flat_map(links)
        .find(|link| !folder.join(link).exists())
    {
        Some(link) => bail!("{} links to {link}, which is not packed", page.display()),
        None => Ok(()),
    }
}

/// Copies a folder with the links in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    command::run(Command::new("cp").arg("-a").arg(from).arg(to))
}

/// The archive, and a command in a folder where it was unpacked, behind a link.
fn archive(root: &Path, made: &Path, scratch: &Path) -> Result<(PathBuf, PathBuf)> {
    let name = format!("cudarun-check-{VERSION}-{}-linux.tar.xz", architecture());
    let path = made.join(name);
    let mut tar = Command::new("tar");
    tar.args(["--owner=0", "--group=0", "--sort=name", "-cJf"])
        .arg(&path)
        .arg("-C")
        .arg(scratch)
        .args(root.file_name());
    command::output(&mut tar).context("an archive needs tar and xz: install xz-utils")?;
    let elsewhere = scratch.join("a folder with spaces");
    std::fs::create_dir_all(&elsewhere)?;
    let mut tar = Command::new("tar");
    command::output(tar.arg("-xf").arg(&path).arg("-C").arg(&elsewhere))?;
    let unpacked = elsewhere.join(root.file_name().unwrap_or_default());
    let link = scratch.join("link");
    std::os::unix::fs::symlink(unpacked.join("bin/cudarun-check"), &link)?;
    Ok((path, link))
}

/// The Debian package, and the command that it installs.
fn deb(root: &Path, made: &Path, scratch: &Path) -> Result<(PathBuf, PathBuf)> {
    let machine = match architecture() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let tree = scratch.join("deb");
    std::fs::create_dir_all(tree.join("DEBIAN"))?;
    copy(root, &tree.join("usr"))?;
    let about = tree.join("usr/share/doc/cudarun-check");
    std::fs::write(
        about.join("copyright"),
        copyright(&std::fs::read_to_string(about.join("LICENSE-MIT"))?)?,
    )?;
    let mut du = Command::new("du");
    let du = command::output(du.args(["-sk", "--apparent-size"]).arg(tree.join("usr")))?;
    let size = du.split_whitespace().next().context("du says no size")?;
    let control = format!(
        "Package: cudarun-check\nVersion: {VERSION}\nArchitecture: {machine}\n\
         Maintainer: The cudarun-check authors <cudarun-check@localhost>\n\
         Installed-Size: {size}\nDepends: libc6 (>= 2.34), libgcc-s1\nSection: devel\nPriority: optional\n\
         Description: {SUMMARY}\n"
    );
    std::fs::write(tree.join("DEBIAN/control"), control)?;
    let path = made.join(format!("cudarun-check_{VERSION}_{machine}.deb"));
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&tree);
    command::output(build.arg(&path)).context("a Debian package needs dpkg-deb")?;
    let installed = scratch.join("deb installed");
    command::output(
        Command::new("dpkg-deb")
            .arg("-x")
            .arg(&path)
            .arg(&installed),
    )?;
    Ok((path, installed.join("usr/bin/cudarun-check")))
}

/// Who owns a Debian package's files, and under which licences, in Debian's machine-readable form.
fn copyright(mit: &str) -> Result<String> {
    let owner = mit
        .lines()
        .find_map(|line| line.strip_prefix("Copyright (c) "))
        .context("LICENSE-MIT names no owner")?;
    let file = notices::FILE;
    let mut text = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: cudarun-check\n\
         Comment: The licences of the Rust crates that are linked in are in {file}.\n\nFiles: *\nCopyright: {owner}\nLicense: Expat or Apache-2.0\n\n\
         License: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n\n\
         License: Expat\n"
    );
    let body = mit
        .lines()
        .skip_while(|line| !line.starts_with("Permission"));
    for line in body {
        let line = if line.is_empty() { "." } else { line };
        text.extend([" ", line, "\n"]);
    }
    Ok(text)
}

/// The wheel, and the command in a fresh virtual environment that has nothing else.
fn wheel(root: &Path, made: &Path, scratch: &Path) -> Result<(PathBuf, PathBuf)> {
    std::fs::write(
        root.join("pyproject.toml"),
        PYPROJECT.replace("VERSION", VERSION),
    )?;
    std::fs::write(root.join("hatch_build.py"), HOOK)?;
    let python = |folder: &str| -> Result<PathBuf> {
        let folder = scratch.join(folder);
        let mut venv = Command::new("python3");
        command::output(venv.args(["-m", "venv"]).arg(&folder))
            .context("a wheel needs python3 with venv: install python3-venv")?;
        Ok(folder.join("bin"))
    };
    let built = scratch.join("wheels");
    let mut pip = Command::new(python("build")?.join("pip"));
    pip.args(["--quiet", "wheel", "--no-deps", "--wheel-dir"])
        .arg(&built);
    command::output(pip.arg(root)).context("pip cannot build the wheel; it fetches hatchling")?;
    let wheel = { std::fs::read_dir(&built)?.next() }.context("pip has made no wheel")??;
    let path = made.join(wheel.file_name());
    std::fs::copy(wheel.path(), &path)?;
    let fresh = python("fresh")?;
    let mut pip = Command::new(fresh.join("pip"));
    command::output(pip.args(["--quiet", "install", "--no-index"]).arg(&path))?;
    Ok((path, fresh.join("cudarun-check")))
}
