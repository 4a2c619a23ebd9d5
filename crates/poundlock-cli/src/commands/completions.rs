//! `poundlock completions`: the commands and options, as a shell completes them.

use crate::commands::Cli;
use crate::failure::Failure;
use crate::output;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut public(), "poundlock", &mut script);
    output::print(script)?;
    Ok(ExitCode::SUCCESS)
}

/// The command line without its internal commands, which bash's script would complete.
fn public() -> Command {
    let whole = Cli::command();
    let commands = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("poundlock")
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments().cloned())
        .subcommands(commands)
}
