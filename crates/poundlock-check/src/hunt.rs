// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows mutants of the core to the clients and the unit tests of the locks that they concern, and expects each to be
//! objected to.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::abi::Client;
use crate::catalogue::{self, Entry, File};
use crate::client::Sources;
use crate::expected::{Expected, How};
use crate::explore::Verdict;
use crate::judge::judge;
use crate::mutate::{self, Killers, Mutant, Survivors};
use crate::plan::{self, Wishes};
use crate::pool;
use crate::run::{Arguments, Count, progress};
use crate::unit::{self, Test};

/// The most states of a client that a mutant is shown to.
const STATES: u64 = 300_000;
/// The most steps of an execution: a mutant may go on for ever in ever new states, and each step is kept.
const STEPS: u32 = 3_000;
/// The most random walks of each kind.
const WALKS: u64 = 5_000;

/// Runs the known faults, and the mutants unless only those are asked for. How many are killed or known to survive.
pub fn run(sources: &Sources, arguments: &Arguments, expected: &Expected) -> Result<Count> {
    let survivors = Survivors::read(&sources.root)?;
    let mut killers = Killers::read(&sources.root)?;
    let all = if arguments.faults { Vec::new() } else { mutate::all(sources)? };
    let known_faults = mutate::known_faults(sources)?;
    let mut faults: Vec<&Mutant> = known_faults.iter().filter(|fault| arguments.matches(&fault.name)).collect();
    let mut mutants: Vec<&Mutant> = all.iter().filter(|mutant| arguments.matches(&mutant.name)).collect();
    if faults.is_empty() && mutants.is_empty() {
        bail!("no mutant of that name: {}", arguments.filters.join(" "));
    }
    let mut unjudged = 0;
    if arguments.kills {
        for mutant in mutants.iter().filter(|mutant| !is_judged(mutant, &survivors, &killers)) {
            println!(
                "NEW       {:4} {}  ./dev check --mutants --new --accept asks who objects",
                mutant.line, mutant.name
            );
            unjudged += 1;
        }
        mutants.retain(|mutant| killers.get(&mutant.name).is_some());
    } else if arguments.new {
        mutants.retain(|mutant| !is_judged(mutant, &survivors, &killers));
        faults.retain(|fault| !is_judged(fault, &survivors, &killers));
    } else {
        mutants.retain(|mutant| survivors.reason(mutant).is_some() == arguments.survivors);
    }
    if arguments.survivors {
        faults.clear();
    }
    if let Some(sample) = arguments.sample {
        mutants.shuffle(&mut SmallRng::seed_from_u64(arguments.seed));
        mutants.truncate(sample);
    }
    let mutants: Vec<&Mutant> = faults.into_iter().chain(mutants).collect();
    if arguments.accept && arguments.filters.is_empty() && !arguments.faults {
        killers.retain(|name| all.iter().chain(&known_faults).any(|mutant| mutant.name == name))?;
    }
    let mut failed = hunt(&mutants, sources, expected, &survivors, &mut killers, arguments)?;
    if !arguments.faults && arguments.filters.is_empty() {
        for gone in survivors.names().filter(|name| !all.iter().any(|mutant| mutant.name == *name)) {
            println!("gone, but listed in {}: {gone}", survivors.path().display());
            failed += 1;
        }
    }
    Ok(Count { passed: mutants.len().saturating_sub(failed), failed: failed + unjudged })
}

/// Whether it is known who objects to `mutant`, or why it may survive.
fn is_judged(mutant: &Mutant, survivors: &Survivors, killers: &Killers) -> bool {
    killers.get(&mutant.name).is_some() || survivors.reason(mutant).is_some()
}

/// Says in order what came of `mutants`. How many are not as they must be.
fn hunt(
    mutants: &[&Mutant],
    sources: &Sources,
    expected: &Expected,
    survivors: &Survivors,
    killers: &mut Killers,
    arguments: &Arguments,
) -> Result<usize> {
    let known: HashMap<&str, String> =
        mutants.iter().filter_map(|mutant| Some((mutant.name.as_str(), killers.get(&mutant.name)?.into()))).collect();
    let likely = |file: &str| -> Vec<String> {
        let clients: Vec<&str> = killers.of_file(file).collect();
        let mut counted: Vec<(usize, &str)> = Vec::new();
        for client in &clients {
            match counted.iter_mut().find(|(_, name)| name == client) {
                Some((count, _)) => *count += 1,
                None => counted.push((1, client)),
            }
        }
        counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        counted.into_iter().map(|(_, client)| client.to_string()).collect()
    };
    let glue = tempfile::tempdir().context("cannot make a temporary folder")?;
    sources.build_glue(glue.path())?;
    let hunter = Hunter {
        sources,
        expected,
        events: sources.events()?,
        files: catalogue::files(sources)?,
        tests: unit::tests(sources)?,
        glue: glue.path(),
        states: arguments.states.unwrap_or(STATES),
        walks: arguments.walks.unwrap_or(WALKS),
        known,
        likely: RefCell::new(mutants.iter().map(|mutant| (mutant.file.clone(), likely(&mutant.file))).collect()),
    };
    let work = |job: usize| hunter.killer(mutants[job]).map_err(|error| format!("{error:#}"));
    let mut results = BTreeMap::new();
    let (mut next, mut failed) = (0, 0);
    let bar = progress(mutants.len(), "mutants");
    let jobs: Vec<usize> = (0..mutants.len()).collect();
    pool::run(&jobs, work, |job, result| {
        let result = result.and_then(|killer| killer.map_err(anyhow::Error::msg));
        if let (Ok(killer), true) = (&result, arguments.accept) {
            let client = killer.as_ref().map(|killer| killer.client.as_str());
            if let Err(error) = killers.accept(&mutants[job].name, client) {
                bar.suspend(|| println!("{error:#}"));
            }
        }
        results.insert(job, result);
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

/// The client, or unit test, that objects to a mutant, and to what.
#[derive(Deserialize, Serialize)]
struct Killer {
    client: String,
    what: String,
}

/// Whether that came of `mutant` which must, and what is said about it.
fn verdict(mutant: &Mutant, killer: &Result<Option<Killer>>, survivors: &Survivors) -> (bool, String) {
    let Mutant { name, line, .. } = mutant;
    match (killer, survivors.reason(mutant)) {
        (Err(error), _) => (false, format!("FAILED    {line:4} {name}  {error:#}")),
        (Ok(Some(Killer { client, what })), None) => (true, format!("killed    {line:4} {name}  by {client}: {what}")),
        (Ok(Some(Killer { client, what })), Some(_)) => {
            (false, format!("LISTED    {line:4} {name}  as a survivor, but killed by {client}: {what}"))
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
    tests: Vec<Test>,
    /// Where the glue has been built.
    glue: &'a Path,
    states: u64,
    walks: u64,
    /// By mutant, who is known to object.
    known: HashMap<&'a str, String>,
    /// By file of the core, who objected to its mutants, the likeliest first.
    likely: RefCell<HashMap<String, Vec<String>>>,
}

/// What of a mutant has been compiled, and whom it was shown to.
struct Hunt<'a> {
    mutant: &'a Mutant,
    mutated: Sources,
    folder: &'a Path,
    loaded: HashMap<String, Vec<Entry>>,
    asked: HashSet<String>,
}

impl Hunter<'_> {
    /// Who objects to `mutant`, and to what.
    fn killer(&self, mutant: &Mutant) -> Result<Option<Killer>> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let mutated = mutant.core(self.sources, folder.path())?;
        Sources::copy_glue(self.glue, folder.path())?;
        let (loaded, asked) = (HashMap::new(), HashSet::new());
        let mut hunt = Hunt { mutant, mutated, folder: folder.path(), loaded, asked };
        let known = self.known.get(mutant.name.as_str());
        if let Some(known) = known
            && let Some(what) = self.ask_named(&mut hunt, known)?
        {
            return Ok(Some(Killer { client: known.clone(), what }));
        }
        let likely = self.likely.borrow().get(&mutant.file).cloned().unwrap_or_default();
        for client in likely {
            if let Some(what) = self.ask_named(&mut hunt, &client)? {
                return Ok(Some(self.found(mutant, client, what)));
            }
        }
        for test in self.concerned_tests(mutant) {
            if let Some(what) = self.ask_test(&mut hunt, test)? {
                return Ok(Some(self.found(mutant, test.name.clone(), what)));
            }
        }
        for file in self.concerned(mutant) {
            let mut entries = self.entries(&mut hunt, file)?;
            entries.sort_by_key(|entry| self.cost(&entry.name));
            for entry in entries.iter().filter(|entry| !self.is_twin(&entry.name)) {
                if let Some(what) = self.ask(&mut hunt, entry) {
                    return Ok(Some(self.found(mutant, entry.name.clone(), what)));
                }
            }
        }
        Ok(None)
    }

    /// Takes `client` for the likeliest to object to the next mutant of the file.
    fn found(&self, mutant: &Mutant, client: String, what: String) -> Killer {
        let mut likely = self.likely.borrow_mut();
        let likely = likely.entry(mutant.file.clone()).or_default();
        likely.retain(|name| *name != client);
        likely.insert(0, client.clone());
        Killer { client, what }
    }

    /// The clients of `file` with the mutant in it.
    fn entries(&self, hunt: &mut Hunt, file: &File) -> Result<Vec<Entry>> {
        if !hunt.loaded.contains_key(&file.name) {
            hunt.loaded.insert(file.name.clone(), file.clients(&hunt.mutated, hunt.folder)?);
        }
        Ok(hunt.loaded[&file.name].clone())
    }

    /// What the client, or unit test, of that name objects to.
    fn ask_named(&self, hunt: &mut Hunt, client: &str) -> Result<Option<String>> {
        if let Some(test) = self.tests.iter().find(|test| test.name == client) {
            return self.ask_test(hunt, test);
        }
        let file = client.split('/').next().unwrap_or_default();
        let Some(file) = self.files.iter().find(|known| known.name == file) else { return Ok(None) };
        let entries = self.entries(hunt, file)?;
        Ok(entries.iter().find(|entry| entry.name == client).and_then(|entry| self.ask(hunt, entry)))
    }

    /// What the client objects to, if it has not been asked before.
    fn ask(&self, hunt: &mut Hunt, entry: &Entry) -> Option<String> {
        let new = hunt.asked.insert(entry.name.clone());
        let what = new.then(|| self.objection(entry)).flatten()?;
        Some(what.split(':').next().unwrap_or_default().to_string())
    }

    /// What the unit test objects to, if it can tell, and has not been asked before.
    fn ask_test(&self, hunt: &mut Hunt, test: &Test) -> Result<Option<String>> {
        let asked = !hunt.mutant.is_order && hunt.asked.insert(test.name.clone());
        if asked { test.objection(&hunt.mutated, hunt.folder) } else { Ok(None) }
    }

    /// The unit tests of the locks that have `mutant` in them, that of its own file first.
    fn concerned_tests(&self, mutant: &Mutant) -> Vec<&Test> {
        let has_it = |header: &String| mutate::includes(&self.sources.core, header, &mutant.file);
        let mut tests: Vec<&Test> = self.tests.iter().filter(|test| test.headers.iter().any(has_it)).collect();
        let own = format!("unit/{}", mutant.file.trim_end_matches(".h"));
        tests.sort_by_key(|test| test.name != own);
        tests
    }

    /// Whether another client does just the same: spinning and yielding are often one.
    fn is_twin(&self, name: &str) -> bool {
        let Some(prefix) = name.strip_suffix("/yield") else { return false };
        let kept = |name: &str| self.expected.get(false, name);
        kept(name).is_some() && kept(name) == kept(&format!("{prefix}/spin"))
    }

    /// The files of clients of the locks that have `mutant` in them, the cheapest first.
    fn concerned(&self, mutant: &Mutant) -> Vec<&File> {
        let includes = |file: &&File| {
            file.header.as_ref().is_some_and(|header| mutate::includes(&self.sources.core, header, &mutant.file))
        };
        let mut files: Vec<&File> = self.files.iter().filter(includes).collect();
        let cost = |file: &File| -> u64 {
            let prefix = format!("{}/", file.name);
            self.expected.usual().filter(|(name, _)| name.starts_with(&prefix)).map(|(_, kept)| kept.states).sum()
        };
        files.sort_by_cached_key(|file| cost(file));
        files
    }

    fn cost(&self, name: &str) -> u64 {
        self.expected.get(false, name).map_or(u64::MAX, |kept| kept.states)
    }

    /// What the client objects to, if it does within a mutant's limits.
    fn objection(&self, entry: &Entry) -> Option<String> {
        let client: &'static Client = entry.client;
        let kept = self.expected.get(false, &entry.name)?;
        let how = match kept.how {
            How::Walks(walks) => How::Walks(walks.min(self.walks)),
            how => how,
        };
        let report = plan::explore_like(
            client,
            how,
            &Wishes { seed: 1, longest: Some(STEPS), ..Wishes::default() },
            self.states,
        );
        match (&report.verdict, how) {
            (Verdict::Unfinished, _) => None,
            // Some events are too rare for so few.
            (Verdict::Holds, How::Walks(_)) => None,
            _ => judge(client, &report, &self.events, !matches!(how, How::Walks(_))).err(),
        }
    }
}
