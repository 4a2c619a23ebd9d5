// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows mutants of the core to the clients of the locks that they concern, and expects each to be objected to.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, bail};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use crate::abi::Client;
use crate::catalogue::{self, Entry, File};
use crate::client::Sources;
use crate::expected::{Expected, How};
use crate::explore::Verdict;
use crate::judge::judge;
use crate::mutate::{self, Mutant, Survivors};
use crate::plan::{self, Wishes};
use crate::pool;
use crate::run::{Arguments, Count, progress};

/// The most states of a client that a mutant is shown to.
const STATES: u64 = 300_000;
/// The most random walks of each kind.
const WALKS: u64 = 5_000;

/// Runs the known faults, and the mutants unless only those are asked for. How many are killed or known to survive.
pub fn run(sources: &Sources, arguments: &Arguments, expected: &Expected) -> Result<Count> {
    let survivors = Survivors::read(&sources.root)?;
    let all = if arguments.faults { Vec::new() } else { mutate::all(sources)? };
    let faults = mutate::known_faults(sources)?;
    let mut mutants: Vec<&Mutant> = all.iter().filter(|mutant| arguments.matches(&mutant.name)).collect();
    if let Some(sample) = arguments.sample {
        mutants.retain(|mutant| survivors.reason(mutant).is_none());
        mutants.shuffle(&mut SmallRng::seed_from_u64(arguments.seed));
        mutants.truncate(sample);
    }
    let mutants: Vec<&Mutant> = faults.iter().filter(|fault| arguments.matches(&fault.name)).chain(mutants).collect();
    if mutants.is_empty() {
        bail!("no mutant of that name: {}", arguments.filters.join(" "));
    }
    let mut failed = hunt(&mutants, sources, expected, &survivors)?;
    if !arguments.faults && arguments.filters.is_empty() {
        for gone in survivors.names().filter(|name| !all.iter().any(|mutant| mutant.name == *name)) {
            println!("gone, but listed in {}: {gone}", survivors.path().display());
            failed += 1;
        }
    }
    Ok(Count { passed: mutants.len().saturating_sub(failed), failed })
}

/// Says in order what came of `mutants`. How many are not as they must be.
fn hunt(mutants: &[&Mutant], sources: &Sources, expected: &Expected, survivors: &Survivors) -> Result<usize> {
    let hunter = Hunter {
        sources,
        expected,
        events: sources.events()?,
        files: catalogue::files(sources)?,
        last: RefCell::default(),
    };
    let work = |job: usize| hunter.killer(mutants[job]).map_err(|error| format!("{error:#}"));
    let mut results = BTreeMap::new();
    let (mut next, mut failed) = (0, 0);
    let bar = progress(mutants.len(), "mutants");
    let jobs: Vec<usize> = (0..mutants.len()).collect();
    pool::run(&jobs, work, |job, result| {
        results.insert(job, result.and_then(|killer| killer.map_err(anyhow::Error::msg)));
        bar.inc(1);
        while let Some(result) = results.get(&next) {
            let (good, text) = verdict(mutants[next], result, survivors);
            bar.suspend(|| println!("{text}"));
            failed += usize::from(!good);
            next += 1;
        }
    })?;
    bar.finish_and_clear();
    Ok(failed)
}

/// Whether that came of `mutant` which must, and what is said about it.
fn verdict(mutant: &Mutant, killer: &Result<Option<String>>, survivors: &Survivors) -> (bool, String) {
    let Mutant { name, line, .. } = mutant;
    match (killer, survivors.reason(mutant)) {
        (Err(error), _) => (false, format!("FAILED    {line:4} {name}  {error:#}")),
        (Ok(Some(killer)), None) => (true, format!("killed    {line:4} {name}  by {killer}")),
        (Ok(Some(killer)), Some(_)) => {
            (false, format!("LISTED    {line:4} {name}  as a survivor, but killed by {killer}"))
        }
        (Ok(None), Some(reason)) => (true, format!("survives  {line:4} {name}  {reason}")),
        (Ok(None), None) => (false, format!("SURVIVES  {line:4} {name}  unknown")),
    }
}

struct Hunter<'a> {
    sources: &'a Sources,
    expected: &'a Expected,
    events: Vec<String>,
    files: Vec<File>,
    /// By file of the core, the lock whose clients objected to its last mutant.
    last: RefCell<HashMap<String, String>>,
}

impl Hunter<'_> {
    /// The client that objects to `mutant`, and to what.
    fn killer(&self, mutant: &Mutant) -> Result<Option<String>> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let mutated = mutant.core(self.sources, folder.path())?;
        mutated.build_glue(folder.path())?;
        for file in self.concerned(mutant) {
            let mut entries = file.clients(&mutated, folder.path())?;
            entries.sort_by_key(|entry| self.cost(entry));
            for entry in &entries {
                if let Some(what) = self.objection(entry) {
                    self.last.borrow_mut().insert(mutant.file.clone(), file.name.clone());
                    let what = what.split(':').next().unwrap_or_default();
                    return Ok(Some(format!("{}: {what}", entry.name)));
                }
            }
        }
        Ok(None)
    }

    /// The files of clients of the locks that have `mutant` in them, the likeliest to object and then the cheapest first.
    fn concerned(&self, mutant: &Mutant) -> Vec<&File> {
        let includes = |file: &&File| {
            file.header.as_ref().is_some_and(|header| mutate::includes(&self.sources.core, header, &mutant.file))
        };
        let mut files: Vec<&File> = self.files.iter().filter(includes).collect();
        let last = self.last.borrow().get(&mutant.file).cloned();
        let cost = |file: &File| -> u64 {
            let prefix = format!("{}/", file.name);
            self.expected.usual().filter(|(name, _)| name.starts_with(&prefix)).map(|(_, kept)| kept.states).sum()
        };
        files.sort_by_cached_key(|file| (Some(&file.name) != last.as_ref(), cost(file)));
        files
    }

    fn cost(&self, entry: &Entry) -> u64 {
        self.expected.get(false, &entry.name).map_or(u64::MAX, |kept| kept.states)
    }

    /// What the client objects to, if it does within a mutant's limits.
    fn objection(&self, entry: &Entry) -> Option<String> {
        let client: &'static Client = entry.client;
        let kept = self.expected.get(false, &entry.name)?;
        let how = match kept.how {
            How::Walks(walks) => How::Walks(walks.min(WALKS)),
            how => how,
        };
        let report = plan::explore_like(client, how, &Wishes { seed: 1, ..Wishes::default() }, STATES);
        match (&report.verdict, how) {
            (Verdict::Unfinished, _) => None,
            // Some events are too rare for so few.
            (Verdict::Holds, How::Walks(_)) => None,
            _ => judge(client, &report, &self.events, !matches!(how, How::Walks(_))).err(),
        }
    }
}
