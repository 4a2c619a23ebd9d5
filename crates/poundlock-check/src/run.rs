// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the command line asks for, done and said.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::abi;
use crate::arena;
use crate::catalogue::{self, Entry, File};
use crate::client::Sources;
use crate::expected::{Expected, How, Kept};
use crate::explore::{self, Report, Verdict};
use crate::hunt;
use crate::judge::judge;
use crate::machine::{self, Choice};
use crate::plan::{self, Wishes};
use crate::pool;

/// Explores the locks' clients in all ways that the C11 memory model allows, after the tests of the checker itself.
#[derive(Parser)]
#[command(name = "poundlock-check", version)]
pub struct Arguments {
    /// Only clients (with --mutants: mutants) whose "file/name" contains one of these
    pub filters: Vec<String>,
    /// The repository
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../.."), hide_default_value = true)]
    root: PathBuf,
    /// Another folder of locks than the repository's core
    #[arg(long)]
    core: Option<PathBuf>,
    /// Goes further: what ./dev check explores under a bound is explored completely or under a larger bound, where that
    /// ends within minutes, and walks are ten times as many
    #[arg(long)]
    deep: bool,
    /// The most states of a client to visit
    #[arg(long)]
    pub states: Option<u64>,
    /// Bounds the switches away from a thread that could have gone on
    #[arg(long, conflicts_with = "walks")]
    bound: Option<u32>,
    /// Random walks instead of all states: how many of each kind
    #[arg(long)]
    pub walks: Option<u64>,
    /// Of the random walks and the sample
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Sequential consistency: only the newest message is read
    #[arg(long)]
    sc: bool,
    /// How often a sleep may end for no reason, in an execution
    #[arg(long)]
    spurious: Option<u32>,
    /// The mutation run: weakens the locks in each place, and expects the clients to object
    #[arg(long)]
    pub mutants: bool,
    /// Of the mutants only so many, drawn by the seed
    #[arg(long, requires = "mutants")]
    pub sample: Option<usize>,
    /// The locks with faults of earlier implementations put in, to which the clients must object
    #[arg(long)]
    pub faults: bool,
    /// Of the mutants only those whose killer is known (tests/check/killers.txt)
    #[arg(long, requires = "mutants")]
    pub kills: bool,
    /// Of the mutants only those that have neither a killer nor a reason to survive yet
    #[arg(long, requires = "mutants", conflicts_with = "kills")]
    pub new: bool,
    /// Of the mutants only those that are listed as survivors, or whose label says that they pair with nothing: all clients
    /// of their locks are shown them, which takes long; --states and --walks shorten it
    #[arg(long, requires = "mutants", conflicts_with_all = ["kills", "new", "faults"])]
    pub survivors: bool,
    /// Takes the ways of exploring and the numbers of states, or with --mutants the killers, for what is to be expected
    /// from now on
    #[arg(long)]
    pub accept: bool,
    /// Replays one execution of the one client that the filters leave
    #[arg(long, value_name = "CHOICES")]
    replay: Option<String>,
}

impl Arguments {
    fn wishes(&self) -> Wishes {
        let how = self.bound.map(How::Bound).or(self.walks.map(How::Walks));
        let &Arguments { spurious, sc, seed, states, deep, .. } = self;
        Wishes { how, spurious, sc, seed, states, deep, longest: None }
    }

    /// Whether clients of a file of that name, one of `names`, can be asked for.
    fn can_match(&self, name: &str, names: &[&str]) -> bool {
        let can_match = |filter: &String| {
            let first = filter.split('/').next().unwrap_or_default();
            name.contains(first) || !names.iter().any(|name| name.contains(first))
        };
        self.filters.is_empty() || self.filters.iter().any(can_match)
    }

    /// Whether the thing of that name is asked for.
    pub fn matches(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter))
    }
}

/// How many things were as they must be, and how many not.
#[derive(Clone, Copy, Default)]
pub struct Count {
    pub passed: usize,
    pub failed: usize,
}

/// Runs what `arguments` ask for. Whether all was as it must be.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let Count { passed, failed } = count(arguments)?;
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

fn count(arguments: &Arguments) -> Result<Count> {
    arena::map()?;
    machine::catch_crashes();
    let core = arguments.core.clone().unwrap_or_else(|| arguments.root.join("core"));
    let sources = Sources { root: arguments.root.clone(), core, strict: true };
    let expected = Expected::read(&sources.root)?;
    if arguments.mutants || arguments.faults {
        return hunt::run(&sources, arguments, &expected);
    }
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let files = catalogue::files(&sources)?;
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let files: Vec<&File> = files.iter().filter(|file| arguments.can_match(&file.name, &names)).collect();
    let all = catalogue::all(&files, &sources, folder.path())?;
    let entries: Vec<&Entry> = all.iter().filter(|entry| arguments.matches(&entry.name)).collect();
    if entries.is_empty() {
        bail!("no client of that name: {}", arguments.filters.join(" "));
    }
    if let Some(path) = &arguments.replay {
        return replay(&entries, &parse(path)?, &expected, &arguments.wishes());
    }
    let clients = check(&entries, &sources, arguments, &expected)?;
    if !arguments.deep || !arguments.filters.is_empty() || arguments.accept {
        return Ok(clients);
    }
    let mutants = hunt::run(&sources, arguments, &expected)?;
    Ok(Count { passed: clients.passed + mutants.passed, failed: clients.failed + mutants.failed })
}

fn replay(entries: &[&Entry], path: &[Choice], expected: &Expected, wishes: &Wishes) -> Result<Count> {
    let [entry] = entries else { bail!("--replay is of one client, not of {}", entries.len()) };
    let how = wishes.how.or(expected.get(wishes.deep, &entry.name).map(|kept| kept.how)).unwrap_or(How::Complete);
    let (story, fault) = explore::replay(entry.client, plan::settings(entry.client, how, wishes), path);
    story.iter().for_each(|line| println!("{line}"));
    println!("{}", fault.as_deref().unwrap_or("(nothing is wrong so far)"));
    Ok(Count { passed: fault.is_none().into(), failed: fault.is_some().into() })
}

/// What a worker found out about a client.
#[derive(Deserialize, Serialize)]
struct Found {
    /// What is said about it.
    text: String,
    good: bool,
    how: String,
    states: u64,
}

/// Explores `entries`, the costliest first, and says in their order what came of them.
fn check(entries: &[&Entry], sources: &Sources, arguments: &Arguments, expected: &Expected) -> Result<Count> {
    let (events, wishes) = (sources.events()?, arguments.wishes());
    let cost = |name: &str| {
        let kept = expected.get(wishes.deep, name).or(expected.get(false, name));
        kept.map_or(u64::MAX, |kept| kept.states)
    };
    let mut jobs: Vec<usize> = (0..entries.len()).collect();
    jobs.sort_by_key(|&job| std::cmp::Reverse(cost(&entries[job].name)));
    let work = |job: usize| {
        let entry: &Entry = entries[job];
        one(entry, &wishes, &events, (!arguments.accept).then(|| expected.get(wishes.deep, &entry.name)))
    };
    let mut found = BTreeMap::new();
    let bar = progress(entries.len(), "clients");
    let mut next = 0;
    pool::run(&jobs, work, |job, result| {
        found.insert(job, result);
        bar.inc(1);
        while let Some(result) = found.get(&next) {
            bar.suspend(|| match result {
                Ok(found) => println!("{}", found.text),
                Err(error) => println!("{:32} {error:#}", entries[next].name),
            });
            next += 1;
        }
    })?;
    bar.finish_and_clear();
    let good = found.values().filter(|found| found.as_ref().is_ok_and(|found| found.good)).count();
    let mut failed = entries.len() - good;
    if arguments.accept {
        let mut expected = expected.clone();
        for (job, found) in found {
            let Ok(found) = found else { continue };
            if !found.good {
                continue;
            }
            let how = found.how.parse().expect("a worker's own words");
            expected.accept(wishes.deep, &entries[job].name, Kept { how, states: found.states });
        }
        if arguments.filters.is_empty() {
            expected.retain(&names(entries));
        }
        expected.write()?;
    } else if arguments.filters.is_empty() {
        let names = names(entries);
        for gone in expected.names().filter(|kept| !names.iter().any(|name| name == kept)) {
            println!("{gone:32} is gone, but in tests/check/expected.txt");
            failed += 1;
        }
    }
    Ok(Count { passed: good, failed })
}

fn names(entries: &[&Entry]) -> Vec<String> {
    entries.iter().map(|entry| entry.name.clone()).collect()
}

/// A bar of so many things, where a person looks.
pub fn progress(count: usize, things: &str) -> ProgressBar {
    let style = format!("{{wide_bar}} {{pos}} of {{len}} {things}, {{eta}} left");
    ProgressBar::new(count as u64).with_style(ProgressStyle::with_template(&style).expect("a constant template"))
}

/// The processor's time that this process has had: on a busy machine the clock tells nothing.
fn cpu_seconds() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Explores a client. `kept`: what is known of it; None: that is to be found out.
fn one(entry: &Entry, wishes: &Wishes, events: &[String], kept: Option<Option<Kept>>) -> Found {
    let Entry { name, client } = entry;
    let start = cpu_seconds();
    let right = kept.flatten().filter(|kept| plan::fits(kept.how, client, wishes));
    let (how, report) = plan::explore(client, right, wishes);
    let seconds = cpu_seconds() - start;
    let mut judged = judge(client, &report, events, !matches!(how, How::Walks(_)));
    if let (Some(kept), true) = (kept, wishes.are_none()) {
        judged = judged.and_then(|()| compare(how, report.states, kept, wishes.deep));
    }
    let Report { states, steps, ends, .. } = report;
    let counts = match how {
        How::Walks(_) => format!("{ends:>9} walks  {steps:>9} steps"),
        _ => format!("{states:>9} states {steps:>9} steps {ends:>7} ends"),
    };
    let verdict = match &judged {
        Err(what) => what.clone(),
        Ok(()) if client.flags & abi::CLIENT_ORDER != 0 => {
            format!("holds, passed {} of {}", report.passed, client.bypass)
        }
        Ok(()) => "holds".into(),
    };
    let mut text = format!("{name:32} {how:12} {counts:48} {seconds:6.2} s  {verdict}");
    if let (Err(_), Verdict::Fails(_, path)) = (&judged, &report.verdict) {
        let (story, _) = explore::replay(client, plan::settings(client, how, wishes), path);
        story.iter().for_each(|line| text += &format!("\n{line}"));
        text += &format!("\nreplay: --replay {} {name}", format(path));
    }
    Found { text, good: judged.is_ok(), how: how.to_string(), states }
}

/// Whether an exploration is what was `kept`, which may be nothing of a deep one; if not, why. A client of which nothing
/// is kept could shrink to nothing unseen.
fn compare(how: How, states: u64, kept: Option<Kept>, deep: bool) -> Result<(), String> {
    match kept {
        None if deep => Ok(()),
        None => Err("new: nothing is kept of it in tests/check/expected.txt; look at it, then --accept".into()),
        Some(kept) if how != kept.how => Err(format!("explored {how}, once {}: look at it, then --accept", kept.how)),
        Some(kept) if states < kept.states / 2 => Err(format!("only {states} states, once {}", kept.states)),
        Some(_) => Ok(()),
    }
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
