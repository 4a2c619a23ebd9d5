//! Tunes a running process: each measurement is a short time in which its locks have other
//! settings. However it ends, except by SIGKILL, all settings are as before.

use super::hot::{self, Pages};
use super::search::{Sample, Stop, Subject};
use super::setup::{self, Named, Setup, Target, Use};
use super::step::{Budget, Plan, Tuned};
use super::{By, TuneArgs};
use crate::control::{Item, Page, Replaced, settings};
use crate::failure::Failure;
use crate::output::note;
use crate::runs::{announce, progress, stop_requests};
use crate::statistics::{NEGLIGIBLE, Names, Observed, Process, file_of};
use indicatif::ProgressBar;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time for which a process is tuned by default.
const TIME: Duration = Duration::from_secs(60);

/// The number of windows in that time by default.
const WINDOWS: u32 = 600;

/// The shortest window: the file of statistics is read twice in it.
const LEAST_WINDOW: Duration = Duration::from_millis(1);

/// The part of the time, or of as many windows as by default, in which the waits are counted before
/// anything is changed.
const LOOK: u32 = 20;

/// The part of a window that is not measured, in which earlier waiters finish by their settings.
const SETTLE: u32 = 10;

/// The maximum delay until a stop request is noticed.
const GLANCE: Duration = Duration::from_millis(20);

/// Tunes the process `pid`.
pub fn tune(args: &TuneArgs, pid: u32) -> Result<Tuned, Failure> {
    let by = match args.by {
        None | Some(By::Acquisitions) => By::Acquisitions,
        Some(By::Slowest) => By::Slowest,
        Some(_) => {
            return Err(Failure::ours("--by elapsed and cpu need a program: tune -- COMMAND"));
        }
    };
    let mut windows = Windows::make(args, pid, by)?;
    let (targets, about) = match windows.first() {
        Ok(first) => first,
        Err(Stop::Interrupted) => return Ok(Tuned::interrupted()),
        Err(Stop::Failed(failure)) => return Err(failure),
    };
    if targets.is_empty() {
        return Ok(Tuned::nothing(about));
    }
    let budget = Budget { measurements: windows.affordable(), per_round: 2 };
    let plan = Plan::of(targets, Vec::new(), budget).ok_or_else(|| windows.too_few())?;
    windows.begin(&plan.targets, budget)?;
    let tuned = plan.run(&mut windows, about);
    windows.end(tuned, args.keep)
}

/// Windows of a process.
struct Windows<'a> {
    args: &'a TuneArgs,
    pid: u32,
    by: By,
    page: Page,
    file: PathBuf,
    window: Duration,
    limit: Duration,
    started: Instant,
    /// Number of windows so far.
    done: u32,
    targets: Vec<Target>,
    /// The locks of each target, whose settings are restored at the end.
    changed: Vec<Vec<Changed>>,
    /// The indexes of the locks in the statistics, by address.
    indexes: HashMap<u64, Vec<u32>>,
    bar: Option<ProgressBar>,
    stop: Arc<AtomicBool>,
}

/// A lock whose settings change.
struct Changed {
    /// As it was before.
    item: Item,
    /// The word that is set now.
    word: u64,
}

impl Windows<'_> {
    fn make(args: &TuneArgs, pid: u32, by: By) -> Result<Windows<'_>, Failure> {
        if args.others.rwlock.is_some() || args.others.spinlock.is_some() {
            return Err(Failure::ours("--rwlock and --spinlock need a program: tune -- COMMAND"));
        }
        let limit = args.time.unwrap_or(TIME);
        let window = args.window.unwrap_or(limit / WINDOWS);
        if window < LEAST_WINDOW {
            return Err(Failure::ours("a window is at least 1ms: a longer --for or --window"));
        }
        Ok(Windows {
            args,
            pid,
            by,
            page: Page::find(pid)?,
            file: file_of(pid)?,
            window,
            limit,
            started: Instant::now(),
            done: 0,
            targets: Vec::new(),
            changed: Vec::new(),
            indexes: HashMap::new(),
            bar: None,
            stop: stop_requests()?,
        })
    }

    /// Counts the waits for some time. Returns the targets and a line about the waits; no targets:
    /// there is nothing to tune, for the reason in the line.
    fn first(&mut self) -> Result<(Vec<Target>, String), Stop> {
        let mut names = Names::default();
        let mut read = || -> Result<(Observed, Process), Stop> {
            let observed = Observed::read(&self.file).map_err(Stop::Failed)?;
            let process = Process::of(&observed, &mut names);
            Ok((observed, process))
        };
        let (_, before) = read()?;
        pause(self.limit.min(self.window * WINDOWS) / LOOK, &self.stop)?;
        let (observed, now) = read()?;
        self.page.check().map_err(Stop::Failed)?;
        let items = self.page.items().map_err(Stop::Failed)?;
        let pages: Pages = items.into_iter().map(|item| ((now.pid, item.address), item)).collect();
        let earlier: HashMap<u32, u64> =
            before.locks.iter().map(|lock| (lock.index, lock.wait_ns)).collect();
        let mut uses = hot::uses(&now, &observed, &pages, &mut names);
        for used in &mut uses {
            let before = used.indexes.iter().filter_map(|index| earlier.get(index));
            used.wait_ns = before.fold(used.wait_ns, |left, ns| left.saturating_sub(*ns));
        }
        self.indexes = sides(&now);
        let threads = now.thread_ns.saturating_sub(before.thread_ns);
        Ok(self.judge(&uses, threads))
    }

    fn judge(&self, uses: &[Use], thread_ns: u64) -> (Vec<Target>, String) {
        let waited: u64 = uses.iter().map(|used| used.wait_ns).sum();
        let share = waited as f64 / thread_ns.max(1) as f64;
        let about = format!("{:.1} % of thread time waits for locks.", 100.0 * share);
        if share < NEGLIGIBLE {
            return (Vec::new(), about);
        }
        let mut targets = setup::targets(uses);
        targets.truncate(self.args.top);
        (targets, about)
    }

    /// The number of windows for which there is time.
    fn affordable(&self) -> usize {
        let left = self.limit.saturating_sub(self.started.elapsed());
        let windows = (left.as_secs_f64() / self.window.as_secs_f64()) as usize;
        self.args.windows.map_or(windows, |most| windows.min(most as usize))
    }

    fn too_few(&self) -> Failure {
        let needed = 2 * Budget::LEAST as u32;
        if let Some(windows) = self.args.windows.filter(|windows| *windows < needed) {
            return Failure::ours(format!("--windows {windows}: tuning needs at least {needed}"));
        }
        Failure::ours(format!(
            "there is not enough time: --for {:.0}s, or a shorter --window",
            (self.window * (needed + LOOK)).as_secs_f64().ceil()
        ))
    }

    /// Remembers the settings of all targets.
    fn begin(&mut self, targets: &[Target], budget: Budget) -> Result<(), Failure> {
        self.targets = targets.to_vec();
        let items = self.page.items()?;
        let items: BTreeMap<u64, &Item> = items.iter().map(|item| (item.address, item)).collect();
        let of = |target: &Target| {
            let found = target.addresses.iter().filter_map(|address| items.get(address));
            found.map(|item| Changed { item: (*item).clone(), word: item.wanted }).collect()
        };
        self.changed = targets.iter().map(of).collect();
        let undo =
            self.targets.iter().zip(&self.changed).flat_map(|(target, changed)| {
                changed.iter().map(|changed| self.undo(target, changed))
            });
        let undo: BTreeSet<String> = undo.collect();
        let undo: Vec<String> = undo.into_iter().map(|command| format!("`{command}`")).collect();
        note(format_args!("if this command is killed by SIGKILL, undo with {}", undo.join("; ")));
        self.bar = Some(progress(budget.measurements as u64));
        Ok(())
    }

    /// The command that returns a lock of a target to its settings of before.
    fn undo(&self, target: &Target, changed: &Changed) -> String {
        match settings::text(changed.item.wanted) {
            None => command(self.pid, &target.name(), "default"),
            Some(before) => command(self.pid, &format!("{:#x}", changed.item.address), &before),
        }
    }

    /// Gives the locks the settings of `setup`.
    fn set(&mut self, setup: &Setup) -> Result<(), Failure> {
        for (target, items) in self.changed.iter_mut().enumerate() {
            let word = setup.settings.get(&target).map(|spec| settings::word(spec));
            let word = word.transpose().map_err(Failure::ours)?;
            let mut others = false;
            items.retain_mut(|changed| {
                let word = word.unwrap_or(changed.item.wanted);
                let replaced = self.page.replace(&changed.item, changed.word, word);
                others |= replaced == Replaced::Differs;
                if replaced == Replaced::Done {
                    changed.word = word;
                }
                replaced != Replaced::Gone
            });
            if others {
                let label = &self.targets[target].label;
                return Err(Failure::ours(format!(
                    "another command has changed the settings of {label} meanwhile"
                )));
            }
            if items.is_empty() {
                let label = &self.targets[target].label;
                return Err(Failure::ours(format!("the lock {label} was destroyed meanwhile")));
            }
        }
        Ok(())
    }

    /// Returns all locks to their settings, except those that another command has changed since.
    fn restore(&mut self) {
        for changed in self.changed.drain(..).flatten() {
            self.page.replace(&changed.item, changed.word, changed.item.wanted);
        }
    }

    /// Keeps what is better, if `keep`, and restores everything else.
    fn end(&mut self, tuned: Result<Tuned, Failure>, keep: bool) -> Result<Tuned, Failure> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let tuned = tuned?;
        if keep && !tuned.interrupted {
            self.set(&tuned.kept)?;
            self.page.check()?;
            self.changed.clear();
        }
        Ok(tuned)
    }

    /// The locks of all targets, by their indexes in the statistics.
    fn counted(&self) -> Vec<u32> {
        let addresses = self.targets.iter().flat_map(|target| &target.addresses);
        addresses.filter_map(|address| self.indexes.get(address)).flatten().copied().collect()
    }

    fn counts(&self) -> Result<Counts, Stop> {
        let observed = Observed::read(&self.file).map_err(Stop::Failed)?;
        let at = Instant::now();
        let locks = self.counted();
        let (mut all, mut threads) = (0_u64, BTreeMap::new());
        match self.by {
            By::Slowest => {
                for lock in locks {
                    for (thread, count) in observed.acquisitions_by_thread(lock) {
                        *threads.entry(thread).or_insert(0_u64) += count;
                    }
                }
            }
            _ => {
                let counts = observed.acquisitions();
                all = locks.iter().filter_map(|lock| counts.get(lock)).sum();
            }
        }
        Ok(Counts { at, all, threads })
    }
}

/// The indexes of the locks in the statistics, by address.
fn sides(process: &Process) -> HashMap<u64, Vec<u32>> {
    let mut sides: HashMap<u64, Vec<u32>> = HashMap::new();
    for lock in &process.locks {
        if let (Some(place), Some(_)) = (lock.place, lock.controlled()) {
            sides.entry(place).or_default().push(lock.index);
        }
    }
    sides
}

/// The command that changes settings of a process.
pub fn command(pid: u32, lock: &str, settings: &str) -> String {
    format!("poundlock control -p {pid} '{lock}' {settings}")
}

impl Drop for Windows<'_> {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Acquisitions at some time.
struct Counts {
    at: Instant,
    all: u64,
    threads: BTreeMap<u64, u64>,
}

impl Counts {
    /// The figure from `before` to this time: acquisitions per second.
    fn since(&self, before: &Counts, by: By) -> Sample {
        let seconds = (self.at - before.at).as_secs_f64().max(1e-9);
        let figure = match by {
            By::Slowest => {
                let both = self.threads.iter().filter_map(|(thread, now)| {
                    Some(now.saturating_sub(*before.threads.get(thread)?))
                });
                // A thread that starves has no logarithm: half an acquisition is the least.
                both.min().map(|least| (least as f64).max(0.5) / seconds)
            }
            _ => {
                let taken = self.all.saturating_sub(before.all);
                (taken > 0).then(|| taken as f64 / seconds)
            }
        };
        figure.map_or(Sample::Nothing, |figure| Sample::Figure(figure.ln()))
    }
}

/// Sleeps for `time`.
fn pause(time: Duration, stop: &AtomicBool) -> Result<(), Stop> {
    let end = Instant::now() + time;
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(GLANCE));
    }
}

impl Subject for Windows<'_> {
    fn measure(&mut self, setup: &Setup) -> Result<Sample, Stop> {
        if let Some(bar) = &self.bar {
            announce(bar, self.args.progress, Named(setup, &self.targets).to_string());
        }
        self.set(setup).map_err(Stop::Failed)?;
        pause(self.window / SETTLE, &self.stop)?;
        let before = self.counts()?;
        pause(self.window - self.window / SETTLE, &self.stop)?;
        let now = self.counts()?;
        self.page.check().map_err(Stop::Failed)?;
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
        Ok(now.since(&before, self.by))
    }

    fn used(&self) -> f64 {
        let time = self.started.elapsed().as_secs_f64() / self.limit.as_secs_f64();
        let windows = self.args.windows.map_or(0.0, |most| f64::from(self.done) / f64::from(most));
        time.max(windows)
    }

    fn mirrored(&self) -> bool {
        true
    }
}
