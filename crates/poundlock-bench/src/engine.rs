//! Runs a workload: threads that acquire one lock repeatedly, and their counts.
//!
//! Everything is allocated before the threads start. Each thread counts on its own cache lines. The
//! record of the holders (the last holder, the number of sections) is one line that only holders
//! access, as part of every critical section.

use crate::error::{BenchError, error};
use crate::lock::{Lock, NATIVE, Native, NativeRw, Pound, PoundRw};
use crate::placement::{self, bind};
use crate::section::{Data, vary};
use crossbeam_utils::CachePadded;
use poundlock_sys::{
    pound_domain, pound_event_count, pound_event_name, pound_events_start, pound_thread_tenant,
    pound_thread_weight,
};
use poundlock_workload::section::Operation;
use poundlock_workload::{Class, Counts, ThreadCounts, Unit, Work, Workload};
use quanta::Clock;
use serde::{Deserialize, Serialize};
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::hint::black_box;
use std::mem;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// A measurement: a workload, a lock, a number of threads, and when to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The workload.
    pub workload: Workload,
    /// The lock's spec, or [`NATIVE`].
    pub lock: String,
    /// The number of threads.
    pub threads: usize,
    /// When the run ends.
    pub limit: Limit,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// By time.
    Seconds {
        /// Seconds before the measurement.
        warmup: f64,
        /// Seconds that are measured.
        measured: f64,
    },
    /// After this number of acquisitions by all threads together.
    Acquisitions(u64),
}

/// A thread's contribution to the whole run, for the final checks.
#[derive(Clone, Copy, Debug, Default)]
struct Trace {
    /// Time of the shared clock.
    began: u64,
    ended: u64,
    /// Sections completed and the change of the number of entries, including the warm-up.
    sections: u64,
    net: i64,
}

type Worked = Result<(ThreadCounts, Trace), BenchError>;

/// Bytes of a thread's stack: enough for any lock, and small enough for thousands of threads.
const STACK: usize = 256 << 10;

const WARMUP: u32 = 0;
const MEASURED: u32 = 1;
const ENDED: u32 = 2;

/// The record of the holders. 0 is no holder, and no time.
#[derive(Default)]
struct Record {
    /// Sections completed. Read at the start of a section and written at its end, so that
    /// concurrent holders lose updates.
    sections: u64,
    holder: usize,
    domain: u32,
    released: u64,
}

/// The shared state, in separate cache lines.
struct Arena<'a, L> {
    workload: &'a Workload,
    clock: Clock,
    cpus: Vec<usize>,
    /// The maximum number of sections.
    limit: u64,
    /// Sections started, if readers cannot count them under the lock.
    claimed: CachePadded<AtomicU64>,
    data: Data,
    /// Write-locked until all threads may start.
    gate: RwLock<()>,
    ready: AtomicUsize,
    lock: CachePadded<L>,
    record: CachePadded<UnsafeCell<Record>>,
    phase: CachePadded<AtomicU32>,
}

// SAFETY: only holders of the lock access the record and, at the end, the only remaining thread.
unsafe impl<L: Lock> Sync for Arena<'_, L> {}

/// Runs a job in this process. It changes the settings of the lock, and the library counts events
/// from now on; so run each job in a process of its own, which can be killed if the lock hangs.
pub fn run(job: &Job) -> Result<Counts, BenchError> {
    job.workload.check_native()?;
    if job.threads == 0 {
        return error("a workload needs at least one thread");
    }
    let native = job.lock == NATIVE;
    if !native {
        // SAFETY: it may be called at any time.
        unsafe { pound_events_start() };
    }
    match (job.workload.readers, native) {
        (false, true) => run_under(job, Native::new(), false),
        (false, false) => run_under(job, Pound::new(&job.lock)?, true),
        (true, true) => run_under(job, NativeRw::new(), false),
        (true, false) => run_under(job, PoundRw::new(&job.lock)?, true),
    }
}

fn run_under<L: Lock>(job: &Job, lock: L, has_events: bool) -> Result<Counts, BenchError> {
    let mut arena = Arena {
        workload: &job.workload,
        clock: Clock::new(),
        cpus: placement::order(job.workload.placement)?,
        limit: if let Limit::Acquisitions(limit) = job.limit { limit } else { u64::MAX },
        claimed: CachePadded::default(),
        data: Data::new(job.workload.section, job.workload.seed),
        gate: RwLock::new(()),
        ready: AtomicUsize::new(0),
        lock: CachePadded::new(lock),
        record: CachePadded::default(),
        phase: CachePadded::new(AtomicU32::new(WARMUP)),
    };
    let (measured, worked) = thread::scope(|scope| arena.conduct(scope, job))?;
    let (threads, traces): (Vec<_>, Vec<_>) = worked.into_iter().unzip();
    arena.verify(&traces)?;
    let (sleeps, preemptions) = switches();
    let elapsed_ns = measured.elapsed_ns.unwrap_or_else(|| arena.span(&traces));
    Ok(Counts {
        elapsed_ns,
        cpu_ns: measured.cpu_ns,
        threads,
        events: has_events.then_some(measured.events),
        sleeps,
        preemptions,
    })
}

/// The measurements of the conducting thread.
struct Measured {
    /// None if the threads determine the end of the run.
    elapsed_ns: Option<u64>,
    cpu_ns: u64,
    events: BTreeMap<String, u64>,
}

impl<L: Lock> Arena<'_, L> {
    /// Starts the threads, switches the phases, and collects the counts.
    fn conduct<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        job: &Job,
    ) -> Result<(Measured, Vec<(ThreadCounts, Trace)>), BenchError> {
        let closed = self.gate.write().expect("no thread panics with the gate");
        if !matches!(job.limit, Limit::Seconds { warmup, .. } if warmup > 0.0) {
            self.enter(WARMUP, MEASURED);
        }
        let mut threads = Vec::new();
        let mut spawned = Ok(());
        while spawned.is_ok() && threads.len() < job.threads {
            spawned = self.spawn(scope, threads.len()).map(|thread| threads.push(thread));
        }
        if spawned.is_err() {
            self.phase.store(ENDED, Ordering::Relaxed);
        }
        while self.ready.load(Ordering::Relaxed) < threads.len() {
            thread::sleep(Duration::from_millis(1));
        }
        drop(closed);
        let measured = self.measure(job.limit, || join(threads));
        spawned.and(measured)
    }

    fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        index: usize,
    ) -> Result<ScopedJoinHandle<'scope, Worked>, BenchError> {
        let builder = thread::Builder::new().name(format!("bench-{index}")).stack_size(STACK);
        let spawned = builder.spawn_scoped(scope, move || self.thread(index));
        spawned.map_err(|wrong| BenchError(format!("cannot start thread {}: {wrong}", index + 1)))
    }

    /// Switches the phases by time; the gate is open.
    fn measure(
        &self,
        limit: Limit,
        join: impl FnOnce() -> Result<Vec<(ThreadCounts, Trace)>, BenchError>,
    ) -> Result<(Measured, Vec<(ThreadCounts, Trace)>), BenchError> {
        let Limit::Seconds { warmup, measured } = limit else {
            let (before, cpu) = (events(), cpu_time());
            let threads = join()?;
            let (cpu_ns, events) = (cpu_time() - cpu, since(&before));
            return Ok((Measured { elapsed_ns: None, cpu_ns, events }, threads));
        };
        thread::sleep(Duration::from_secs_f64(warmup));
        self.enter(WARMUP, MEASURED);
        let (before, cpu, start) = (events(), cpu_time(), self.clock.raw());
        thread::sleep(Duration::from_secs_f64(measured));
        self.enter(MEASURED, ENDED);
        let elapsed = self.clock.delta_as_nanos(start, self.clock.raw());
        let (cpu_ns, events) = (cpu_time() - cpu, since(&before));
        Ok((Measured { elapsed_ns: Some(elapsed), cpu_ns, events }, join()?))
    }

    /// Enters the next phase, unless a failed thread has ended the run.
    fn enter(&self, from: u32, to: u32) {
        // Relaxed: threads may see it later, and it publishes nothing. After a failure the
        // phase is ENDED.
        let _ = self.phase.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn thread(&self, index: usize) -> Worked {
        let class = self.workload.class_of(index);
        let cpu = (!self.cpus.is_empty()).then(|| self.cpus[index % self.cpus.len()]);
        let prepared = cpu.map_or(Ok(()), bind).and_then(|()| self.join_class(class));
        if prepared.is_err() {
            self.phase.store(ENDED, Ordering::Relaxed);
        }
        self.ready.fetch_add(1, Ordering::Relaxed);
        drop(self.gate.read().expect("no thread panics with the gate"));
        prepared.map(|()| {
            Worker::new(self, index, ThreadCounts { class, cpu, ..ThreadCounts::default() }).work()
        })
    }

    /// Applies the settings of a class to the calling thread.
    fn join_class(&self, number: usize) -> Result<(), BenchError> {
        let class = &self.workload.classes[number];
        renice(class.nice)?;
        if let Some(weight) = class.weight {
            // SAFETY: it affects only this thread.
            unsafe { pound_thread_weight(weight) };
        }
        let Some(weight) = class.tenant else {
            return Ok(());
        };
        // SAFETY: as above.
        match unsafe { pound_thread_tenant(number as u64, weight) } {
            0 => Ok(()),
            _ => error(format!("class {number}: too many tenants")),
        }
    }

    /// The time from the start to the last acquisition, if their number ends the run.
    fn span(&self, threads: &[Trace]) -> u64 {
        let began = threads.iter().map(|thread| thread.began).min().unwrap_or(0);
        let ended = threads.iter().map(|thread| thread.ended);
        // Readers end when no section may start, while other readers are still in theirs.
        let ended = if self.workload.readers { ended.max() } else { ended.min() };
        self.clock.delta_as_nanos(began, ended.unwrap_or(0))
    }

    /// Checks mutual exclusion by the data.
    fn verify(&mut self, threads: &[Trace]) -> Result<(), BenchError> {
        let sections: u64 = threads.iter().map(|thread| thread.sections).sum();
        let seen = self.record.get_mut().sections;
        if seen != sections {
            return error(format!(
                "the lock does not exclude: of {sections} critical sections, {seen} were seen"
            ));
        }
        let net = threads.iter().map(|thread| thread.net).sum();
        self.data
            .check(sections, net)
            .map_err(|wrong| BenchError(format!("the lock does not exclude: {wrong}")))
    }
}

/// The state of a benchmark thread.
struct Worker<'a, L> {
    arena: &'a Arena<'a, L>,
    class: &'a Class,
    /// Counted from 1; 0 means no thread.
    name: usize,
    random: u64,
    /// Acquisitions until the next timed one.
    untimed: u32,
    counts: ThreadCounts,
    trace: Trace,
}

impl<'a, L: Lock> Worker<'a, L> {
    fn new(arena: &'a Arena<'a, L>, index: usize, counts: ThreadCounts) -> Worker<'a, L> {
        let name = index + 1;
        // Odd, so never 0; different for adjacent threads.
        let random = (arena.workload.seed ^ (name as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1;
        Worker {
            arena,
            class: &arena.workload.classes[counts.class],
            name,
            random,
            untimed: 0,
            counts,
            trace: Trace::default(),
        }
    }

    fn work(mut self) -> (ThreadCounts, Trace) {
        self.trace.began = self.arena.clock.raw();
        while self.arena.phase.load(Ordering::Relaxed) != ENDED && self.turn() {
            self.compute(self.class.outside);
        }
        self.trace.ended = self.arena.clock.raw();
        (self.counts, self.trace)
    }

    /// Acquires the lock, performs an operation and releases the lock. Returns false after the end
    /// of the run.
    fn turn(&mut self) -> bool {
        let arena = self.arena;
        let operation = arena.data.draw(&mut self.random);
        if arena.workload.readers {
            if !self.claim() {
                return false;
            }
            if operation.reads() {
                return self.turn_as_reader(operation);
            }
        }
        let timed = self.untimed == 0;
        let asked = self.time_if(timed);
        arena.lock.lock();
        // SAFETY: the lock is held until the end of this function, and only holders access the
        // record.
        let record = unsafe { &mut *arena.record.get() };
        let phase = arena.phase.load(Ordering::Relaxed);
        let goes_on = phase != ENDED && record.sections < arena.limit;
        if goes_on {
            let acquired = self.time_if(timed);
            let (before, domain) = self.enter(record);
            self.compute(self.class.inside);
            // SAFETY: the lock is held.
            let change = unsafe { arena.data.perform(operation) };
            let released = self.time_if(timed);
            // Readers may hold the lock between two writers, so hand-overs are not timed.
            record.released = if arena.workload.readers { 0 } else { released };
            // SAFETY: a valid field. Volatile: the write must not move to the read.
            unsafe { (&raw mut record.sections).write_volatile(before.sections + 1) };
            // SAFETY: this thread holds the lock.
            unsafe { arena.lock.unlock() };
            self.trace.sections += 1;
            self.trace.net += i64::from(change);
            self.note(phase == MEASURED, &before, domain, [asked, acquired, released]);
        } else {
            // SAFETY: this thread holds the lock.
            unsafe { arena.lock.unlock() };
        }
        goes_on
    }

    /// Claims a section. Returns false if no more sections may start.
    fn claim(&self) -> bool {
        // Relaxed: only the number matters.
        self.arena.limit == u64::MAX
            || self.arena.claimed.fetch_add(1, Ordering::Relaxed) < self.arena.limit
    }

    /// Acquires the lock as a reader, performs an operation that only reads, and releases the lock.
    fn turn_as_reader(&mut self, operation: Operation) -> bool {
        let arena = self.arena;
        let timed = self.untimed == 0;
        let asked = self.time_if(timed);
        arena.lock.lock_shared();
        let phase = arena.phase.load(Ordering::Relaxed);
        let acquired = self.time_if(timed);
        self.compute(self.class.inside);
        // SAFETY: this thread holds the lock as a reader, and the operation only reads.
        unsafe { arena.data.perform(operation) };
        let released = self.time_if(timed);
        // SAFETY: this thread holds the lock as a reader.
        unsafe { arena.lock.unlock_shared() };
        // Readers know no previous holder, since they cannot write to the record.
        self.note(phase == MEASURED, &Record::default(), 0, [asked, acquired, released]);
        phase != ENDED
    }

    fn time_if(&self, timed: bool) -> u64 {
        if timed { self.arena.clock.raw() } else { 0 }
    }

    /// Writes this holder to the record. Returns the record before, and the domain.
    fn enter(&self, record: &mut Record) -> (Record, u32) {
        // SAFETY: it may be called at any time.
        let domain = unsafe { pound_domain() };
        // SAFETY: a valid field. Volatile: the read must not move to the write.
        let sections = unsafe { (&raw const record.sections).read_volatile() };
        let before = Record {
            sections,
            holder: mem::replace(&mut record.holder, self.name),
            domain: mem::replace(&mut record.domain, domain),
            released: record.released,
        };
        (before, domain)
    }

    /// Counts an acquisition after its release.
    fn note(
        &mut self,
        measured: bool,
        before: &Record,
        domain: u32,
        [asked, acquired, released]: [u64; 3],
    ) {
        let (counts, clock) = (&mut self.counts, &self.arena.clock);
        let timed = self.untimed == 0;
        self.untimed = if timed { self.arena.workload.timed } else { self.untimed } - 1;
        if !measured {
            return;
        }
        counts.acquisitions += 1;
        let handover = before.holder != 0 && before.holder != self.name;
        counts.handovers += u64::from(handover);
        counts.handovers_remote += u64::from(handover && before.domain != domain);
        if !timed {
            return;
        }
        let wait = clock.delta_as_nanos(asked, acquired);
        counts.timed += 1;
        counts.wait_ns += wait;
        counts.longest_wait_ns = counts.longest_wait_ns.max(wait);
        counts.hold_ns += clock.delta_as_nanos(acquired, released);
        // Only if this thread was waiting when the lock was released; otherwise the time includes
        // its arrival.
        if handover && asked <= before.released {
            counts.timed_handovers += 1;
            counts.handover_ns += clock.delta_as_nanos(before.released, acquired);
        }
    }

    fn compute(&mut self, work: Work) {
        if work.length == 0 {
            return;
        }
        let length = vary(work.length, work.spread, &mut self.random);
        match work.unit {
            Unit::Steps => steps(length),
            Unit::Nanoseconds => {
                let (clock, start) = (&self.arena.clock, self.arena.clock.raw());
                while clock.delta_as_nanos(start, clock.raw()) < length {}
            }
        }
    }
}

/// Performs dependent steps that access no memory.
fn steps(count: u64) {
    let mut x = count;
    for _ in 0..count {
        x = black_box(
            x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407),
        );
    }
}

/// The counts of all threads, or the first error.
fn join(
    threads: Vec<ScopedJoinHandle<'_, Worked>>,
) -> Result<Vec<(ThreadCounts, Trace)>, BenchError> {
    let counts = threads
        .into_iter()
        .map(|thread| thread.join().expect("a benchmark's thread does not panic"));
    // Joins all threads before it returns an error.
    counts.collect::<Vec<_>>().into_iter().collect()
}

/// Sets the nice value of the calling thread.
fn renice(nice: i32) -> Result<(), BenchError> {
    if nice == 0 {
        return Ok(());
    }
    // SAFETY: setpriority touches no memory. On Linux 0 is the calling thread.
    let failed = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    if failed == 0 {
        Ok(())
    } else {
        error(format!("cannot set nice {nice}: {}", std::io::Error::last_os_error()))
    }
}

/// The counts of the library's events.
fn events() -> BTreeMap<String, u64> {
    // SAFETY: any index is valid; a name is a literal of the library, or null past the
    // last.
    let name = |index| unsafe {
        let name = pound_event_name(index);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    };
    // SAFETY: as above.
    (0..).map_while(|index| Some((name(index)?, unsafe { pound_event_count(index) }))).collect()
}

fn since(before: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    events().into_iter().map(|(name, count)| (name.clone(), count - before[&name])).collect()
}

/// The CPU time of the process in nanoseconds.
fn cpu_time() -> u64 {
    // SAFETY: a timespec may be zero, and clock_gettime writes to nothing else.
    let time = unsafe {
        let mut time: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time);
        time
    };
    1_000_000_000 * time.tv_sec.unsigned_abs() + time.tv_nsec.unsigned_abs()
}

/// Voluntary and involuntary context switches of the process.
fn switches() -> (u64, u64) {
    // SAFETY: an rusage may be zero, and getrusage writes to nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    (usage.ru_nvcsw.unsigned_abs(), usage.ru_nivcsw.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock without mutual exclusion.
    struct Nothing;

    // SAFETY: none. The test expects this to be detected; its section accesses only words of the
    // record.
    unsafe impl Lock for Nothing {
        fn lock(&self) {}
        unsafe fn unlock(&self) {}
    }

    #[test]
    fn a_lock_that_does_not_exclude_is_detected() {
        let inside = Work { length: 1_000_000, unit: Unit::Nanoseconds, spread: 0.0 };
        let workload = Workload {
            name: "none".to_owned(),
            source: String::new(),
            section: poundlock_workload::Section::None,
            classes: vec![Class { inside, ..Class::default() }],
            readers: false,
            placement: poundlock_workload::Placement::Free,
            threads_per_cpu: vec![],
            timed: 1,
            seed: 1,
        };
        let job = Job {
            workload,
            lock: "nothing".to_owned(),
            threads: 8,
            limit: Limit::Acquisitions(200),
        };
        let wrong = run_under(&job, Nothing, false).expect_err("sections overlapped").to_string();
        assert!(wrong.contains("does not exclude"), "{wrong}");
    }
}
