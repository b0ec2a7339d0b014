//! Completions for shells, and manual pages, made from the definition of the command line.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::console;
use crate::exit::{INTERNAL, Stop};

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<u8, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut whole(), "cudarun-check", &mut script);
    console::out(format_args!("{}", String::from_utf8_lossy(&script)));
    Ok(0)
}

/// Writes a manual page for the command and one for each subcommand into a folder.
pub(crate) fn manual(folder: &Path) -> Result<u8, Stop> {
    match clap_mangen::generate_to(whole(), folder) {
        Ok(()) => Ok(0),
        Err(error) => {
            let text = format!("cannot write manual pages to {}: {error}", folder.display());
            Err(Stop::new(INTERNAL, text))
        }
    }
}

/// The command line with the options of `run` at its top, where they may be left without `run`.
fn whole() -> Command {
    let command = Cli::command();
    let of_run = command.find_subcommand("run").into_iter();
    let options: Vec<_> = { of_run.flat_map(Command::get_opts) }.cloned().collect();
    command.args(options).args_conflicts_with_subcommands(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_run_are_completed_without_it() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut whole(), "cudarun-check", &mut script);
            let script = String::from_utf8(script).unwrap();
            let lines = script.lines().filter(|line| line.contains("schedules"));
            // At the top and after `run`.
            assert!(lines.count() >= 2, "{shell}: {script}");
        }
    }

    #[test]
    fn every_subcommand_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        manual(folder.path()).unwrap();
        for name in ["", "-run", "-report", "-explain"] {
            let path = folder.path().join(format!("cudarun-check{name}.1"));
            let page = std::fs::read_to_string(&path).unwrap();
            assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
        }
    }
}
