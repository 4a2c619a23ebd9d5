//! `sim figure`: a published figure on its machine, simulated, and what the paper says of it beside what came out.
//!
//! A figure is a file (bench/figures/*.toml): machine, workload, locks, numbers of threads, and what the paper's text
//! states. One number is fitted to a workload: what its instructions take between memory accesses, so that a single
//! thread is as fast as published. Nothing is fitted to a lock.

use super::args::{Domain, FigureArgs};
use super::data::{self, FIGURES as FILES, MACHINES};
use super::job::{self, Ended, Job};
use super::sweep::at_a_time;
use crate::failure::{Failure, reason};
use crate::options::OutputArgs;
use crate::output::{Page, write};
use crate::plot::lines::{self, Picture};
use crate::points::{Point, Run};
use crate::provenance::Provenance;
use crate::runs::{Outcome, Spread, exit_code, interrupts};
use crate::text_table::{self, ABSENT, number};
use poundlock_bench::Workload;
use poundlock_topology::input;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// A published figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    name: String,
    about: String,
    source: String,
    machine: String,
    workload: String,
    domain: Domain,
    /// Of simulated time, in microseconds.
    warmup_us: u64,
    measured_us: u64,
    threads: Vec<usize>,
    locks: Vec<String>,
    fit: Option<Fit>,
    /// What a section's instructions take between memory accesses, where another figure's fit has it.
    step: Option<f64>,
    /// What is not as in the paper, in a sentence or two.
    #[serde(default)]
    differs: String,
    check: Vec<Check>,
    /// Figures that the paper gives in numbers: who is ahead of whom.
    #[serde(default)]
    published: Vec<Published>,
    /// What cannot be simulated.
    #[serde(default)]
    absent: Vec<Absent>,
}

/// What the paper gives in numbers for several locks or numbers of threads, in one unit: all pairs of them are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    what: String,
    /// A figure of bench's.
    #[serde(default = "throughput")]
    figure: String,
    /// Where the numbers are.
    source: String,
    values: Vec<Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Value {
    lock: String,
    threads: usize,
    value: f64,
}

/// Two published values that are at least [`GAP`] apart, the larger one first, and the ratios.
#[derive(Debug, Serialize)]
struct Order {
    what: String,
    source: String,
    of: At,
    over: At,
    published: f64,
    simulated: Option<f64>,
    kept: bool,
}

/// How far published values must be apart for their order to count.
const GAP: f64 = 1.15;

/// A ratio of the paper's for which there is no simulation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Absent {
    what: String,
    published: f64,
    gate: bool,
    why: String,
}

/// How fast a single thread was.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fit {
    lock: String,
    workload: String,
    per_second: f64,
}

/// What the paper states.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    what: String,
    /// A figure of bench's.
    #[serde(default = "throughput")]
    figure: String,
    of: At,
    /// What it is divided by.
    over: Option<At>,
    published: Option<f64>,
    /// How far from that it may be, in parts of it.
    within: Option<f64>,
    least: Option<f64>,
    most: Option<f64>,
    /// Whether it is one of the ratios that the model is held against.
    #[serde(default)]
    gate: bool,
    /// Why it is missed, where that is known.
    #[serde(default)]
    why: String,
}

fn throughput() -> String {
    "per_second".to_owned()
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    lock: String,
    threads: usize,
}

/// A figure as it came out.
#[derive(Debug, Serialize)]
struct Drawn {
    figure: Figure,
    simulated_machine: String,
    step: f64,
    points: Vec<Point>,
    runs: Vec<Run>,
    results: Vec<Checked>,
    orders: Vec<Order>,
}

#[derive(Debug, Serialize)]
struct Checked {
    what: String,
    simulated: Option<Spread>,
    met: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: &'static str,
    #[serde(flatten)]
    provenance: Provenance,
    seed: u64,
    seeds: u32,
    interrupted: bool,
    figures: Vec<Drawn>,
}

/// Simulates what is named, or all, and tells.
pub fn figure(args: &FigureArgs) -> Result<ExitCode, Failure> {
    let names = if args.all { FILES.names()? } else { args.names.clone() };
    let figures = names.iter().map(|name| read(name)).collect::<Result<Vec<_>, _>>()?;
    let output = OutputArgs { json: args.json.clone(), svg: args.svg.clone() };
    let page = Page::beside([&output.json, &output.svg, &args.markdown])?;
    if args.svg.is_some() && figures.len() != 1 {
        return Err(Failure::ours("--svg draws one figure"));
    }
    let interrupted = interrupts()?;
    let mut drawn = vec![];
    for figure in figures {
        drawn.push(simulate(figure, args, &interrupted)?);
    }
    let report = Report {
        schema: "poundlock.sim-figure/1",
        provenance: Provenance::new(poundlock::C_COMPILER.to_owned()),
        seed: args.repeats.seed,
        seeds: args.repeats.seeds,
        interrupted: interrupted.load(Ordering::Relaxed),
        figures: drawn,
    };
    let text: String = report.figures.iter().map(render).collect::<Vec<_>>().join("\n");
    output.publish(page, &format!("{text}{}", summary(&report)), &report, || {
        lines::svg(&picture(&report.figures[0], &report))
    })?;
    if let Some(file) = args.markdown.as_ref().filter(|_| !report.interrupted) {
        write(file, markdown(&report))?;
    }
    Ok(exit_code(report.interrupted, report.figures.iter().flat_map(|drawn| &drawn.runs).map(|run| &run.outcome)))
}

fn read(name: &str) -> Result<Figure, Failure> {
    let file = FILES.find(name)?;
    let wrong = |wrong: String| Failure::ours(format!("'{}': {wrong}", file.display()));
    let text = input::text(&file).map_err(|error| wrong(reason(&error)))?;
    parse(&text).map_err(wrong)
}

/// The figure that a file's text describes.
pub fn parse(text: &str) -> Result<Figure, String> {
    let figure: Figure = toml::from_str(text).map_err(|error| error.message().replace('\n', " "))?;
    figure.check_places()?;
    Ok(figure)
}

impl Figure {
    /// Whether all that is compared is simulated.
    fn check_places(&self) -> Result<(), String> {
        let at = |what: &str, lock: &String, threads: usize| {
            if self.locks.contains(lock) && self.threads.contains(&threads) {
                return Ok(());
            }
            Err(format!("'{what}': {lock} with {threads} threads is not simulated"))
        };
        let known = |what: &str, name: &str| {
            let known = poundlock_bench::figures::FIGURES.iter().any(|figure| figure.name == name);
            if known { Ok(()) } else { Err(format!("'{what}': there is no figure '{name}'")) }
        };
        for check in &self.check {
            known(&check.what, &check.figure)?;
            for place in [Some(&check.of), check.over.as_ref()].into_iter().flatten() {
                at(&check.what, &place.lock, place.threads)?;
            }
        }
        for published in &self.published {
            known(&published.what, &published.figure)?;
            for value in &published.values {
                at(&published.what, &value.lock, value.threads)?;
                if value.value.is_nan() || value.value <= 0.0 {
                    return Err(format!("'{}': {} is not a published value", published.what, value.value));
                }
            }
        }
        Ok(())
    }
}

/// All pairs of published values that are far enough apart.
fn orders(figure: &Figure, points: &[Point]) -> Vec<Order> {
    figure.published.iter().flat_map(|published| published.orders(points)).collect()
}

impl Published {
    fn orders(&self, points: &[Point]) -> Vec<Order> {
        let simulated = |value: &Value| {
            let point = points.iter().find(|point| point.lock == value.lock && point.threads == value.threads);
            point.and_then(|point| point.figure(&self.figure)).map(|spread| spread.median)
        };
        let at = |value: &Value| At { lock: value.lock.clone(), threads: value.threads };
        let order = |(a, b): (&Value, &Value)| {
            let (of, over) = if a.value < b.value { (b, a) } else { (a, b) };
            let published = of.value / over.value;
            let simulated = simulated(of).zip(simulated(over)).map(|(of, over)| of / over);
            (published >= GAP).then(|| Order {
                what: self.what.clone(),
                source: self.source.clone(),
                of: at(of),
                over: at(over),
                published,
                simulated,
                kept: simulated.is_some_and(|ratio| ratio > 1.0),
            })
        };
        let pairs = self.values.iter().enumerate().flat_map(|(i, a)| self.values[..i].iter().map(move |b| (a, b)));
        pairs.filter_map(order).collect()
    }
}

fn simulate(figure: Figure, args: &FigureArgs, interrupted: &AtomicBool) -> Result<Drawn, Failure> {
    let file = MACHINES.find(&figure.machine)?;
    let machine = job::machine(&file, None).map_err(Failure::ours)?;
    let workload = data::workload(&figure.workload)?;
    workload.check().map_err(Failure::ours)?;
    let base = Job {
        machine: file,
        matrix: None,
        workload: workload.clone(),
        lock: String::new(),
        threads: 1,
        warmup: figure.warmup_us as f64 / 1e6,
        measured: figure.measured_us as f64 / 1e6,
        seed: args.repeats.seed,
        step: figure.step.unwrap_or(0.0),
        locality: figure.domain.into(),
    };
    let at_once = at_a_time(args.repeats.jobs);
    let step = match &figure.fit {
        Some(fit) => fitted(&base, fit, at_once, interrupted)?,
        None => base.step,
    };
    let mut jobs = vec![];
    for seed in 0..u64::from(args.repeats.seeds) {
        for &threads in &figure.threads {
            for lock in &figure.locks {
                jobs.push(Job { lock: lock.clone(), threads, step, seed: args.repeats.seed + seed, ..base.clone() });
            }
        }
    }
    let ended = job::run_all(&jobs, at_once, interrupted)?;
    let runs: Vec<Run> = jobs
        .iter()
        .zip(ended)
        .filter_map(|(job, ended)| Some(run_of(job, ended?, &workload, args.repeats.seed)))
        .collect();
    let places = figure.threads.iter().flat_map(|threads| figure.locks.iter().map(move |lock| (lock, *threads)));
    let points: Vec<Point> = places.map(|(lock, threads)| Point::of(lock, threads, &runs, &figure.locks[0])).collect();
    let results = figure.check.iter().map(|check| checked(check, &runs)).collect();
    let orders = orders(&figure, &points);
    Ok(Drawn { simulated_machine: machine.about, step, points, runs, results, orders, figure })
}

fn run_of(job: &Job, ended: Ended, workload: &Workload, first: u64) -> Run {
    let counts = ended.simulated.map(|simulated| simulated.counts);
    let seed = (job.seed - first) as u32 + 1;
    let mut run = Run::new(workload, job.lock.clone(), job.threads, seed, ended.outcome, counts, ended.output_tail);
    run.counts = None;
    run
}

/// The step with which one thread is as fast as published: the time of an operation grows with it in a line.
fn fitted(base: &Job, fit: &Fit, at_once: usize, interrupted: &AtomicBool) -> Result<f64, Failure> {
    const STEPS: [f64; 2] = [0.0, 8.0];
    let workload = data::workload(&fit.workload)?;
    let job = |step| Job { lock: fit.lock.clone(), step, workload: workload.clone(), ..base.clone() };
    let jobs = STEPS.map(job);
    let ended = job::run_all(&jobs, at_once, interrupted)?;
    let time = |ended: Option<&Ended>| -> Option<f64> {
        let counts = &ended?.simulated.as_ref()?.counts;
        let acquisitions: u64 = counts.threads.iter().map(|thread| thread.acquisitions).sum();
        Some(counts.elapsed_ns as f64 / acquisitions as f64)
    };
    let (Some(short), Some(long)) =
        (ended.first().and_then(|e| time(e.as_ref())), ended.get(1).and_then(|e| time(e.as_ref())))
    else {
        return Err(Failure::ours("the single thread that the workload is fitted to could not be simulated"));
    };
    let slope = (long - short) / (STEPS[1] - STEPS[0]);
    Ok(((1e9 / fit.per_second - short) / slope).max(0.0))
}

fn checked(check: &Check, runs: &[Run]) -> Checked {
    let value = |at: &At, seed: u32| {
        let here = |run: &&Run| run.lock == at.lock && run.threads == at.threads && run.repeat == seed;
        let run = runs.iter().find(here).filter(|run| run.outcome == Outcome::Ok)?;
        run.figures.get(check.figure.as_str()).copied().flatten()
    };
    let of = |seed: u32| {
        let found = value(&check.of, seed)?;
        match &check.over {
            Some(over) => Some(found / value(over, seed)?),
            None => Some(found),
        }
    };
    let seeds = runs.iter().map(|run| run.repeat).max().unwrap_or(0);
    let simulated = Spread::of((1..=seeds).filter_map(of));
    let met = simulated.is_some_and(|spread| check.holds(spread.median));
    Checked { what: check.what.clone(), simulated, met }
}

impl Check {
    fn holds(&self, value: f64) -> bool {
        let near = match (self.published, self.within) {
            (Some(published), Some(within)) => (value / published - 1.0).abs() <= within,
            _ => true,
        };
        near && self.least.is_none_or(|least| value >= least) && self.most.is_none_or(|most| value <= most)
    }

    /// What the paper says, and how near is near.
    fn due(&self) -> String {
        let mut due = vec![];
        if let Some(published) = self.published {
            let within = self.within.map_or(String::new(), |within| format!(" ± {:.0} %", within * 100.0));
            due.push(format!("{}{within}", short(published)));
        }
        due.extend(self.least.map(|least| format!("at least {}", short(least))));
        due.extend(self.most.map(|most| format!("at most {}", short(most))));
        due.join(", ")
    }
}

/// Two decimals for ratios, none for nanoseconds.
fn short(value: f64) -> String {
    if value < 20.0 { format!("{value:.2}") } else { number(value) }
}

fn cells(check: &Check, result: &Checked) -> [String; 5] {
    let simulated = result.simulated.map_or(ABSENT.to_owned(), |spread| short(spread.median));
    let range =
        result.simulated.map_or(ABSENT.to_owned(), |spread| format!("{} - {}", short(spread.min), short(spread.max)));
    let off = match (check.published, result.simulated) {
        (Some(published), Some(spread)) => format!("{:+.0} %", (spread.median / published - 1.0) * 100.0),
        _ => ABSENT.to_owned(),
    };
    [check.due(), simulated, range, off, if result.met { "met" } else { "MISSED" }.to_owned()]
}

fn render(drawn: &Drawn) -> String {
    let figure = &drawn.figure;
    let mut table = text_table::with_header(&["", "published", "simulated", "min - max", "off", ""], 1..5);
    for (check, result) in figure.check.iter().zip(&drawn.results) {
        let mut row = vec![gated(check.gate, &check.what)];
        row.extend(cells(check, result));
        table.add_row(row);
    }
    for absent in &figure.absent {
        table.add_row([gated(absent.gate, &absent.what), short(absent.published)]);
    }
    let reversed = drawn.orders.iter().filter(|order| !order.kept);
    let reversed = reversed.fold(String::new(), |mut text, order| {
        let (of, over) = (&order.of, &order.over);
        let simulated = order.simulated.map_or(ABSENT.to_owned(), short);
        let _ = writeln!(
            text,
            "Not in the published order, {}: {} with {} threads over {} with {}: {} published, {simulated} simulated",
            order.what,
            of.lock,
            of.threads,
            over.lock,
            over.threads,
            short(order.published)
        );
        text
    });
    format!(
        "{}: {}\n{}, step {:.2} ns\n{table}\n{reversed}",
        figure.name, figure.about, drawn.simulated_machine, drawn.step
    )
}

fn gated(gate: bool, what: &str) -> String {
    format!("{}{what}", if gate { "* " } else { "" })
}

/// How many of the gates and of the others are met.
fn counts(report: &Report) -> [(usize, usize); 2] {
    [true, false].map(|gate| {
        let all = report.figures.iter().flat_map(|drawn| drawn.figure.check.iter().zip(&drawn.results));
        let simulated = all.filter(|(check, _)| check.gate == gate).map(|(_, result)| result.met);
        let absent = report.figures.iter().flat_map(|drawn| &drawn.figure.absent).filter(|absent| absent.gate == gate);
        let ours: Vec<bool> = simulated.chain(absent.map(|_| false)).collect();
        (ours.iter().filter(|met| **met).count(), ours.len())
    })
}

/// How many of the published orders are kept, of how many.
fn kept(report: &Report) -> (usize, usize) {
    let all = || report.figures.iter().flat_map(|drawn| &drawn.orders);
    (all().filter(|order| order.kept).count(), all().count())
}

/// The sentence on the published orders; none if there are none.
fn order_line(report: &Report) -> String {
    let (kept, all) = kept(report);
    if all == 0 {
        return String::new();
    }
    let percent = 100.0 * kept as f64 / all as f64;
    format!(
        "Of {all} pairs of published values that are {:.0} % or more apart {kept}, {percent:.0} %, are in the published order.",
        100.0 * (GAP - 1.0)
    )
}

fn summary(report: &Report) -> String {
    let [(gates, of_gates), (others, of_others)] = counts(report);
    let order = order_line(report);
    format!(
        "\nMedians of {} seeds. Of the ratios that the model is held against (*) {gates} of {of_gates} are met, of what the \
         papers say besides {others} of {of_others}. {order}",
        report.seeds
    )
}

fn picture<'a>(drawn: &'a Drawn, report: &Report) -> Picture<'a> {
    Picture {
        title: drawn.figure.about.clone(),
        caption: format!("simulated: {}; median and spread of {} seeds", drawn.simulated_machine, report.seeds),
        threads: &drawn.figure.threads,
        locks: &drawn.figure.locks,
        points: &drawn.points,
        classes: false,
    }
}

/// Every pair of published values, and whether it is in the published order.
fn order_section(report: &Report) -> String {
    let line = order_line(report);
    if line.is_empty() {
        return line;
    }
    let mut text = format!(
        "\n## Order\n\n{line} The values are those that the papers give in numbers; ratios of the first to the second.\n\n\
         | figure | what | first | second | published | simulated | |\n|---|---|---|---|---|---|---|\n"
    );
    for drawn in &report.figures {
        for order in &drawn.orders {
            let at = |at: &At| format!("`{}`, {}", at.lock, at.threads);
            let simulated = order.simulated.map_or(ABSENT.to_owned(), short);
            let kept = if order.kept { "kept" } else { "REVERSED" };
            let (name, what, source) = (&drawn.figure.name, &order.what, &order.source);
            let _ = writeln!(
                text,
                "| {name} | {what} ({source}) | {} | {} | {} | {simulated} | {kept} |",
                at(&order.of),
                at(&order.over),
                short(order.published)
            );
        }
    }
    text
}

/// docs/fidelity.md.
fn markdown(report: &Report) -> String {
    let [(gates, of_gates), (others, of_others)] = counts(report);
    let mut text = format!(
        "# What the simulator gets right, and what not\n\n<!-- written by ./dev fidelity -->\n\n\
         The papers' figures on [simulated machines](simulator.md), by the locks that ship: published against simulated, medians \
         of {} seeds with their range. One number is fitted to a workload, its step, so that a single thread is as fast as \
         published; nothing to a lock. What the papers only draw, and do not say in numbers, is not compared.\n\n\
         Of the ratios that the model is held against **{gates} of {of_gates}** are met, of what the papers say besides \
         {others} of {of_others}. Missed:\n\n",
        report.seeds
    );
    for drawn in &report.figures {
        for (check, result) in drawn.figure.check.iter().zip(&drawn.results).filter(|(_, result)| !result.met) {
            let [due, simulated, ..] = cells(check, result);
            let why = if check.why.is_empty() { "Why is not known." } else { &check.why };
            let _ = writeln!(
                text,
                "- {}, {}: {due} published, {simulated} simulated. {why}",
                drawn.figure.name, check.what
            );
        }
    }
    for drawn in &report.figures {
        for absent in &drawn.figure.absent {
            let (name, what) = (&drawn.figure.name, &absent.what);
            let _ = writeln!(
                text,
                "- {name}, {what}: {} published, not simulated. {}",
                short(absent.published),
                absent.why
            );
        }
    }
    text += &order_section(report);
    for drawn in &report.figures {
        let figure = &drawn.figure;
        let _ = write!(
            text,
            "\n## {}\n\n{}. {}. Machine `{}`, workload `{}`, step {:.2} ns, domain {:?}.",
            figure.name, figure.about, figure.source, figure.machine, figure.workload, drawn.step, figure.domain
        );
        if !figure.differs.is_empty() {
            let _ = write!(text, " {}", figure.differs);
        }
        text += "\n\n| | published | simulated | min - max | off | |\n|---|---|---|---|---|---|\n";
        for (check, result) in figure.check.iter().zip(&drawn.results) {
            let gate = if check.gate { "**gate** " } else { "" };
            let _ = writeln!(text, "| {gate}{} | {} |", check.what, cells(check, result).join(" | "));
        }
        text += "\nMillion acquisitions a second:\n\n| threads |";
        for lock in &figure.locks {
            let _ = write!(text, " `{lock}` |");
        }
        let _ = writeln!(text, "\n|---|{}", "---|".repeat(figure.locks.len()));
        for threads in &figure.threads {
            let _ = write!(text, "| {threads} |");
            for lock in &figure.locks {
                let point = drawn.points.iter().find(|point| point.threads == *threads && point.lock == *lock);
                let rate = point.and_then(|point| point.figure("per_second"));
                let _ = write!(text, " {} |", rate.map_or(ABSENT.to_owned(), |rate| short(rate.median / 1e6)));
            }
            text.push('\n');
        }
    }
    text
}
