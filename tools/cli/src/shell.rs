//! Completions for shells, and manual pages, made from the definition of the command line.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use roff::{Roff, bold, line_break, roman};

use crate::args::Cli;
use crate::console;
use crate::exit::{INTERNAL, Stop};

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<u8, Stop> {
    console::out(format_args!("{}", script(shell)));
    Ok(0)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut whole(), "cudarun-check", &mut script);
    let script = String::from_utf8_lossy(&script);
    match shell {
        Shell::Bash => in_bash(&script),
        Shell::Zsh => in_zsh(&script),
        // A program may stand where a subcommand may; `-f` would leave out files.
        Shell::Fish => script.replace(
            "__fish_cudarun_check_needs_command\" -f -a",
            "__fish_cudarun_check_needs_command\" -a",
        ),
        _ => script.into_owned(),
    }
}

/// Where files are expected, options are completed behind a dash only, so that bash completes files.
fn in_bash(script: &str) -> String {
    // clap_complete 4.6 spells a name with a hyphen in two ways, so that nothing is completed behind a subcommand.
    let script = script.replace("cudarun__subcmd__check", "cudarun__check");
    let takers = takers_of_files(&whole(), "cudarun__check");
    let mut takes_files = false;
    let mut lines = String::new();
    for line in script.lines() {
        let label = line.trim().strip_suffix(')');
        if let Some(label) = label.filter(|label| label.starts_with("cudarun__check")) {
            takes_files = takers.iter().any(|taker| taker == label);
        }
        lines.extend([line, "\n"]);
        if takes_files && line.trim().starts_with("opts=") {
            lines.push_str("            [[ ${cur} == -* ]] || opts=\"\"\n");
        }
    }
    lines
}

/// The labels in bash's script of a command and its subcommands, as far as they take words that are not listed.
fn takers_of_files(command: &Command, label: &str) -> Vec<String> {
    let mut free = command.get_positionals();
    let takes = free.any(|word| word.get_possible_values().is_empty());
    let mut takers: Vec<String> = takes.then(|| label.to_owned()).into_iter().collect();
    for inner in command.get_subcommands() {
        let name = inner.get_name().replace('-', "__");
        takers.extend(takers_of_files(inner, &format!("{label}__subcmd__{name}")));
    }
    takers
}

/// A program may stand where a subcommand may, and its arguments behind it. The colon of a value's name ends it in zsh.
fn in_zsh(script: &str) -> String {
    const COMMANDS: &str = "_describe -t commands 'cudarun-check commands' commands \"$@\"";
    const BEHIND: &str = "case $line[1] in\n";
    let whole = whole();
    let names = whole.get_subcommands().map(Command::get_name);
    let names: Vec<&str> = names.collect();
    let names = names.join(" ");
    script
        .replace(":FORMAT[:FILE]:", ":FORMAT[\\:FILE]:")
        .replace(COMMANDS, &format!("{COMMANDS}\n    _files"))
        .replacen(
            BEHIND,
            &format!("[[ \" {names} help \" == *\" $line[1] \"* ]] || {{ _files && ret=0 }}\n        {BEHIND}"),
            1,
        )
}

/// An entry of a section of a manual page.
#[derive(Clone, Copy)]
struct Entry<'a> {
    name: &'a str,
    text: &'a str,
}

/// Environment variables that the command reads.
const ENVIRONMENT: [Entry<'static>; 6] = [
    Entry {
        name: "CUDARUN_CHECK_OPTIONS",
        text: "Options, quoted as in a shell. They override those of cudarun-check.toml; the command line overrides them.",
    },
    Entry {
        name: "NO_COLOR",
        text: "If it is set and not empty, the output has no colours, unless --color always is given.",
    },
    Entry {
        name: "COLUMNS",
        text: "Width of the report in columns. The default is the width of the terminal.",
    },
    Entry {
        name: "GITHUB_ACTIONS",
        text: "If it is \"true\" and no --format is given, races are printed as GitHub annotations in addition to the text.",
    },
    Entry {
        name: "GITHUB_WORKSPACE",
        text: "Annotations and SARIF name files by their paths below this folder.",
    },
    Entry {
        name: "GITHUB_STEP_SUMMARY",
        text: "A report that is written to this file is appended to it: --format markdown:$GITHUB_STEP_SUMMARY.",
    },
];

/// Writes a manual page for the command and one for each subcommand into a folder.
pub(crate) fn manual(folder: &Path) -> Result<u8, Stop> {
    let written = clap_mangen::generate_to(whole(), folder)
        .and_then(|()| std::fs::write(folder.join("cudarun-check.1"), main_page()?));
    written.map(|()| 0).map_err(|error| {
        let text = format!("cannot write manual pages to {}: {error}", folder.display());
        Stop::new(INTERNAL, text)
    })
}

/// The manual page of the command itself. Its synopsis has the program to run, which is no argument of [`whole`], and the
/// environment and the exit codes have sections of their own.
fn main_page() -> std::io::Result<Vec<u8>> {
    let mut command = whole().disable_help_subcommand(true);
    command.build();
    let help = command.get_after_help().map(ToString::to_string);
    let man = clap_mangen::Man::new(command);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]);
    for arguments in ["[OPTIONS] PROGRAM [ARGUMENTS]...", "COMMAND [OPTIONS] ..."] {
        let arguments = roman(format!(" {arguments}"));
        synopsis.text([bold("cudarun-check"), arguments, line_break()]);
    }
    synopsis.to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    man.render_subcommands_section(&mut page)?;
    entries("ENVIRONMENT", &ENVIRONMENT).to_writer(&mut page)?;
    let help = help.unwrap_or_default();
    entries("EXIT STATUS", &exit_codes(&help)).to_writer(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

fn entries(title: &str, entries: &[Entry<'_>]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [title]);
    for &Entry { name, text } in entries {
        section.control("TP", []);
        section.text([bold(name)]);
        section.text([roman(text)]);
    }
    section
}

/// The exit codes that the end of `--help` lists, with their meanings.
fn exit_codes(help: &str) -> Vec<Entry<'_>> {
    let codes = help.split_once("Exit codes: ");
    let codes = codes.map_or("", |(_, codes)| codes.trim_end_matches('.'));
    let entry = |code| {
        let (name, text) = match str::split_once(code, ' ') {
            Some((number, meaning)) if number.parse::<u8>().is_ok() => (number, meaning),
            _ => ("any other", code),
        };
        Entry { name, text }
    };
    codes.split("; ").map(entry).collect()
}

/// The command line with the options of `run` at its top, where they may stand without `run`, and without what is hidden.
fn whole() -> Command {
    let command = Cli::command();
    let of_run = command.find_subcommand("run").into_iter();
    let options: Vec<_> = { of_run.flat_map(Command::get_opts) }.cloned().collect();
    let shown: Vec<_> = { command.get_subcommands() }
        .filter(|of| !of.is_hide_set())
        .cloned()
        .collect();
    let mut whole = Command::new("cudarun-check").version(env!("CUDARUN_CHECK_VERSION"));
    if let Some(about) = command.get_about() {
        whole = whole.about(about.clone());
    }
    if let Some(help) = command.get_after_help() {
        whole = whole.after_help(help.clone());
    }
    whole
        .args(options)
        .subcommands(shown)
        .args_conflicts_with_subcommands(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_run_are_completed_without_it() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            let lines = script.lines().filter(|line| line.contains("schedules"));
            // At the top and after `run`.
            assert!(lines.count() >= 2, "{shell}: {script}");
        }
    }

    #[test]
    fn bash_completes_what_stands_behind_a_subcommand() {
        for (words, last, completed) in [
            ("--fai", "--fai", "--fail-on"),
            ("run --fai", "--fai", "--fail-on"),
            ("verify --ass", "--ass", "--assume"),
            ("baseline cr", "cr", "create"),
            ("baseline create --bas", "--bas", "--baseline"),
            ("report --format sar", "sar", "sarif"),
            ("report --form", "--form", "--format"),
        ] {
            let all = completed_by_bash(words, last);
            assert!(
                all.split_whitespace().any(|word| word == completed),
                "{words}: {all}"
            );
        }
    }

    /// Where nothing is completed here, bash completes files: `-o default`.
    #[test]
    fn bash_completes_files_where_they_are_expected() {
        for (words, last) in [
            ("report ''", ""),
            ("report runs/a", "runs/a"),
            ("verify ''", ""),
            ("replay ''", ""),
            ("baseline create ''", ""),
        ] {
            assert_eq!(completed_by_bash(words, last).trim(), "", "{words}");
        }
        assert_ne!(completed_by_bash("baseline ''", "").trim(), "");
        assert_ne!(completed_by_bash("doctor ''", "").trim(), "");
    }

    /// What bash offers for the last of some words.
    fn completed_by_bash(words: &str, last: &str) -> String {
        let count = words.split(' ').count();
        let before = words.split(' ').rev().nth(1).unwrap_or("cudarun-check");
        let asks = format!(
            "{}\nCOMP_WORDS=(cudarun-check {words}); COMP_CWORD={count}\n\
             _cudarun__check cudarun-check '{last}' {before}; echo \"${{COMPREPLY[@]}}\"",
            script(Shell::Bash)
        );
        let output = std::process::Command::new("bash")
            .args(["-c", &asks])
            .output();
        let output = output.expect("bash is there");
        assert!(output.stderr.is_empty(), "{words}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn what_is_hidden_is_not_completed() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            assert!(!script.contains("probe-driver"), "{shell}");
            assert!(!script.contains("manual pages"), "{shell}");
        }
    }

    #[test]
    fn programs_are_completed_where_subcommands_are() {
        let zsh = script(Shell::Zsh);
        assert!(zsh.contains("commands \"$@\"\n    _files"), "{zsh}");
        assert!(
            zsh.contains(" diff ") && zsh.contains("|| { _files && ret=0 }"),
            "{zsh}"
        );
        assert!(!zsh.contains(":FORMAT[:"), "{zsh}");
        let fish = script(Shell::Fish);
        let commands = fish
            .lines()
            .filter(|line| line.contains("needs_command\" -a"));
        assert!(commands.count() > 5, "{fish}");
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
        let page = std::fs::read_to_string(folder.path().join("cudarun-check.1")).unwrap();
        assert!(page.contains("PROGRAM [ARGUMENTS]"), "{page}");
        assert!(page.contains("\\fB66\\fR\nraces found"), "{page}");
        assert!(page.contains("\\fBCUDARUN_CHECK_OPTIONS\\fR"), "{page}");
        assert!(!page.contains(".SH EXTRA"), "{page}");
    }
}
