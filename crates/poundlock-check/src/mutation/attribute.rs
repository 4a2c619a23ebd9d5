// SPDX-License-Identifier: MIT OR Apache-2.0
//! The attribution run: for each memory order that several locks share, whether the clients of each
//! of these locks detect that it is weakened.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Error, Result, bail};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use super::attribution::{self, Attribution, Finding, Pair, Status};
use super::detect::Detector;
use super::lists::{Killers, Survivors};
use super::mutant::{self, Mutant};
use super::orders::Order;
use super::run::limits;
use crate::arguments::Arguments;
use crate::catalogue::{self, File};
use crate::expected::Expected;
use crate::output::{Count, Progress, print};
use crate::pool;
use crate::sources::Sources;

/// A weaker order, and one of the locks that include it.
struct Case<'a> {
    mutant: &'a Mutant,
    pair: Pair,
}

/// Runs the selected pairs of a shared order and a lock that includes it.
pub fn attribute(sources: &Sources, arguments: &Arguments, expected: &Expected) -> Result<Count> {
    let (killers, survivors) = (Killers::read(&sources.root)?, Survivors::read(&sources.root)?);
    let mut known = Attribution::read(&sources.root)?;
    let mutants: Vec<Mutant> = mutant::all(sources)?
        .into_iter()
        .filter(|mutant| mutant.weaker.is_some() && survivors.reason(mutant).is_none())
        .collect();
    let files = catalogue::files(sources)?;
    let all = cases(&mutants, &files, sources);
    if arguments.accept {
        known.complete(&all.iter().map(|case| case.pair.clone()).collect::<Vec<_>>());
        known.write()?;
    }
    let unlisted = report_unlisted(&all, &known)?;
    let cases = selected(all, arguments, &known);
    if cases.is_empty() && unlisted == 0 && !arguments.new {
        bail!("no order that several locks share matches: {}", arguments.filters.join(" "));
    }
    let reference = tempfile::tempdir().context("cannot create a temporary folder")?;
    build_reference(&cases, &files, sources, reference.path())?;
    let mutants: Vec<&Mutant> = cases.iter().map(|case| case.mutant).collect();
    let detector =
        Detector::new(&mutants, sources, expected, &killers, reference.path(), limits(arguments))?;
    let failed = run_cases(&cases, &detector, &mut known, arguments)?;
    Ok(Count { passed: cases.len() - failed, failed: failed + unlisted })
}

/// The orders that more than one lock includes, with each of these locks.
fn cases<'a>(mutants: &'a [Mutant], files: &[File], sources: &Sources) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for mutant in mutants {
        let mut locks: Vec<&str> = files
            .iter()
            .filter(|file| file.contains(sources, &mutant.file))
            .map(File::subject)
            .collect();
        locks.sort_unstable();
        locks.dedup();
        if locks.len() > 1 {
            let pair = |lock: &str| (mutant.name.clone(), lock.to_string());
            cases.extend(locks.into_iter().map(|lock| Case { mutant, pair: pair(lock) }));
        }
    }
    cases
}

/// Prints the pairs that have no row, and the rows without a pair. Returns their number.
fn report_unlisted(all: &[Case], known: &Attribution) -> Result<usize> {
    let mut count = 0;
    for Case { pair, .. } in all.iter().filter(|case| known.get(&case.pair).is_none()) {
        print(format!(
            "NEW       {} in {}: no row in {}; run ./dev check --mutants --attribute --new --accept",
            pair.0,
            pair.1,
            attribution::PATH
        ))?;
        count += 1;
    }
    for gone in known.pairs().filter(|pair| !all.iter().any(|case| case.pair == **pair)) {
        print(format!(
            "{} has a row for {} in {}, which does not exist",
            attribution::PATH,
            gone.0,
            gone.1
        ))?;
        count += 1;
    }
    Ok(count)
}

/// The cases that the command line selects, by lock.
fn selected<'a>(all: Vec<Case<'a>>, arguments: &Arguments, known: &Attribution) -> Vec<Case<'a>> {
    let selects = |case: &Case| {
        let status = known.get(&case.pair).map_or(Status::Open, |finding| finding.status);
        let by_verdict = match status {
            Status::Detected | Status::Absent => !arguments.new,
            Status::Survives => !arguments.new && !arguments.kills,
            Status::Open => !arguments.kills,
        };
        let name = format!("{} in {}", case.pair.0, case.pair.1);
        by_verdict && arguments.matches(&name)
    };
    let mut cases: Vec<Case> = all.into_iter().filter(selects).collect();
    if let Some(sample) = arguments.sample {
        cases.shuffle(&mut SmallRng::seed_from_u64(arguments.seed));
        cases.truncate(sample);
    }
    cases.sort_by(|one, other| one.pair.1.cmp(&other.pair.1));
    cases
}

/// Compiles the unchanged locks of `cases` into `folder`.
fn build_reference(cases: &[Case], files: &[File], sources: &Sources, folder: &Path) -> Result<()> {
    let concerned = |file: &&File| cases.iter().any(|case| case.pair.1 == file.subject());
    let files: Vec<&File> = files.iter().filter(concerned).collect();
    catalogue::all(&files, sources, folder, false).map(drop)
}

/// Runs `cases` and prints each result when it is known. Returns the number of unexpected results.
/// With --accept they are recorded, but survivors of fewer states or walks than usual are not.
fn run_cases(
    cases: &[Case],
    detector: &Detector,
    known: &mut Attribution,
    arguments: &Arguments,
) -> Result<usize> {
    let usual = arguments.states.is_none() && arguments.walks.is_none();
    let first: Vec<Vec<String>> = cases.iter().map(|case| likely(case, known)).collect();
    let orders: Vec<Order> = cases
        .iter()
        .zip(&first)
        .map(|(case, first)| Order { mutant: case.mutant, first })
        .collect();
    let locks: Vec<Range<usize>> = locks(cases);
    let work = |job: usize| {
        let (lock, orders) = (&cases[locks[job].start].pair.1, &orders[locks[job].clone()]);
        detector.attribute(lock, orders).map_err(|error| format!("{error:#}"))
    };
    let jobs: Vec<usize> = (0..locks.len()).collect();
    let progress = Progress::new(locks.len(), "locks");
    let mut failed = 0;
    pool::run(&jobs, work, |job, result| {
        let result = result.and_then(|found| found.map_err(anyhow::Error::msg));
        for (number, Case { pair, .. }) in cases[locks[job].clone()].iter().enumerate() {
            let result = result.as_ref().map(|findings| &findings[number]);
            if let (Ok(finding), true) = (result, arguments.accept)
                && (usual || finding.status != Status::Survives)
            {
                known.accept(pair, finding.clone());
            }
            let (good, text) = judge(known.get(pair), result);
            failed += usize::from(!good);
            progress.report(good, &format!("{text}  {} in {}", pair.0, pair.1))?;
        }
        if arguments.accept { known.write() } else { Ok(()) }
    })?;
    Ok(failed)
}

/// The cases of each lock, which follow each other in `cases`.
fn locks(cases: &[Case]) -> Vec<Range<usize>> {
    let mut end = 0;
    let range = |of_lock: &[Case]| {
        let start = end;
        end += of_lock.len();
        start..end
    };
    cases.chunk_by(|one, other| one.pair.1 == other.pair.1).map(range).collect()
}

/// The clients of the case's lock to try first: the recorded one, and those that detect the mutant
/// in other locks.
fn likely(case: &Case, known: &Attribution) -> Vec<String> {
    let (mutant, lock) = &case.pair;
    let own = known.get(&case.pair).map(|finding| finding.killer.clone());
    let others = known.clients_of_mutant(mutant);
    let others = others.iter().map(|client| format!("{lock}/{client}"));
    own.into_iter().filter(|killer| !killer.is_empty()).chain(others).collect()
}

/// Whether the result is the recorded one, and its description.
fn judge(known: Option<&Finding>, found: Result<&Finding, &Error>) -> (bool, String) {
    let found = match found {
        Ok(found) => found,
        Err(error) => return (false, format!("error     {error:#}")),
    };
    let status = known.map_or(Status::Open, |known| known.status);
    let text = match found.status {
        Status::Detected => format!("detected  by {}", found.killer),
        Status::Absent => "absent  ".into(),
        Status::Survives => format!("survives  {} clients", found.survived),
        Status::Open => "open    ".into(),
    };
    if found.status == status {
        return (true, text);
    }
    let recorded = if status == Status::Open { "not recorded" } else { "recorded otherwise" };
    (false, format!("differs   {text}, {recorded} in {}:", attribution::PATH))
}
