// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the command: a check of the selected clients, a mutation run, or a replay.

use anyhow::{Context, Result, bail};

use crate::arena;
use crate::arguments::{Arguments, parse_execution};
use crate::catalogue::{self, Entry, File};
use crate::check::check;
use crate::crash;
use crate::expected::{Expected, Strategy};
use crate::explore::{self, Execution};
use crate::mutation;
use crate::output::{Count, print};
use crate::plan::{self, Overrides};

/// Runs the command. Returns whether all results are as expected.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let Count { passed, failed } = count(arguments)?;
    print(format!("{passed} passed, {failed} failed"))?;
    Ok(failed == 0)
}

fn count(arguments: &Arguments) -> Result<Count> {
    arena::map()?;
    crash::catch();
    let sources = arguments.sources();
    let expected = Expected::read(&sources.root)?;
    if arguments.attribute {
        return mutation::attribute(&sources, arguments, &expected);
    }
    if arguments.mutants || arguments.faults {
        return mutation::run(&sources, arguments, &expected);
    }
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let files = catalogue::files(&sources)?;
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let files: Vec<&File> =
        files.iter().filter(|file| arguments.can_match(&file.name, &names)).collect();
    let all = catalogue::all(&files, &sources, folder.path(), arguments.deep)?;
    let entries: Vec<&Entry> = all.iter().filter(|entry| arguments.matches(&entry.name)).collect();
    if entries.is_empty() {
        bail!("no client matches: {}", arguments.filters.join(" "));
    }
    if let Some(path) = &arguments.replay {
        return replay(&entries, &parse_execution(path)?, &expected, &arguments.overrides());
    }
    let clients = check(&entries, &sources, arguments, &expected)?;
    if !arguments.deep || !arguments.filters.is_empty() || arguments.accept {
        return Ok(clients);
    }
    let mutants = mutation::run(&sources, arguments, &expected)?;
    Ok(Count { passed: clients.passed + mutants.passed, failed: clients.failed + mutants.failed })
}

fn replay(
    entries: &[&Entry],
    execution: &Execution,
    expected: &Expected,
    overrides: &Overrides,
) -> Result<Count> {
    let [entry] = entries else {
        bail!("--replay needs one client, but the filters select {}", entries.len())
    };
    let recorded = expected.get(overrides.deep, &entry.name).map(|record| record.strategy);
    let strategy = overrides.strategy.or(recorded).unwrap_or(Strategy::Complete);
    let settings = plan::settings(entry.client, strategy, &overrides.of(entry));
    let (trace, fault) = explore::replay(entry.client, settings, execution);
    trace.iter().try_for_each(print)?;
    print(fault.as_deref().unwrap_or("(no error so far)"))?;
    Ok(Count { passed: fault.is_none().into(), failed: fault.is_some().into() })
}
