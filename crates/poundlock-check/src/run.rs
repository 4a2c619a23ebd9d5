// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which clients are explored how, and what is said about it.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::abi::{self, Client};
use crate::arena;
use crate::client::{Sources, words};
use crate::explore::{self, Report, Verdict, Walk};
use crate::machine::{self, Choice, Settings};
use crate::memory::THREADS;

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
    #[arg(long, default_value_t = 3_000_000)]
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
    #[arg(long, default_value_t = 1)]
    spurious: u8,
    /// Replays one execution of the one client that the filters leave
    #[arg(long, value_name = "CHOICES")]
    replay: Option<String>,
}

/// Runs what `arguments` ask for. Whether all was as it must be.
pub fn run(arguments: &Arguments) -> Result<bool> {
    arena::map()?;
    machine::catch_crashes();
    let core = arguments.core.clone().unwrap_or_else(|| arguments.root.join("core"));
    let sources = Sources { root: arguments.root.clone(), core };
    let events = sources.events()?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut good = true;
    let mut any = false;
    for (file, defines) in files(&sources)? {
        let name = defines.first().map_or(file, |define| define.split_once('=').expect("NAME=VALUE").1);
        let name = name.trim_end_matches(".c");
        let can_match = |filter: &String| filter.split('/').next().is_some_and(|first| name.contains(first));
        if !arguments.filters.is_empty() && !arguments.filters.iter().any(can_match) {
            continue;
        }
        for client in sources.clients(file, &defines, folder.path())? {
            let full = format!("{name}/{}", abi::text(client.name));
            if arguments.filters.is_empty() || arguments.filters.iter().any(|filter| full.contains(filter)) {
                any = true;
                good &= one(&full, client, arguments, &events)?;
            }
        }
    }
    if !any {
        bail!("no client of that name: {}", arguments.filters.join(" "));
    }
    Ok(good)
}

/// The files of clients, and what each is compiled with.
fn files(sources: &Sources) -> Result<Vec<(&'static str, Vec<String>)>> {
    let mut files = vec![("litmus.c", vec![]), ("seeded.c", vec![])];
    for lock in sources.locks()? {
        let include = format!("LOCK_HEADER=\"{}.h\"", lock.name);
        files.push(("lock.c", vec![format!("LOCK={}", lock.name), include, format!("LOCK_{}", lock.kind)]));
    }
    Ok(files)
}

fn settings(arguments: &Arguments) -> Settings {
    let mut domains = [0; THREADS];
    (0..THREADS).for_each(|thread| domains[thread] = thread as u8 % 2);
    Settings { domains, spurious: arguments.spurious, bound: arguments.bound, weak: !arguments.sc }
}

fn one(name: &str, client: &'static Client, arguments: &Arguments, events: &[String]) -> Result<bool> {
    let settings = settings(arguments);
    if let Some(path) = &arguments.replay {
        let (story, fault) = explore::replay(client, settings, &parse(path)?);
        story.iter().for_each(|line| println!("{line}"));
        println!("{}", fault.as_deref().unwrap_or("(nothing is wrong so far)"));
        return Ok(fault.is_none());
    }
    let start = Instant::now();
    let width = words(client.allowed).iter().map(|outcome| outcome.len()).max().unwrap_or(0);
    let report = match arguments.walks {
        None => explore::all(client, settings, arguments.states, width),
        Some(count) => {
            let report = explore::walks(client, settings, Walk::Random, count, arguments.seed);
            match report.verdict {
                Verdict::Holds => explore::walks(client, settings, Walk::Priorities, count, arguments.seed),
                _ => report,
            }
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let judged = judge(client, &report, events, arguments.walks.is_none());
    let Report { states, steps, ends, .. } = report;
    let verdict = judged.as_ref().err().map_or("holds", String::as_str);
    println!("{name:32} {states:>9} states {steps:>9} steps {ends:>7} ends {seconds:6.2} s  {verdict}");
    if let (Err(_), Verdict::Fails(_, path)) = (&judged, &report.verdict) {
        let (story, _) = explore::replay(client, settings, path);
        story.iter().for_each(|line| println!("{line}"));
        println!("replay: --replay {} {name}", format(path));
    }
    Ok(judged.is_ok())
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
