// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mutation run: selects mutants, searches their killers in parallel and judges the results.

use anyhow::{Context, Result, bail};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use super::detect::{Detector, Killer, Limits};
use super::faults;
use super::lists::{Killers, Survivors};
use super::mutant::{self, Mutant};
use crate::arguments::Arguments;
use crate::compile;
use crate::expected::Expected;
use crate::output::{Count, Progress, print};
use crate::pool;
use crate::sources::Sources;

/// The default limits of the exploration of a mutant.
const LIMITS: Limits = Limits { states: 300_000, walks: 5_000 };

/// Runs the known faults and, without --faults, the mutants.
pub fn run(sources: &Sources, arguments: &Arguments, expected: &Expected) -> Result<Count> {
    let survivors = Survivors::read(&sources.root)?;
    let mut killers = Killers::read(&sources.root)?;
    let all = if arguments.faults { Vec::new() } else { mutant::all(sources)? };
    let known_faults = faults::known(sources)?;
    let mut faults: Vec<&Mutant> =
        known_faults.iter().filter(|fault| arguments.matches(&fault.name)).collect();
    let mut mutants: Vec<&Mutant> =
        all.iter().filter(|mutant| arguments.matches(&mutant.name)).collect();
    if faults.is_empty() && mutants.is_empty() {
        bail!("no mutant matches: {}", arguments.filters.join(" "));
    }
    let mut unjudged = 0;
    if arguments.kills {
        unjudged = report_unjudged(&mutants, &survivors, &killers)?;
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
    let mut failed = run_mutants(&mutants, sources, expected, &survivors, &mut killers, arguments)?;
    if !arguments.faults && arguments.filters.is_empty() {
        for gone in survivors.names().filter(|name| !all.iter().any(|mutant| mutant.name == *name))
        {
            print(format!(
                "{} lists a mutant that does not exist: {gone}",
                survivors.path().display()
            ))?;
            failed += 1;
        }
    }
    Ok(Count { passed: mutants.len().saturating_sub(failed), failed: failed + unjudged })
}

/// Whether the mutant has a recorded killer or may survive.
fn is_judged(mutant: &Mutant, survivors: &Survivors, killers: &Killers) -> bool {
    killers.get(&mutant.name).is_some() || survivors.reason(mutant).is_some()
}

/// Prints the mutants that are not judged. Returns their number.
fn report_unjudged(mutants: &[&Mutant], survivors: &Survivors, killers: &Killers) -> Result<usize> {
    let unjudged: Vec<&&Mutant> =
        mutants.iter().filter(|mutant| !is_judged(mutant, survivors, killers)).collect();
    for mutant in &unjudged {
        let Mutant { line, name, .. } = mutant;
        print(format!(
            "NEW       {line:4} {name}  to find its killer, run ./dev check --mutants --new --accept"
        ))?;
    }
    Ok(unjudged.len())
}

/// The limits of the command line.
pub fn limits(arguments: &Arguments) -> Limits {
    Limits {
        states: arguments.states.unwrap_or(LIMITS.states),
        walks: arguments.walks.unwrap_or(LIMITS.walks),
    }
}

/// Searches the killers of `mutants`, and prints each result when it is known. Returns the number
/// of unexpected results.
fn run_mutants(
    mutants: &[&Mutant],
    sources: &Sources,
    expected: &Expected,
    survivors: &Survivors,
    killers: &mut Killers,
    arguments: &Arguments,
) -> Result<usize> {
    let runtime = tempfile::tempdir().context("cannot create a temporary folder")?;
    compile::build_runtime(sources, runtime.path())?;
    let (runtime, limits) = (runtime.path(), limits(arguments));
    let detector = Detector::new(mutants, sources, expected, killers, runtime, limits)?;
    let work = |job: usize| detector.killer(mutants[job]).map_err(|error| format!("{error:#}"));
    let jobs: Vec<usize> = (0..mutants.len()).collect();
    let progress = Progress::new(mutants.len(), "mutants");
    let mut failed = 0;
    pool::run(&jobs, work, |job, result| {
        let result = result.and_then(|killer| killer.map_err(anyhow::Error::msg));
        if let (Ok(killer), true) = (&result, arguments.accept) {
            killers
                .accept(&mutants[job].name, killer.as_ref().map(|killer| killer.name.as_str()))?;
        }
        let (good, text) = verdict(mutants[job], &result, survivors);
        failed += usize::from(!good);
        progress.report(good, &text)
    })?;
    Ok(failed)
}

/// Whether the result for `mutant` is as expected, and its description.
fn verdict(
    mutant: &Mutant,
    killer: &Result<Option<Killer>>,
    survivors: &Survivors,
) -> (bool, String) {
    let Mutant { name, line, .. } = mutant;
    match (killer, survivors.reason(mutant)) {
        (Err(error), _) => (false, format!("error     {line:4} {name}  {error:#}")),
        (Ok(Some(Killer { name: by, error })), None) => {
            (true, format!("killed    {line:4} {name}  by {by}: {error}"))
        }
        (Ok(Some(Killer { name: by, error })), Some(_)) => (
            false,
            format!("listed    {line:4} {name}  as a survivor, but killed by {by}: {error}"),
        ),
        (Ok(None), Some(reason)) => (true, format!("survives  {line:4} {name}  {reason}")),
        (Ok(None), None) => {
            (false, format!("survives  {line:4} {name}  without a reason in survivors.txt"))
        }
    }
}
