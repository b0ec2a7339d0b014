//! The `cudarun-check` command: what it does is in one file per subcommand, what it says in
//! `report`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool prints its results"
)]

mod app;
mod archive;
mod args;
mod baseline;
mod console;
mod device;
mod doctor;
mod exit;
mod explain;
mod host_lines;
mod inspect;
mod kernel;
mod logs;
mod nvidia;
mod output;
mod program;
mod replay;
mod rewrite;
mod run;
mod sanitizer;
mod saved;
mod settings;
mod shell;
mod stdin;
mod suppress;

use std::io::Write;
use std::process::ExitCode;

use args::{Command, Wrong};
use exit::Stop;

fn main() -> ExitCode {
    // A report that cannot be written is no reason to end without one.
    os::signals::survive_size();
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(Wrong::Settings(stop)) => return report_stop(stop),
        Err(Wrong::Usage(error)) if error.use_stderr() => {
            if let Some(stop) = sanitizer::instead(&error) {
                return report_stop(stop);
            }
            // There is no reader when it is closed.
            drop(error.print());
            return ExitCode::from(exit::USAGE);
        }
        // `--help` and `--version` are errors to clap, but not to us.
        Err(Wrong::Usage(error)) => {
            let printed = error.print();
            console::note(printed.and_then(|()| std::io::stdout().flush()));
            return ended(Ok(0));
        }
    };
    let result = match &cli.command {
        Command::Run(args) => run::run(args),
        Command::Verify(args) => run::run(&args.run()),
        Command::Report(args) => saved::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Baseline(command) => baseline::run(command),
        Command::Diff(args) => baseline::diff(args),
        Command::Suppress(args) => suppress::run(args),
        Command::Rewrite(args) => rewrite::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions { shell } => shell::completions(*shell),
        Command::Manual { folder } => shell::manual(folder),
        Command::Probe => device::probe(),
    };
    ended(result)
}

/// How a command has ended.
fn ended(result: Result<u8, Stop>) -> ExitCode {
    let result = result.and_then(|code| console::failure().map_or(Ok(code), Err));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(stop) => report_stop(stop),
    }
}

/// Says why we stop.
fn report_stop(Stop { code, message }: Stop) -> ExitCode {
    console::say(format_args!("cudarun-check: {message}"));
    ExitCode::from(code)
}
