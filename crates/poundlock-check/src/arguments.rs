// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;

use crate::expected::Strategy;
use crate::explore::Execution;
use crate::machine::Choice;
use crate::plan::Overrides;
use crate::sources::Sources;

/// Explores clients of the locks in all ways that the C11 memory model allows.
///
/// Clients are small programs in tests/check that use a lock. Each client's result is printed when
/// it is known. By default all clients are explored, including the tests of the checker itself.
///
/// Exit status: 0 if all results are as expected, 1 if any is not, 125 if the checker fails.
#[derive(Parser)]
#[command(name = "poundlock-check", version)]
pub struct Arguments {
    /// Select clients whose name contains one of these, e.g. mcs/ or mcs/2x1/spin; with --mutants
    /// and --faults, select mutants by name
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,
    /// Root of the repository
    #[arg(
        long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../.."),
        hide_default_value = true
    )]
    pub root: PathBuf,
    /// Check the locks in this folder instead of core/
    #[arg(long)]
    core: Option<PathBuf>,
    /// Explore further: completely or under a larger bound where that takes minutes, and with ten
    /// times as many walks; without filters, also run all mutants
    #[arg(long)]
    pub deep: bool,
    /// Visit at most this number of states per client
    #[arg(long)]
    pub states: Option<u64>,
    /// Allow at most this number of preemptions: switches away from a thread that could continue
    #[arg(long, conflicts_with = "walks")]
    bound: Option<u32>,
    /// Run this number of random walks of each kind instead of an exhaustive search
    #[arg(long)]
    pub walks: Option<u64>,
    /// Random seed of the walks and of --sample
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Explore under sequential consistency: reads return the newest value
    #[arg(long)]
    sc: bool,
    /// Let threads promise stores: the model with load buffering
    #[arg(long, conflicts_with = "sc")]
    promises: bool,
    /// Allow this number of spurious wake-ups per execution
    #[arg(long)]
    spurious: Option<u32>,
    /// Visit all states: no bound, and no random walks
    #[arg(long, conflicts_with_all = ["walks", "bound"])]
    complete: bool,
    /// Explore also executions that differ from others only in the order of independent steps
    #[arg(long)]
    unreduced: bool,
    /// In complete explorations, let threads sleep by the specification of sleeping: a park is a
    /// wait, and each change that ends it must be followed by a wake-up
    #[arg(long)]
    composed: bool,
    /// Run mutants of the locks, and the known faults: each must be detected by a client or unit
    /// test
    #[arg(long)]
    pub mutants: bool,
    /// Run a random sample of this number of mutants
    #[arg(long, requires = "mutants")]
    pub sample: Option<usize>,
    /// Run the locks with known faults (tests/check/known_faults.txt): each must be detected
    #[arg(long)]
    pub faults: bool,
    /// Run only mutants whose killer is recorded (tests/check/killers.txt), and report mutants that
    /// are neither killed nor listed as survivors
    #[arg(long, requires = "mutants")]
    pub kills: bool,
    /// Run only mutants that have no recorded killer and are not listed as survivors
    #[arg(long, requires = "mutants", conflicts_with = "kills")]
    pub new: bool,
    /// Run only mutants listed as survivors (tests/check/survivors.txt), or whose label pairs with
    /// nothing, against all clients of their locks; slow, --states and --walks shorten it
    #[arg(long, requires = "mutants", conflicts_with_all = ["kills", "new", "faults"])]
    pub survivors: bool,
    /// Weaken each order that several locks share, for each of these locks: one of its own clients
    /// must detect that if tests/check/attribution.csv says so. With --kills, run only the orders
    /// that are detected or absent; with --new, those that have not been examined; --states and
    /// --walks find the quickly detected ones first
    #[arg(long, requires = "mutants", conflicts_with_all = ["faults", "survivors"])]
    pub attribute: bool,
    /// Record the results as expected: the explorations (tests/check/explorations.csv),
    /// or with --mutants the killers (tests/check/killers.txt), or with --attribute the locks that
    /// need each order (tests/check/attribution.csv)
    #[arg(long)]
    pub accept: bool,
    /// Record the results that took less CPU time than the recorded ones: those of a busy machine
    #[arg(long, conflicts_with_all = [
        "accept", "mutants", "faults", "replay", "bound", "walks", "sc", "promises", "spurious",
        "complete", "unreduced", "composed", "states",
    ])]
    pub times: bool,
    /// Replay one execution of the selected client step by step; choices after a colon must lead
    /// back to the state before them
    #[arg(long, value_name = "CHOICES")]
    pub replay: Option<String>,
}

impl Arguments {
    /// The sources to check.
    pub fn sources(&self) -> Sources {
        let core = self.core.clone().unwrap_or_else(|| self.root.join("core"));
        Sources { root: self.root.clone(), core, strict: true }
    }

    /// The options that override the clients' parameters.
    pub fn overrides(&self) -> Overrides {
        let complete = self.complete.then_some(Strategy::Complete);
        let strategy =
            complete.or(self.bound.map(Strategy::Bound)).or(self.walks.map(Strategy::Walks));
        let &Arguments { spurious, sc, promises, unreduced, composed, .. } = self;
        let &Arguments { seed, states, deep, .. } = self;
        let longest = None;
        Overrides {
            strategy,
            spurious,
            sc,
            promises,
            unreduced,
            composed,
            seed,
            states,
            deep,
            longest,
        }
    }

    /// Whether the filters can select clients of the file `name`, one of `names`.
    pub fn can_match(&self, name: &str, names: &[&str]) -> bool {
        let can_match = |filter: &String| {
            let first = filter.split('/').next().unwrap_or_default();
            name.contains(first) || !names.iter().any(|name| name.contains(first))
        };
        self.filters.is_empty() || self.filters.iter().any(can_match)
    }

    /// Whether the filters select `name`.
    pub fn matches(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter))
    }
}

/// An execution's choices as text: a digit for the thread, then a letter for an alternative other
/// than the first; a colon before the choices that repeat.
pub fn format_execution(execution: &Execution) -> String {
    let format = |choice: &Choice| match choice.alternative {
        0 => choice.thread.to_string(),
        other => format!("{}{}", choice.thread, (b'a' + other) as char),
    };
    let (first, cycle) = execution.choices.split_at(execution.prefix());
    let text: String = first.iter().map(format).collect();
    if cycle.is_empty() { text } else { text + ":" + &cycle.iter().map(format).collect::<String>() }
}

/// The execution that `format_execution` has formatted.
pub fn parse_execution(text: &str) -> Result<Execution> {
    let mut execution = Execution::default();
    let Execution { choices, cycle } = &mut execution;
    for letter in text.chars() {
        let count = choices.len();
        match (letter, choices.last_mut()) {
            ('0'..='7', _) => choices.push(Choice { thread: letter as u8 - b'0', alternative: 0 }),
            ('b'..='z', Some(choice)) if *cycle != Some(count) => {
                choice.alternative = letter as u8 - b'a'
            }
            (':', _) if cycle.is_none() => *cycle = Some(count),
            _ => bail!("not a list of choices to replay: {text}"),
        }
    }
    Ok(execution)
}
