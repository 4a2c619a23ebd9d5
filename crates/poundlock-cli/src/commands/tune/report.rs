//! The result of tuning as text and as JSON.

use super::process::command;
use super::search::{Confirmation, Fate, Step, Trial};
use super::setup::{Named, Setup, Target};
use super::step::Tuned;
use super::{TuneArgs, metric_name};
use crate::output::Page;
use crate::provenance::{Provenance, environment};
use crate::runs::Interval;
use crate::spec::Choice;
use crate::text_table::{ABSENT, fitted, number};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The origin of a file of rules, for its first lines.
pub struct Evidence {
    pub lines: Vec<String>,
}

/// A ratio with its interval, in words.
pub fn ratio(interval: Option<Interval>, rounds: usize) -> String {
    match interval {
        Some(found) if found.low.is_finite() => format!(
            "{} times ({} to {}, {rounds} rounds)",
            number(found.estimate.exp()),
            number(found.low.exp()),
            number(found.high.exp())
        ),
        Some(found) => {
            format!("{} times ({rounds} rounds, no interval)", number(found.estimate.exp()))
        }
        None => "not measured".to_owned(),
    }
}

const HEADER: [&str; 5] = ["settings", "ratio", "95 % interval", "rounds", "result"];

/// The columns that a narrow terminal omits, in this order.
const EXPENDABLE: [usize; 1] = [3];

/// The whole result.
pub fn text(tuned: &Tuned, args: &TuneArgs, rules: Option<&Path>, page: Page) -> String {
    let mut lines: Vec<String> = tuned.about.lines().map(str::to_owned).collect();
    for (target, step) in tuned.steps.iter().enumerate() {
        let waited = tuned.targets.iter().map(|target| target.wait_ns).sum::<u64>().max(1);
        let share = 100.0 * tuned.targets[target].wait_ns as f64 / waited as f64;
        let label = &tuned.targets[target].label;
        lines.push(format!("\n{label}: {share:.0} % of the waiting time of the tuned locks"));
        lines.push(fitted(&HEADER, &rows(step, &tuned.targets), &EXPENDABLE, page.width()));
    }
    if !tuned.steps.is_empty() {
        lines.push(caption(args));
    }
    if !tuned.untried.is_empty() {
        lines.push(format!("Not tried, for lack of time: {}", tuned.untried.join("; ")));
    }
    lines.extend(conclusion(tuned, args, rules));
    lines.join("\n")
}

fn rows(step: &Step, targets: &[Target]) -> Vec<[String; 5]> {
    let row = |setup: &Setup, interval: Option<Interval>, rounds: usize, result: String| {
        let name = Named(setup, targets).to_string();
        let [ratio, range] = cells(interval);
        [name, ratio, range, rounds.to_string(), result]
    };
    let trials = step.trials.iter().map(|trial| {
        row(&trial.setup, trial.interval, trial.differences.len(), result(trial, step))
    });
    let confirmed = step
        .confirmation
        .iter()
        .map(|found| row(&found.setup, found.interval, found.differences.len(), verdict(found)));
    trials.chain(confirmed).collect()
}

fn cells(interval: Option<Interval>) -> [String; 2] {
    match interval {
        None => [ABSENT; 2].map(str::to_owned),
        Some(found) => {
            let of = |bound: f64| number(bound.exp());
            let range = || format!("{} - {}", of(found.low), of(found.high));
            let range = if found.low.is_finite() { range() } else { ABSENT.to_owned() };
            [of(found.estimate), range]
        }
    }
}

fn result(trial: &Trial, step: &Step) -> String {
    match &trial.fate {
        Fate::Best if step.confirmation.is_none() => "not decided".to_owned(),
        Fate::Best => "best".to_owned(),
        Fate::Dropped => "dropped".to_owned(),
        Fate::Worse => "worse".to_owned(),
        Fate::Failed(why) => format!("failed: {why}"),
    }
}

fn verdict(found: &Confirmation) -> String {
    match &found.failed {
        Some(why) => format!("failed: {why}"),
        None if found.is_better() => "confirmed: better".to_owned(),
        None => "not confirmed".to_owned(),
    }
}

fn caption(args: &TuneArgs) -> String {
    format!(
        "Ratios of {} to the present settings in the same round; more than 1 is better.",
        metric_name(args)
    )
}

/// The better settings, and how to use them.
fn conclusion(tuned: &Tuned, args: &TuneArgs, rules: Option<&Path>) -> Vec<String> {
    let mut lines = Vec::new();
    if tuned.interrupted {
        lines.push("Interrupted: what was not confirmed is not kept.".to_owned());
    }
    let program = || words(args).join(" ");
    let better = tuned.kept != Setup::default();
    if !better && !tuned.steps.is_empty() && !tuned.interrupted {
        lines
            .push("Nothing helps: the present settings stay, and no rules are written.".to_owned());
    }
    match (&tuned.kept.lock, rules) {
        (Some(Choice::Native), _) => lines.push(format!(
            "The program's own locks are better: run it without poundlock: {}",
            program()
        )),
        (Some(lock), _) => {
            lines.push(format!("Another lock is better: poundlock run -l {lock} -- {}", program()));
        }
        (None, Some(file)) if args.pid.is_none() => {
            let file = file.display();
            lines.push(format!("Use them: poundlock run --rules {file} -- {}", program()));
        }
        (None, Some(file)) => lines.push(format!("Rules for the next start: {}", file.display())),
        (None, None) => {}
    }
    if let Some(pid) = args.pid.filter(|_| better) {
        lines.extend(of_process(pid, tuned, args.keep && !tuned.interrupted));
    }
    lines
}

fn of_process(pid: u32, tuned: &Tuned, kept: bool) -> Vec<String> {
    let settings = tuned.kept.settings.iter();
    settings
        .map(|(target, spec)| {
            let target = &tuned.targets[*target];
            let name = target.name();
            if kept {
                format!("The process keeps them; undo: {}", command(pid, &name, &target.undo()))
            } else {
                format!(
                    "The process has its former settings; change: {}",
                    command(pid, &name, spec)
                )
            }
        })
        .collect()
}

/// The words of the command.
pub fn words(args: &TuneArgs) -> Vec<String> {
    args.program.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The document of `--json`; docs/cli.md describes it.
#[derive(Serialize)]
pub struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    provenance: Provenance,
    started: u64,
    command: Vec<String>,
    pid: Option<u32>,
    environment: BTreeMap<String, String>,
    metric: String,
    about: &'a str,
    interrupted: bool,
    targets: Vec<TargetDocument<'a>>,
    untried: &'a [String],
    /// The better lock of the whole process, if any.
    lock: Option<String>,
    rules: Option<String>,
}

#[derive(Serialize)]
struct TargetDocument<'a> {
    mutex: &'a str,
    symbol: Option<&'a str>,
    site: Option<&'a str>,
    wait_ns: u64,
    present: String,
    trials: Vec<TrialDocument>,
    confirmation: Option<TrialDocument>,
    /// The settings that are better, if any.
    kept: Option<&'a str>,
}

#[derive(Serialize)]
struct TrialDocument {
    settings: String,
    result: String,
    /// Of each round.
    ratios: Vec<f64>,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl TrialDocument {
    fn of(name: String, result: String, differences: &[f64], interval: Option<Interval>) -> Self {
        let bound = |of: fn(Interval) -> f64| {
            interval.map(of).filter(|bound| bound.is_finite()).map(f64::exp)
        };
        TrialDocument {
            settings: name,
            result,
            ratios: differences.iter().map(|difference| difference.exp()).collect(),
            ratio: bound(|found| found.estimate),
            low: bound(|found| found.low),
            high: bound(|found| found.high),
        }
    }
}

/// The document of a result.
pub fn document<'a>(
    tuned: &'a Tuned,
    args: &TuneArgs,
    provenance: Provenance,
    started: u64,
    rules: Option<&Path>,
) -> Document<'a> {
    Document {
        schema: "poundlock.tune/1",
        provenance,
        started,
        command: words(args),
        pid: args.pid,
        environment: environment(),
        metric: metric_name(args),
        about: &tuned.about,
        interrupted: tuned.interrupted,
        targets: (0..tuned.targets.len()).map(|target| target_document(tuned, target)).collect(),
        untried: &tuned.untried,
        lock: tuned.kept.lock.as_ref().map(ToString::to_string),
        rules: rules.map(|file| file.display().to_string()),
    }
}

fn target_document(tuned: &Tuned, index: usize) -> TargetDocument<'_> {
    let target = &tuned.targets[index];
    let (key, name) = target.place.as_ref().map_or(("", ""), |place| place.parts());
    let named = |setup: &Setup| Named(setup, &tuned.targets).to_string();
    let step = tuned.steps.get(index);
    let trials = step.into_iter().flat_map(|step| &step.trials).map(|trial| {
        let result = step.map(|step| result(trial, step)).unwrap_or_default();
        TrialDocument::of(named(&trial.setup), result, &trial.differences, trial.interval)
    });
    let confirmation = step.and_then(|step| step.confirmation.as_ref()).map(|found| {
        let result = verdict(found);
        TrialDocument::of(named(&found.setup), result, &found.differences, found.interval)
    });
    TargetDocument {
        mutex: &target.label,
        symbol: (key == "symbol").then_some(name),
        site: (key == "site").then_some(name),
        wait_ns: target.wait_ns,
        present: target.present.to_string(),
        trials: trials.collect(),
        confirmation,
        kept: tuned.kept.settings.get(&index).map(String::as_str),
    }
}
