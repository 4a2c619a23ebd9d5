// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine: simulated threads as coroutines, their memory operations, and the order of events in time.
//!
//! Promises: one thing happens at a time, in the order of simulated time, and the same for the same seed. A thread runs
//! ahead of the others only over what no other thread can see: hits of plain accesses, and computing.

use crate::arena::{Arena, STACK};
use crate::machine::{Machine, SimError, Time, error, ns};
use crate::memory::{LineId, Memory};
use crate::random::Random;
use crate::report;
use crate::system::System;
use crate::trace::{Mark, Trace};
use corosensei::stack::{Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::collections::{BinaryHeap, VecDeque};

/// A simulated thread's number.
pub(crate) type ThreadId = u32;

/// Never.
pub(crate) const NEVER: Time = Time::MAX;

/// So many events without an acquisition are a livelock, if every thread that could run has had its turns meanwhile.
const PATIENCE: u64 = 20_000_000;

/// Turns of every thread.
const TURNS: Time = 2;

/// `enum w_how`.
const W_SPIN: u32 = 0;
const W_YIELD: u32 = 1;
const W_TURN: u32 = 2;
const W_POLITE: u32 = 4;

/// What `world/user` has as SPIN_NANOSECONDS and W_SPIN_PARTS; and as W_SPINS_WHOLE, where it has 256 (see [`Luck`]).
const SPIN_NANOSECONDS: f64 = 5000.0;
const SPIN_PARTS: u32 = 16;
const SPINS_WHOLE: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A thread goes on.
    Resume,
    /// A store of a thread's buffer is at the line, or visible.
    Store,
    /// A thread has slept long enough.
    Deadline,
    /// A CPU's slice is over.
    Slice,
    /// An idle CPU looks at its queue.
    Pick,
    /// What a CPU has of its group's quota is used up.
    Quota,
    /// A group's next period begins.
    Period,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Event {
    at: Time,
    order: u64,
    what: What,
    /// The thread, the CPU or the control group.
    of: u32,
    /// It is void if the generation has changed.
    generation: u32,
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Event) -> std::cmp::Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Has the CPU, or goes on at a known time.
    Runs,
    /// Spins, and nothing that it reads changes.
    Spins,
    /// Waits until so many stores, at most, are in its buffer.
    Drains(usize),
    /// Waits for the CPU.
    Ready,
    /// Sleeps in the kernel.
    Parked,
    Done,
}

/// A store that is not visible yet. It has no value if it is in memory already: a plain one, which the compiled code
/// writes by itself, or one to the thread's own stack.
#[derive(Clone, Copy)]
struct Store {
    address: usize,
    size: u32,
    value: Option<u64>,
    line: LineId,
    /// When it will be; none until its request has come to the line.
    commit: Option<Time>,
}

#[derive(Clone, Copy, Default)]
struct Wait {
    how: u32,
    /// What is left of the spin's budget.
    left: Time,
    /// Pauses until the next look.
    next: u32,
    counted: bool,
}

/// A thread's luck with polite spins: of 16 parts it loses one for each that was in vain. Unlike in `world/user` one that pays regains
/// one part, not half of all, a whole one is less rare, each thread begins anew, and those in a queue do not learn: so all of
/// docs/fidelity.md was simulated.
#[derive(Clone, Copy, Default)]
struct Luck {
    spins: u32,
    parts_lost: u32,
}

impl Luck {
    /// How long the next one is at most: one of so many is whole.
    fn budget(&mut self) -> Time {
        self.spins += 1;
        let lost = if self.spins.is_multiple_of(SPINS_WHOLE) { 0 } else { self.parts_lost };
        ns(SPIN_NANOSECONDS) * Time::from(SPIN_PARTS - lost) / Time::from(SPIN_PARTS)
    }

    fn note(&mut self, in_vain: bool) {
        self.parts_lost =
            if in_vain { (self.parts_lost + 1).min(SPIN_PARTS - 1) } else { self.parts_lost.saturating_sub(1) };
    }
}

/// Plain loads of one line after the other.
#[derive(Clone, Copy, Default)]
struct Walk {
    /// The last one's address, in lines.
    place: usize,
    /// When the last one that missed was asked for.
    asked: Time,
}

pub(crate) struct Thread {
    pub cpu: usize,
    pub core: u16,
    pub state: State,
    pub generation: u32,
    pub resume_at: Time,
    /// Computing time that was left when it lost the CPU.
    pub rest: Time,
    /// What it waited for has come while it had no CPU.
    pub goes_on: bool,
    buffer: VecDeque<Store>,
    issued: usize,
    last_request: Time,
    /// How far it is ahead of the clock.
    ahead: Time,
    /// The line of its last load, and the line's version then.
    seen: Option<(LineId, u32)>,
    walk: Walk,
    wait: Wait,
    luck: Luck,
    pub sleeps_on: Option<(LineId, usize)>,
    /// The address of the last load.
    last_load: usize,
    pub virtual_run: Time,
    pub on_since: Time,
    pub weight: u32,
    /// The control group that limits its CPU time.
    pub group: Option<usize>,
    computing: bool,
    /// What each plain access of a section costs beside the access.
    pub step: Time,
    next_interrupt: Time,
    random: Random,
    record: usize,
    stack: usize,
    pub holds: bool,
    pub sleeps: u64,
    pub preempted: u64,
}

/// A coroutine's stack in the simulated memory.
struct SimStack {
    base: StackPointer,
    limit: StackPointer,
}

// SAFETY: the arena's stacks are mapped, aligned to pages and each used by one coroutine.
unsafe impl Stack for SimStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}

type Routine = Coroutine<*mut Engine, *mut Engine, (), SimStack>;

pub(crate) struct Engine {
    pub machine: Machine,
    pub memory: Memory,
    pub now: Time,
    pub end: Time,
    events: BinaryHeap<Event>,
    order: u64,
    pub handled: u64,
    /// The number of events at the last acquisition, and when it was.
    progress: u64,
    progress_at: Time,
    pub threads: Vec<Thread>,
    routines: Vec<Option<Routine>>,
    yielders: Vec<*const Yielder<*mut Engine, *mut Engine>>,
    pub current: ThreadId,
    pub system: System,
    pub arena: Arena,
    /// By `enum sim_block`; 0: not made yet.
    blocks: [usize; 4],
    spinners: usize,
    pub counts: Vec<u64>,
    random: Random,
    pub failure: Option<SimError>,
    pub trace: Trace,
    /// The process makes its objects before its threads start, and that takes no time.
    preparing: bool,
    /// What locks take for a domain, by CPU.
    localities: Vec<usize>,
    /// By CPU, its place on the route.
    route: Vec<usize>,
    names: Vec<(usize, usize, String)>,
}

thread_local! {
    static CURRENT: Cell<*mut Engine> = const { Cell::new(std::ptr::null_mut()) };
}

/// The engine that this host thread runs.
///
/// # Safety
/// It runs one now, and the reference is not used across a switch of coroutines but as the engine does itself: it is
/// handed over at each switch.
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
            events: BinaryHeap::new(),
            order: 0,
            handled: 0,
            progress: 0,
            progress_at: 0,
            threads: vec![],
            routines: vec![],
            yielders: vec![],
            current: 0,
            arena,
            blocks: [0; 4],
            spinners: 0,
            counts: vec![0; events],
            random: Random::new(seed, 2),
            failure: None,
            trace: Trace::new(trace),
            preparing: false,
            localities: vec![],
            route: vec![],
            names: vec![],
        };
        engine.spinners = engine.allocate(64, 64, 0);
        engine
    }

    /// Memory for the simulated process, zeroed, with its pages at `node`.
    pub fn allocate(&mut self, bytes: usize, align: usize, node: usize) -> usize {
        let address = self.arena.allocate(bytes, align);
        self.memory.place(address, bytes, node);
        address
    }

    /// Makes a thread that runs `body` on `cpu`, with a record of so many bytes, which it returns.
    pub fn spawn(&mut self, cpu: usize, weight: u32, record: usize, body: impl FnOnce() + 'static) -> usize {
        let id = self.threads.len();
        let place = self.machine.cpus[cpu];
        let node = self.machine.memory_nodes[place.node];
        let stack = self.allocate(STACK, 4096, node);
        self.call(stack, STACK, format!("the stack of thread {id}"));
        let record_bytes = record;
        let record = self.allocate(record, 4096, node);
        self.call(record, record_bytes, format!("the record of thread {id}"));
        let random = Random::new(self.random.next(), id as u64);
        self.threads.push(Thread {
            cpu,
            core: place.core as u16,
            state: State::Ready,
            generation: 0,
            resume_at: 0,
            rest: 0,
            goes_on: true,
            buffer: VecDeque::new(),
            issued: 0,
            last_request: 0,
            ahead: 0,
            seen: None,
            walk: Walk::default(),
            wait: Wait::default(),
            luck: Luck::default(),
            sleeps_on: None,
            last_load: 0,
            virtual_run: 0,
            on_since: 0,
            weight,
            group: None,
            computing: false,
            step: 0,
            next_interrupt: NEVER,
            random,
            record,
            stack,
            holds: false,
            sleeps: 0,
            preempted: 0,
        });
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

    /// Has C code of the process do something before there are threads.
    pub fn prepare<R>(&mut self, what: impl FnOnce() -> R) -> R {
        self.preparing = true;
        CURRENT.set(self);
        let result = what();
        CURRENT.set(std::ptr::null_mut());
        self.preparing = false;
        result
    }

    /// What reports call the memory from `address` on.
    pub fn call(&mut self, address: usize, bytes: usize, name: String) {
        self.names.push((address, bytes, name));
    }

    pub fn name_of(&self, address: usize) -> String {
        let found = self.names.iter().find(|(at, bytes, _)| (*at..at + bytes).contains(&address));
        found.map_or(format!("{address:#x}"), |(at, _, name)| format!("{name}+{:#x}", address - at))
    }

    // ---- The loop ----

    /// Runs all threads until they are done, or until `end`.
    pub fn run(&mut self, end: Time, jitter: Time) -> Result<(), SimError> {
        self.end = end;
        CURRENT.set(self);
        for cpu in 0..self.machine.cpus.len() {
            let delay = (self.random.unit() * jitter as f64) as Time;
            self.start_cpu(cpu, delay);
        }
        for thread in 0..self.threads.len() {
            self.draw_interrupt(thread as ThreadId);
        }
        while let Some(event) = self.events.pop() {
            if event.at > end || self.failure.is_some() {
                break;
            }
            self.now = event.at;
            self.handled += 1;
            if self.failure.is_none() && self.handled - self.progress > PATIENCE && self.all_have_run() {
                self.failure = Some(report::stuck(self, "livelock: no thread has got the lock for long"));
            }
            self.handle(event);
        }
        let alive = self.threads.iter().any(|thread| thread.state != State::Done);
        if self.failure.is_none() && self.events.is_empty() && alive {
            self.failure = Some(report::stuck(self, "deadlock: nothing can happen any more"));
        }
        for routine in self.routines.iter_mut().flatten() {
            // SAFETY: their frames are C's and the body's, which own nothing that must be dropped.
            unsafe { routine.force_reset() };
        }
        CURRENT.set(std::ptr::null_mut());
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Whether every thread that could has had its turns since the last acquisition.
    fn all_have_run(&self) -> bool {
        self.now - self.progress_at > TURNS * self.longest_round()
    }

    fn handle(&mut self, event: Event) {
        let thread = || event.of as usize;
        match event.what {
            What::Resume => {
                let thread = &self.threads[thread()];
                if thread.generation == event.generation && thread.state == State::Runs {
                    self.switch_to(event.of);
                }
            }
            What::Store => self.store_event(event.of),
            What::Deadline => {
                let thread = &mut self.threads[thread()];
                if thread.generation == event.generation && thread.state == State::Spins {
                    thread.state = State::Runs;
                    self.stop_sleeping(event.of);
                    self.switch_to(event.of);
                } else if thread.generation == event.generation && thread.state == State::Parked {
                    self.sleep_over(event.of);
                }
            }
            What::Slice => self.slice_over(event.of as usize, event.generation),
            What::Pick => self.pick_event(event.of as usize),
            What::Quota => self.quota_over(event.of as usize, event.generation),
            What::Period => self.period_begins(event.of as usize),
        }
    }

    pub fn schedule(&mut self, at: Time, what: What, of: u32, generation: u32) {
        self.order += 1;
        self.events.push(Event { at, order: self.order, what, of, generation });
    }

    fn switch_to(&mut self, id: ThreadId) {
        self.current = id;
        let mut routine = self.routines[id as usize].take().expect("a thread that runs has its coroutine");
        let own: *mut Engine = self;
        let ended = matches!(routine.resume(own), CoroutineResult::Return(()));
        self.routines[id as usize] = (!ended).then_some(routine);
        if ended {
            self.threads[id as usize].state = State::Done;
            self.leave_cpu(id);
        }
    }

    /// Gives the host's CPU to the engine until the thread goes on.
    pub fn suspend(&mut self) {
        let yielder = self.yielders[self.current as usize];
        let own: *mut Engine = self;
        // SAFETY: the coroutine that runs now has set it, and is alive.
        unsafe { (*yielder).suspend(own) };
    }

    pub fn me(&mut self) -> &mut Thread {
        &mut self.threads[self.current as usize]
    }

    // ---- Time ----

    /// Lets time pass for the current thread. Other threads run meanwhile.
    pub fn advance(&mut self, time: Time) {
        let at = self.now + time;
        let alone = self.events.peek().is_none_or(|next| next.at > at);
        if alone && at <= self.end && self.handled - self.progress <= PATIENCE {
            self.handled += 1;
            self.now = at;
            return;
        }
        let thread = self.me();
        thread.resume_at = at;
        thread.state = State::Runs;
        let generation = thread.generation;
        self.schedule(at, What::Resume, self.current, generation);
        self.suspend();
    }

    /// Catches up with what the thread has run ahead.
    pub fn sync(&mut self) {
        let now = self.now;
        let thread = self.me();
        if thread.ahead == 0 {
            return;
        }
        let mut time = std::mem::take(&mut thread.ahead);
        if now + time >= thread.next_interrupt {
            time += self.interrupt();
        }
        self.me().computing = true;
        self.advance(time);
        self.me().computing = false;
    }

    /// As long as the machine's interrupts take; and when the thread's next one comes.
    fn interrupt(&mut self) -> Time {
        self.draw_interrupt(self.current);
        let usual = self.machine.interrupt as f64;
        (usual * (0.5 + self.me().random.unit())) as Time
    }

    fn draw_interrupt(&mut self, id: ThreadId) {
        let (now, every) = (self.now, self.machine.interrupt_every);
        let thread = &mut self.threads[id as usize];
        let draw = -(1.0 - thread.random.unit()).ln() * every as f64;
        thread.next_interrupt = if every == 0 { NEVER } else { now + draw as Time };
    }

    /// How much longer the core takes for everything, by its speed and its sibling's work.
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

    /// Takes time that nobody else can see.
    fn spend(&mut self, time: Time) {
        let slowness = self.slowness();
        self.me().ahead += (time as f64 * slowness) as Time;
    }

    /// Computes for so long, at the machine's usual speed.
    pub fn compute(&mut self, nanoseconds: f64) {
        self.spend(ns(nanoseconds));
        self.sync();
    }

    /// Lets so much time pass by the clock, whatever the core's speed.
    pub fn pass(&mut self, nanoseconds: f64) {
        self.me().ahead += ns(nanoseconds);
        self.sync();
    }

    // ---- Plain accesses ----

    /// A plain access of `size` bytes; the value is the compiled code's to read or write.
    pub fn plain(&mut self, address: usize, size: usize, write: bool) {
        if self.preparing {
            return;
        }
        let step = self.me().step;
        if !self.memory.holds(address) {
            let hit = self.machine.hit;
            self.spend(hit + step);
            return;
        }
        let last = (address + size.max(1) - 1) & !63;
        let mut at = address & !63;
        while at <= last {
            self.plain_line(at.max(address), write, step);
            at += 64;
        }
    }

    fn plain_line(&mut self, address: usize, write: bool, step: Time) {
        self.memory.traffic.operations += 1;
        let line = self.memory.line(&self.machine, address);
        if write {
            self.plain_store(address, line);
        } else {
            self.plain_load(address, line);
        }
        if step > 0 {
            self.spend(step);
        }
    }

    fn plain_load(&mut self, address: usize, line: LineId) {
        let core = self.me().core;
        let place = address / 64;
        let streams = place == self.me().walk.place + 1;
        if place != self.me().walk.place {
            self.me().walk.place = place;
            if streams {
                self.prefetch(address);
            }
        }
        let buffered = self.me().buffer.iter().any(|store| store.line == line);
        if buffered || self.memory.readable(line, core) {
            let ready = self.now + self.me().ahead;
            let filled = self.memory.filled(line, core);
            if !buffered && filled > ready {
                self.me().ahead += filled - ready;
            }
            self.memory.traffic.hits += 1;
            let hit = self.machine.hit;
            self.spend(hit);
            return;
        }
        self.sync();
        let began = self.now;
        // A walk's second line was asked for while the first one was still on its way.
        let credit = if streams { began - self.me().walk.asked.min(began) } else { 0 };
        self.me().walk.asked = began;
        self.fetch(line, address, 0, credit);
    }

    /// The lines of the page behind one that a walk has come to: the core asks for them before they are needed.
    fn prefetch(&mut self, address: usize) {
        self.sync();
        for next in
            (1..=self.machine.stream as usize).map(|k| address + 64 * k).take_while(|next| next >> 12 == address >> 12)
        {
            self.ask_for(next);
        }
    }

    /// A hint of the lock's: the line is asked for, and nobody waits for it.
    pub fn ask(&mut self, address: usize) {
        if self.preparing || !self.memory.holds(address) {
            return;
        }
        self.sync();
        self.ask_for(address);
    }

    /// Asks for a line that somebody has accessed before.
    fn ask_for(&mut self, address: usize) {
        let Some(line) = self.memory.known(address) else { return };
        let core = self.me().core;
        if !self.memory.readable(line, core) {
            let travel = self.memory.travel(&self.machine, line, core);
            self.memory.read(&self.machine, line, core, self.now, travel);
        }
    }

    fn plain_store(&mut self, address: usize, line: LineId) {
        let core = self.me().core;
        let now = self.now;
        let empty = self.me().buffer.is_empty();
        if empty && self.memory.writable(line, core) && self.memory.filled(line, core) <= now + self.me().ahead {
            self.memory.traffic.hits += 1;
            self.memory.wrote(line, self.current);
            let store = self.machine.store;
            self.spend(store);
            return;
        }
        let merges = self.me().buffer.back().is_some_and(|last| last.line == line && last.value.is_none());
        if merges {
            self.memory.traffic.hits += 1;
        } else {
            self.push_store(Store { address, size: 0, value: None, line, commit: None });
        }
        let store = self.machine.store;
        self.spend(store);
    }

    // ---- The store buffer ----

    fn push_store(&mut self, store: Store) {
        let room = self.machine.store_buffer;
        if self.me().buffer.len() >= room {
            self.sync();
            self.drain_to(room - 1);
        }
        let core = self.me().core;
        let owned = self.memory.writable(store.line, core);
        let travel = if owned { 0 } else { self.memory.travel(&self.machine, store.line, core) };
        let ready = self.now + self.me().ahead + self.machine.store;
        let thread = self.me();
        let at = (ready + travel).max(thread.last_request);
        thread.last_request = at;
        thread.buffer.push_back(store);
        self.schedule(at, What::Store, self.current, 0);
    }

    /// Waits until there are at most so many stores in the buffer.
    fn drain_to(&mut self, most: usize) {
        if self.me().buffer.len() <= most {
            return;
        }
        let thread = self.me();
        thread.state = State::Drains(most);
        thread.goes_on = false;
        self.suspend();
    }

    fn drain(&mut self) {
        self.sync();
        self.drain_to(0);
    }

    /// A store's request has come to its line; or its turn to become visible.
    fn store_event(&mut self, id: ThreadId) {
        let thread = &self.threads[id as usize];
        let first = thread.buffer.front().and_then(|store| store.commit);
        if first.is_some_and(|commit| commit <= self.now) {
            self.commit(id);
            return;
        }
        let (core, at) = (thread.core, thread.issued);
        let Some(store) = thread.buffer.get(at).copied() else { return };
        let before = at.checked_sub(1).map_or(0, |before| thread.buffer[before].commit.unwrap_or(0));
        let line = store.line;
        let done = if self.memory.writable(line, core) {
            self.now.max(self.memory.filled(line, core))
        } else if self.memory.lingers(line, core, self.now) && before <= self.now {
            self.now
        } else {
            let travelled = self.memory.travel(&self.machine, line, core);
            self.own(line, core, travelled).done
        };
        let commit = done.max(before);
        if self.memory.writable(line, core) {
            self.memory.hold(line, commit);
        }
        let thread = &mut self.threads[id as usize];
        thread.buffer[at].commit = Some(commit);
        thread.issued += 1;
        self.schedule(commit, What::Store, id, 0);
    }

    fn commit(&mut self, id: ThreadId) {
        let thread = &mut self.threads[id as usize];
        let store = thread.buffer.pop_front().expect("it is there");
        thread.issued -= 1;
        let core = thread.core;
        if let Some(value) = store.value {
            self.arena.write(store.address, store.size, value);
        }
        self.written(store.line, id, core);
        let thread = &mut self.threads[id as usize];
        if let State::Drains(most) = thread.state
            && thread.buffer.len() <= most
        {
            thread.goes_on = true;
            if self.system.running(thread.cpu) == Some(id) {
                thread.state = State::Runs;
                thread.resume_at = self.now;
                let generation = thread.generation;
                self.schedule(self.now, What::Resume, id, generation);
            }
        }
    }

    /// A write has become visible: threads of the same core that wait for it have seen no transfer.
    fn written(&mut self, line: LineId, id: ThreadId, core: u16) {
        self.memory.wrote(line, id);
        if self.memory.has_sleepers(line) {
            let at = self.now + self.machine.sibling(core);
            self.wake_sleepers(line, at, core);
        }
    }

    // ---- Lines ----

    /// Makes `core` the owner, and wakes who slept on the line.
    fn own(&mut self, line: LineId, core: u16, travelled: Time) -> crate::memory::Owned {
        let owned = self.memory.own(&self.machine, line, core, self.now, travelled);
        if self.memory.has_sleepers(line) {
            self.wake_sleepers(line, owned.began, core);
        }
        owned
    }

    fn wake_sleepers(&mut self, line: LineId, from: Time, by: u16) {
        for id in self.memory.sleepers(line) {
            let thread = &self.threads[id as usize];
            if thread.state != State::Spins {
                continue;
            }
            let (to, generation) = (thread.core, thread.generation);
            let invalidation = if to == by { 0 } else { self.memory.probe(&self.machine, line, to, by) };
            let period = (self.machine.pause + self.machine.hit) as f64;
            let phase = (self.threads[id as usize].random.unit() * period) as Time;
            let at = from.max(self.now) + invalidation + phase;
            let thread = &mut self.threads[id as usize];
            thread.state = State::Runs;
            thread.resume_at = at;
            thread.sleeps_on = None;
            self.schedule(at, What::Resume, id, generation);
        }
    }

    // ---- Atomic accesses ----

    pub fn load(&mut self, address: usize, size: u32) -> u64 {
        if self.preparing {
            return self.arena.read(address, size);
        }
        self.sync();
        self.me().last_load = address;
        if !self.memory.holds(address) {
            self.advance(self.machine.hit);
            return self.arena.read(address, size);
        }
        self.memory.traffic.operations += 1;
        if let Some(value) = self.forwarded(address, size) {
            return value;
        }
        let line = self.memory.line(&self.machine, address);
        let core = self.me().core;
        let readable = self.memory.readable(line, core);
        if readable && self.memory.filled(line, core) > self.now {
            self.advance(self.memory.filled(line, core) - self.now);
        }
        if readable || self.memory.lingers(line, core, self.now) {
            self.memory.traffic.hits += 1;
            self.meet_sibling(line, core);
            let value = self.arena.read(address, size);
            self.me().seen = readable.then_some((line, self.memory.version(line)));
            let hit = (self.machine.hit as f64 * self.slowness()) as Time;
            self.advance(hit);
            return value;
        }
        let (value, version) = self.fetch(line, address, size, 0);
        self.me().seen = Some((line, version));
        value
    }

    /// Brings the line and returns the value (of `size` bytes, or none) and version that it had when it was sent.
    /// `credit`: for so long it has been asked for already.
    fn fetch(&mut self, line: LineId, address: usize, size: u32, credit: Time) -> (u64, u32) {
        let core = self.me().core;
        let travel = self.memory.travel(&self.machine, line, core);
        self.advance(travel.saturating_sub(credit));
        // A sibling may have brought it meanwhile.
        let (captured, done) = if self.memory.readable(line, core) {
            let filled = self.memory.filled(line, core).max(self.now);
            (filled, filled)
        } else {
            let fetched = self.memory.read(&self.machine, line, core, self.now, travel.max(credit));
            (fetched.captured.max(self.now), fetched.done)
        };
        self.advance(captured - self.now);
        let sent = (self.arena.read(address, size), self.memory.version(line));
        self.advance(done.saturating_sub(self.now));
        sent
    }

    /// The value of a store of the thread's own that is not visible yet.
    fn forwarded(&mut self, address: usize, size: u32) -> Option<u64> {
        let stores = &self.threads[self.current as usize].buffer;
        let overlaps = |store: &&Store| {
            let behind = address < store.address + store.size as usize;
            store.value.is_some() && store.address < address + size as usize && behind
        };
        let Some(same) = stores.iter().rev().find(overlaps).copied() else {
            let line = self.memory.known(address);
            if !stores.iter().any(|store| Some(store.line) == line) {
                return None;
            }
            // The line is wanted for a store to another word of it, or for one whose value is there.
            self.me().seen = None;
            self.advance(self.machine.hit);
            return Some(self.arena.read(address, size));
        };
        if same.address == address && same.size == size {
            let value = same.value;
            self.me().seen = None;
            self.advance(self.machine.hit);
            return value;
        }
        // Objects are accessed at one size; but memory may have been another object's before.
        self.drain_to(0);
        None
    }

    pub fn store(&mut self, address: usize, size: u32, value: u64) {
        if self.preparing {
            return self.arena.write(address, size, value);
        }
        self.sync();
        if !self.memory.holds(address) {
            self.arena.write(address, size, value);
            return;
        }
        self.memory.traffic.operations += 1;
        let line = self.memory.line(&self.machine, address);
        let core = self.me().core;
        let empty = self.me().buffer.is_empty();
        let owned = self.memory.writable(line, core) && self.memory.filled(line, core) <= self.now;
        if empty && (owned || self.memory.lingers(line, core, self.now)) {
            self.memory.traffic.hits += 1;
            self.arena.write(address, size, value);
            self.written(line, self.current, core);
        } else {
            // A frame may be gone before its last stores are visible, and the host's own pushes are not behind them: what
            // a thread stores to its own stack is there at once, and only its time is the buffer's.
            let own = (self.me().stack..self.me().stack + STACK).contains(&address);
            if own {
                self.arena.write(address, size, value);
            }
            self.push_store(Store { address, size, value: (!own).then_some(value), line, commit: None });
        }
        let store = (self.machine.store as f64 * self.slowness()) as Time;
        self.advance(store);
    }

    pub fn fence(&mut self) {
        self.drain();
        self.advance(self.machine.atomic);
    }

    /// A read-modify-write: `change` returns what to write, if anything.
    pub fn update(&mut self, address: usize, size: u32, change: impl FnOnce(u64) -> Option<u64>) -> u64 {
        if self.preparing || !self.memory.holds(address) {
            let old = self.arena.read(address, size);
            if let Some(value) = change(old) {
                self.arena.write(address, size, value);
            }
            return old;
        }
        self.drain();
        self.memory.traffic.operations += 1;
        let line = self.memory.line(&self.machine, address);
        let core = self.me().core;
        self.me().seen = None;
        let mut travel = 0;
        if !self.may_write(line, core) && !self.memory.writable(line, core) {
            travel = self.memory.travel(&self.machine, line, core);
            self.advance(travel);
        }
        let atomic = (self.machine.atomic as f64 * self.slowness()) as Time;
        if self.may_write(line, core) {
            self.memory.traffic.hits += 1;
            self.meet_sibling(line, core);
            let old = self.arena.read(address, size);
            if let Some(value) = change(old) {
                self.arena.write(address, size, value);
                self.written(line, self.current, core);
            }
            if self.memory.writable(line, core) {
                self.memory.hold(line, self.now + atomic);
            }
            self.advance(atomic);
            return old;
        }
        let done = if self.memory.writable(line, core) {
            self.memory.filled(line, core).max(self.now)
        } else {
            self.own(line, core, travel).done
        };
        self.memory.hold(line, done + atomic);
        self.advance(done + atomic - self.now);
        let old = self.arena.read(address, size);
        if let Some(value) = change(old) {
            self.arena.write(address, size, value);
            self.written(line, self.current, core);
        }
        old
    }

    /// What a sibling has just written takes a while to be seen, in the cache that both share.
    fn meet_sibling(&mut self, line: LineId, core: u16) {
        if self.memory.meets_sibling(line, core, self.current) {
            self.advance(self.machine.sibling(core));
        }
    }

    fn may_write(&self, line: LineId, core: u16) -> bool {
        (self.memory.writable(line, core) && self.memory.filled(line, core) <= self.now)
            || self.memory.lingers(line, core, self.now)
    }

    // ---- Waiting ----

    pub fn wait_begin(&mut self, how: u32) {
        let mut wait = Wait { how, left: 0, next: 1, counted: false };
        let most = self.machine.cpus.len() as u64 - 1;
        if how != W_SPIN && self.load(self.spinners, 4) < most {
            self.update(self.spinners, 4, |count| Some(count + 1));
            wait.left = if how == W_POLITE { self.me().luck.budget() } else { ns(SPIN_NANOSECONDS) };
            wait.counted = true;
            // The word that is waited for was read before.
            self.me().seen = None;
        }
        self.me().wait = wait;
    }

    /// The wait is over, or its budget is spent.
    pub fn wait_end(&mut self, in_vain: bool) {
        if std::mem::take(&mut self.me().wait.counted) {
            self.update(self.spinners, 4, |count| Some(count - 1));
            if self.me().wait.how == W_POLITE {
                self.me().luck.note(in_vain);
            }
        }
    }

    /// Whether to read again.
    pub fn wait_again(&mut self, deadline: Time) -> bool {
        self.sync();
        let wait = self.me().wait;
        if wait.left > 0 {
            let began = self.now;
            if wait.how == W_POLITE {
                self.advance(self.machine.pause * Time::from(wait.next));
            } else {
                self.spin(self.now + wait.left);
            }
            let took = (self.now - began).max(1);
            let wait = &mut self.me().wait;
            wait.left = wait.left.saturating_sub(took);
            if wait.how == W_POLITE {
                wait.next += wait.next / 2 + 1;
            }
            return true;
        }
        self.wait_end(true);
        match wait.how {
            W_SPIN => self.spin(deadline),
            W_YIELD | W_TURN => self.yield_cpu(),
            _ => return false,
        }
        self.now < deadline
    }

    /// A pause; or, if what was read has not changed since, a sleep until it does or `limit` has come.
    fn spin(&mut self, limit: Time) {
        let core = self.me().core;
        let seen = self.me().seen;
        let same = seen.filter(|(line, version)| {
            self.memory.readable(*line, core)
                && self.memory.version(*line) == *version
                && self.me_buffer_is_clear(*line)
        });
        let Some((line, _)) = same.filter(|_| limit > self.now + self.machine.pause) else {
            self.advance(self.machine.pause);
            return;
        };
        self.memory.sleep(line, self.current);
        let thread = self.me();
        thread.state = State::Spins;
        thread.sleeps_on = Some((line, thread.last_load));
        thread.generation += 1;
        thread.resume_at = NEVER;
        let generation = thread.generation;
        if limit != NEVER {
            self.schedule(limit, What::Deadline, self.current, generation);
        }
        self.suspend();
    }

    fn me_buffer_is_clear(&self, line: LineId) -> bool {
        self.threads[self.current as usize].buffer.iter().all(|store| store.line != line)
    }

    /// The thread looks at its line no more.
    pub fn stop_sleeping(&mut self, id: ThreadId) {
        if let Some((line, _)) = self.threads[id as usize].sleeps_on.take() {
            self.memory.forget(line, id);
        }
    }

    pub fn pause_for(&mut self, pauses: u32) {
        self.sync();
        let pause = self.machine.pause;
        self.me().computing = true;
        self.advance(pause * Time::from(pauses));
        self.me().computing = false;
    }

    /// Before a system call: the stores so far are visible, and it takes its time.
    pub fn enter_system(&mut self) {
        self.drain();
        self.advance(self.machine.syscall);
    }

    // ---- Where, when and who ----

    pub fn clock(&mut self) -> u64 {
        let clock = self.machine.clock;
        self.me().ahead += clock;
        self.sync();
        self.now / 1000
    }

    /// Asking costs what reading the thread's area and a table cost.
    pub fn place(&mut self) -> crate::machine::Cpu {
        let hit = self.machine.hit;
        self.spend(2 * hit);
        self.machine.cpus[self.threads[self.current as usize].cpu]
    }

    /// What locks take for a domain, from 0 on.
    pub fn locality(&mut self) -> usize {
        self.place();
        self.localities[self.threads[self.current as usize].cpu]
    }

    pub fn set_localities(&mut self, localities: Vec<usize>, route: Vec<usize>) {
        self.localities = localities;
        self.route = route;
    }

    pub fn locality_count(&self) -> usize {
        self.localities.iter().max().map_or(1, |last| last + 1)
    }

    /// How many sockets there are, if they are fewer than the domains, and more than one.
    pub fn locality_parents(&self) -> usize {
        let packages = self.machine.cpus.iter().map(|cpu| cpu.package).max().map_or(1, |last| last + 1);
        if packages > 1 && packages < self.locality_count() { packages } else { 0 }
    }

    /// The socket that a domain is in.
    pub fn locality_parent(&mut self, domain: usize) -> usize {
        self.spend(self.machine.hit);
        let inside = self.localities.iter().position(|other| *other == domain);
        inside.map_or(0, |cpu| self.machine.cpus[cpu].package)
    }

    pub fn route_position(&mut self) -> usize {
        self.place();
        self.route[self.threads[self.current as usize].cpu]
    }

    pub fn record(&mut self) -> usize {
        self.me().record
    }

    pub fn record_of(&self, thread: ThreadId) -> usize {
        self.threads[thread as usize].record
    }

    pub fn event(&mut self, event: usize) {
        self.counts[event] += 1;
        let (now, thread) = (self.now + self.me().ahead, self.current);
        self.trace.note(now, thread, Mark::Event(event as u32));
    }

    /// One of the process's blocks (`enum sim_block`): made by who asks first.
    pub fn block(&mut self, which: usize, bytes: usize) -> usize {
        if self.blocks[which] == 0 {
            self.blocks[which] = self.allocate(bytes, 4096, 0);
        }
        self.blocks[which]
    }

    // ---- What the workload tells ----

    /// The thread asks for the lock.
    pub fn asks(&mut self) {
        self.sync();
        let (now, thread) = (self.now, self.current);
        self.trace.note(now, thread, Mark::Asks);
    }

    /// The thread has the lock.
    pub fn acquired(&mut self) {
        self.sync();
        self.progress = self.handled;
        self.progress_at = self.now;
        self.me().holds = true;
        let (now, thread) = (self.now, self.current);
        self.trace.note(now, thread, Mark::Acquired);
    }

    /// The thread is about to release it.
    pub fn releases(&mut self) {
        self.sync();
        self.me().holds = false;
        let (now, thread) = (self.now, self.current);
        self.trace.note(now, thread, Mark::Releases);
    }

    pub fn fail(&mut self, what: &str) -> ! {
        self.failure = error::<()>(format!("thread {}: {what}", self.current)).err();
        loop {
            self.me().state = State::Parked;
            self.suspend();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const MACHINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/graviton3.toml");

    fn with_threads(bodies: Vec<fn(usize)>) -> Result<(), SimError> {
        let machine = Machine::read(Path::new(MACHINE)).expect("a machine");
        let mut made = Box::new(Engine::new(machine, Arena::map()?, 1, 0, false));
        let word = made.allocate(64, 64, 0);
        made.call(word, 64, "the word".to_owned());
        for (cpu, body) in bodies.into_iter().enumerate() {
            made.spawn(cpu, 1024, 64, move || body(word));
        }
        made.run(NEVER, 1000)
    }

    /// What the macro w_wait_acquire() of world.h does.
    fn await_value(word: usize, value: u64, how: u32) {
        // SAFETY: only threads of the engine call this.
        let sim = || unsafe { engine() };
        if sim().load(word, 4) != value {
            sim().wait_begin(how);
            while sim().wait_again(NEVER) && sim().load(word, 4) != value {}
            sim().wait_end(false);
        }
    }

    /// The engine.
    fn sim<'a>() -> &'a mut Engine {
        // SAFETY: as above.
        unsafe { engine() }
    }

    #[test]
    fn a_deadlock_is_told_with_who_waits_for_what() {
        let bodies: Vec<fn(usize)> = vec![|word| await_value(word, 2, W_SPIN), |word| sim().store(word, 4, 1)];
        let message = with_threads(bodies).expect_err("nobody writes 2").to_string();
        assert!(message.starts_with("deadlock"), "{message}");
        assert!(
            message.contains("thread 0 on CPU 0 spins on the word+0x0 (= 1): thread 1 wrote there last"),
            "{message}"
        );
        assert_eq!(message.lines().count(), 2, "the other one has ended: {message}");
    }

    #[test]
    fn a_lost_wake_up_is_told() {
        // The waker looks for sleepers before the store that it should tell of, and nobody is there yet.
        let bodies: Vec<fn(usize)> = vec![
            |word| {
                sim().pass(5_000.0);
                sim().park(word, 0, NEVER);
            },
            |word| sim().unpark(word, false),
        ];
        let message = with_threads(bodies).expect_err("it sleeps for ever").to_string();
        assert!(
            message.contains("thread 0 on CPU 0 sleeps on the word+0x0 (= 0): nobody has written there"),
            "{message}"
        );
    }

    #[test]
    fn polite_spins_in_vain_grow_shorter_and_others_long_again() {
        let bodies: Vec<fn(usize)> = vec![|word| {
            // How long a thread waits before it would sleep for a word that nobody writes.
            let spin = || {
                let began = sim().now;
                await_value(word, 2, W_POLITE);
                sim().now - began
            };
            let (first, second) = (spin(), spin());
            assert!(second < first && first < ns(2.0 * SPIN_NANOSECONDS), "{first}, then {second}");
            let last = (0..SPINS_WHOLE - 3).fold(second, |_, _| spin());
            assert!(last < first / 4, "{first}, at last {last}");
            assert!(spin() > first * 3 / 4, "one of so many is whole");
            for _ in 0..SPINS_WHOLE {
                sim().wait_begin(W_POLITE);
                sim().wait_end(false);
            }
            let again = spin();
            assert!(again > first * 3 / 4, "{again} after luck");
        }];
        with_threads(bodies).expect("it comes to its end");
    }

    #[test]
    fn a_livelock_is_told() {
        let bodies: Vec<fn(usize)> = vec![|word| await_value(word, 2, W_YIELD), |word| await_value(word, 2, W_YIELD)];
        let message = with_threads(bodies).expect_err("nobody writes 2").to_string();
        assert!(message.starts_with("livelock"), "{message}");
    }

    #[test]
    fn who_wakes_all_wakes_those_that_sleep_now() {
        // What it wakes sleeps again: until the store, that comes when it is done with waking.
        fn sleeper(word: usize) {
            while sim().load(word, 4) == 0 {
                sim().park(word, 0, NEVER);
            }
        }
        let bodies: Vec<fn(usize)> = vec![sleeper, sleeper, sleeper, sleeper, sleeper, |word| {
            sim().pass(50_000.0);
            sim().unpark(word, true);
            sim().store(word, 4, 1);
            sim().unpark(word, true);
        }];
        with_threads(bodies).expect("it comes to its end");
    }

    #[test]
    fn a_sleeper_with_a_deadline_wakes_by_itself() {
        let bodies: Vec<fn(usize)> = vec![|word| {
            sim().park(word, 0, ns(20_000.0));
            assert!(sim().now >= ns(20_000.0), "it is {}", sim().now);
        }];
        with_threads(bodies).expect("nobody else wakes it");
    }

    #[test]
    fn a_futex_looks_again_before_it_sleeps() {
        let bodies: Vec<fn(usize)> = vec![|word| sim().park(word, 0, NEVER), |word| {
            sim().store(word, 4, 1);
            sim().unpark(word, false);
        }];
        with_threads(bodies).expect("the store is seen, or the wake-up comes");
    }

    #[test]
    fn a_waiter_that_sleeps_in_the_simulator_sees_every_store() {
        let bodies: Vec<fn(usize)> = vec![
            |word| {
                (0..1000).for_each(|turn| {
                    await_value(word, 2 * turn, W_SPIN);
                    sim().store(word, 4, 2 * turn + 1);
                })
            },
            |word| {
                (0..1000).for_each(|turn| {
                    await_value(word, 2 * turn + 1, W_SPIN);
                    sim().store(word, 4, 2 * turn + 2);
                })
            },
        ];
        with_threads(bodies).expect("both come to their end");
    }
}
