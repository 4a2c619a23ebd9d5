//! `poundlock compare`: a program under each lock in turn.

mod measure;
mod metric;
mod plot;
mod summary;
mod table;

use crate::args::CompareArgs;
use crate::failure::{Failure, reason};
use crate::preload::{self, Library};
use crate::program;
use crate::provenance::Provenance;
use crate::spec::{self, Choice};
use indicatif::{ProgressBar, ProgressStyle};
use measure::{End, Measured, measure};
use metric::Metric;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use summary::{Comparison, Figure, Outcome, Run, Settings, Summary};

const INTERRUPTED: u8 = 130;
/// How much of a failed run's output is kept.
const TAIL: usize = 2000;

/// Runs, measures, and tells.
pub fn compare(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let plan = Plan::make(args)?;
    let interrupted = interrupts().map_err(|error| Failure::ours(format!("cannot catch interrupts: {error}")))?;
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let runs = plan.run_all(&interrupted);
    let comparison = plan.summarise(runs, started, interrupted.load(Ordering::Relaxed));
    publish(args, &comparison)?;
    let failed = comparison.runs.iter().any(|run| run.outcome != Outcome::Ok);
    Ok(match (comparison.interrupted, failed) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    })
}

/// What is to be run, all of it checked.
struct Plan<'a> {
    args: &'a CompareArgs,
    choices: Vec<Choice>,
    library: Library,
    metric: Option<Metric>,
}

impl Plan<'_> {
    fn make(args: &CompareArgs) -> Result<Plan<'_>, Failure> {
        let mut choices = spec::parse_lists(&args.locks)?;
        if !args.no_native {
            choices.insert(0, Choice::Native);
        }
        let metric = args.metric.as_deref().map(Metric::parse).transpose()?;
        let library = Library::find(args.preload.preload.as_deref())?;
        program::find(&args.program[0])?;
        // Hours of runs must not end in a file that cannot be written.
        for file in [&args.json, &args.svg].into_iter().flatten().filter(|file| *file != Path::new("-")) {
            std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(file)
                .map_err(|error| unwritable(file, &error))?;
        }
        Ok(Plan { args, choices, library, metric })
    }

    /// Every run, in the order of measuring, up to an interrupt.
    fn run_all(&self, interrupted: &AtomicBool) -> Vec<Run> {
        let order = self.order();
        let progress = progress(order.len() as u64);
        let mut runs = Vec::new();
        for (choice, repeat) in order {
            progress.set_message(choice.to_string());
            let Some(run) = self.run_once(choice, repeat, interrupted) else {
                break;
            };
            if run.outcome != Outcome::Ok {
                progress.suspend(|| complain(&run));
            }
            runs.push(run);
            progress.inc(1);
        }
        progress.finish_and_clear();
        runs
    }

    /// Locks and repeats (none: a warm-up). Each repeat begins with another lock, so that none always follows the same.
    fn order(&self) -> Vec<(&Choice, Option<u32>)> {
        let warmup = (0..self.args.warmup).flat_map(|_| self.choices.iter().map(|choice| (choice, None)));
        let repeats = (0..self.args.repeats).flat_map(|repeat| {
            let mut order: Vec<_> = self.choices.iter().map(|choice| (choice, Some(repeat + 1))).collect();
            order.rotate_left(repeat as usize % self.choices.len());
            order
        });
        warmup.chain(repeats).collect()
    }

    /// One run, or nothing if it was interrupted.
    fn run_once(&self, choice: &Choice, repeat: Option<u32>, interrupted: &AtomicBool) -> Option<Run> {
        if interrupted.load(Ordering::Relaxed) {
            return None;
        }
        let changes = preload::changes(choice, Some(&self.library));
        let measured = match measure(&self.args.program, &changes, self.args.timeout, interrupted) {
            Ok(Measured { end: End::Interrupted, .. }) => return None,
            Ok(measured) => measured,
            Err(error) => return Some(not_started(choice, repeat, &error)),
        };
        let (outcome, figure) = self.judge(&measured);
        Some(Run {
            lock: choice.to_string(),
            repeat,
            output_tail: (outcome != Outcome::Ok).then(|| tail(&measured.output)),
            outcome,
            figure,
            wall: measured.wall.as_secs_f64(),
            cpu_user: measured.cpu_user.as_secs_f64(),
            cpu_system: measured.cpu_system.as_secs_f64(),
            peak_rss_bytes: measured.peak_rss_bytes,
        })
    }

    fn judge(&self, measured: &Measured) -> (Outcome, Option<f64>) {
        let outcome = match measured.end {
            End::Exited(0) => Outcome::Ok,
            End::Exited(status) => Outcome::Exit { status },
            End::Killed(number) => Outcome::Signal { number, name: signal_name(number) },
            End::TimedOut | End::Interrupted => Outcome::Timeout,
        };
        match (&self.metric, outcome) {
            (None, Outcome::Ok) => (Outcome::Ok, Some(measured.wall.as_secs_f64())),
            (Some(metric), Outcome::Ok) => match metric.figure(&measured.output) {
                Ok(figure) => (Outcome::Ok, Some(figure)),
                Err(reason) => (Outcome::NoFigure { reason }, None),
            },
            (_, failure) => (failure, None),
        }
    }

    fn summarise(&self, runs: Vec<Run>, started: u64, interrupted: bool) -> Comparison {
        let args = self.args;
        let native = Choice::Native.to_string();
        let compiler = self.library.elf.compiler.clone().unwrap_or_else(|| "unknown".to_owned());
        let ours = std::env::vars().filter(|(name, _)| name.starts_with("POUNDLOCK_"));
        Comparison {
            schema: "poundlock.compare/1",
            provenance: Provenance::new(compiler),
            started,
            command: args.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            environment: ours.collect(),
            preload: self.library.path.display().to_string(),
            settings: Settings {
                repeats: args.repeats,
                warmup: args.warmup,
                timeout: args.timeout.map(|timeout| timeout.as_secs_f64()),
                metric: args.metric.clone(),
            },
            figure: figure(args),
            peak_rss_floor_bytes: measure::peak_rss_floor_bytes(),
            interrupted,
            locks: self.choices.iter().map(|choice| Summary::of(&choice.to_string(), &native, &runs)).collect(),
            runs,
        }
    }
}

fn figure(args: &CompareArgs) -> Figure {
    match (&args.metric, args.lower_is_better) {
        (None, _) => Figure { name: "wall time", unit: "s", better: "lower" },
        (Some(_), true) => Figure { name: "metric", unit: "", better: "lower" },
        (Some(_), false) => Figure { name: "metric", unit: "", better: "higher" },
    }
}

/// Set by the first interrupt, which ends the comparison with what there is. The second ends it at once.
fn interrupts() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&interrupted))?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

/// On a terminal only.
fn progress(runs: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} [{elapsed}, about {eta} left]");
    let bar = ProgressBar::new(runs).with_style(style.expect("a fixed template"));
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

fn not_started(choice: &Choice, repeat: Option<u32>, error: &io::Error) -> Run {
    Run {
        lock: choice.to_string(),
        repeat,
        outcome: Outcome::NotStarted { reason: reason(error) },
        figure: None,
        wall: 0.0,
        cpu_user: 0.0,
        cpu_system: 0.0,
        peak_rss_bytes: 0,
        output_tail: None,
    }
}

fn signal_name(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |signal| signal.to_string())
}

fn tail(output: &[u8]) -> String {
    String::from_utf8_lossy(&output[output.len().saturating_sub(TAIL)..]).into_owned()
}

/// Says what failed, and what the program said last.
fn complain(run: &Run) {
    let when = run.repeat.map_or("warm-up".to_owned(), |repeat| format!("repeat {repeat}"));
    eprintln!("poundlock: {}, {when}: {}", run.lock, run.outcome.describe());
    for line in run.output_tail.iter().flat_map(|tail| tail.lines().rev().take(3).collect::<Vec<_>>().into_iter().rev())
    {
        eprintln!("  | {line}");
    }
}

fn publish(args: &CompareArgs, comparison: &Comparison) -> Result<(), Failure> {
    let json_to_stdout = args.json.as_deref() == Some(Path::new("-"));
    if json_to_stdout {
        eprintln!("{}", table::render(comparison));
    } else {
        println!("{}", table::render(comparison));
    }
    if let Some(file) = &args.json {
        let json = serde_json::to_string_pretty(comparison).map_err(Failure::ours)? + "\n";
        if json_to_stdout {
            print!("{json}");
        } else {
            std::fs::write(file, json).map_err(|error| unwritable(file, &error))?;
        }
    }
    if let Some(file) = &args.svg {
        let native = Choice::Native.to_string();
        let svg = plot::svg(comparison, &native).map_err(|error| Failure::ours(format!("cannot draw: {error}")))?;
        std::fs::write(file, svg).map_err(|error| unwritable(file, &error))?;
    }
    Ok(())
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::ours(format!("cannot write '{}': {}", file.display(), reason(error)))
}
