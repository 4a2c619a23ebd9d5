// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a workload on a machine: the same description as the native benchmark, and the same counts.

mod placement;
mod windows;
mod worker;

pub use placement::Locality;
pub(crate) use placement::{localities, order, route};

use crate::abi;
use crate::arena::Arena;
use crate::engine::Engine;
use crate::error::{SimError, error};
use crate::locks::{LockSpec, event_names};
use crate::machine::Machine;
use crate::memory::Traffic;
use crate::random::Random;
use crate::time::{NEVER, ns};
use crate::trace::{Trace, TraceEvent};
use poundlock_workload::section::Settings;
use poundlock_workload::{Counts, CpuMax, Placement, ThreadCounts, Workload};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::rc::Rc;
use windows::Windows;
use worker::{STEP_CYCLES, Shared, Worker};

/// One simulation. `M` is the machine, or what a caller finds it by.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point<M = Machine> {
    /// The machine.
    pub machine: M,
    /// The workload.
    pub workload: Workload,
    /// The specification of the lock.
    pub lock: String,
    /// The number of threads.
    pub threads: usize,
    /// Seconds of simulated time before the measurement.
    pub warmup: f64,
    /// Seconds of simulated time that are measured.
    pub measured: f64,
    /// If present, `measured` is only the first part: further ones follow, each twice as long as
    /// the one before, until the throughput is steady. None ends after this number of seconds.
    pub most: Option<f64>,
    /// The random seed.
    pub seed: u64,
    /// Nanoseconds per memory access of a critical section, in addition to the access: the one
    /// number fitted to a workload.
    pub step: f64,
    /// The locks' locality domains.
    pub locality: Locality,
    /// Whether to record a timeline.
    pub trace: bool,
}

impl<M> Point<M> {
    /// The same simulation on `machine`.
    pub fn on<N>(self, machine: N) -> Point<N> {
        let Point {
            workload,
            lock,
            threads,
            warmup,
            measured,
            most,
            seed,
            step,
            locality,
            trace,
            ..
        } = self;
        Point {
            machine,
            workload,
            lock,
            threads,
            warmup,
            measured,
            most,
            seed,
            step,
            locality,
            trace,
        }
    }
}

/// The result of a simulation.
#[derive(Debug)]
pub struct Outcome {
    /// The counts of the native benchmark.
    pub counts: Counts,
    /// Whether the measured part is steady; false if its length was fixed.
    pub steady: bool,
    /// The memory traffic, warm-up included.
    pub traffic: Traffic,
    /// The number of simulated events.
    pub events: u64,
    pub(crate) trace: Trace,
}

impl Outcome {
    /// The timeline; empty unless [`Point::trace`] was set.
    pub fn timeline(&self) -> Vec<TraceEvent> {
        self.trace.events()
    }
}

/// Threads start within this many nanoseconds. Without it the order of the first round would
/// persist.
pub(crate) const JITTER: f64 = 30_000.0;

/// Runs the simulation.
pub fn simulate(point: &Point) -> Result<Outcome, SimError> {
    point.workload.check().map_err(|wrong| SimError(wrong.to_string()))?;
    let spec = LockSpec::parse(&point.lock)?;
    if spec.has_readers() != point.workload.readers {
        return error(format!(
            "'{}': the workload needs {} lock",
            point.lock,
            if point.workload.readers { "a readers-writer" } else { "no readers-writer" }
        ));
    }
    if point.threads == 0 || point.threads > MOST_THREADS {
        return error(format!("threads: {} is not from 1 to {MOST_THREADS}", point.threads));
    }
    let times = [
        ("warmup", point.warmup),
        ("measured", point.measured),
        ("most", point.most.unwrap_or_default()),
    ];
    if let Some((name, time)) = times.iter().find(|(_, time)| !(0.0..=1e6).contains(time)) {
        return error(format!("{name}: {time} is not a time in seconds"));
    }
    if point.most.is_some() && point.measured == 0.0 {
        return error("measured: 0 is no first part of a run that ends when it is steady");
    }
    let names = event_names();
    let mut engine = Box::new(Engine::new(
        point.machine.clone(),
        Arena::map()?,
        point.seed,
        names.len(),
        point.trace,
    ));
    spec.set_up();
    engine.set_places(localities(&point.machine, point.locality), route(&point.machine));
    engine.system.pinned = point.workload.placement != Placement::Free;
    let shared = prepare(&mut engine, &spec, point);
    let cpus = order(&point.machine, point.workload.placement);
    for index in 0..point.threads {
        spawn(&mut engine, &shared, index, cpus[index % cpus.len()], point.seed);
    }
    // Every thread ends its turn, so that the data can be checked.
    let ran = engine.run(NEVER, ns(JITTER));
    let outcome = ran.and_then(|()| finish(&mut engine, &shared, &names));
    let traffic = engine.memory.traffic;
    let events = engine.events();
    let trace = std::mem::take(&mut engine.trace);
    let steady = shared.borrow().windows.steady;
    outcome.map(|counts| Outcome { counts, steady, traffic, events, trace })
}

/// As many as have stacks in the simulated memory.
const MOST_THREADS: usize = 8192;

/// Makes the lock and the data, before the threads, at node 0.
fn prepare(engine: &mut Engine, spec: &LockSpec, point: &Point) -> Rc<RefCell<Shared>> {
    let workload = point.workload.clone();
    let settings = Settings::from(workload.section);
    let size = engine.prepare(|| spec.size());
    let lock = engine.allocate(size, 4096, 0);
    engine.call(lock, size, "the lock".to_owned());
    engine.prepare(|| spec.init(lock, size));
    // SAFETY: the settings are valid.
    let bytes = engine.prepare(|| unsafe { abi::sim_section_size(&settings) });
    let data = engine.allocate(bytes, 4096, 0);
    engine.call(data, bytes, "the data".to_owned());
    // SAFETY: the memory is zeroed, large enough and aligned.
    engine.prepare(|| unsafe { abi::sim_section_fill(&settings, data as *mut _, workload.seed) });
    for (group, class) in workload.classes.iter().enumerate() {
        let weight = class.tenant.unwrap_or(1024);
        // SAFETY: the group is below W_GROUPS; the simulation has the arena.
        engine.prepare(|| unsafe { abi::sim_group_weight_set(group as u32 % groups(), weight) });
    }
    let groups = workload.classes.iter().map(|class| {
        let CpuMax { quota, period } = class.cpu_max?;
        Some(engine.system.add_group(ns(quota as f64 * 1e3), ns(period as f64 * 1e3)))
    });
    let groups = groups.collect();
    Rc::new(RefCell::new(Shared {
        settings,
        data,
        lock,
        ops: spec.ops(),
        windows: Windows::new(point),
        step: ns(point.step),
        step_nanoseconds: point.machine.cycle * STEP_CYCLES,
        groups,
        workload,
        sections: 0,
        total: 0,
        seen: 0,
        net: 0,
        holder: usize::MAX,
        domain: 0,
        released: 0,
        counts: vec![],
        cpu_before: 0,
        cpu: 0,
    }))
}

/// The number of groups. Classes beyond it share them.
fn groups() -> u32 {
    // SAFETY: a constant of the C side.
    unsafe { abi::sim_rules.groups }
}

fn spawn(engine: &mut Engine, shared: &Rc<RefCell<Shared>>, index: usize, cpu: usize, seed: u64) {
    let (number, class) = {
        let shared = shared.borrow();
        let number = shared.workload.class_of(index);
        (number, shared.workload.classes[number].clone())
    };
    let pinned = shared.borrow().workload.placement != Placement::Free;
    let counts =
        ThreadCounts { class: number, cpu: pinned.then_some(cpu), ..ThreadCounts::default() };
    shared.borrow_mut().counts.push(counts);
    let nice = 1024.0 / 1.25f64.powi(class.nice);
    let weight = class.weight().round() as u32;
    let group = if class.tenant.is_some() { number as u32 % groups() } else { 0 };
    let mut random = Random::new(seed, 1000 + index as u64);
    let own = shared.clone();
    let worker = Worker {
        index,
        class,
        random: Random::new(seed, 1_000_000 + index as u64).next() | 1,
        untimed: 0,
    };
    // SAFETY: a constant of the C side.
    let bytes = unsafe { abi::sim_self_size };
    // The random state of the section's operations lies behind the record.
    let record = engine.spawn(cpu, nice as u32, bytes + 64, move || worker.work(&own, bytes));
    // SAFETY: the record has sim_self_size zeroed bytes.
    engine.prepare(|| unsafe {
        abi::sim_self_make(record as *mut _, random.next() as u32 | 1, weight, group)
    });
    engine.threads[index].group = shared.borrow().groups[number];
}

fn finish(
    engine: &mut Engine,
    shared: &Rc<RefCell<Shared>>,
    names: &[&str],
) -> Result<Counts, SimError> {
    let shared = shared.borrow();
    let (settings, data) = (&shared.settings, shared.data as *const _);
    // SAFETY: the data are those of the settings; the result is null or a literal.
    let wrong = engine.prepare(|| unsafe {
        let wrong = abi::sim_section_check(settings, data, shared.total, shared.net);
        (!wrong.is_null()).then(|| CStr::from_ptr(wrong).to_string_lossy().into_owned())
    });
    if let Some(wrong) = wrong {
        return error(format!("the lock does not exclude: {wrong}"));
    }
    if shared.seen != shared.sections {
        return error(format!(
            "the lock does not exclude: of {} critical sections, {} were seen",
            shared.sections, shared.seen
        ));
    }
    let events = names.iter().zip(&engine.counts).map(|(name, count)| ((*name).to_owned(), *count));
    Ok(Counts {
        elapsed_ns: (shared.windows.end - shared.windows.begin) / 1000,
        cpu_ns: shared.cpu / 1000,
        threads: shared.counts.clone(),
        events: Some(events.collect::<BTreeMap<_, _>>()),
        sleeps: engine.threads.iter().map(|thread| thread.sleeps).sum(),
        preemptions: engine.threads.iter().map(|thread| thread.preempted).sum(),
    })
}
