// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which clients are explored how, and what is said about it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::abi::{self, Client};
use crate::arena;
use crate::client::{Sources, words};
use crate::expected::Expected;
use crate::explore::{self, Report, Verdict, Walk};
use crate::machine::{self, Choice, Settings};
use crate::memory::THREADS;
use crate::mutate::{self, Mutant, Survivors};

/// Explores the locks' clients in all ways that the C11 memory model allows, after the tests of the checker itself.
#[derive(Parser)]
#[command(name = "poundlock-check", version)]
pub struct Arguments {
    /// Only clients whose "file/name" contains one of these
    filters: Vec<String>,
    /// The repository
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../.."), hide_default_value = true)]
    root: PathBuf,
    /// Another folder of locks than the repository's core
    #[arg(long)]
    core: Option<PathBuf>,
    /// The most states of a client to visit
    #[arg(long, default_value_t = 10_000_000)]
    states: u64,
    /// Bounds the switches away from a thread that could have gone on
    #[arg(long)]
    bound: Option<u32>,
    /// Random walks instead of all states: how many of each kind
    #[arg(long)]
    walks: Option<u64>,
    /// Of the random walks
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Sequential consistency: only the newest message is read
    #[arg(long)]
    sc: bool,
    /// How often a sleep may end for no reason, in an execution
    #[arg(long)]
    spurious: Option<u32>,
    /// The mutation run: weakens the locks in each place, and expects the clients to object
    #[arg(long)]
    mutants: bool,
    /// Takes the numbers of states for what is to be expected from now on
    #[arg(long)]
    accept: bool,
    /// Replays one execution of the one client that the filters leave
    #[arg(long, value_name = "CHOICES")]
    replay: Option<String>,
}

/// Runs what `arguments` ask for. Whether all was as it must be.
pub fn run(arguments: &Arguments) -> Result<bool> {
    arena::map()?;
    machine::catch_crashes();
    let core = arguments.core.clone().unwrap_or_else(|| arguments.root.join("core"));
    let sources = Sources { root: arguments.root.clone(), core, strict: true };
    if arguments.mutants {
        return run_mutants(&sources, arguments);
    }
    let events = sources.events()?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut expected = Expected::read(&sources.root)?;
    let mut good = true;
    let mut any = false;
    let files = files(&sources)?;
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    for file in files.iter().filter(|file| arguments.can_match(&file.name, &names)) {
        for (name, client) in file.clients(&sources, folder.path())? {
            if arguments.matches(&name) {
                any = true;
                good &= one(&name, client, arguments, &events, &mut expected)?;
            }
        }
    }
    if !any {
        bail!("no client of that name: {}", arguments.filters.join(" "));
    }
    if arguments.accept {
        expected.write()?;
    }
    Ok(good)
}

impl Arguments {
    /// Whether the clients are explored as they ask for themselves.
    fn is_usual(&self) -> bool {
        self.bound.is_none() && self.walks.is_none() && self.spurious.is_none() && !self.sc
    }

    /// Whether clients of a file of that name, one of `names`, can be asked for.
    fn can_match(&self, name: &str, names: &[String]) -> bool {
        let can_match = |filter: &String| {
            let first = filter.split('/').next().unwrap_or_default();
            name.contains(first) || !names.iter().any(|name| name.contains(first))
        };
        self.filters.is_empty() || self.filters.iter().any(can_match)
    }

    fn matches(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter))
    }
}

/// A file of clients, and what it is compiled with.
struct File {
    name: String,
    path: String,
    defines: Vec<String>,
    /// The header of the lock that it is about.
    header: Option<String>,
}

fn files(sources: &Sources) -> Result<Vec<File>> {
    let own = |name: &str, path: &str| File { name: name.into(), path: path.into(), defines: Vec::new(), header: None };
    let mut files = vec![own("litmus", "litmus.c"), own("seeded", "seeded.c")];
    for lock in sources.locks()? {
        let header = format!("{}.h", lock.name);
        let include = format!("LOCK_HEADER=\"{header}\"");
        let traits = format!("LOCK_TRAITS=\"locks/{header}\"");
        let defines = vec![format!("LOCK={}", lock.name), include, traits, format!("LOCK_{}", lock.kind)];
        let extra = format!("locks/{}.c", lock.name);
        if sources.root.join("tests/check").join(&extra).exists() {
            let name = format!("{}+", lock.name);
            files.push(File { name, path: extra, defines: defines.clone(), header: Some(header.clone()) });
        }
        files.push(File { name: lock.name, path: "lock.c".into(), defines, header: Some(header) });
    }
    for name in sources.rw_locks()? {
        let header = format!("{name}.h");
        let defines = vec![format!("LOCK={name}"), format!("LOCK_HEADER=\"{header}\"")];
        files.push(File { name, path: "rw.c".into(), defines, header: Some(header) });
    }
    Ok(files)
}

impl File {
    /// Its clients, each with its full name. What the compiler makes stays in `folder` while they are used.
    fn clients(&self, sources: &Sources, folder: &Path) -> Result<Vec<(String, &'static Client)>> {
        let clients = sources.clients(&self.name, &self.path, &self.defines, folder)?;
        let named = |client: &'static Client| (format!("{}/{}", self.name, abi::text(client.name)), client);
        Ok(clients.into_iter().map(named).collect())
    }
}

fn settings(client: &Client, arguments: &Arguments) -> Settings {
    let mut domains = [0; THREADS];
    let count = if client.domains == 0 { 2 } else { client.domains };
    (0..THREADS).for_each(|thread| domains[thread] = (thread as u32 % count) as u8);
    let bound = arguments.bound.or((client.bound > 0).then_some(client.bound));
    let spurious = arguments.spurious.unwrap_or(client.spurious);
    let cpus = if client.cpus == 0 { client.threads } else { client.cpus };
    Settings { domains, cpus, spurious, bound, weak: !arguments.sc }
}

/// How many random walks of each kind to make; None: to visit all states.
fn walks(client: &Client, arguments: &Arguments) -> Option<u64> {
    arguments.walks.or((client.walks > 0).then_some(client.walks.into()))
}

/// Explores `client` by `walks` of each kind, or else all of its states up to `states`.
fn explore(client: &'static Client, settings: Settings, walks: Option<u64>, states: u64, seed: u64) -> Report {
    let width = words(client.allowed).iter().map(|outcome| outcome.len()).max().unwrap_or(0);
    let Some(count) = walks else {
        return explore::all(client, settings, states, width);
    };
    let mut report = explore::walks(client, settings, Walk::Random, count, seed);
    if report.verdict == Verdict::Holds {
        report.add(explore::walks(client, settings, Walk::Priorities, count, seed));
    }
    report
}

/// Explores `client` and says what came of it. Whether that is as it must be.
fn one(
    name: &str,
    client: &'static Client,
    arguments: &Arguments,
    events: &[String],
    expected: &mut Expected,
) -> Result<bool> {
    let settings = settings(client, arguments);
    if let Some(path) = &arguments.replay {
        let (story, fault) = explore::replay(client, settings, &parse(path)?);
        story.iter().for_each(|line| println!("{line}"));
        println!("{}", fault.as_deref().unwrap_or("(nothing is wrong so far)"));
        return Ok(fault.is_none());
    }
    let walks = walks(client, arguments);
    let start = Instant::now();
    let report = explore(client, settings, walks, arguments.states, arguments.seed);
    let seconds = start.elapsed().as_secs_f64();
    let mut judged = judge(client, &report, events, walks.is_none());
    if arguments.accept {
        expected.accept(name, report.states);
    } else if arguments.is_usual() {
        judged = judged.and_then(|()| expected.check(name, report.states));
    }
    let Report { states, steps, ends, .. } = report;
    let (how, counts) = match (walks, settings.bound) {
        (Some(_), _) => ("walks".into(), format!("{ends:>9} walks  {steps:>9} steps")),
        (None, None) => ("complete".into(), format!("{states:>9} states {steps:>9} steps")),
        (None, Some(bound)) => (format!("bound {bound}"), format!("{states:>9} states {steps:>9} steps")),
    };
    let verdict = judged.as_ref().err().map_or("holds", String::as_str);
    println!("{name:32} {how:8} {counts} {ends:>7} ends {seconds:6.2} s  {verdict}");
    if let (Err(_), Verdict::Fails(_, path)) = (&judged, &report.verdict) {
        let (story, _) = explore::replay(client, settings, path);
        story.iter().for_each(|line| println!("{line}"));
        println!("replay: --replay {} {name}", format(path));
    }
    Ok(judged.is_ok())
}

/// The most states of a client that a mutant is shown to.
const MUTANT_STATES: u64 = 300_000;
/// The most random walks of each kind.
const MUTANT_WALKS: u64 = 5_000;

/// Runs each mutant against the clients of the locks that it concerns. Whether all that survive are known to.
fn run_mutants(sources: &Sources, arguments: &Arguments) -> Result<bool> {
    let survivors = Survivors::read(&sources.root)?;
    let mutants: Vec<Mutant> = mutate::all(sources)?.into_iter().filter(|m| arguments.matches(&m.name)).collect();
    if mutants.is_empty() {
        bail!("no mutant of that name: {}", arguments.filters.join(" "));
    }
    let fit = fit_clients(sources, arguments)?;
    let mut survived = Vec::new();
    let mut unknown = 0;
    for mutant in &mutants {
        if let Some(killer) = killer(mutant, sources, arguments, &fit)? {
            println!("killed    {:4} {}  by {killer}", mutant.line, mutant.name);
            continue;
        }
        let reason = survivors.reason(&mutant.name);
        println!("SURVIVES  {:4} {}  {}", mutant.line, mutant.name, reason.unwrap_or("unknown"));
        unknown += usize::from(reason.is_none());
        survived.push(mutant.name.clone());
    }
    let mut files: Vec<String> = mutants.iter().map(|mutant| mutant.file.clone()).collect();
    files.dedup();
    let stale: Vec<&str> =
        if arguments.filters.is_empty() { survivors.stale(&files, &survived).collect() } else { Vec::new() };
    stale.iter().for_each(|name| println!("listed in {}, but killed or gone: {name}", survivors.path().display()));
    let killed = mutants.len() - survived.len();
    println!(
        "{} mutants, {killed} killed, {} survive for a known reason, {unknown} for none",
        mutants.len(),
        survived.len() - unknown
    );
    Ok(unknown == 0 && stale.is_empty())
}

/// The clients that can be asked about mutants: those that do not object to the unchanged core within the same limits,
/// which are too narrow for some events.
fn fit_clients(sources: &Sources, arguments: &Arguments) -> Result<HashSet<String>> {
    let events = sources.events()?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut fit = HashSet::new();
    for file in files(sources)?.iter().filter(|file| file.header.is_some()) {
        for (name, client) in file.clients(sources, folder.path())? {
            if objection(client, arguments, &events).is_none() {
                fit.insert(name);
            }
        }
    }
    Ok(fit)
}

/// What `client` objects to, if it does within a mutant's limits.
fn objection(client: &'static Client, arguments: &Arguments, events: &[String]) -> Option<String> {
    let walks = walks(client, arguments).map(|walks| walks.min(MUTANT_WALKS));
    let report = explore(client, settings(client, arguments), walks, MUTANT_STATES, arguments.seed);
    if report.verdict == Verdict::Unfinished {
        return None;
    }
    judge(client, &report, events, walks.is_none()).err()
}

/// The client, one of `fit`, that objects to `mutant`, and to what.
fn killer(mutant: &Mutant, sources: &Sources, arguments: &Arguments, fit: &HashSet<String>) -> Result<Option<String>> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mutated = mutant.core(sources, folder.path())?;
    let events = sources.events()?;
    for file in files(sources)? {
        if !file.header.as_ref().is_some_and(|header| mutate::includes(&sources.core, header, &mutant.file)) {
            continue;
        }
        for (name, client) in file.clients(&mutated, folder.path())?.into_iter().filter(|(name, _)| fit.contains(name))
        {
            if let Some(what) = objection(client, arguments, &events) {
                return Ok(Some(format!("{name}: {}", what.split(':').next().unwrap_or_default())));
            }
        }
    }
    Ok(None)
}

/// Whether the report is what the client asks for; if not, why.
fn judge(client: &Client, report: &Report, events: &[String], complete: bool) -> Result<(), String> {
    let fails = abi::text(client.fails);
    match &report.verdict {
        Verdict::Fails(what, _) if fails.is_empty() || !what.contains(fails) => return Err(what.clone()),
        Verdict::Fails(..) => return Ok(()),
        Verdict::Unfinished => return Err("UNFINISHED: more states than --states".into()),
        Verdict::Holds if !fails.is_empty() => return Err(format!("did not fail with: {fails}")),
        Verdict::Holds => {}
    }
    if report.ends == 0 {
        return Err("no execution came to its end".into());
    }
    for demand in words(client.demands) {
        let event = events.iter().position(|event| event == demand);
        if event.is_none_or(|event| report.events[event] == 0) {
            return Err(format!("the event {demand} never happened"));
        }
    }
    if !complete || client.allowed.is_null() {
        return Ok(());
    }
    let found: Vec<&str> = report.outcomes.iter().map(String::as_str).collect();
    let mut allowed = words(client.allowed);
    allowed.sort_unstable();
    if let Some(bad) = words(client.forbidden).iter().find(|bad| found.contains(bad)) {
        return Err(format!("the forbidden outcome {bad} was found"));
    }
    if found != allowed {
        return Err(format!("found the outcomes {}, not {}", found.join(" "), allowed.join(" ")));
    }
    Ok(())
}

/// Choices as text: a digit for the thread, and a letter for another alternative than the first.
fn format(path: &[Choice]) -> String {
    path.iter()
        .map(|choice| match choice.alternative {
            0 => choice.thread.to_string(),
            other => format!("{}{}", choice.thread, (b'a' + other) as char),
        })
        .collect()
}

fn parse(text: &str) -> Result<Vec<Choice>> {
    let mut path: Vec<Choice> = Vec::new();
    for letter in text.chars() {
        match (letter, path.last_mut()) {
            ('0'..='7', _) => path.push(Choice { thread: letter as u8 - b'0', alternative: 0 }),
            ('b'..='z', Some(choice)) => choice.alternative = letter as u8 - b'a',
            _ => bail!("no choices to replay: {text}"),
        }
    }
    Ok(path)
}
