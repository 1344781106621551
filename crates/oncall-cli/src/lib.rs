//! The command line `oncall`: a library with a thin binary, so that the wheel's console script runs
//! the same code.
//!
//! One file is one command. Each takes its arguments as typed ([`args`]), resolves them, and only
//! then runs. Results go to standard output, everything else (progress, errors, the summary beside a
//! CSV) to standard error. The model, its defaults and its arithmetic live elsewhere.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done; also when the reader of a pipe has left |
//! | 1 | a check failed, or something went wrong while running |
//! | 2 | the command line itself is wrong |
//!
//! **Shapes of `--json`.** Every object has `schema_version`, which rises when a key changes its
//! meaning or goes; new keys may come at any time. The shapes are described at the types that make
//! them: [`list`], [`describe`], [`run`](mod@run), [`bench`](mod@bench), [`discovery`]. Hashes are strings of 16 hexadecimal
//! digits, numbers that are not finite are `null`.

pub mod args;
pub mod bench;
pub mod check;
pub mod describe;
pub mod discovery;
pub mod eval;
pub mod list;
mod output;
mod play;
pub mod reference;
pub mod report;
pub mod run;
mod scenarios;
pub mod tune;

use args::{Cli, Command};
use clap::Parser as _;
use std::ffi::OsString;
use std::io;

/// Runs a command line, the program's name included, and returns the exit code.
///
/// Prints to standard output and standard error. Never ends the process itself.
pub fn run(args: impl IntoIterator<Item = OsString>) -> i32 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are "errors" of clap that go to standard output with code 0.
            let _ = error.print();
            return error.exit_code();
        }
    };
    match dispatch(cli.command) {
        Ok(()) => 0,
        Err(error) if is_closed_pipe(&error) => 0,
        Err(error) => {
            output::note(&describe_error(&error));
            1
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::List(args) => list::run(&args),
        Command::Describe(args) => describe::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Eval(args) => eval::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Report(args) => report::run(&args),
        Command::Reference(args) => reference::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Discovery(args) => discovery::run(&args),
    }
}

/// Whoever reads our output may leave early, as `head` does: no reason to complain.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// The error and its causes, without repeating a cause that the error already tells.
fn describe_error(error: &anyhow::Error) -> String {
    let mut text = format!("error: {error}");
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str("\n  caused by: ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn errors_tell_their_causes_once() {
        let error = Err::<(), _>(io::Error::other("disk on fire"))
            .context("cannot write x.csv")
            .unwrap_err();
        assert_eq!(describe_error(&error), "error: cannot write x.csv\n  caused by: disk on fire");
        assert_eq!(describe_error(&anyhow::anyhow!("plain")), "error: plain");
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_closed_pipe(&anyhow::Error::from(closed).context("cannot write")));
        assert!(!is_closed_pipe(&anyhow::Error::from(io::Error::other("else"))));
    }
}
