// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorded explorations in tests/check/expected.txt: each client's strategy and number of
//! states. An exploration with less than half of the recorded states fails, whatever its verdict.
//! The comparison is not exact because compilers lay out stacks differently.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// The file's path in the repository.
pub const PATH: &str = "tests/check/expected.txt";

/// How a client is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// All states.
    Complete,
    /// All states with at most this number of preemptions.
    Bound(u32),
    /// The same, and with at most this number of reads of messages other than the newest, and of
    /// stores inserted before it.
    Bounds(u32, u32),
    /// This number of random walks of each kind.
    Walks(u64),
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::Complete => f.pad("complete"),
            Strategy::Bound(bound) => f.pad(&format!("bound:{bound}")),
            Strategy::Bounds(bound, stale) => f.pad(&format!("bound:{bound}:{stale}")),
            Strategy::Walks(walks) => f.pad(&format!("walks:{walks}")),
        }
    }
}

impl FromStr for Strategy {
    type Err = ();

    fn from_str(text: &str) -> Result<Strategy, ()> {
        match text.split_once(':') {
            None if text == "complete" => Ok(Strategy::Complete),
            Some(("bound", bounds)) => match bounds.split_once(':') {
                None => bounds.parse().map(Strategy::Bound).map_err(drop),
                Some((bound, stale)) => {
                    Ok(Strategy::Bounds(bound.parse().map_err(drop)?, stale.parse().map_err(drop)?))
                }
            },
            Some(("walks", walks)) => walks.parse().map(Strategy::Walks).map_err(drop),
            _ => Err(()),
        }
    }
}

/// The record of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub strategy: Strategy,
    /// The number of states; of walks: steps.
    pub states: u64,
}

/// All records, by client and whether the exploration is that of `--deep`.
#[derive(Clone)]
pub struct Expected {
    path: PathBuf,
    records: BTreeMap<(bool, String), Record>,
}

const HEADER: &str = "\
# CLIENT STRATEGY STATES, one client per line. STRATEGY is complete, bound:PREEMPTIONS[:STALE], or
# walks:COUNT of each kind; STATES of walks are steps. Lines with `deep` record ./dev check --deep.
# Written by `./dev check [--deep] --accept [CLIENT...]`.
";

impl Expected {
    /// Reads the file.
    pub fn read(root: &Path) -> Result<Expected> {
        let path = root.join(PATH);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut records = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let Some((key, value)) = parse(line) else {
                bail!("{}:{}: expected [deep] CLIENT STRATEGY STATES", path.display(), number + 1);
            };
            records.insert(key, value);
        }
        Ok(Expected { path, records })
    }

    /// The client's record.
    pub fn get(&self, deep: bool, client: &str) -> Option<Record> {
        self.records.get(&(deep, client.to_string())).copied()
    }

    /// Replaces the client's record.
    pub fn accept(&mut self, deep: bool, client: &str, record: Record) {
        self.records.insert((deep, client.into()), record);
    }

    /// Removes the records of clients that are not in `names`.
    pub fn retain(&mut self, names: &[String]) {
        self.records.retain(|(_, client), _| names.contains(client));
    }

    /// The records of explorations without `--deep`, by client.
    pub fn usual(&self) -> impl Iterator<Item = (&str, Record)> {
        self.records
            .iter()
            .filter(|((deep, _), _)| !deep)
            .map(|((_, client), record)| (client.as_str(), *record))
    }

    /// The clients that have records.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(|(_, client)| client.as_str())
    }

    /// Writes the file.
    pub fn write(&self) -> Result<()> {
        let line = |((deep, client), Record { strategy, states }): (&(bool, String), &Record)| {
            format!("{}{client} {strategy} {states}\n", if *deep { "deep " } else { "" })
        };
        let text = HEADER.to_string() + &self.records.iter().map(line).collect::<String>();
        std::fs::write(&self.path, text)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn parse(line: &str) -> Option<((bool, String), Record)> {
    let (deep, line) = line.strip_prefix("deep ").map_or((false, line), |rest| (true, rest));
    let [client, strategy, states] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
    Some((
        (deep, client.to_string()),
        Record { strategy: strategy.parse().ok()?, states: states.parse().ok()? },
    ))
}
