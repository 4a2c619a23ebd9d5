// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recorded killers of mutants, and the mutants that survive for a reason.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::mutant::Mutant;

/// Reads the lines `MUTANT | VALUE` of a file.
fn read(path: &Path, value: &str) -> Result<Vec<(String, String)>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut pairs = Vec::new();
    for (number, line) in
        text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        let Some((name, rest)) = line.rsplit_once(" | ") else {
            bail!("{}:{}: expected MUTANT | {value}", path.display(), number + 1);
        };
        pairs.push((name.trim().to_string(), rest.trim().to_string()));
    }
    Ok(pairs)
}

/// The killer of each mutant in the last run, in tests/check/killers.txt: the client or unit test
/// that is tried first.
pub struct Killers {
    path: PathBuf,
    known: BTreeMap<String, String>,
}

const KILLERS_HEADER: &str = "\
# MUTANT | KILLER: mutants of the core, and the client or unit test (unit/NAME) that detects each.
# Written by `./dev check --mutants --accept`.
";

impl Killers {
    /// Reads the file.
    pub fn read(root: &Path) -> Result<Killers> {
        let path = root.join("tests/check/killers.txt");
        let known = read(&path, "KILLER")?.into_iter().collect();
        Ok(Killers { path, known })
    }

    /// The killer of the mutant of that name.
    pub fn get(&self, mutant: &str) -> Option<&str> {
        self.known.get(mutant).map(String::as_str)
    }

    /// The killers of mutants of `file`, the most frequent first.
    pub fn of_file(&self, file: &str) -> Vec<String> {
        let mut counted: Vec<(usize, &str)> = Vec::new();
        for (_, killer) in
            self.known.iter().filter(|(name, _)| name.split(':').next() == Some(file))
        {
            match counted.iter_mut().find(|(_, name)| name == killer) {
                Some((count, _)) => *count += 1,
                None => counted.push((1, killer)),
            }
        }
        counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        counted.into_iter().map(|(_, killer)| killer.to_string()).collect()
    }

    /// Records the killer of the mutant, or that it has none.
    pub fn accept(&mut self, mutant: &str, killer: Option<&str>) -> Result<()> {
        match killer {
            Some(killer) => self.known.insert(mutant.into(), killer.into()),
            None => self.known.remove(mutant),
        };
        self.write()
    }

    /// Removes the mutants for which `exists` is false.
    pub fn retain(&mut self, exists: impl Fn(&str) -> bool) -> Result<()> {
        self.known.retain(|name, _| exists(name));
        self.write()
    }

    fn write(&self) -> Result<()> {
        let lines = self.known.iter().map(|(name, killer)| format!("{name} | {killer}\n"));
        let text = KILLERS_HEADER.to_string() + &lines.collect::<String>();
        std::fs::write(&self.path, text)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// The mutants that survive, each with its reason, in tests/check/survivors.txt.
pub struct Survivors {
    path: PathBuf,
    reasons: HashMap<String, String>,
}

impl Survivors {
    /// Reads the file.
    pub fn read(root: &Path) -> Result<Survivors> {
        let path = root.join("tests/check/survivors.txt");
        let reasons = read(&path, "REASON")?.into_iter().collect();
        Ok(Survivors { path, reasons })
    }

    /// Why the mutant may survive.
    pub fn reason(&self, mutant: &Mutant) -> Option<&str> {
        let listed = self.reasons.get(&mutant.name).map(String::as_str);
        listed.or(mutant.pairs_with_nothing.then_some("its label: the acquire pairs with nothing"))
    }

    /// The names of all listed mutants.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.reasons.keys().map(String::as_str)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
