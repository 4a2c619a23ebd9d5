//! `poundlock compare`: measures a program under each lock in turn.

mod chart;
mod export;
mod hook;
mod summary;
mod table;

use crate::failure::{Failure, reason};
use crate::options::{OtherLocksArgs, OutputArgs, PreloadArgs, seconds};
use crate::output::{Page, note, write};
use crate::plot::bars;
use crate::program::preload::{self, Library};
use crate::program::{self, obstacle};
use crate::provenance::{Provenance, environment, seconds_since_1970};
use crate::runs::ProgressForm;
use crate::runs::measure::{self, End, Measured, measure};
use crate::runs::{
    Figure, Metric, Outcome, announce, complain, exit_code, interrupts, progress, rotated, tail,
};
use crate::spec::{self, Choice};
use clap::Args;
use hook::Failed;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use summary::{Comparison, Run, Settings, Summary};

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Locks, comma-separated; KEY=VALUE belongs to the lock before it: mcs,wait=spin,cna names
    /// two. May be repeated [default: all locks]
    #[arg(short, long = "locks", value_name = "SPEC[,SPEC...]")]
    pub locks: Vec<String>,
    #[command(flatten)]
    pub others: OtherLocksArgs,
    /// Number of runs per lock
    #[arg(
        short = 'n', long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub repeats: u32,
    /// Number of rounds to run first, uncounted
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub warmup: u32,
    /// Compare a figure from the program's output instead of the wall time: the first group of the
    /// last match of REGEX. Higher figures are better. ^ and $ match at line boundaries; commas in
    /// numbers are ignored
    #[arg(long, value_name = "REGEX")]
    pub metric: Option<String>,
    /// Lower figures of the metric are better
    #[arg(long, requires = "metric")]
    pub lower_is_better: bool,
    /// Kill a run that takes longer, and count it as failed
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Shell command to run before each run, unmeasured and with native locks.
    /// POUNDLOCK_COMPARE_LOCK is the lock of the run, or native
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Shell command to run after each run, like --prepare
    #[arg(long, value_name = "COMMAND")]
    pub cleanup: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Write the table to FILE as Markdown (-: stdout)
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,
    /// Write the summary to FILE as CSV (-: stdout)
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,
    /// Omit the runs with native locks, and the ratios
    #[arg(long)]
    pub no_native: bool,
    /// Progress on stderr
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub progress: ProgressForm,
    #[command(flatten)]
    pub preload: PreloadArgs,
    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub program: Vec<OsString>,
}

/// Runs the program under each lock and prints the comparison.
pub fn compare(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let plan = Plan::make(args)?;
    let OutputArgs { json, svg } = &args.output;
    let page = Page::beside([json, svg, &args.export_markdown, &args.export_csv])?;
    let interrupted = interrupts()?;
    let started = seconds_since_1970();
    let runs = plan.run_all(&interrupted);
    let comparison = plan.summarise(runs, started, interrupted.load(Ordering::Relaxed));
    let svg = || bars::svg(&chart::chart(&comparison, &Choice::Native.to_string()));
    let table = table::render(&comparison, page.width());
    args.output.publish(page, &table, &comparison, svg)?;
    if let Some(file) = &args.export_markdown {
        write(file, export::markdown(&comparison))?;
    }
    if let Some(file) = &args.export_csv {
        write(file, export::csv(&comparison).map_err(Failure::ours)?)?;
    }
    Ok(exit_code(comparison.interrupted, comparison.runs.iter().map(|run| &run.outcome)))
}

/// A comparison whose parts have been checked.
struct Plan<'a> {
    args: &'a CompareArgs,
    choices: Vec<Choice>,
    library: Library,
    /// The compiler of the preload library.
    compiler: String,
    figure: Figure,
}

impl Plan<'_> {
    fn make(args: &CompareArgs) -> Result<Plan<'_>, Failure> {
        let mut choices = spec::parse_lists(&args.locks)?;
        spec::check_others(&args.others)?;
        if !args.no_native {
            choices.insert(0, Choice::Native);
        }
        let metric = args.metric.as_deref().map(Metric::parse).transpose()?;
        let figure = metric.map_or(Figure::Wall, Figure::Output);
        let library = Library::find(args.preload.preload.as_deref())?;
        let compiler = library.elf()?.compiler.unwrap_or_else(|| "unknown".to_owned());
        program::find(&args.program[0])?;
        if obstacle::report(&args.program[0]).is_some_and(|obstacle| obstacle.is_harmful()) {
            return Err(Failure::ours("there is nothing to compare"));
        }
        Ok(Plan { args, choices, library, compiler, figure })
    }

    /// Performs all runs, until an interrupt.
    fn run_all(&self, interrupted: &AtomicBool) -> Vec<Run> {
        let order = self.order();
        let progress = progress(order.len() as u64);
        let mut runs = Vec::new();
        for (choice, repeat) in order {
            let when = repeat.map_or("warm-up".to_owned(), |repeat| format!("repeat {repeat}"));
            let what = format!("{choice}, {when}");
            announce(&progress, self.args.progress, what.clone());
            let Some(run) = self.run_prepared(choice, repeat, interrupted) else {
                break;
            };
            if run.outcome != Outcome::Ok {
                progress.suspend(|| complain(&what, &run.outcome, run.output_tail.as_deref()));
            }
            runs.push(run);
            progress.inc(1);
        }
        progress.finish_and_clear();
        runs
    }

    /// Pairs of lock and repeat, in the order of the runs. A warm-up has no repeat.
    fn order(&self) -> Vec<(&Choice, Option<u32>)> {
        let warmup =
            (0..self.args.warmup).flat_map(|_| self.choices.iter().map(|choice| (choice, None)));
        let repeats = (0..self.args.repeats).flat_map(|repeat| {
            rotated(&self.choices, repeat).map(move |choice| (choice, Some(repeat + 1)))
        });
        warmup.chain(repeats).collect()
    }

    /// Performs one run between --prepare and --cleanup. Returns None if it was interrupted.
    fn run_prepared(
        &self,
        choice: &Choice,
        repeat: Option<u32>,
        interrupted: &AtomicBool,
    ) -> Option<Run> {
        if interrupted.load(Ordering::Relaxed) {
            return None;
        }
        let run = match hook::run(self.args.prepare.as_deref(), choice) {
            Ok(()) => self.run_once(choice, repeat, interrupted),
            Err(Failed { reason, output_tail }) => {
                let outcome = Outcome::NotPrepared { reason };
                Some(Run { output_tail: Some(output_tail), ..unmeasured(choice, repeat, outcome) })
            }
        };
        // A preparation that failed or was interrupted may have left something to clean up.
        let cleaned = hook::run(self.args.cleanup.as_deref(), choice);
        match (run, cleaned) {
            (Some(run), Err(Failed { reason, output_tail })) if run.outcome == Outcome::Ok => {
                Some(Run {
                    outcome: Outcome::NotCleaned { reason },
                    figure: None,
                    output_tail: Some(output_tail),
                    ..run
                })
            }
            (run, Err(Failed { reason, .. })) => {
                note(format_args!("{choice}: --cleanup failed: {reason}"));
                run
            }
            (run, Ok(())) => run,
        }
    }

    /// Performs one run. Returns None if it was interrupted.
    fn run_once(
        &self,
        choice: &Choice,
        repeat: Option<u32>,
        interrupted: &AtomicBool,
    ) -> Option<Run> {
        if interrupted.load(Ordering::Relaxed) {
            return None;
        }
        let library = (*choice != Choice::Native).then_some(&self.library);
        let changes = preload::changes(choice, &self.args.others, library);
        let measured = match measure(&self.args.program, &changes, self.args.timeout, interrupted) {
            Ok(Measured { end: End::Interrupted, .. }) => return None,
            Ok(measured) => measured,
            Err(error) => {
                let outcome = Outcome::NotStarted { reason: reason(&error) };
                return Some(unmeasured(choice, repeat, outcome));
            }
        };
        let (outcome, figure) = self.figure.judge(&measured);
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

    fn summarise(&self, runs: Vec<Run>, started: u64, interrupted: bool) -> Comparison {
        let args = self.args;
        let native = Choice::Native.to_string();
        Comparison {
            schema: "poundlock.compare/1",
            provenance: Provenance::new(self.compiler.clone()),
            started,
            command: args.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            environment: environment(),
            preload: self.library.path.display().to_string(),
            settings: Settings {
                repeats: args.repeats,
                warmup: args.warmup,
                timeout: args.timeout.map(|timeout| timeout.as_secs_f64()),
                metric: args.metric.clone(),
                prepare: args.prepare.clone(),
                cleanup: args.cleanup.clone(),
            },
            figure: described(args),
            peak_rss_floor_bytes: measure::peak_rss_floor_bytes(),
            interrupted,
            locks: self
                .choices
                .iter()
                .map(|choice| Summary::of(&choice.to_string(), &native, &runs))
                .collect(),
            runs,
        }
    }
}

fn described(args: &CompareArgs) -> summary::Figure {
    match (&args.metric, args.lower_is_better) {
        (None, _) => summary::Figure { name: "wall time", unit: "s", better: "lower" },
        (Some(_), true) => summary::Figure { name: "metric", unit: "", better: "lower" },
        (Some(_), false) => summary::Figure { name: "metric", unit: "", better: "higher" },
    }
}

/// A run whose program was not started.
fn unmeasured(choice: &Choice, repeat: Option<u32>, outcome: Outcome) -> Run {
    Run {
        lock: choice.to_string(),
        repeat,
        outcome,
        figure: None,
        wall: 0.0,
        cpu_user: 0.0,
        cpu_system: 0.0,
        peak_rss_bytes: 0,
        output_tail: None,
    }
}
