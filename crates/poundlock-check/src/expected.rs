// SPDX-License-Identifier: MIT OR Apache-2.0
//! How each client is explored, and how many states it had when it was last looked at, in tests/check/expected.txt: an
//! exploration that has shrunk to less than half has lost something, whatever its verdict. (Not exact: compilers lay
//! stacks out differently.)

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// How a client is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// All states.
    Complete,
    /// All that so many switches away from a thread that could have gone on lead to.
    Bound(u32),
    /// The same, with so many reads of another message than the newest and stores before it.
    Bounds(u32, u32),
    /// So many random walks of each kind.
    Walks(u64),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Complete => f.pad("complete"),
            How::Bound(bound) => f.pad(&format!("bound:{bound}")),
            How::Bounds(bound, stale) => f.pad(&format!("bound:{bound}:{stale}")),
            How::Walks(walks) => f.pad(&format!("walks:{walks}")),
        }
    }
}

impl FromStr for How {
    type Err = ();

    fn from_str(text: &str) -> Result<How, ()> {
        match text.split_once(':') {
            None if text == "complete" => Ok(How::Complete),
            Some(("bound", bounds)) => match bounds.split_once(':') {
                None => bounds.parse().map(How::Bound).map_err(drop),
                Some((bound, stale)) => Ok(How::Bounds(bound.parse().map_err(drop)?, stale.parse().map_err(drop)?)),
            },
            Some(("walks", walks)) => walks.parse().map(How::Walks).map_err(drop),
            _ => Err(()),
        }
    }
}

/// What is kept of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub how: How,
    /// States; of walks: steps.
    pub states: u64,
}

/// What is kept, by client and whether of a deep run.
#[derive(Clone)]
pub struct Expected {
    path: PathBuf,
    kept: BTreeMap<(bool, String), Kept>,
}

const HEADER: &str = "\
# Client, how it is explored (complete; bound:SWITCHES[:STALE]; walks:OF_EACH_KIND), states (of walks: steps); of ./dev
# check, and after `deep` of ./dev check --deep. Written by `./dev check [--deep] --accept [CLIENT...]`.
";

impl Expected {
    /// Reads tests/check/expected.txt.
    pub fn read(root: &Path) -> Result<Expected> {
        let path = root.join("tests/check/expected.txt");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut kept = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let Some((key, value)) = parse(line) else {
                bail!("{}:{}: not [deep] CLIENT HOW STATES", path.display(), number + 1);
            };
            kept.insert(key, value);
        }
        Ok(Expected { path, kept })
    }

    /// What is kept of the client.
    pub fn get(&self, deep: bool, client: &str) -> Option<Kept> {
        self.kept.get(&(deep, client.to_string())).copied()
    }

    /// Takes `kept` for what is to be expected of the client.
    pub fn accept(&mut self, deep: bool, client: &str, kept: Kept) {
        self.kept.insert((deep, client.into()), kept);
    }

    /// Forgets the clients that are not in `names`.
    pub fn retain(&mut self, names: &[String]) {
        self.kept.retain(|(_, client), _| names.contains(client));
    }

    /// What is kept of usual runs, by client.
    pub fn usual(&self) -> impl Iterator<Item = (&str, Kept)> {
        self.kept.iter().filter(|((deep, _), _)| !deep).map(|((_, client), kept)| (client.as_str(), *kept))
    }

    /// The clients of which something is kept.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kept.keys().map(|(_, client)| client.as_str())
    }

    /// Writes the file.
    pub fn write(&self) -> Result<()> {
        let line = |((deep, client), Kept { how, states }): (&(bool, String), &Kept)| {
            format!("{}{client} {how} {states}\n", if *deep { "deep " } else { "" })
        };
        let text = HEADER.to_string() + &self.kept.iter().map(line).collect::<String>();
        std::fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn parse(line: &str) -> Option<((bool, String), Kept)> {
    let (deep, line) = line.strip_prefix("deep ").map_or((false, line), |rest| (true, rest));
    let [client, how, states] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
    Some(((deep, client.to_string()), Kept { how: how.parse().ok()?, states: states.parse().ok()? }))
}
