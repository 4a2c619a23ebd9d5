// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a workload on a machine: the same description that the native benchmark has, and the same counts.

use crate::abi;
use crate::arena::Arena;
use crate::engine::{Engine, NEVER, engine};
use crate::locks::{LockSpec, event_names};
use crate::machine::{Machine, SimError, Time, error, ns};
use crate::memory::Traffic;
use crate::random::Random;
use crate::trace::{Trace, TraceEvent};
use poundlock_workload::section::Settings;
use poundlock_workload::{Class, Counts, CpuMax, Placement, ThreadCounts, Unit, Work, Workload};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::rc::Rc;

/// What locks take for a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Locality {
    /// The CPUs of a last-level cache, as libpoundlock has it.
    #[default]
    L3,
    /// Those of a NUMA node.
    Node,
    /// Those of a socket.
    Package,
    /// As many CPUs in a row by number as a NUMA node has, whatever node they are of: what LiTL's locks take for one.
    Numbers,
}

/// One simulation.
#[derive(Clone, Debug)]
pub struct Point {
    /// The machine.
    pub machine: Machine,
    /// What the threads do.
    pub workload: Workload,
    /// Under which lock: its specification.
    pub lock: String,
    /// How many there are.
    pub threads: usize,
    /// How long nothing is counted first, and how long then, in seconds of simulated time.
    pub warmup: f64,
    /// See `warmup`.
    pub measured: f64,
    /// What all chance is drawn from.
    pub seed: u64,
    /// What a section's step takes beside its memory accesses: the one number that is fitted to a workload.
    pub step: f64,
    /// What locks take for a domain.
    pub locality: Locality,
    /// Whether to keep a timeline.
    pub trace: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What the native benchmark counts.
    pub counts: Counts,
    /// What the memory did, warm-up included.
    pub traffic: Traffic,
    /// How many events the simulation was.
    pub events: u64,
    pub(crate) trace: Trace,
}

impl Outcome {
    /// What each thread did when, if the point wanted it kept.
    pub fn timeline(&self) -> Vec<TraceEvent> {
        self.trace.events()
    }
}

/// Threads start within so many nanoseconds: else the order of the first round freezes.
pub(crate) const JITTER: f64 = 30_000.0;

/// What a step of [`Unit::Steps`] takes, in nanoseconds: a multiplication and an addition, at the machine's pace.
const STEP_CYCLES: f64 = 5.0;

/// What holders tell each other, as in the native benchmark, and what all of them together do.
struct Shared {
    workload: Workload,
    settings: Settings,
    data: usize,
    lock: usize,
    ops: abi::Ops,
    warmup: Time,
    end: Time,
    step: Time,
    step_nanoseconds: f64,
    /// Of each class, its control group.
    groups: Vec<Option<usize>>,
    /// Under a lock that readers share, only writers' are seen.
    sections: u64,
    total: u64,
    seen: u64,
    net: i64,
    holder: usize,
    domain: usize,
    released: Time,
    counts: Vec<ThreadCounts>,
}

/// Runs the simulation.
pub fn simulate(point: &Point) -> Result<Outcome, SimError> {
    point.workload.check().map_err(|wrong| SimError(wrong.to_string()))?;
    let spec = LockSpec::parse(&point.lock)?;
    if spec.has_readers() != point.workload.readers {
        return error(format!(
            "'{}': the workload takes {} lock",
            point.lock,
            if point.workload.readers { "a readers-writer" } else { "no readers-writer" }
        ));
    }
    if point.threads == 0 || point.threads > MOST_THREADS {
        return error(format!("{} threads are not from 1 to {MOST_THREADS}", point.threads));
    }
    let times = [("warmup", point.warmup), ("measured", point.measured)];
    if let Some((name, time)) = times.iter().find(|(_, time)| !(0.0..=1e6).contains(time)) {
        return error(format!("{name}: {time} is not a time in seconds"));
    }
    let names = event_names();
    let mut engine = Box::new(Engine::new(point.machine.clone(), Arena::map()?, point.seed, names.len(), point.trace));
    spec.set_up();
    engine.set_localities(localities(&point.machine, point.locality), route(&point.machine));
    engine.system.pinned = point.workload.placement != Placement::Free;
    let shared = prepare(&mut engine, &spec, point);
    let cpus = order(&point.machine, point.workload.placement);
    for index in 0..point.threads {
        spawn(&mut engine, &shared, index, cpus[index % cpus.len()], point.seed);
    }
    // Every thread comes to the end of its turn, so that the data can be checked.
    let ran = engine.run(NEVER, ns(JITTER));
    let outcome = ran.and_then(|()| finish(&mut engine, &shared, &names));
    let traffic = engine.memory.traffic;
    let events = engine.handled;
    let trace = std::mem::take(&mut engine.trace);
    outcome.map(|counts| Outcome { counts, traffic, events, trace })
}

/// As many as stacks fit into the simulated memory.
const MOST_THREADS: usize = 8192;

/// The lock and the data, made before the threads, at the first node.
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
        // SAFETY: classes beyond the groups share theirs; the simulation has the arena.
        engine.prepare(|| unsafe { abi::sim_group_weight_set(group as u32 % GROUPS, weight) });
    }
    let warmup = ns(point.warmup * 1e9);
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
        warmup,
        end: warmup + ns(point.measured * 1e9),
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
    }))
}

/// W_GROUPS.
const GROUPS: u32 = 64;

fn spawn(engine: &mut Engine, shared: &Rc<RefCell<Shared>>, index: usize, cpu: usize, seed: u64) {
    let (number, class) = {
        let shared = shared.borrow();
        let number = shared.workload.class_of(index);
        (number, shared.workload.classes[number].clone())
    };
    let pinned = shared.borrow().workload.placement != Placement::Free;
    let counts = ThreadCounts { class: number, cpu: pinned.then_some(cpu), ..ThreadCounts::default() };
    shared.borrow_mut().counts.push(counts);
    let nice = 1024.0 / 1.25f64.powi(class.nice);
    let weight = class.weight().round() as u32;
    let group = if class.tenant.is_some() { number as u32 % GROUPS } else { 0 };
    let mut random = Random::new(seed, 1000 + index as u64);
    let own = shared.clone();
    let worker = Worker { index, class, random: Random::new(seed, 1_000_000 + index as u64).next() | 1, untimed: 0 };
    // SAFETY: a constant of the C side.
    let bytes = unsafe { abi::sim_self_size };
    // The random state of the section's draws lies behind the record.
    let record = engine.spawn(cpu, nice as u32, bytes + 64, move || worker.work(&own, bytes));
    // SAFETY: the record is of so many zeroed bytes.
    engine.prepare(|| unsafe { abi::sim_self_make(record as *mut _, random.next() as u32 | 1, weight, group) });
    engine.threads[index].group = shared.borrow().groups[number];
}

/// A simulated thread at work. Nothing of it is held across a switch but copies.
struct Worker {
    index: usize,
    class: Class,
    random: u64,
    untimed: u32,
}

/// The engine, for one call at a time.
fn sim<'a>() -> &'a mut Engine {
    // SAFETY: this is only called by workers, which the engine runs.
    unsafe { engine() }
}

impl Worker {
    fn work(mut self, shared: &Rc<RefCell<Shared>>, behind: usize) {
        let random = (sim().record() + behind.next_multiple_of(64)) as *mut u64;
        // SAFETY: the thread's own memory.
        unsafe { random.write(self.random) };
        while sim().now < shared.borrow().end {
            self.turn(shared, random);
            self.compute(self.class.outside, shared);
        }
    }

    fn turn(&mut self, shared: &Rc<RefCell<Shared>>, random: *mut u64) {
        let (settings, data, lock, ops, step, readers) = {
            let shared = shared.borrow();
            (shared.settings, shared.data, shared.lock, shared.ops, shared.step, shared.workload.readers)
        };
        sim().me().step = step;
        // SAFETY: the settings are valid, and the state is the thread's own.
        let operation = unsafe { abi::sim_section_draw(&settings, random) };
        sim().me().step = 0;
        sim().asks();
        let asked = sim().now;
        let reads = readers && operation.reads();
        // SAFETY: the lock was made for these functions.
        let node = unsafe {
            if reads {
                ops.lock_shared.expect("a readers-writer lock")(lock as *mut _);
                std::ptr::null_mut()
            } else {
                ops.lock.expect("no alias")(lock as *mut _)
            }
        };
        sim().acquired();
        let acquired = sim().now;
        let before = (!reads).then(|| self.enter(shared));
        self.compute(self.class.inside, shared);
        sim().me().step = step;
        // SAFETY: the lock is held, and the data are those of the settings.
        let change = unsafe { abi::sim_section_do(&settings, data as *mut _, operation) };
        sim().me().step = 0;
        sim().releases();
        let released = sim().now;
        if let Some(before) = &before {
            self.leave(shared, before, released, change);
        }
        // SAFETY: this thread holds the lock, with this node.
        unsafe {
            if reads {
                ops.unlock_shared.expect("a readers-writer lock")(lock as *mut _);
            } else {
                ops.unlock.expect("no alias")(lock as *mut _, node);
            }
        }
        sim().sync();
        self.note(shared, before.as_ref(), [asked, acquired, released]);
    }

    /// Signs the record, which costs nothing: returns what the holder before left there.
    fn enter(&self, shared: &Rc<RefCell<Shared>>) -> Before {
        let cpu = sim().me().cpu;
        let domain = sim().machine.cpus[cpu].node;
        let mut shared = shared.borrow_mut();
        let before = Before {
            sections: shared.seen,
            holder: shared.holder,
            remote: shared.domain != domain,
            released: shared.released,
        };
        shared.holder = self.index;
        shared.domain = domain;
        before
    }

    /// Written at the end and read at the beginning, so that holders who overlap lose some.
    fn leave(&self, shared: &Rc<RefCell<Shared>>, before: &Before, released: Time, change: i32) {
        let mut shared = shared.borrow_mut();
        shared.seen = before.sections + 1;
        shared.sections += 1;
        shared.net += i64::from(change);
        shared.released = released;
    }

    fn note(&mut self, shared: &Rc<RefCell<Shared>>, before: Option<&Before>, times: [Time; 3]) {
        let mut shared = shared.borrow_mut();
        shared.total += 1;
        let timed = self.untimed == 0;
        self.untimed = if timed { shared.workload.timed } else { self.untimed } - 1;
        let [asked, acquired, released] = times;
        if released < shared.warmup || released >= shared.end {
            return;
        }
        let counts = &mut shared.counts[self.index];
        counts.acquisitions += 1;
        let handover = before.filter(|before| before.holder != usize::MAX && before.holder != self.index);
        if let Some(before) = handover {
            counts.handovers += 1;
            counts.handovers_remote += u64::from(before.remote);
        }
        if !timed {
            return;
        }
        let nanoseconds = |from: Time, to: Time| (to - from) / 1000;
        let wait = nanoseconds(asked, acquired);
        counts.timed += 1;
        counts.wait_ns += wait;
        counts.longest_wait_ns = counts.longest_wait_ns.max(wait);
        counts.hold_ns += nanoseconds(acquired, released);
        if let Some(before) = handover.filter(|before| asked <= before.released && before.released <= acquired) {
            counts.timed_handovers += 1;
            counts.handover_ns += nanoseconds(before.released, acquired);
        }
    }

    fn compute(&mut self, work: Work, shared: &Rc<RefCell<Shared>>) {
        if work.length == 0 {
            return;
        }
        let spread = work.length as f64 * work.spread;
        let drawn = Random::new(self.random, 3).unit();
        self.random = self.random.wrapping_add(2);
        let length = work.length as f64 + spread * (2.0 * drawn - 1.0);
        match work.unit {
            Unit::Steps => {
                let each = shared.borrow().step_nanoseconds;
                sim().compute(length * each);
            }
            Unit::Nanoseconds => sim().pass(length),
        }
    }
}

/// What the last holder left.
struct Before {
    sections: u64,
    holder: usize,
    remote: bool,
    released: Time,
}

fn finish(engine: &mut Engine, shared: &Rc<RefCell<Shared>>, names: &[&str]) -> Result<Counts, SimError> {
    let shared = shared.borrow();
    let (settings, data) = (&shared.settings, shared.data as *const _);
    // SAFETY: the data are those of the settings; what is wrong is a literal of the C side, or null.
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
        elapsed_ns: (shared.end - shared.warmup) / 1000,
        threads: shared.counts.clone(),
        events: Some(events.collect::<BTreeMap<_, _>>()),
        sleeps: engine.threads.iter().map(|thread| thread.sleeps).sum(),
        preemptions: engine.threads.iter().map(|thread| thread.preempted).sum(),
    })
}

/// By CPU, what locks take for its domain.
pub(crate) fn localities(machine: &Machine, locality: Locality) -> Vec<usize> {
    let in_a_row = (machine.cpus.len() / machine.nodes).max(1);
    let of = |(number, cpu): (usize, &crate::machine::Cpu)| match locality {
        Locality::L3 => cpu.domain,
        Locality::Node => cpu.node,
        Locality::Package => cpu.package,
        Locality::Numbers => number / in_a_row,
    };
    machine.cpus.iter().enumerate().map(of).collect()
}

/// By CPU, its place on a tour that follows the topology: siblings, last-level caches, nodes, sockets.
pub(crate) fn route(machine: &Machine) -> Vec<usize> {
    let mut tour: Vec<usize> = (0..machine.cpus.len()).collect();
    tour.sort_by_key(|cpu| (machine.cpus[*cpu].core, machine.cpus[*cpu].sibling));
    let mut places = vec![0; tour.len()];
    for (place, cpu) in tour.into_iter().enumerate() {
        places[cpu] = place;
    }
    places
}

/// The CPUs in the order in which threads are put on them.
pub(crate) fn order(machine: &Machine, placement: Placement) -> Vec<usize> {
    let mut order: Vec<usize> = (0..machine.cpus.len()).collect();
    match placement {
        // A socket's cores, then their siblings, then the next socket's.
        Placement::FirstFill => order.sort_by_key(|cpu| {
            let place = machine.cpus[*cpu];
            (place.package, place.sibling, place.core)
        }),
        // One of each node in turn; a system that balances load does as much.
        Placement::RoundRobin | Placement::Free => {
            let mut turns = BTreeMap::new();
            order.sort_by_key(|cpu| (machine.cpus[*cpu].sibling, machine.cpus[*cpu].core));
            let mut dealt: Vec<_> = order
                .iter()
                .map(|cpu| {
                    let place = machine.cpus[*cpu];
                    let turn = turns.entry((place.sibling, place.domain)).or_insert(0);
                    *turn += 1;
                    (place.sibling, *turn, place.domain % stride(machine), place.domain, *cpu)
                })
                .collect();
            dealt.sort_unstable();
            order = dealt.into_iter().map(|(.., cpu)| cpu).collect();
        }
    }
    order
}

/// How many domains a socket has: the first of each socket come before the second ones.
fn stride(machine: &Machine) -> usize {
    let packages = machine.cpus.iter().map(|cpu| cpu.package).max().map_or(1, |last| last + 1);
    machine.domains / packages
}
