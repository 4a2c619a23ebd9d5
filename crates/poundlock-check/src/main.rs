// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model checker for the locks of core/. `poundlock-check --help` is its reference,
//! docs/verification.md explains it.

mod abi;
mod arena;
mod arguments;
mod arrivals;
mod catalogue;
mod check;
mod compile;
mod context;
mod crash;
mod expected;
mod explore;
mod fault;
mod judge;
mod machine;
mod memory;
mod mutation;
mod output;
mod plan;
mod pool;
mod run;
mod sources;

use std::process::ExitCode;

use anyhow::Error;
use clap::Parser;

use arguments::Arguments;
use output::ClosedPipe;

/// The exit status if the checker itself fails, as of the `poundlock` command.
const ERROR: u8 = 125;
/// The exit status of a shell's command that SIGPIPE ends.
const CLOSED_PIPE: u8 = 128 + libc::SIGPIPE as u8;

fn main() -> ExitCode {
    match Arguments::try_parse().map_err(usage).and_then(|arguments| run::run(&arguments)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(&error),
    }
}

/// Reports `error` on one line, or prints the help that the command line asks for.
fn fail(error: &Error) -> ExitCode {
    if let Some(help) = error.downcast_ref::<clap::Error>() {
        return output::print(help.render().to_string().trim_end())
            .map_or_else(|error| fail(&error), |()| ExitCode::SUCCESS);
    }
    if error.is::<ClosedPipe>() {
        return ExitCode::from(CLOSED_PIPE);
    }
    eprintln!("poundlock-check: {error:#}");
    ExitCode::from(ERROR)
}

/// An error in the command line as one line; a request for help as it is.
fn usage(error: clap::Error) -> Error {
    if !error.use_stderr() {
        return error.into();
    }
    let text = error.render().to_string();
    let paragraph: Vec<&str> =
        text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let line = paragraph.join(" ");
    Error::msg(line.strip_prefix("error: ").unwrap_or(&line).to_string())
}
