// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many states each client had when it was last looked at, in tests/check/expected.txt: an exploration that has
//! shrunk to less than half has lost something, whatever its verdict. (Not exact: compilers lay stacks out differently.)

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The counts by client.
pub struct Expected {
    path: PathBuf,
    states: BTreeMap<String, u64>,
}

const HEADER: &str = "# States (of walks: steps) by client; written by `poundlock-check --accept`.\n";

impl Expected {
    /// Reads tests/check/expected.txt.
    pub fn read(root: &Path) -> Result<Expected> {
        let path = root.join("tests/check/expected.txt");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut states = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let count = line.split_once(' ').and_then(|(name, count)| Some((name, count.parse().ok()?)));
            let Some((name, count)) = count else { bail!("{}:{}: not CLIENT STATES", path.display(), number + 1) };
            states.insert(name.to_string(), count);
        }
        Ok(Expected { path, states })
    }

    /// Whether `states` are as many as can be expected of the client; if not, why.
    pub fn check(&self, client: &str, states: u64) -> Result<(), String> {
        match self.states.get(client) {
            None => Err("not in tests/check/expected.txt: look at it, then --accept".into()),
            Some(&kept) if states < kept / 2 => Err(format!("only {states} states, once {kept}")),
            Some(_) => Ok(()),
        }
    }

    /// Takes `states` for what is to be expected of the client.
    pub fn accept(&mut self, client: &str, states: u64) {
        self.states.insert(client.into(), states);
    }

    /// Writes the file.
    pub fn write(&self) -> Result<()> {
        let lines = self.states.iter().map(|(client, states)| format!("{client} {states}\n"));
        let text = HEADER.to_string() + &lines.collect::<String>();
        std::fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}
