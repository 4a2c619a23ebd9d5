// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search for a client or unit test that detects a mutant.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::lists::Killers;
use super::mutant::Mutant;
use super::unit::{self, Test};
use crate::catalogue::{self, Entry, File};
use crate::compile;
use crate::expected::{Expected, Strategy};
use crate::explore::Verdict;
use crate::judge::judge;
use crate::plan::{self, Overrides};
use crate::sources::Sources;

/// The most steps of an execution. A mutant may visit new states without end, and each is kept.
const MOST_STEPS: u32 = 3_000;

/// The limits of the exploration of a mutant.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The most states per client.
    pub states: u64,
    /// The most random walks of each kind per client.
    pub walks: u64,
}

/// The client or unit test that detects a mutant, and its error.
#[derive(Deserialize, Serialize)]
pub struct Killer {
    pub name: String,
    pub error: String,
}

/// Searches for the killers of mutants.
pub struct Detector<'a> {
    pub sources: &'a Sources,
    expected: &'a Expected,
    events: Vec<String>,
    pub files: Vec<File>,
    tests: Vec<Test>,
    /// The folder of the compiled runtime; in an attribution run, also of the unchanged locks.
    pub runtime: &'a Path,
    limits: Limits,
    /// By mutant, the recorded killer.
    pub known: HashMap<&'a str, String>,
    /// By mutated file, the killers of mutants, the most likely first.
    likely: RefCell<HashMap<String, Vec<String>>>,
    /// The unit tests that are known to pass without a mutant.
    passing: RefCell<HashSet<String>>,
}

/// The state of the search for one mutant's killer.
pub struct Search<'a> {
    /// Whether the mutant changes only how operations of different threads are ordered.
    is_order: bool,
    mutated: Sources,
    pub folder: &'a Path,
    loaded: HashMap<String, Vec<Entry>>,
    tried: HashSet<String>,
}

impl<'a> Detector<'a> {
    /// A detector for `mutants`. `runtime` is the folder of the compiled runtime.
    pub fn new(
        mutants: &[&'a Mutant],
        sources: &'a Sources,
        expected: &'a Expected,
        killers: &Killers,
        runtime: &'a Path,
        limits: Limits,
    ) -> Result<Detector<'a>> {
        let known = |mutant: &&'a Mutant| {
            Some((mutant.name.as_str(), killers.get(&mutant.name)?.to_string()))
        };
        let likely = |mutant: &&Mutant| (mutant.file.clone(), killers.of_file(&mutant.file));
        Ok(Detector {
            sources,
            expected,
            events: sources.events()?,
            files: catalogue::files(sources)?,
            tests: unit::tests(sources)?,
            runtime,
            limits,
            known: mutants.iter().filter_map(known).collect(),
            likely: RefCell::new(mutants.iter().map(likely).collect()),
            passing: RefCell::default(),
        })
    }

    /// Finds a killer of `mutant`: tries the recorded one, then the killers of others in the same
    /// file, then all unit tests and clients of the locks that contain it, the cheapest first.
    pub fn killer(&self, mutant: &Mutant) -> Result<Option<Killer>> {
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        let mut search = self.search(mutant, folder.path())?;
        let known = self.known.get(mutant.name.as_str());
        if let Some(known) = known
            && let Some(error) = self.try_named(&mut search, known)?
        {
            return Ok(Some(Killer { name: known.clone(), error }));
        }
        let likely = self.likely.borrow().get(&mutant.file).cloned().unwrap_or_default();
        for name in likely {
            if let Some(error) = self.try_named(&mut search, &name)? {
                return Ok(Some(self.found(&mutant.file, name, error)));
            }
        }
        for test in self.concerned_tests(mutant) {
            if let Some(error) = self.try_test(&mut search, test)? {
                return Ok(Some(self.found(&mutant.file, test.name.clone(), error)));
            }
        }
        for file in self.concerned_files(mutant) {
            if let Some((name, error)) = self.try_file(&mut search, file)? {
                return Ok(Some(self.found(&mutant.file, name, error)));
            }
        }
        Ok(None)
    }

    /// Begins the search for a killer of `mutant`, in an empty `folder`.
    pub fn search<'s>(&self, mutant: &Mutant, folder: &'s Path) -> Result<Search<'s>> {
        self.search_in(mutant.sources(self.sources, folder)?, mutant.is_order, folder)
    }

    /// Begins the search for a client that detects the change in `mutated`.
    pub fn search_in<'s>(
        &self,
        mutated: Sources,
        is_order: bool,
        folder: &'s Path,
    ) -> Result<Search<'s>> {
        compile::copy_runtime(self.runtime, folder)?;
        Ok(Search { is_order, mutated, folder, loaded: HashMap::new(), tried: HashSet::new() })
    }

    /// The first client of `file` that detects the mutant, the cheapest first, and its error.
    fn try_file(&self, search: &mut Search, file: &File) -> Result<Option<(String, String)>> {
        let entries = self.ordered(self.entries(search, file)?);
        let killer = entries
            .iter()
            .find_map(|entry| Some((entry.name.clone(), self.try_client(search, entry)?)));
        Ok(killer)
    }

    /// The cheapest of `entries` first, without those that have the same states as others.
    pub fn ordered(&self, mut entries: Vec<Entry>) -> Vec<Entry> {
        entries.sort_by_key(|entry| self.cost(&entry.name));
        entries.retain(|entry| !self.is_duplicate(&entry.name));
        entries
    }

    /// Makes `name` the most likely killer of the next mutant of `file`.
    fn found(&self, file: &str, name: String, error: String) -> Killer {
        let mut likely = self.likely.borrow_mut();
        let likely = likely.entry(file.into()).or_default();
        likely.retain(|other| *other != name);
        likely.insert(0, name.clone());
        Killer { name, error }
    }

    /// The clients of `file`, compiled with the mutant.
    pub fn entries(&self, search: &mut Search, file: &File) -> Result<Vec<Entry>> {
        if !search.loaded.contains_key(&file.name) {
            search.loaded.insert(file.name.clone(), file.clients(&search.mutated, search.folder)?);
        }
        Ok(search.loaded[&file.name].clone())
    }

    /// The error that the client or unit test of that name reports.
    pub fn try_named(&self, search: &mut Search, name: &str) -> Result<Option<String>> {
        if let Some(test) = self.tests.iter().find(|test| test.name == name) {
            return self.try_test(search, test);
        }
        let file = name.split('/').next().unwrap_or_default();
        let Some(file) = self.files.iter().find(|known| known.name == file) else {
            return Ok(None);
        };
        let entries = self.entries(search, file)?;
        Ok(entries
            .iter()
            .find(|entry| entry.name == name)
            .and_then(|entry| self.try_client(search, entry)))
    }

    /// The error that the client reports, unless it has been tried before.
    pub fn try_client(&self, search: &mut Search, entry: &Entry) -> Option<String> {
        let new = search.tried.insert(entry.name.clone());
        let error = new.then(|| self.error(entry)).flatten()?;
        Some(error.split(':').next().unwrap_or_default().to_string())
    }

    /// The error that the unit test reports, if it can detect such a mutant and has not been tried
    /// before.
    fn try_test(&self, search: &mut Search, test: &Test) -> Result<Option<String>> {
        if search.is_order || !search.tried.insert(test.name.clone()) {
            return Ok(None);
        }
        let error = test.failure(&search.mutated, search.folder)?;
        if error.is_some() {
            self.assert_passes(test, search.folder)?;
        }
        Ok(error)
    }

    /// Fails if the unit test reports an error also without a mutant.
    fn assert_passes(&self, test: &Test, folder: &Path) -> Result<()> {
        if self.passing.borrow().contains(&test.name) {
            return Ok(());
        }
        if let Some(error) = test.failure(self.sources, folder)? {
            bail!("{} fails without a mutant: {error}", test.name);
        }
        self.passing.borrow_mut().insert(test.name.clone());
        Ok(())
    }

    /// The unit tests of the locks that contain `mutant`, its own file's first.
    fn concerned_tests(&self, mutant: &Mutant) -> Vec<&Test> {
        let contains = |header: &String| self.sources.includes(header, &mutant.file);
        let mut tests: Vec<&Test> =
            self.tests.iter().filter(|test| test.headers.iter().any(contains)).collect();
        let own = format!("unit/{}", mutant.file.trim_end_matches(".h"));
        tests.sort_by_key(|test| test.name != own);
        tests
    }

    /// The files of clients of the locks that contain `mutant`, the cheapest first.
    fn concerned_files(&self, mutant: &Mutant) -> Vec<&File> {
        let contains = |file: &&File| file.contains(self.sources, &mutant.file);
        let mut files: Vec<&File> = self.files.iter().filter(contains).collect();
        let cost = |file: &File| -> u64 {
            let prefix = format!("{}/", file.name);
            self.expected
                .usual()
                .filter(|(name, _)| name.starts_with(&prefix))
                .map(|(_, record)| record.states)
                .sum()
        };
        files.sort_by_cached_key(|file| cost(file));
        files
    }

    /// Whether another client has the same states: those with wait=spin and wait=yield often do.
    fn is_duplicate(&self, name: &str) -> bool {
        let Some(prefix) = name.strip_suffix("/yield") else { return false };
        let found = |name: &str| {
            self.expected.get(false, name).map(|record| (record.strategy, record.states))
        };
        found(name).is_some() && found(name) == found(&format!("{prefix}/spin"))
    }

    fn cost(&self, name: &str) -> u64 {
        self.expected.get(false, name).map_or(u64::MAX, |record| record.states)
    }

    /// The error that the client reports within the limits.
    fn error(&self, entry: &Entry) -> Option<String> {
        let record = self.expected.get(false, &entry.name)?;
        let strategy = match record.strategy {
            Strategy::Walks(walks) => Strategy::Walks(walks.min(self.limits.walks)),
            strategy => strategy,
        };
        let overrides = Overrides { seed: 1, longest: Some(MOST_STEPS), ..Overrides::default() };
        let overrides = overrides.of(entry);
        let report = plan::explore_with(entry.client, strategy, &overrides, self.limits.states);
        match (&report.verdict, strategy) {
            (Verdict::Unfinished, _) => None,
            // So few walks may miss rare events.
            (Verdict::Holds, Strategy::Walks(_)) => None,
            _ => judge(entry.client, &report, &self.events, strategy, overrides.promises).err(),
        }
    }
}
