// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: simulated threads as coroutines, and the order of events in time.
//!
//! Promises: one event at a time, in the order of simulated time; the same seed gives the same run.
//! A thread runs ahead of the clock only over what no other thread can observe: plain accesses that
//! hit, and computing.
//!
//! [`Engine`] owns the parts, each in a module without knowledge of the others: [`agenda`],
//! [`store_buffer`], [`spins`], [`places`], [`system`], [`thread`], [`crate::memory`]. What needs
//! several of them is a method of the engine, in the module of its subject: `accesses`, `atomics`,
//! `waiting`, `scheduler`, `control_groups`, `futexes`, `stuck`.

mod accesses;
mod agenda;
mod atomics;
mod control_groups;
mod futexes;
mod places;
mod scheduler;
mod spins;
mod store_buffer;
mod stuck;
mod system;
#[cfg(test)]
mod tests;
mod thread;
mod waiting;

use crate::arena::{Arena, STACK};
use crate::error::{SimError, error};
use crate::ids::ThreadId;
use crate::machine::{Cpu, Machine};
use crate::memory::Memory;
use crate::random::Random;
use crate::time::{NEVER, Time, ns};
use crate::trace::{Mark, Trace};
use agenda::{Action, Agenda, Event};
use corosensei::stack::{Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use places::Places;
use spins::Histories;
use std::cell::Cell;
use system::System;
use thread::{State, Thread};

/// This many events without an acquisition are a livelock, provided that every thread had its turns
/// meanwhile.
const PATIENCE: u64 = 20_000_000;

/// The number of turns.
const TURNS: Time = 2;

/// A coroutine's stack in the simulated memory.
struct SimStack {
    base: StackPointer,
    limit: StackPointer,
}

// SAFETY: the arena's stacks are mapped, aligned to pages, and each used by one coroutine.
unsafe impl Stack for SimStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}

type Routine = Coroutine<*mut Engine, *mut Engine, (), SimStack>;

/// The number of events so far, and until the last acquisition. Their difference shows a livelock.
#[derive(Default)]
struct Progress {
    events: u64,
    events_then: u64,
    at: Time,
}

impl Progress {
    fn is_overdue(&self) -> bool {
        self.events - self.events_then > PATIENCE
    }
}

pub(crate) struct Engine {
    pub machine: Machine,
    pub memory: Memory,
    pub now: Time,
    end: Time,
    agenda: Agenda,
    progress: Progress,
    pub threads: Vec<Thread>,
    routines: Vec<Option<Routine>>,
    yielders: Vec<*const Yielder<*mut Engine, *mut Engine>>,
    pub current: ThreadId,
    pub system: System,
    arena: Arena,
    /// By `enum sim_block`: addresses; 0 until first needed.
    blocks: [usize; 5],
    /// The address of the simulated process's count of spinners.
    spinners: usize,
    /// The address of its table of the threads that waited last on each CPU, by [`SEAT`].
    seats: usize,
    /// By event of `core/events.def`.
    pub counts: Vec<u64>,
    /// The spin histories of the threads that last ended a spin of each kind.
    last_histories: Histories,
    random: Random,
    failure: Option<SimError>,
    pub trace: Trace,
    /// The process creates its objects before its threads start, in no simulated time.
    preparing: bool,
    pub places: Places,
    /// Names of parts of the memory in reports: address, size, name.
    names: Vec<(usize, usize, String)>,
}

/// The bytes of a place in the table of last waiters: a line of its own.
const SEAT: usize = 64;

thread_local! {
    static CURRENT: Cell<*mut Engine> = const { Cell::new(std::ptr::null_mut()) };
}

/// The engine that this host thread runs.
///
/// # Safety
/// One runs now. The reference must not be used across a switch of coroutines.
pub(crate) unsafe fn engine<'a>() -> &'a mut Engine {
    // SAFETY: as the caller promises.
    unsafe { &mut *CURRENT.get() }
}

impl Engine {
    pub fn new(machine: Machine, arena: Arena, seed: u64, events: usize, trace: bool) -> Engine {
        let memory = Memory::new(&machine, arena.base(), arena.bytes(), Random::new(seed, 1));
        let mut engine = Engine {
            system: System::new(&machine),
            memory,
            machine,
            now: 0,
            end: NEVER,
            agenda: Agenda::default(),
            progress: Progress::default(),
            threads: vec![],
            routines: vec![],
            yielders: vec![],
            current: 0,
            arena,
            blocks: [0; 5],
            spinners: 0,
            seats: 0,
            counts: vec![0; events],
            last_histories: Histories::default(),
            random: Random::new(seed, 2),
            failure: None,
            trace: Trace::new(trace),
            preparing: false,
            places: Places::default(),
            names: vec![],
        };
        engine.spinners = engine.allocate(64, 64, 0);
        engine.seats = engine.allocate(SEAT * engine.machine.cpus.len(), 64, 0);
        engine
    }

    /// Allocates zeroed memory of the simulated process, with its pages at `node`.
    pub fn allocate(&mut self, bytes: usize, align: usize, node: usize) -> usize {
        let address = self.arena.allocate(bytes, align);
        self.memory.place(address, bytes, node);
        address
    }

    /// Makes a thread that runs `body` on `cpu`. Returns the address of its record, of `record`
    /// bytes.
    pub fn spawn(
        &mut self,
        cpu: usize,
        weight: u32,
        record: usize,
        body: impl FnOnce() + 'static,
    ) -> usize {
        let id = self.threads.len();
        let place = self.machine.cpus[cpu];
        let node = self.machine.memory_nodes[place.node];
        let stack = self.allocate(STACK, 4096, node);
        self.call(stack, STACK, format!("the stack of thread {id}"));
        let record_bytes = record;
        let record = self.allocate(record, 4096, node);
        self.call(record, record_bytes, format!("the record of thread {id}"));
        let random = Random::new(self.random.next(), id as u64);
        self.threads.push(Thread::new(cpu, place.core as u16, weight, random, record, stack));
        let (base, limit) = (StackPointer::new(stack + STACK), StackPointer::new(stack));
        let stack = SimStack { base: base.expect("not null"), limit: limit.expect("not null") };
        self.yielders.push(std::ptr::null());
        self.routines.push(Some(Coroutine::with_stack(stack, move |yielder, _: *mut Engine| {
            // SAFETY: the engine runs this coroutine now.
            unsafe { engine() }.yielders[id] = yielder;
            body();
        })));
        self.system.enqueue_new(id as ThreadId, cpu);
        record
    }

    /// Runs C code of the process before there are threads.
    pub fn prepare<R>(&mut self, what: impl FnOnce() -> R) -> R {
        self.preparing = true;
        CURRENT.set(self);
        let result = what();
        CURRENT.set(std::ptr::null_mut());
        self.preparing = false;
        result
    }

    /// Names the memory from `address` on in reports.
    pub fn call(&mut self, address: usize, bytes: usize, name: String) {
        self.names.push((address, bytes, name));
    }

    /// Finishes the process's setup: passes the machine's topology to its locks.
    pub fn set_places(&mut self, domains: Vec<usize>, route: Vec<usize>) {
        self.places = Places::new(&self.machine, domains, route);
    }

    /// How many events were handled.
    pub fn events(&self) -> u64 {
        self.progress.events
    }

    // ---- The loop ----

    /// Runs all threads until they end, or until `end`. Each CPU starts at a random time before
    /// `jitter`.
    pub fn run(&mut self, end: Time, jitter: Time) -> Result<(), SimError> {
        self.end = end;
        CURRENT.set(self);
        for cpu in 0..self.machine.cpus.len() {
            let delay = (self.random.unit() * jitter as f64) as Time;
            self.start_cpu(cpu, delay);
        }
        for thread in 0..self.threads.len() {
            self.draw_interrupt(thread as ThreadId, self.now);
        }
        while let Some(event) = self.agenda.pop() {
            if event.at > end || self.failure.is_some() {
                break;
            }
            self.now = event.at;
            self.progress.events += 1;
            if self.failure.is_none() && self.progress.is_overdue() && self.all_have_run() {
                self.failure = Some(self.stuck("livelock: no thread acquires the lock"));
            }
            self.handle(event);
        }
        let alive = self.threads.iter().any(|thread| thread.state != State::Done);
        if self.failure.is_none() && self.agenda.is_empty() && alive {
            self.failure = Some(self.stuck("deadlock: no event is left"));
        }
        for routine in self.routines.iter_mut().flatten() {
            // SAFETY: the frames are those of C code and of `body`, which own nothing that must be
            // dropped.
            unsafe { routine.force_reset() };
        }
        CURRENT.set(std::ptr::null_mut());
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Whether every runnable thread had its turns since the last acquisition.
    fn all_have_run(&self) -> bool {
        self.now - self.progress.at > TURNS * self.longest_round()
    }

    fn handle(&mut self, event: Event) {
        let thread = || event.subject as usize;
        match event.action {
            Action::Resume => {
                let thread = &self.threads[thread()];
                if thread.generation == event.generation && thread.state == State::Runs {
                    self.switch_to(event.subject);
                }
            }
            Action::Store => self.store_event(event.subject),
            Action::Deadline => {
                let thread = &mut self.threads[thread()];
                if thread.generation == event.generation && thread.state == State::Spins {
                    thread.state = State::Runs;
                    self.stop_sleeping(event.subject);
                    self.switch_to(event.subject);
                } else if thread.generation == event.generation && thread.state == State::Parked {
                    self.sleep_over(event.subject);
                }
            }
            Action::Slice => self.slice_over(event.subject as usize, event.generation),
            Action::Pick => self.pick_event(event.subject as usize),
            Action::Quota => self.quota_over(event.subject as usize, event.generation),
            Action::Period => self.period_begins(event.subject as usize),
        }
    }

    fn switch_to(&mut self, id: ThreadId) {
        self.current = id;
        let mut routine =
            self.routines[id as usize].take().expect("a thread that runs has its coroutine");
        let own: *mut Engine = self;
        let ended = matches!(routine.resume(own), CoroutineResult::Return(()));
        self.routines[id as usize] = (!ended).then_some(routine);
        if ended {
            self.threads[id as usize].state = State::Done;
            self.leave_cpu(id);
        }
    }

    /// Switches to the engine until the thread resumes.
    pub fn suspend(&mut self) {
        let yielder = self.yielders[self.current as usize];
        let own: *mut Engine = self;
        // SAFETY: the coroutine that runs now set it.
        unsafe { (*yielder).suspend(own) };
    }

    /// The current thread.
    pub fn me(&mut self) -> &mut Thread {
        &mut self.threads[self.current as usize]
    }

    // ---- Time ----

    /// Lets time pass for the current thread, while other threads run.
    pub fn advance(&mut self, time: Time) {
        let at = self.now + time;
        let alone = self.agenda.is_free_until(at);
        if alone && at <= self.end && !self.progress.is_overdue() {
            self.progress.events += 1;
            self.now = at;
            return;
        }
        let thread = self.me();
        thread.resume_at = at;
        thread.state = State::Runs;
        let generation = thread.generation;
        self.agenda.schedule(at, Action::Resume, self.current, generation);
        self.suspend();
    }

    /// Catches up with the time by which the thread has run ahead.
    pub fn sync(&mut self) {
        let now = self.now;
        let thread = self.me();
        if thread.ahead == 0 {
            return;
        }
        let mut time = std::mem::take(&mut thread.ahead);
        if now + time >= thread.next_interrupt {
            time += self.interrupt(now);
        }
        self.me().computing = true;
        self.advance(time);
        self.me().computing = false;
    }

    /// Draws the duration of an interrupt, and when the thread's next one comes after `from`.
    fn interrupt(&mut self, from: Time) -> Time {
        self.draw_interrupt(self.current, from);
        let usual = self.machine.interrupt as f64;
        (usual * (0.5 + self.me().random.unit())) as Time
    }

    fn draw_interrupt(&mut self, id: ThreadId, from: Time) {
        let every = self.machine.interrupt_every;
        let thread = &mut self.threads[id as usize];
        let draw = -(1.0 - thread.random.unit()).ln() * every as f64;
        thread.next_interrupt = if every == 0 { NEVER } else { from + draw as Time };
    }

    /// After a busy-wait, waits for the end of an interrupt that began during it. Those that have
    /// ended delayed nothing.
    fn end_interrupts(&mut self) {
        while self.me().next_interrupt <= self.now {
            let began = self.me().next_interrupt;
            let over = began + self.interrupt(began);
            if over > self.now {
                return self.advance(over - self.now);
            }
        }
    }

    /// The core's factor on all durations, from its speed and its sibling's activity.
    fn slowness(&self) -> f64 {
        let thread = &self.threads[self.current as usize];
        let place = self.machine.cpus[thread.cpu];
        let mut slowness = 1.0 / self.machine.cores[place.core].speed;
        for sibling in self.system.siblings(thread.cpu) {
            if let Some(other) = self.system.running(*sibling) {
                let other = &self.threads[other as usize];
                if other.state == State::Spins {
                    slowness *= self.machine.sibling_spins;
                } else if other.computing {
                    slowness *= self.machine.sibling_computes;
                }
            }
        }
        slowness
    }

    /// Takes time that no other thread can observe.
    fn spend(&mut self, time: Time) {
        let slowness = self.slowness();
        self.me().ahead += (time as f64 * slowness) as Time;
    }

    /// Computes for `nanoseconds` of a core of speed 1.
    pub fn compute(&mut self, nanoseconds: f64) {
        self.spend(ns(nanoseconds));
        self.sync();
    }

    /// Lets `nanoseconds` pass by the clock, whatever the core's speed.
    pub fn pass(&mut self, nanoseconds: f64) {
        self.me().ahead += ns(nanoseconds);
        self.sync();
    }

    // ---- Services for the locks ----

    /// Reads the clock, in nanoseconds.
    pub fn clock(&mut self) -> u64 {
        let clock = self.machine.clock;
        self.me().ahead += clock;
        self.sync();
        self.now / 1000
    }

    /// The current CPU. Costs a read of the thread's area and one of a table.
    pub fn place(&mut self) -> Cpu {
        let hit = self.machine.hit;
        self.spend(2 * hit);
        self.machine.cpus[self.threads[self.current as usize].cpu]
    }

    /// The locality domain of the current CPU.
    pub fn domain(&mut self) -> usize {
        self.place();
        self.places.domain(self.threads[self.current as usize].cpu)
    }

    /// The socket of a domain.
    pub fn domain_parent(&mut self, domain: usize) -> usize {
        self.spend(self.machine.hit);
        self.places.parent(domain)
    }

    pub fn route_position(&mut self) -> usize {
        self.place();
        self.places.route_position(self.threads[self.current as usize].cpu)
    }

    /// The address of the current thread's record.
    pub fn record(&mut self) -> usize {
        self.me().record
    }

    /// The address of a thread's record.
    pub fn record_of(&self, thread: ThreadId) -> usize {
        self.threads[thread as usize].record
    }

    /// Counts event number `event` of `core/events.def`.
    pub fn event(&mut self, event: usize) {
        self.counts[event] += 1;
        let (now, thread) = (self.now + self.me().ahead, self.current);
        self.trace.note(now, thread, Mark::Event(event as u32));
    }

    /// One of the process's blocks (`enum sim_block`), which the first call with a size makes; 0 if
    /// there was no such call.
    pub fn block(&mut self, which: usize, bytes: usize) -> usize {
        if self.blocks[which] == 0 && bytes > 0 {
            self.blocks[which] = self.allocate(bytes, 4096, 0);
        }
        self.blocks[which]
    }

    /// Memory at the current thread's node.
    pub fn keep(&mut self, bytes: usize) -> usize {
        let cpu = self.me().cpu;
        let node = self.machine.memory_nodes[self.machine.cpus[cpu].node];
        self.allocate(bytes, 4096, node)
    }

    // ---- Reports of the workload ----

    /// The thread is about to request the lock.
    pub fn asks(&mut self) {
        self.sync();
        let (now, thread) = (self.now, self.current);
        self.trace.note(now, thread, Mark::Asks);
    }

    /// The thread holds the lock.
    pub fn acquired(&mut self) {
        self.sync();
        self.progress.events_then = self.progress.events;
        self.progress.at = self.now;
        self.me().holds = true;
        let (now, thread) = (self.now, self.current);
        self.trace.note(now, thread, Mark::Acquired);
    }

    /// The thread is about to release the lock.
    pub fn releases(&mut self) {
        self.sync();
        self.me().holds = false;
        let (now, thread) = (self.now, self.current);
        self.trace.note(now, thread, Mark::Releases);
    }

    /// Ends the simulation with an error.
    pub fn fail(&mut self, what: &str) -> ! {
        self.failure = error::<()>(format!("thread {}: {what}", self.current)).err();
        loop {
            self.me().state = State::Parked;
            self.suspend();
        }
    }
}
