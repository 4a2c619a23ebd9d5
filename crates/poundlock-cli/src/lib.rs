//! The command `poundlock`: runs programs under Poundlock's locks, observes them, and measures
//! locks here and on simulated machines.
//!
//! Every error is one line on stderr, `poundlock: ...`, and an exit status: 125 for a failure of
//! poundlock itself, 126 for a program that cannot be run, 127 for one that is not found.
//!
//! `commands/` has one module per subcommand. The other modules serve several of them, and know
//! none.

mod commands;
mod control;
mod failure;
#[cfg(test)]
mod fuzz;
mod inherited;
mod options;
mod output;
mod plot;
mod points;
mod program;
mod provenance;
mod rules;
mod runs;
mod spec;
mod statistics;
mod text_table;
mod threads;
#[cfg(feature = "watch")]
mod watch;

pub use commands::Cli;

use clap::Parser;
use failure::Failure;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Parses the arguments of the process and runs the command. Returns the exit status.
pub fn main() -> ExitCode {
    inherited::restore_sigpipe();
    let result = match Cli::try_parse() {
        Ok(cli) => commands::dispatch(cli.command),
        Err(help) if !help.use_stderr() || is_bare(&help) => print_help(&help),
        Err(error) => Err(failure::usage(&error)),
    };
    result.unwrap_or_else(|failure| {
        if !failure.message.is_empty() {
            output::note(&failure.message);
        }
        ExitCode::from(failure.status)
    })
}

/// Whether a command that needs arguments was given none.
fn is_bare(error: &clap::Error) -> bool {
    error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// Prints clap's help text, with colours on a terminal.
fn print_help(help: &clap::Error) -> Result<ExitCode, Failure> {
    let text = help.render();
    output::print(if std::io::stdout().is_terminal() {
        text.ansi().to_string()
    } else {
        text.to_string()
    })?;
    Ok(ExitCode::SUCCESS)
}
