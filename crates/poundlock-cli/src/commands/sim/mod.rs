//! `poundlock sim`: the shipped locks on a simulated machine. docs/simulator.md describes the
//! model.

mod advise;
pub mod args;
mod cache;
mod data;
pub mod figure;
mod job;
mod plan;
mod regret;
mod sweep;
mod trace;

use crate::failure::Failure;
use args::{SimArgs, SimCommand};
use std::process::ExitCode;

pub use job::worker;

/// Runs the subcommand.
pub fn sim(args: &SimArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        SimCommand::Run(args) => sweep::run(args),
        SimCommand::Advise(args) => advise::advise(args),
        SimCommand::Figure(args) => figure::figure(args),
        SimCommand::Regret(args) => regret::regret(args),
        SimCommand::Trace(args) => trace::trace(args),
        SimCommand::Sweep(args) => sweep::sweep(args),
    }
}
