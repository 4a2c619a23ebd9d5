// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explores clients in parallel and compares the results with their records.

use std::cmp::Reverse;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::abi;
use crate::arguments::{Arguments, format_execution};
use crate::catalogue::Entry;
use crate::expected::{self, Expected, Model, Record, Strategy};
use crate::explore::{self, Report, Verdict};
use crate::judge::judge;
use crate::output::{Count, Progress, print};
use crate::plan::{self, Explored, Overrides};
use crate::pool;
use crate::sources::Sources;

/// A worker's result for a client.
#[derive(Deserialize, Serialize)]
struct Found {
    /// The lines to print.
    text: String,
    good: bool,
    record: Record,
}

/// Explores `entries`, the costliest first, and prints each result when it is known.
pub fn check(
    entries: &[&Entry],
    sources: &Sources,
    arguments: &Arguments,
    expected: &Expected,
) -> Result<Count> {
    let (events, overrides) = (sources.events()?, arguments.overrides());
    let cost = |name: &str| {
        let record = expected.get(overrides.deep, name).or(expected.get(false, name));
        record.map_or(u64::MAX, |record| record.states)
    };
    let mut jobs: Vec<usize> = (0..entries.len()).collect();
    jobs.sort_by_key(|&job| Reverse(cost(&entries[job].name)));
    let work = |job: usize| {
        let entry: &Entry = entries[job];
        let record = expected.get(overrides.deep, &entry.name).filter(|_| !arguments.accept);
        one(entry, &overrides, &events, record, !arguments.accept)
    };
    let mut accepted = expected.clone();
    let mut passed = 0;
    let progress = Progress::new(entries.len(), "clients");
    pool::run(&jobs, work, |job, result| {
        let name = &entries[job].name;
        let found = match result {
            Ok(found) => found,
            Err(error) => return progress.report(false, &format!("{name:32} {error:#}")),
        };
        if found.good {
            passed += 1;
            let known = expected.get(overrides.deep, name);
            if arguments.accept || arguments.times && is_faster(&found.record, known) {
                accepted.accept(overrides.deep, name, found.record);
            }
        }
        progress.report(found.good, &found.text)
    })?;
    drop(progress);
    let mut failed = entries.len() - passed;
    let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
    let all = arguments.filters.is_empty();
    if arguments.accept && all {
        accepted.retain(&names);
    }
    if arguments.accept || arguments.times {
        accepted.write()?;
    }
    if !arguments.accept && all {
        for gone in expected.names().filter(|recorded| !names.iter().any(|name| name == recorded)) {
            print(format!("{gone:32} has a record in {}, but does not exist", expected::PATH))?;
            failed += 1;
        }
    }
    Ok(Count { passed, failed })
}

/// Whether `found` is a result as `known`, in less CPU time.
fn is_faster(found: &Record, known: Option<Record>) -> bool {
    known.is_some_and(|known| found.strategy == known.strategy && found.seconds < known.seconds)
}

/// Explores a client. Its `record` chooses the strategy; if `compare`, the result must match it.
fn one(
    entry: &Entry,
    overrides: &Overrides,
    events: &[String],
    record: Option<Record>,
    compare: bool,
) -> Found {
    let Entry { name, client, .. } = entry;
    let own = overrides.are_none();
    let overrides = &overrides.of(entry);
    let usable = record.filter(|record| plan::fits(record.strategy, client, overrides));
    let Explored { strategy, report, seconds } = plan::explore(client, usable, overrides);
    let settings = plan::settings(client, strategy, overrides);
    let mut judged = judge(client, &report, events, strategy, settings.promises);
    if compare && own {
        judged =
            judged.and_then(|()| matches(name, strategy, report.states, record, overrides.deep));
    }
    let Report { states, steps, ends, .. } = report;
    let counts = match strategy {
        Strategy::Walks(_) => format!("{ends:>9} walks  {steps:>9} steps"),
        _ => format!("{states:>9} states {steps:>9} steps {ends:>7} ends"),
    };
    let verdict = match &judged {
        Err(what) => what.clone(),
        Ok(()) if client.flags & abi::CLIENT_ORDER != 0 => {
            format!("holds, {} bypasses of at most {}", report.bypasses, client.bypass)
        }
        Ok(()) => "holds".into(),
    };
    let mut text = format!("{name:32} {strategy:12} {counts:48} {seconds:6.2} s  {verdict}");
    if let (Err(_), Verdict::Fails(_, execution)) = (&judged, &report.verdict) {
        let (trace, _) = explore::replay(client, settings, execution);
        trace.iter().for_each(|line| text += &format!("\n{line}"));
        text += &format!("\nreplay: --replay {} {name}", format_execution(execution));
    }
    let model = match (settings.weak, settings.promises) {
        (false, _) => Model::SequentialConsistency,
        (true, false) => Model::Weak,
        (true, true) => Model::Promises,
    };
    let record = Record { threads: client.threads, model, strategy, states, seconds };
    Found { text, good: judged.is_ok(), record }
}

/// Compares an exploration with its record. Only a deep exploration may lack one: without a record,
/// a client's states could shrink to nothing unnoticed.
fn matches(
    name: &str,
    strategy: Strategy,
    states: u64,
    record: Option<Record>,
    deep: bool,
) -> Result<(), String> {
    match record {
        None if deep => Ok(()),
        None => Err(format!(
            "new: no record in {}; review the result, then run ./dev check --accept {name}",
            expected::PATH
        )),
        Some(record) if strategy != record.strategy => Err(format!(
            "explored {strategy}, recorded {}: review the result, then run ./dev check --accept {name}",
            record.strategy
        )),
        Some(record) if states < record.states / 2 => {
            Err(format!("only {states} states, recorded {}", record.states))
        }
        Some(_) => Ok(()),
    }
}
