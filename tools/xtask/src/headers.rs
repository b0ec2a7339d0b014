//! Headers that programs include and that no library has to be linked for: the device API of cuRAND, and NVTX.
//!
//! They come from two more wheels, of which we keep the headers alone: cuRAND's library, 132 MB, would not run here.
//! They are added to a cached toolkit in place, each file by a rename, so that a toolkit from before there were any
//! stays in use, and other commands may use it meanwhile.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{command, toolkit};

/// Exactly these wheels.
const WHEELS: [&str; 2] = ["nvidia-curand==10.4.0.35", "nvidia-nvtx==13.0.85"];

/// The file in the cached folder that lists the wheels whose headers are there.
const STAMP: &str = ".cudarun-check-headers";

/// Takes the headers out of the wheels in a folder.
const EXTRACT: &str = "
import pathlib, sys, zipfile
for wheel in pathlib.Path(sys.argv[1]).glob('*.whl'):
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if name.startswith('nvidia/cu13/include/'):
                files.extract(name, sys.argv[1])
";

/// Adds the headers to the toolkit `root` in the cached folder `dir`, unless they are there.
/// Most programs need none, so that a failure is reported and not returned.
pub fn ensure(dir: &Path, root: &Path) {
    if present(dir) {
        return;
    }
    println!("fetching the headers of cuRAND and NVTX (60 MB) from PyPI");
    if let Err(error) = fetch(dir, root) {
        println!(
            "warning: programs with curand_kernel.h or nvtx3 cannot be compiled, no headers: {error:#}"
        );
    }
}

fn present(dir: &Path) -> bool {
    std::fs::read_to_string(dir.join(STAMP)).is_ok_and(|stamp| stamp == stamp_text())
}

fn fetch(dir: &Path, root: &Path) -> Result<()> {
    // In the cached folder, so that files can be renamed to their places.
    let work = tempfile::Builder::new()
        .prefix(".headers")
        .tempdir_in(dir)?;
    let mut pip = toolkit::pip("download");
    pip.arg("--dest").arg(work.path()).args(WHEELS);
    toolkit::run_pip(&mut pip)?;
    command::output(
        Command::new("python3")
            .args(["-c", EXTRACT])
            .arg(work.path()),
    )?;
    move_all(
        &work.path().join("nvidia/cu13/include"),
        &root.join("include"),
    )?;
    // Written last: what was interrupted before is done again.
    std::fs::write(dir.join(STAMP), stamp_text()).context("cannot write the stamp")
}

/// Moves the files of a folder, and of the folders in it, over those of another one.
fn move_all(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in
        std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?
    {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            move_all(&entry.path(), &target)?;
        } else {
            std::fs::rename(entry.path(), &target)
                .with_context(|| format!("cannot create {}", target.display()))?;
        }
    }
    Ok(())
}

fn stamp_text() -> String {
    WHEELS.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_join_those_that_are_there() {
        let work = tempfile::tempdir().unwrap();
        let (from, to) = (work.path().join("from"), work.path().join("to"));
        for (folder, file) in [
            (&from, "new.h"),
            (&from, "deep/down/new.h"),
            (&to, "old.h"),
            (&to, "deep/old.h"),
        ] {
            let file = folder.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "text").unwrap();
        }
        move_all(&from, &to).unwrap();
        for file in ["new.h", "deep/down/new.h", "old.h", "deep/old.h"] {
            assert!(to.join(file).is_file(), "{file}");
        }
        assert!(!from.join("new.h").exists());
    }

    #[test]
    fn headers_count_as_present_only_with_the_stamp_of_todays_pins() {
        let work = tempfile::tempdir().unwrap();
        assert!(!present(work.path()));
        std::fs::write(work.path().join(STAMP), "nvidia-curand==1\n").unwrap();
        assert!(!present(work.path()));
        std::fs::write(work.path().join(STAMP), stamp_text()).unwrap();
        assert!(present(work.path()));
    }
}
