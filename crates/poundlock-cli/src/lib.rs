//! The command `poundlock`: runs programs under Poundlock's locks, compares them, lists the locks, measures them by the
//! papers' workloads, here and on simulated machines, tells whether a program can be interposed, and knows how far the machine's CPUs are from each other.
//!
//! What goes wrong is one line on stderr, `poundlock: ...`, and an exit status: 125 for what poundlock itself could not
//! do, 126 and 127 for a program that cannot be run or found.

mod commands;
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
mod runs;
mod spec;
mod statistics;
mod text_table;
mod threads;

pub use commands::Cli;

use clap::Parser;
use failure::Failure;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Does what the process's arguments say. Returns the exit status.
pub fn main() -> ExitCode {
    inherited::restore_sigpipe();
    let result = match Cli::try_parse() {
        Ok(cli) => commands::dispatch(cli.command),
        Err(error) if error.use_stderr() => Err(failure::usage(&error)),
        Err(help) => print_help(&help),
    };
    result.unwrap_or_else(|failure| {
        if !failure.message.is_empty() {
            output::note(&failure.message);
        }
        ExitCode::from(failure.status)
    })
}

/// With its colours on a terminal.
fn print_help(help: &clap::Error) -> Result<ExitCode, Failure> {
    let text = help.render();
    output::print(if std::io::stdout().is_terminal() { text.ansi().to_string() } else { text.to_string() })?;
    Ok(ExitCode::SUCCESS)
}
