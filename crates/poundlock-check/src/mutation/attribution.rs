// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks that need each shared memory order, in tests/check/attribution.csv: a row for each
//! order that more than one lock includes, and each of these locks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The file's path in the repository.
pub const PATH: &str = "tests/check/attribution.csv";

/// The knowledge of a weaker order in one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A client of the lock detects it: the lock needs the order.
    Detected,
    /// The lock includes the operation, but does not contain it: its code is the same.
    Absent,
    /// No client of the lock detects it.
    Survives,
    /// Not examined.
    Open,
}

/// The result for a weaker order in one lock.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Finding {
    pub status: Status,
    /// The client that detects it, or nothing.
    pub killer: String,
    /// The number of clients that do not detect it.
    pub survived: usize,
}

impl Finding {
    /// The result that the client `killer` detects the order.
    pub fn detected(killer: String) -> Finding {
        Finding { status: Status::Detected, killer, survived: 0 }
    }

    /// A result without a client that detects the mutant.
    pub fn without_killer(status: Status, survived: usize) -> Finding {
        Finding { status, killer: String::new(), survived }
    }
}

/// A row of the file.
#[derive(Deserialize, Serialize)]
struct Row {
    mutant: String,
    lock: String,
    status: Status,
    killer: String,
    survived: usize,
}

/// A mutant's name and a lock's.
pub type Pair = (String, String);

/// All rows.
pub struct Attribution {
    path: PathBuf,
    findings: BTreeMap<Pair, Finding>,
}

impl Attribution {
    /// Reads the file.
    pub fn read(root: &Path) -> Result<Attribution> {
        let path = root.join(PATH);
        let failed = || format!("cannot read {}", path.display());
        let mut reader = csv::Reader::from_path(&path).with_context(failed)?;
        let rows: Vec<Row> =
            reader.deserialize().collect::<Result<_, csv::Error>>().with_context(failed)?;
        let finding = |Row { mutant, lock, status, killer, survived }: Row| {
            ((mutant, lock), Finding { status, killer, survived })
        };
        Ok(Attribution { findings: rows.into_iter().map(finding).collect(), path })
    }

    /// The row of the mutant and lock.
    pub fn get(&self, pair: &Pair) -> Option<&Finding> {
        self.findings.get(pair)
    }

    /// All pairs that have rows.
    pub fn pairs(&self) -> impl Iterator<Item = &Pair> {
        self.findings.keys()
    }

    /// The clients that detect the mutant in other locks, without the locks' names.
    pub fn clients_of_mutant(&self, mutant: &str) -> Vec<String> {
        let of_mutant = self.findings.iter().filter(|((name, _), _)| name == mutant);
        of_mutant
            .filter_map(|(_, finding)| Some(finding.killer.split_once('/')?.1.to_string()))
            .collect()
    }

    /// Replaces the row of the mutant and lock.
    pub fn accept(&mut self, pair: &Pair, finding: Finding) {
        self.findings.insert(pair.clone(), finding);
    }

    /// Adds rows for those of `pairs` that have none, as not examined, and removes the rows of all
    /// others.
    pub fn complete(&mut self, pairs: &[Pair]) {
        self.findings.retain(|pair, _| pairs.contains(pair));
        for pair in pairs {
            let open = || Finding::without_killer(Status::Open, 0);
            self.findings.entry(pair.clone()).or_insert_with(open);
        }
    }

    /// Writes the file.
    pub fn write(&self) -> Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        let mut writer = csv::Writer::from_path(&self.path).with_context(failed)?;
        for ((mutant, lock), finding) in &self.findings {
            let (mutant, lock) = (mutant.clone(), lock.clone());
            let Finding { status, killer, survived } = finding.clone();
            writer
                .serialize(Row { mutant, lock, status, killer, survived })
                .with_context(failed)?;
        }
        writer.flush().with_context(failed)
    }
}
