// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorded explorations in tests/check/explorations.csv: a row for each client, and one more
//! with `deep` for its exploration by `--deep`. An exploration with less than half of the recorded
//! states fails, whatever its verdict. The comparison is not exact because compilers lay out stacks
//! differently.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The file's path in the repository.
pub const PATH: &str = "tests/check/explorations.csv";

/// How a client is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Strategy {
    /// All states.
    Complete,
    /// All states with at most this number of preemptions.
    Bound(u32),
    /// The same, and with at most this number of reads of messages other than the newest, of
    /// stores inserted before it, and of promises.
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

impl TryFrom<String> for Strategy {
    type Error = String;

    fn try_from(text: String) -> Result<Strategy, String> {
        text.parse().map_err(|()| format!("unknown strategy '{text}'"))
    }
}

impl From<Strategy> for String {
    fn from(strategy: Strategy) -> String {
        strategy.to_string()
    }
}

/// The memory model of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Model {
    /// That of memory/mod.rs.
    #[serde(rename = "RC11")]
    Weak,
    /// The same, with load buffering (machine/promises.rs).
    #[serde(rename = "promises")]
    Promises,
    #[serde(rename = "SC")]
    SequentialConsistency,
}

/// The record of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Record {
    pub threads: u32,
    pub model: Model,
    pub strategy: Strategy,
    /// The number of states; of walks: steps.
    pub states: u64,
    /// CPU time. Only for readers of the file.
    pub seconds: f64,
}

/// A row of the file.
#[derive(Deserialize, Serialize)]
struct Row {
    client: String,
    deep: bool,
    threads: u32,
    model: Model,
    strategy: Strategy,
    states: u64,
    seconds: f64,
}

/// All records, by client and whether the exploration is that of `--deep`.
#[derive(Clone)]
pub struct Expected {
    path: PathBuf,
    records: BTreeMap<(String, bool), Record>,
}

impl Expected {
    /// Reads the file.
    pub fn read(root: &Path) -> Result<Expected> {
        let path = root.join(PATH);
        let failed = || format!("cannot read {}", path.display());
        let mut reader = csv::Reader::from_path(&path).with_context(failed)?;
        let rows: Vec<Row> =
            reader.deserialize().collect::<Result<_, csv::Error>>().with_context(failed)?;
        let record = |Row { client, deep, threads, model, strategy, states, seconds }: Row| {
            ((client, deep), Record { threads, model, strategy, states, seconds })
        };
        let records = rows.into_iter().map(record).collect();
        Ok(Expected { path, records })
    }

    /// The client's record.
    pub fn get(&self, deep: bool, client: &str) -> Option<Record> {
        self.records.get(&(client.to_string(), deep)).copied()
    }

    /// Replaces the client's record.
    pub fn accept(&mut self, deep: bool, client: &str, record: Record) {
        self.records.insert((client.into(), deep), record);
    }

    /// Removes the records of clients that are not in `names`.
    pub fn retain(&mut self, names: &[String]) {
        self.records.retain(|(client, _), _| names.contains(client));
    }

    /// The records of explorations without `--deep`, by client.
    pub fn usual(&self) -> impl Iterator<Item = (&str, Record)> {
        self.records
            .iter()
            .filter(|((_, deep), _)| !deep)
            .map(|((client, _), record)| (client.as_str(), *record))
    }

    /// The clients that have records.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(|(client, _)| client.as_str())
    }

    /// Writes the file.
    pub fn write(&self) -> Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        let mut writer = csv::Writer::from_path(&self.path).with_context(failed)?;
        for ((client, deep), record) in &self.records {
            let &Record { threads, model, strategy, states, seconds } = record;
            let client = client.clone();
            writer
                .serialize(Row { client, deep: *deep, threads, model, strategy, states, seconds })
                .with_context(failed)?;
        }
        writer.flush().with_context(failed)
    }
}
