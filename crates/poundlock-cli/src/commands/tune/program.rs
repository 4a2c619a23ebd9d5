//! Tunes a program: each measurement is a run of it.

use super::TuneArgs;
use super::hot::{self, Pages};
use super::search::{Sample, Stop, Subject};
use super::setup::{self, Named, Setup, Target};
use super::step::{Budget, Plan, Tuned};
use super::{By, rules_text};
use crate::control::{Kind, settings};
use crate::failure::{Failure, reason};
use crate::program::preload::{self, Changes, Library};
use crate::program::{self, obstacle};
use crate::rules;
use crate::runs::measure::{End, Measured, measure};
use crate::runs::{Figure, Metric, Outcome, announce, interrupts, progress};
use crate::spec::{self, Choice};
use crate::statistics::source::scratch;
use crate::statistics::{NEGLIGIBLE, Observed, Process, files_in};
use indicatif::ProgressBar;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time for which a program is tuned by default.
const TIME: Duration = Duration::from_secs(300);

/// Tunes the program of `args`.
pub fn tune(args: &TuneArgs) -> Result<Tuned, Failure> {
    let mut runs = Runs::make(args)?;
    let others = others(args)?;
    let (targets, about) = match runs.targets() {
        Ok(found) => found,
        Err(Stop::Interrupted) => return Ok(Tuned::interrupted()),
        Err(Stop::Failed(failure)) => return Err(failure),
    };
    if targets.is_empty() {
        return Ok(Tuned::nothing(about));
    }
    let budget = Budget { measurements: runs.affordable(), per_round: 1 };
    let plan = Plan::of(targets, others, budget).ok_or_else(|| runs.too_long())?;
    runs.targets.clone_from(&plan.targets);
    runs.bar = Some(progress(budget.measurements as u64));
    let tuned = plan.run(&mut runs, about);
    if let Some(bar) = &runs.bar {
        bar.finish_and_clear();
    }
    tuned
}

/// The other locks for the whole process.
fn others(args: &TuneArgs) -> Result<Vec<Choice>, Failure> {
    let native = (!args.no_native).then_some(Choice::Native);
    let given = if args.locks.is_empty() { Vec::new() } else { spec::parse_lists(&args.locks)? };
    Ok(native.into_iter().chain(given).collect())
}

/// A run with statistics and control pages.
struct ObservedRun {
    measured: Measured,
    statistics: Result<Vec<Observed>, Failure>,
    /// The locks that were ever in the control pages.
    pages: Pages,
}

/// Runs of the program.
struct Runs<'a> {
    args: &'a TuneArgs,
    present: Choice,
    /// The text of the present rules.
    rules: String,
    library: Library,
    figure: Figure,
    folder: TempDir,
    targets: Vec<Target>,
    started: Instant,
    /// Number and total time of the runs so far.
    done: u32,
    time: Duration,
    bar: Option<ProgressBar>,
    interrupted: Arc<AtomicBool>,
}

impl Runs<'_> {
    fn make(args: &TuneArgs) -> Result<Runs<'_>, Failure> {
        let present = Choice::parse(&args.lock)?;
        settings::word(&args.lock)
            .map_err(|why| Failure::ours(format!("--lock {}: {why}", args.lock)))?;
        spec::check_others(&args.others)?;
        let rules = match &args.rules {
            None => String::new(),
            Some(file) => rules::text(&rules::checked(file, &present)?)?,
        };
        let metric = args.metric.as_deref().map(Metric::parse).transpose()?;
        let figure = match (metric, args.by) {
            (Some(metric), _) => Figure::Output(metric),
            (None, Some(By::Cpu)) => Figure::Cpu,
            (None, Some(By::Slowest)) => {
                return Err(Failure::ours("--by slowest needs a running process (--pid)"));
            }
            (None, _) => Figure::Wall,
        };
        let library = Library::find(args.preload.preload.as_deref())?;
        program::find(&args.program[0])?;
        if obstacle::report(&args.program[0]).is_some_and(|obstacle| obstacle.is_harmful()) {
            return Err(Failure::ours("there is nothing to tune"));
        }
        Ok(Runs {
            args,
            present,
            rules,
            library,
            figure,
            folder: scratch()?,
            targets: Vec::new(),
            started: Instant::now(),
            done: 0,
            time: Duration::ZERO,
            bar: None,
            interrupted: interrupts()?,
        })
    }

    /// The targets, with the other algorithms that rules give them, and a line about the waits.
    fn targets(&mut self) -> Result<(Vec<Target>, String), Stop> {
        let (targets, about) = self.first()?;
        let targets = if targets.is_empty() { targets } else { self.with_algorithms(targets)? };
        Ok((targets, about))
    }

    /// The first run, with statistics: the targets, and a line about the waits. No targets: there
    /// is nothing to tune, for the reason in the line.
    fn first(&mut self) -> Result<(Vec<Target>, String), Stop> {
        let run = self.observed(&Setup::default())?;
        let (outcome, figure) = self.figure.judge(&run.measured);
        let failed =
            |why: &str| Stop::Failed(Failure::ours(format!("the first run failed: {why}")));
        if outcome != Outcome::Ok {
            return Err(failed(&outcome.describe()));
        }
        if figure.is_some_and(|figure| figure <= 0.0) {
            return Err(failed("its figure is not positive"));
        }
        Ok(self.judge(&run.statistics.map_err(Stop::Failed)?, &run.pages))
    }

    /// A run with statistics and control pages.
    fn observed(&mut self, setup: &Setup) -> Result<ObservedRun, Stop> {
        let folder = self.new_folder().map_err(Stop::Failed)?;
        let mut changes = self.changes(setup).map_err(Stop::Failed)?;
        changes.push(("POUNDLOCK_STATS", Some(folder.path().into())));
        changes.push(("POUNDLOCK_CONTROL", Some(folder.path().into())));
        let (measured, pages) = hot::with_pages(folder.path(), || self.run(&changes));
        Ok(ObservedRun { measured: measured?, statistics: files_in(folder.path()), pages })
    }

    /// The targets with the other algorithms that rules give them, as seen in a run with each: a
    /// rule reaches a lock only at its initialisation, or if it is static with a name of its own.
    fn with_algorithms(&mut self, mut targets: Vec<Target>) -> Result<Vec<Target>, Stop> {
        self.targets.clone_from(&targets);
        let most = Kind::ALL.into_iter().map(|kind| setup::algorithms(kind).len()).max();
        for at in 0..most.unwrap_or(0) {
            let of = |target: &Target| setup::algorithms(target.kind).get(at).copied();
            let given = targets.iter().enumerate().filter_map(|(i, target)| Some((i, of(target)?)));
            let setup = given.fold(Setup::default(), |setup, (i, spec)| setup.with(i, spec));
            let run = self.observed(&setup)?;
            let (outcome, _) = self.figure.judge(&run.measured);
            let Some(observed) = run.statistics.ok().filter(|_| outcome == Outcome::Ok) else {
                continue;
            };
            let (_, uses) = hot::uses_of_all(&observed, &run.pages);
            for target in &mut targets {
                let algorithm = of(target).filter(|name| setup::has_algorithm(target, &uses, name));
                target.others.extend(algorithm.map(str::to_owned));
            }
        }
        Ok(targets)
    }

    fn judge(&self, observed: &[Observed], pages: &Pages) -> (Vec<Target>, String) {
        let (processes, uses) = hot::uses_of_all(observed, pages);
        let Some(main) = processes.iter().max_by_key(|process| process.wait_ns) else {
            return (Vec::new(), "The program acquired no lock that is counted.".to_owned());
        };
        let mut about = main.verdict.clone();
        if waiting(&processes) < NEGLIGIBLE {
            return (Vec::new(), about);
        }
        let (mut targets, unnamed): (Vec<Target>, Vec<Target>) =
            setup::targets(&uses).into_iter().partition(|target| target.place.is_some());
        targets.truncate(self.args.top);
        if let Some(given) = &self.args.others.rwlock {
            for target in &mut targets {
                target.lock = setup::with_other_keys(&target.lock, given, &target.present);
            }
        }
        if !unnamed.is_empty() {
            let labels: Vec<String> = unnamed.into_iter().map(|target| target.label).collect();
            about += &format!("\nNo rule can name: {}", labels.join(", "));
        }
        if targets.is_empty() {
            about += "\nThere is no lock to tune.";
        }
        (targets, about)
    }

    fn new_folder(&self) -> Result<TempDir, Failure> {
        TempDir::new_in(self.folder.path())
            .map_err(|error| Failure::ours(format!("cannot create a folder: {}", reason(&error))))
    }

    /// The environment of a run with `setup`.
    fn changes(&self, setup: &Setup) -> Result<Changes, Failure> {
        let lock = setup.lock.as_ref().unwrap_or(&self.present);
        let counted = self.args.by == Some(By::Acquisitions);
        let library = (*lock != Choice::Native || counted).then_some(&self.library);
        let mut changes = preload::changes(lock, &self.args.others, library);
        let rules = match setup.lock {
            None => rules_text::rules(setup, &self.targets) + &self.rules,
            Some(_) => String::new(),
        };
        let file = self.folder.path().join("rules.toml");
        if !rules.is_empty() {
            fs::write(&file, &rules).map_err(|error| {
                Failure::ours(format!("cannot write '{}': {}", file.display(), reason(&error)))
            })?;
        }
        changes.push(("POUNDLOCK_RULES", (!rules.is_empty()).then(|| file.into_os_string())));
        changes.extend(
            ["POUNDLOCK_STATS", "POUNDLOCK_CONTROL", "POUNDLOCK_PROFILE"].map(|name| (name, None)),
        );
        Ok(changes)
    }

    fn run(&mut self, changes: &Changes) -> Result<Measured, Stop> {
        let measured = measure(&self.args.program, changes, self.args.timeout, &self.interrupted);
        let measured = measured
            .map_err(|error| Stop::Failed(Failure::of_program(&self.args.program[0], &error)))?;
        if measured.end == End::Interrupted {
            return Err(Stop::Interrupted);
        }
        self.done += 1;
        self.time += measured.wall;
        Ok(measured)
    }

    fn limit(&self) -> Duration {
        self.args.time.unwrap_or(TIME)
    }

    /// The number of further runs for which there is time.
    fn affordable(&self) -> usize {
        let one = self.time.as_secs_f64() / f64::from(self.done.max(1));
        let left = self.limit().saturating_sub(self.started.elapsed());
        let runs = (left.as_secs_f64() / one.max(1e-3)) as usize;
        self.args.runs.map_or(runs, |most| runs.min((most as usize).saturating_sub(1)))
    }

    fn too_long(&self) -> Failure {
        let needed = Budget::LEAST;
        if let Some(runs) = self.args.runs.filter(|runs| (*runs as usize) < needed + 1) {
            return Failure::ours(format!("--runs {runs}: tuning needs at least {}", needed + 1));
        }
        let one = self.time.as_secs_f64();
        Failure::ours(format!(
            "a run takes {one:.1} s, and tuning needs at least {} of them: --for {:.0}s",
            needed + 1,
            (one * (needed + 2) as f64).ceil()
        ))
    }

    /// Acquisitions per second of all processes of a run.
    fn acquisitions(&self, folder: &Path, wall: Duration) -> Option<f64> {
        let observed = files_in(folder).ok()?;
        let counts = observed.iter().flat_map(|observed| observed.acquisitions().into_values());
        let all = counts.fold(0, u64::saturating_add);
        (all > 0).then(|| all as f64 / wall.as_secs_f64())
    }
}

/// The share of the thread time of all processes that waits for locks.
fn waiting(processes: &[Process]) -> f64 {
    let sum = |of: fn(&Process) -> u64| processes.iter().map(of).fold(0, u64::saturating_add);
    sum(|process| process.wait_ns) as f64 / sum(|process| process.thread_ns).max(1) as f64
}

impl Subject for Runs<'_> {
    fn measure(&mut self, setup: &Setup) -> Result<Sample, Stop> {
        let mut changes = self.changes(setup).map_err(Stop::Failed)?;
        let counted = self.args.by == Some(By::Acquisitions);
        let folder = counted.then(|| self.new_folder()).transpose().map_err(Stop::Failed)?;
        if let Some(folder) = &folder {
            changes.push(("POUNDLOCK_STATS", Some(OsString::from(folder.path()))));
        }
        if let Some(bar) = &self.bar {
            announce(bar, self.args.progress, Named(setup, &self.targets).to_string());
        }
        let measured = self.run(&changes)?;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
        let (outcome, figure) = self.figure.judge(&measured);
        let Some(figure) = figure else {
            return Ok(Sample::Failed(outcome.describe()));
        };
        let (figure, lower) = match &folder {
            Some(folder) => match self.acquisitions(folder.path(), measured.wall) {
                Some(figure) => (figure, false),
                None => return Ok(Sample::Nothing),
            },
            None => (figure, self.args.metric.is_none() || self.args.lower_is_better),
        };
        if figure <= 0.0 {
            return Ok(Sample::Failed(format!("the figure {figure} is not positive")));
        }
        Ok(Sample::Figure(if lower { -figure.ln() } else { figure.ln() }))
    }

    fn used(&self) -> f64 {
        let time = self.started.elapsed().as_secs_f64() / self.limit().as_secs_f64();
        let runs = self.args.runs.map_or(0.0, |most| f64::from(self.done) / f64::from(most));
        time.max(runs)
    }

    fn mirrored(&self) -> bool {
        false
    }
}
