// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model checker's command line.

mod abi;
mod arena;
mod catalogue;
mod client;
mod context;
mod expected;
mod explore;
mod hunt;
mod judge;
mod machine;
mod memory;
mod mutate;
mod order;
mod plan;
mod pool;
mod run;
mod unit;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match run::run(&run::Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("poundlock-check: {error:#}");
            ExitCode::from(2)
        }
    }
}
