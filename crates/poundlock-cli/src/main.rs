//! The binary of the command `poundlock`; the crate's library has the code.

use std::process::ExitCode;

fn main() -> ExitCode {
    poundlock_cli::main()
}
