//! The command `poundlock`: see the crate's library.

use std::process::ExitCode;

fn main() -> ExitCode {
    poundlock_cli::main()
}
