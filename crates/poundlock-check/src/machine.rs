// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine: a client's threads as coroutines, each stopped before its next operation, and what may happen next.
//!
//! Promises: what a thread does between two operations depends on nothing but what the operations returned to it, so
//! that a `Moment` (the memory, the threads' stacks and their pending operations) is all there is to an execution's
//! past. `alternatives` lists all that a thread's pending operation can do, the expected case first; `perform` does
//! one of them and runs the thread up to its next operation.

use std::collections::BTreeSet;
use std::ffi::{c_char, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::abi::{self, Caller, Client, Kind, Order, Site, Wait};
use crate::arena;
use crate::context;
use crate::memory::{Access, Coder, Fault, Memory, NOBODY, THREADS};
use crate::order;

/// The events that core/events.def can name.
pub const EVENTS: usize = 64;
const OUTCOMES: usize = 8;
/// Below the stack pointer what calls have left is wiped, so that it does not tell states apart.
const WIPED: usize = 4096;
/// What nobody can tell from having never been is dropped in each step if states are told apart, else once in so many.
const COLLECTS: u32 = 16;

/// What a thread asks for.
#[derive(Clone, Copy)]
struct Request {
    site: *const Site,
    address: usize,
    operand: u64,
    expected: u64,
    brief: bool,
    deadline: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Ready,
    Parked,
    Ended,
}

#[derive(Clone, Copy)]
struct Thread {
    sp: usize,
    status: Status,
    request: Request,
    /// Of the messages that a wait could read, those that end it.
    holds: u64,
    expired: bool,
    yielded: bool,
    /// Whether its pending operation is on an object that no other thread can reach before it goes on.
    own: bool,
    /// Where it runs.
    cpu: u32,
    stack: u128,
}

/// One thing that a thread's pending operation can do.
#[derive(Clone, Copy, Debug)]
struct Alternative {
    message: u16,
    act: Act,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// The operation as it is meant.
    Go,
    /// A wait reads past what would have ended it.
    Skip,
    /// A wait ends in vain.
    GiveUp,
    Sleep,
    /// A park returns for no reason.
    Stir,
    /// A sleeper's deadline passes.
    TimeOut,
    Choose(u32),
    Wake(u8),
}

/// A thread, and which of its alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub thread: u8,
    pub alternative: u8,
}

/// A moment of an execution.
pub struct Moment {
    state: State,
    /// What lies in the memory of the client, and on the stacks of its threads.
    image: Vec<u8>,
}

/// What the machine knows of a moment.
struct State {
    memory: Memory,
    threads: Vec<Thread>,
    outcomes: [u64; OUTCOMES],
    step: u32,
    last: u8,
    preemptions: u32,
    /// How often a park may still return for no reason.
    spurious: u32,
    /// How often the process has forked.
    generation: u32,
    /// Whether the threads that wait to be created have been.
    created: bool,
    /// How often a thread may still move to another CPU.
    moves: u32,
    /// How many reads were not of the newest message, and stores before it.
    stale: u32,
    order: order::Order,
}

impl Clone for State {
    fn clone(&self) -> Self {
        State { memory: self.memory.clone(), threads: self.threads.clone(), ..*self }
    }

    fn clone_from(&mut self, source: &Self) {
        self.memory.clone_from(&source.memory);
        self.threads.clone_from(&source.threads);
        (self.outcomes, self.step) = (source.outcomes, source.step);
        (self.last, self.preemptions, self.spurious) = (source.last, source.preemptions, source.spurious);
        (self.generation, self.created) = (source.generation, source.created);
        (self.moves, self.stale, self.order) = (source.moves, source.stale, source.order);
    }
}

/// What the explorer decides about a client, beside its steps.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The CPUs' locality domains go round so many.
    pub domains: u32,
    /// How many CPUs there are: threads go round so many.
    pub cpus: u32,
    /// How often threads move to another CPU, in an execution.
    pub moves: u32,
    /// How often a park may return for no reason, in an execution.
    pub spurious: u32,
    /// The most switches away from a thread that could have gone on; None: any number.
    pub bound: Option<u32>,
    /// The most reads of another message than the newest and stores before it; None: any number.
    pub stale: Option<u32>,
    /// Whether reads may be of old messages and stores may go before others.
    pub weak: bool,
    /// Whether states are told apart. What concerns one thread alone is then done at once; for walks that is not worth its
    /// while, and they need no codes.
    pub told_apart: bool,
    /// An exploration is left unfinished once an execution has more steps.
    pub longest: u32,
}

/// What of a client costs more states or time to keep track of, and is done only for those that need it. A machine that
/// meets more than it was made for notes it, and stops with a fault.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Fences.
    pub fences: bool,
    /// The addresses of atomic objects that are accessed plainly, too.
    pub traced: BTreeSet<usize>,
}

impl Needs {
    /// Notes that the atomic object at `address` is accessed plainly, too.
    fn trace(&mut self, address: usize, fault: &mut Option<String>) {
        self.traced.insert(address);
        fault.get_or_insert("a plain access to an atomic object".into());
    }
}

/// The locations of atomic objects, numbered as they are met; the same in all executions.
struct Places {
    small: Vec<u16>,
    large: Vec<u16>,
    known: Vec<(usize, usize)>,
    /// Of each, whether atomic accesses to it are remembered.
    traced: Vec<bool>,
}

const UNKNOWN: u16 = u16::MAX;

impl Places {
    fn new() -> Places {
        Places {
            small: vec![UNKNOWN; arena::GRANULES],
            large: vec![UNKNOWN; arena::GRANULES],
            known: Vec::new(),
            traced: Vec::new(),
        }
    }

    fn number(&mut self, address: usize, size: usize, needs: &Needs) -> usize {
        let table = if size == 4 { &mut self.small } else { &mut self.large };
        let entry = &mut table[arena::granule(address)];
        if *entry == UNKNOWN {
            *entry = self.known.len() as u16;
            self.known.push((address, size));
            self.traced.push(needs.traced.contains(&address));
        }
        *entry as usize
    }

    /// The locations that overlap the bytes from `start` to `end`.
    fn within(&self, start: usize, end: usize) -> impl Iterator<Item = usize> + '_ {
        let (first, last) = (arena::granule(start), arena::granule(end - 1));
        let small = self.small[first..=last].iter();
        let large = self.large[first.saturating_sub(1)..=last].iter();
        small.chain(large).filter(|&&number| number != UNKNOWN).map(|&number| number as usize)
    }

    /// The bytes of a location.
    fn bytes(&self, location: usize) -> Range<usize> {
        let (address, size) = self.known[location];
        address..address + size
    }
}

/// Memory of a thread's own.
struct Area {
    range: Range<usize>,
    /// Whether another thread may have, or get, a pointer to it, and whether those in it have been followed.
    reached: bool,
    followed: bool,
}

impl Area {
    fn new(range: Range<usize>) -> Area {
        Area { range, reached: false, followed: false }
    }
}

/// Marks the area that `word` may point to.
fn reach(word: u64, areas: &mut [Area]) {
    if let Some(area) = areas.iter_mut().find(|area| area.range.contains(&(word as usize))) {
        area.reached = true;
    }
}

/// Marks the areas that the words of the `size` bytes at `start` may point to.
fn reach_from(start: usize, size: usize, areas: &mut [Area]) {
    // SAFETY: no coroutine runs.
    let bytes = unsafe { arena::bytes(start, size) };
    for word in bytes.chunks_exact(8) {
        let word = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
        if arena::holds(word as usize, 1) {
            reach(word, areas);
        }
    }
}

/// The machine.
pub struct Machine {
    client: &'static Client,
    settings: Settings,
    now: State,
    places: Places,
    engine: usize,
    running: usize,
    /// Objects that waiters change as they arrive.
    queues: Vec<usize>,
    /// The most later arrivals that have passed a waiter.
    pub passed: u32,
    /// What the running operation returns.
    reply: u64,
    /// Whether the running wait is to test the reply and to answer whether it ends the wait.
    testing: bool,
    answer: bool,
    /// Outside of threads operations act at once on the newest messages.
    direct: bool,
    /// When that is.
    when: &'static str,
    /// Whether a coroutine runs.
    inside: bool,
    /// Locations that have been written plainly since the thread's last stop.
    written: Vec<usize>,
    /// Whether the step has written something plainly outside of stacks.
    wrote: bool,
    readable: Vec<u16>,
    options: Vec<Alternative>,
    code: Vec<u64>,
    coder: Coder,
    /// The threads that could go on and are not among the choices, since the bound on switches is reached: a bit each.
    pub left_out: u32,
    /// What was met so far of what needs to be kept track of.
    pub needs: Needs,
    /// What has gone wrong.
    pub fault: Option<String>,
    /// By event of core/events.def, how often it has happened.
    pub events: [u64; EVENTS],
    /// What happens, told to a person, where somebody wants to know.
    pub story: Option<Vec<String>>,
    note: String,
}

static MACHINE: AtomicPtr<Machine> = AtomicPtr::new(ptr::null_mut());

/// The machine that runs the calling C code.
fn machine() -> &'static mut Machine {
    // SAFETY: hooks are called by code that runs within `switch_to` or `directly`, which have just lent the machine and
    // do not touch it before the code returns or stops. After a stop a hook must ask for it again.
    unsafe { &mut *MACHINE.load(Ordering::Relaxed) }
}

impl Machine {
    /// The machine of `client`, at the first operation of each of its threads.
    pub fn new(client: &'static Client, settings: Settings, needs: Needs) -> Box<Machine> {
        let threads = client.threads as usize;
        assert!((1..=THREADS).contains(&threads), "a client has 1 to {THREADS} threads");
        let request = Request { site: ptr::null(), address: 0, operand: 0, expected: 0, brief: false, deadline: 0 };
        let thread = |cpu| Thread {
            sp: 0,
            status: Status::Ready,
            request,
            holds: 0,
            expired: false,
            yielded: false,
            own: false,
            cpu,
            stack: 0,
        };
        let now = State {
            memory: Memory::new(threads, needs.fences),
            threads: (0..threads as u32).map(|index| thread(index % settings.cpus)).collect(),
            outcomes: [0; OUTCOMES],
            step: 0,
            last: NOBODY,
            preemptions: 0,
            spurious: settings.spurious,
            generation: 0,
            created: false,
            moves: settings.moves,
            stale: 0,
            order: order::Order::default(),
        };
        let mut machine = Box::new(Machine {
            client,
            settings,
            now,
            places: Places::new(),
            engine: 0,
            running: 0,
            queues: Vec::new(),
            passed: 0,
            reply: 0,
            testing: false,
            answer: false,
            direct: false,
            when: "",
            written: Vec::new(),
            wrote: false,
            readable: Vec::new(),
            options: Vec::new(),
            code: Vec::new(),
            coder: Coder::default(),
            left_out: 0,
            needs,
            fault: None,
            events: [0; EVENTS],
            story: None,
            note: String::new(),
            inside: false,
        });
        machine.begin();
        machine
    }

    fn begin(&mut self) {
        for (address, size) in self.regions() {
            // SAFETY: the region lies in the mapped memory, which no coroutine uses now.
            unsafe { ptr::write_bytes(address as *mut u8, 0, size) }
        }
        self.directly(self.client.setup, "at the start");
        for thread in 0..self.now.threads.len() {
            let base = arena::stack_base(thread);
            // SAFETY: as above; the stack is the new coroutine's.
            unsafe {
                ptr::write_bytes(base as *mut u8, 0, arena::stack_top(thread) - base);
                self.now.threads[thread].sp = context::prepare(arena::stack_top(thread), run_thread);
            }
            self.resume(thread);
        }
    }

    /// Lends this machine to the hooks that the C code about to run calls.
    fn lend(&mut self) {
        MACHINE.store(self, Ordering::Relaxed);
    }

    fn directly(&mut self, function: Option<extern "C" fn()>, when: &'static str) {
        if let Some(function) = function {
            (self.direct, self.when) = (true, when);
            self.lend();
            function();
            self.direct = false;
        }
    }

    /// The memory outside of stacks that a client can write.
    fn regions(&self) -> [(usize, usize); 3] {
        let nodes = self.now.threads.len() * arena::NODES_EACH * arena::NODE_SIZE;
        [(arena::SHARED, self.client.shared), (arena::GHOST, self.client.ghost), (arena::NODES, nodes)]
    }

    /// All memory that a moment keeps.
    fn areas(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let mut stacks = [(0, 0); THREADS];
        for (thread, of) in self.now.threads.iter().enumerate() {
            stacks[thread] = (of.sp, arena::stack_top(thread) - of.sp);
        }
        self.regions().into_iter().chain(stacks.into_iter().take(self.now.threads.len()))
    }

    /// Keeps the moment in `into`.
    pub fn keep(&mut self, into: &mut Moment) {
        into.image.clear();
        for (address, size) in self.areas() {
            // SAFETY: no coroutine runs.
            into.image.extend_from_slice(unsafe { arena::bytes(address, size) });
        }
        into.state.clone_from(&self.now);
    }

    /// The present moment.
    pub fn moment(&mut self) -> Moment {
        let mut moment = Moment { state: self.now.clone(), image: Vec::new() };
        self.keep(&mut moment);
        moment
    }

    /// Goes back to `moment`.
    pub fn restore(&mut self, moment: &Moment) {
        self.now.clone_from(&moment.state);
        self.fault = None;
        let mut at = 0;
        for (address, size) in self.areas() {
            // SAFETY: no coroutine runs, and the image was made by `keep` of the same regions and stacks.
            unsafe {
                ptr::copy_nonoverlapping(moment.image[at..].as_ptr(), address as *mut u8, size);
            }
            at += size;
        }
    }

    /// Runs `thread` up to its next operation, which returns from the pending one.
    fn resume(&mut self, thread: usize) {
        self.switch_to(thread);
        if self.fault.is_some() {
            return; // the thread may not even be on its stack
        }
        for location in std::mem::take(&mut self.written) {
            let (address, size) = self.places.known[location];
            self.now.memory.set_plain_value(location, arena::load(address, size));
        }
        let sp = self.now.threads[thread].sp;
        if sp < arena::stack_base(thread) + 2 * WIPED {
            self.blame(thread, "stack overflow");
            return;
        }
        // SAFETY: no coroutine runs, and a suspended one keeps nothing below its stack pointer.
        unsafe {
            ptr::write_bytes((sp - WIPED) as *mut u8, 0, WIPED);
            if self.settings.told_apart {
                self.now.threads[thread].stack = xxh3_128(arena::bytes(sp, arena::stack_top(thread) - sp));
            }
        }
        if self.now.threads[thread].status == Status::Ready {
            if self.is_waiting(thread) {
                self.test(thread);
            }
            self.now.threads[thread].own = self.settings.told_apart && self.is_own(thread);
        }
    }

    /// Whether the pending operation of `thread` is one that cannot block, on an object of its own that no other thread
    /// can reach before it goes on: a node that it has not published yet, or that all others are done with. No word that
    /// another thread has, or could read, may point to where the object lies.
    fn is_own(&self, thread: usize) -> bool {
        let address = self.now.threads[thread].request.address;
        let site = self.site(thread);
        if site.size == 0 || matches!(site.kind, Kind::Wait | Kind::Park) {
            return false;
        }
        let stack = arena::stack_base(thread)..arena::stack_top(thread);
        let nodes = (0..arena::NODES_EACH).map(|index| arena::node(thread, index));
        let mut areas: Vec<Area> = nodes.map(|node| Area::new(node..node + arena::NODE_SIZE)).collect();
        areas.push(Area::new(stack));
        let Some(mine) = areas.iter().position(|area| area.range.contains(&address)) else { return false };
        self.reach_areas(thread, &mut areas);
        while let Some(from) = areas.iter().position(|area| area.reached && !area.followed) {
            areas[from].followed = true;
            let Range { start, end } = areas[from].range;
            let start = if arena::stack_owner(start).is_some() { self.now.threads[thread].sp } else { start };
            reach_from(start, end - start, &mut areas);
        }
        !areas[mine].reached
    }

    /// Marks those of the areas of `thread` that others can reach.
    fn reach_areas(&self, thread: usize, areas: &mut [Area]) {
        let [shared, ghost, _] = self.regions();
        reach_from(shared.0, shared.1, areas);
        reach_from(ghost.0, ghost.1, areas);
        for other in 0..self.now.threads.len() {
            reach(self.now.order.arrival(other), areas);
            if other == thread {
                continue;
            }
            reach_from(arena::node(other, 0), arena::NODES_EACH * arena::NODE_SIZE, areas);
            let Thread { sp, status, request, .. } = self.now.threads[other];
            if status != Status::Ended && sp != 0 {
                reach_from(sp, arena::stack_top(other) - sp, areas);
                let words = [request.address as u64, request.operand, request.expected];
                words.into_iter().for_each(|word| reach(word, areas));
            }
        }
        self.now.memory.old_values().for_each(|word| reach(word, areas));
    }

    fn switch_to(&mut self, thread: usize) {
        self.running = thread;
        self.inside = true;
        self.lend();
        // SAFETY: the thread is suspended at its stack pointer; it comes back through `stop`.
        unsafe { context::switch(&mut self.engine, self.now.threads[thread].sp) }
        self.inside = false;
    }

    /// Suspends the running thread.
    fn stop(&mut self) {
        let sp = &raw mut self.now.threads[self.running].sp;
        // SAFETY: the engine is suspended in `switch_to`.
        unsafe { context::switch(sp, self.engine) }
    }

    fn site(&self, thread: usize) -> &'static Site {
        // SAFETY: sites are static objects of a library that stays loaded.
        unsafe { &*self.now.threads[thread].request.site }
    }

    fn is_waiting(&self, thread: usize) -> bool {
        self.site(thread).kind == Kind::Wait
    }

    /// The location of the thread's pending operation, which accesses one.
    fn location(&mut self, thread: usize) -> usize {
        let size = self.site(thread).size as usize;
        self.places.number(self.now.threads[thread].request.address, size, &self.needs)
    }

    /// Finds out which of the messages that the waiting `thread` could read end its wait.
    fn test(&mut self, thread: usize) {
        let location = self.location(thread);
        if !self.reach(thread, location) {
            return;
        }
        self.now.memory.readable(thread, location, &mut self.readable);
        let mut holds = 0;
        for (bit, message) in self.readable.clone().into_iter().enumerate() {
            if bit == 64 {
                self.blame(thread, "beyond this checker: so many values that a wait could read");
                return;
            }
            (self.reply, self.testing) = (self.now.memory.message(message).value, true);
            self.switch_to(thread);
            holds |= (self.answer as u64) << bit;
        }
        self.testing = false;
        self.now.threads[thread].holds = holds;
    }

    fn is_owner(&self, thread: usize, address: usize) -> bool {
        arena::stack_owner(address) == Some(thread)
    }

    /// Whether an access by `thread` to `address` is to a stack frame that is no more.
    fn is_gone(&self, thread: usize, address: usize) -> bool {
        arena::stack_owner(address).is_some_and(|owner| owner != thread && address < self.now.threads[owner].sp)
    }

    /// Begins the life of `location` for `thread`, if need be. False if that is a fault.
    fn reach(&mut self, thread: usize, location: usize) -> bool {
        let (address, size) = self.places.known[location];
        if self.now.memory.is_begun(location) && !self.is_gone(thread, address) {
            return true;
        }
        if self.is_gone(thread, address) {
            self.report(thread, &Fault::Dead);
            return false;
        }
        let memory = &self.now.memory;
        let mut others = self.places.within(address, address + size);
        let other = others.find(|&other| other != location && memory.is_begun(other) && self.overlaps(location, other));
        drop(others);
        if let Some(other) = other {
            let (at, bytes) = self.places.known[other];
            self.blame(thread, &format!("{size} bytes here, but {bytes} at {}: mixed sizes", arena::name(at)));
            return false;
        }
        let owner = self.is_owner(thread, address);
        let value = arena::load(address, size);
        let result = self.now.memory.reach(thread, location, address..address + size, value, owner);
        result.map_err(|fault| self.report(thread, &fault)).is_ok()
    }

    fn overlaps(&self, location: usize, other: usize) -> bool {
        let ((a, a_size), (b, b_size)) = (self.places.known[location], self.places.known[other]);
        a < b + b_size && b < a + a_size
    }

    /// Notes that the pending operation of `thread` is a fault.
    fn report(&mut self, thread: usize, fault: &Fault) {
        self.blame(thread, &fault.to_string());
    }

    fn blame(&mut self, thread: usize, what: &str) {
        if self.fault.is_none() {
            self.fault = Some(format!("{what}: {}", self.describe(thread)));
        }
    }

    /// The pending operation of `thread`.
    fn describe(&self, thread: usize) -> String {
        let request = &self.now.threads[thread].request;
        if request.site.is_null() {
            return format!("T{thread}");
        }
        let site = self.site(thread);
        let mut text = format!("T{thread} {} {}", abi::text(site.operation), abi::text(site.object));
        if request.address != 0 {
            text += &format!(" [{}]", arena::name(request.address));
        }
        text + &format!(" ({})", place(site))
    }

    /// The threads that have not ended, a bit each.
    fn live(&self) -> u32 {
        let threads = self.now.threads.iter().enumerate();
        threads.fold(0, |live, (thread, t)| live | u32::from(t.status != Status::Ended) << thread)
    }

    /// The alternatives of `thread` into `self.options`.
    fn alternatives(&mut self, thread: usize) {
        self.options.clear();
        let Thread { status, request, expired, .. } = self.now.threads[thread];
        let go = Alternative { message: 0, act: Act::Go };
        match status {
            Status::Ended => return,
            Status::Parked => {
                if request.deadline != 0 {
                    self.options.push(Alternative { act: Act::TimeOut, ..go });
                }
                return;
            }
            Status::Ready => {}
        }
        match self.site(thread).kind {
            Kind::Created if !self.now.created => {}
            Kind::Fence | Kind::UnparkAll | Kind::Fork | Kind::Create | Kind::Created => self.options.push(go),
            kind @ (Kind::Choose | Kind::Expired) => {
                let count = if kind == Kind::Choose { request.operand as u32 } else { 2 };
                let values = (0..count).map(|value| Alternative { act: Act::Choose(value), ..go });
                self.options.extend(values);
            }
            Kind::Move => {
                let others = if self.now.moves > 0 { self.settings.cpus } else { 1 };
                self.options.extend((0..others).map(|by| Alternative { act: Act::Choose(by), ..go }));
            }
            Kind::Unpark => {
                let sleepers = self.sleepers(request.address);
                self.options.extend(sleepers.map(|thread| Alternative { act: Act::Wake(thread as u8), ..go }));
                if self.options.is_empty() {
                    self.options.push(go);
                }
            }
            Kind::Park => {
                let location = self.location(thread);
                let value = if self.now.memory.is_begun(location) {
                    self.now.memory.newest_value(location)
                } else {
                    arena::load(request.address, 4)
                };
                if value != request.operand || expired && request.deadline != 0 {
                    self.options.push(go);
                    return;
                }
                self.options.push(Alternative { act: Act::Sleep, ..go });
                if self.now.spurious > 0 {
                    self.options.push(Alternative { act: Act::Stir, ..go });
                }
            }
            Kind::Wait => self.wait_alternatives(thread),
            _ => self.access_alternatives(thread),
        }
    }

    fn sleepers(&self, address: usize) -> impl Iterator<Item = usize> + use<> {
        let mut sleepers = 0u32;
        for (thread, t) in self.now.threads.iter().enumerate() {
            sleepers |= ((t.status == Status::Parked && t.request.address == address) as u32) << thread;
        }
        (0..THREADS).filter(move |thread| sleepers >> thread & 1 != 0)
    }

    /// Whether another message than the newest can be read, and a store go before it.
    fn is_weak(&self) -> bool {
        self.settings.weak && self.settings.stale.is_none_or(|most| self.now.stale < most)
    }

    fn wait_alternatives(&mut self, thread: usize) {
        let location = self.location(thread);
        self.now.memory.readable(thread, location, &mut self.readable);
        let Thread { request, holds, .. } = self.now.threads[thread];
        let gives_up = request.brief || request.deadline != 0;
        let weak = self.is_weak();
        let newest = self.readable.len() - 1;
        let mut in_vain = Vec::new();
        for (bit, &message) in self.readable.iter().enumerate().rev().filter(|(bit, _)| weak || *bit == newest) {
            if holds >> bit & 1 != 0 {
                self.options.push(Alternative { message, act: Act::Go });
            } else if gives_up {
                in_vain.push(Alternative { message, act: Act::GiveUp });
            } else if weak && holds & ((1 << bit) - 1) != 0 {
                in_vain.push(Alternative { message, act: Act::Skip });
            }
        }
        self.options.append(&mut in_vain);
    }

    fn access_alternatives(&mut self, thread: usize) {
        let location = self.location(thread);
        if !self.now.memory.is_begun(location) {
            self.options.push(Alternative { message: UNKNOWN, act: Act::Go });
            return;
        }
        let kind = self.site(thread).kind;
        let expected = self.now.threads[thread].request.expected;
        let weak = self.is_weak();
        let memory = &self.now.memory;
        memory.readable(thread, location, &mut self.readable);
        for &message in self.readable.iter().rev() {
            let possible = match kind {
                Kind::Load => true,
                Kind::CompareExchange => memory.message(message).value != expected || memory.is_open(message),
                _ => memory.is_open(message),
            };
            if possible && (weak || memory.is_newest(message)) {
                self.options.push(Alternative { message, act: Act::Go });
            }
        }
    }

    /// Whether the pending operation of `thread` concerns no other thread.
    fn is_private(&self, thread: usize) -> bool {
        let t = &self.now.threads[thread];
        t.status == Status::Ready
            && (t.own || matches!(self.site(thread).kind, Kind::Choose | Kind::Expired | Kind::Move))
    }

    /// Notes who could go on but for the bound.
    fn note_left_out(&mut self, last: usize) {
        for thread in (0..self.now.threads.len()).filter(|&thread| thread != last) {
            self.alternatives(thread);
            self.left_out |= u32::from(!self.options.is_empty()) << thread;
        }
    }

    /// What can happen next, into `into`. The first is to go on with the last thread, where it can.
    pub fn choices(&mut self, into: &mut Vec<Choice>) {
        into.clear();
        self.left_out = 0;
        let count = self.now.threads.len();
        if let Some(thread) = (0..count).find(|&thread| self.is_private(thread)) {
            self.push_choices(thread, into);
            return;
        }
        let last = self.now.last as usize;
        if last < count {
            self.push_choices(last, into);
            let bound = self.settings.bound.is_some_and(|bound| self.now.preemptions >= bound);
            if bound && !into.is_empty() && !self.now.threads[last].yielded {
                self.note_left_out(last);
                return;
            }
        }
        for thread in (0..count).filter(|&thread| thread != last) {
            self.push_choices(thread, into);
        }
    }

    fn push_choices(&mut self, thread: usize, into: &mut Vec<Choice>) {
        self.alternatives(thread);
        let count = self.options.len() as u8;
        into.extend((0..count).map(|alternative| Choice { thread: thread as u8, alternative }));
    }

    /// Whether all threads have ended.
    pub fn is_over(&self) -> bool {
        self.now.threads.iter().all(|thread| thread.status == Status::Ended)
    }

    /// Runs the client's last checks, once all threads have ended.
    pub fn finish(&mut self) {
        self.directly(self.client.finish, "at the end");
    }

    /// The outcome that the client has noted.
    pub fn outcome(&self, width: usize) -> String {
        self.now.outcomes[..width].iter().map(u64::to_string).collect()
    }

    /// Why nothing can happen although not all threads have ended.
    pub fn deadlock(&self) -> String {
        let waits: Vec<String> = (0..self.now.threads.len())
            .filter(|&thread| self.now.threads[thread].status != Status::Ended)
            .map(|thread| self.describe(thread))
            .collect();
        let asleep = self.now.threads.iter().any(|thread| thread.status == Status::Parked);
        let what = if asleep { "asleep for good (lost wake-up or deadlock)" } else { "deadlock" };
        format!("{what}: {}", waits.join("; "))
    }

    /// The last thread, if it has given the CPU up.
    pub fn yielded(&self) -> Option<u8> {
        let last = self.now.last;
        self.now.threads.get(last as usize).is_some_and(|thread| thread.yielded).then_some(last)
    }

    /// The number of steps so far.
    pub fn steps(&self) -> u32 {
        self.now.step
    }

    /// Lets `choice`, one of `choices`, happen.
    pub fn perform(&mut self, choice: Choice) {
        let thread = choice.thread as usize;
        self.count_preemption(thread);
        self.alternatives(thread);
        let alternative = self.options[choice.alternative as usize];
        self.now.step += 1;
        // What concerns nobody else does not use up the others' chance.
        self.now.threads[thread].yielded &= self.is_private(thread);
        self.wrote = false;
        let before = self.story.is_some().then(|| self.describe(thread));
        let order = self.now.order.version();
        let changed = self.act(thread, alternative);
        if let (Some(before), Some(story)) = (before, &mut self.story) {
            story.push(format!("{:5}  {before}{}", self.now.step, std::mem::take(&mut self.note)));
        }
        if self.fault.is_some() {
            return;
        }
        if self.now.threads[thread].status == Status::Ready {
            self.resume(thread);
        }
        if let Some(location) = changed {
            self.test_again(location);
        }
        if self.settings.told_apart || self.now.step.is_multiple_of(COLLECTS) {
            let live = self.live();
            self.now.memory.collect(live, &mut self.coder);
        }
        // It is of the newest values, and of who waits.
        let changed = changed.is_some() || self.wrote || self.now.order.version() != order;
        if self.fault.is_none() && changed {
            self.directly(self.client.invariant, "after that step");
        }
    }

    /// What concerns no other thread is no switch.
    fn count_preemption(&mut self, thread: usize) {
        if self.is_private(thread) {
            return;
        }
        let last = self.now.last as usize;
        if self.settings.bound.is_some() && last != thread && last < self.now.threads.len() {
            self.alternatives(last);
            let forced = self.options.is_empty() || self.now.threads[last].yielded;
            self.now.preemptions += !forced as u32;
        }
        self.now.last = thread as u8;
    }

    fn test_again(&mut self, location: usize) {
        for thread in 0..self.now.threads.len() {
            let ready = self.fault.is_none() && self.now.threads[thread].status == Status::Ready;
            if ready && self.is_waiting(thread) && self.location(thread) == location {
                self.test(thread);
                self.rehash(thread);
            }
        }
    }

    fn rehash(&mut self, thread: usize) {
        let sp = self.now.threads[thread].sp;
        // SAFETY: no coroutine runs.
        self.now.threads[thread].stack = xxh3_128(unsafe { arena::bytes(sp, arena::stack_top(thread) - sp) });
    }

    /// Tells the person what the alternative was.
    fn tell(&mut self, note: impl FnOnce(&Memory) -> String) {
        if self.story.is_some() {
            self.note += &note(&self.now.memory);
        }
    }

    /// Does the alternative up to its reply. Returns the location that it changed.
    fn act(&mut self, thread: usize, alternative: Alternative) -> Option<usize> {
        let request = self.now.threads[thread].request;
        self.reply = 0;
        match (alternative.act, self.site(thread).kind) {
            (Act::Choose(by), Kind::Move) => {
                let cpu = &mut self.now.threads[thread].cpu;
                *cpu = (*cpu + by) % self.settings.cpus;
                let cpu = *cpu;
                self.now.moves -= u32::from(by != 0);
                self.tell(|_| if by == 0 { " stays".into() } else { format!(" to CPU {cpu}") });
            }
            (Act::Choose(value), kind) => {
                self.reply = value as u64;
                self.now.threads[thread].expired |= kind == Kind::Expired && value == 1;
                self.tell(|_| format!(" chosen: {value}"));
            }
            (Act::TimeOut, _) => {
                self.now.threads[thread].status = Status::Ready;
                self.now.threads[thread].expired = true;
                self.tell(|_| " sleeps until its deadline".into());
            }
            (Act::Wake(sleeper), _) => self.wake(sleeper as usize),
            (_, Kind::UnparkAll) => self.sleepers(request.address).for_each(|sleeper| self.wake(sleeper)),
            (_, Kind::Unpark) => self.tell(|_| " nobody sleeps there".into()),
            (_, Kind::Fence) => match self.site(thread).order {
                Order::Acquire => self.now.memory.fence_acquire(thread),
                Order::Release => self.now.memory.fence_release(thread),
                Order::AcqRel => self.now.memory.fence_acq_rel(thread),
                _ => self.now.memory.fence(thread),
            },
            (_, Kind::Fork) => self.fork(thread),
            (_, Kind::Create) => {
                self.now.created = true;
                self.now.memory.share_all();
            }
            (_, Kind::Created) => {}
            (_, Kind::Park) => self.park(thread, alternative.act),
            _ => return self.access(thread, alternative),
        }
        None
    }

    fn wake(&mut self, sleeper: usize) {
        self.tell(|_| format!(" wakes T{sleeper}"));
        self.now.threads[sleeper].status = Status::Ready;
        let running = self.running;
        self.resume(sleeper);
        self.running = running;
        self.reply = 0;
    }

    fn fork(&mut self, thread: usize) {
        self.now.generation += 1;
        self.now.memory.share_all();
        for other in (0..self.now.threads.len()).filter(|&other| other != thread) {
            let stays = self.now.threads[other].status == Status::Ready && self.site(other).kind == Kind::Created;
            if !stays && self.now.threads[other].status != Status::Ended {
                self.now.threads[other].status = Status::Ended;
                self.free_nodes(other);
            }
        }
    }

    /// The child's world takes back the nodes of a thread that does not exist there.
    fn free_nodes(&mut self, thread: usize) {
        for node in (0..arena::NODES_EACH).map(|index| arena::node(thread, index)) {
            let location = self.places.number(node, 4, &self.needs);
            self.now.memory.kill(location);
            arena::store(node, 4, 0);
        }
    }

    fn park(&mut self, thread: usize, act: Act) {
        let location = self.location(thread);
        if !self.reach(thread, location) || !self.order(thread, location, Access::Load) {
            return;
        }
        self.now.memory.readable(thread, location, &mut self.readable);
        let newest = *self.readable.last().expect("a location has a message");
        let value = self.now.memory.read(thread, location, newest, false);
        match act {
            Act::Sleep => self.now.threads[thread].status = Status::Parked,
            Act::Stir => self.now.spurious -= 1,
            _ => {}
        }
        self.tell(|_| {
            let value = arena::value(value);
            match act {
                Act::Sleep => " sleeps".into(),
                Act::Stir => " returns for no reason".into(),
                _ => format!(" returns at once, the value is {value}"),
            }
        });
    }

    /// Checks that an atomic access by `thread` to `location` races with no plain one. False if it does, a fault.
    fn order(&mut self, thread: usize, location: usize, access: Access) -> bool {
        let (place, traced) = (self.places.bytes(location), self.places.traced[location]);
        let result = self.now.memory.order(thread, place, access, traced);
        result.map_err(|fault| self.report(thread, &fault)).is_ok()
    }

    /// Loads, stores, read-modify-writes and waits.
    fn access(&mut self, thread: usize, alternative: Alternative) -> Option<usize> {
        let location = self.location(thread);
        if !self.reach(thread, location) {
            return None;
        }
        let site = self.site(thread);
        let request = self.now.threads[thread].request;
        let mut message = alternative.message;
        if message == UNKNOWN {
            self.now.memory.readable(thread, location, &mut self.readable);
            message = self.readable[0];
        }
        self.now.stale += u32::from(!self.now.memory.is_newest(message));
        if site.kind == Kind::Wait {
            self.end_wait(thread, location, message, alternative.act);
            return None;
        }
        let old = self.now.memory.message(message).value;
        let new = updated(site, &request, old);
        if !self.order(thread, location, if new.is_some() { Access::Store } else { Access::Load }) {
            return None;
        }
        let reads = site.kind != Kind::Store;
        self.tell_access(message, reads, new);
        if reads {
            let acquire = site.order.acquires() && (site.kind != Kind::CompareExchange || new.is_some());
            self.reply = self.now.memory.read(thread, location, message, acquire);
        }
        let new = new?;
        let release = site.order.releases();
        let step = self.now.step;
        if let Err(fault) = self.now.memory.write(thread, location, (message, reads), new, release, step) {
            self.report(thread, &fault);
            return None;
        }
        arena::store(request.address, site.size as usize, self.now.memory.newest_value(location));
        if self.queues.contains(&request.address) {
            self.now.order.change(thread, new);
        }
        Some(location)
    }

    fn tell_access(&mut self, message: u16, reads: bool, new: Option<u64>) {
        self.tell(|memory| {
            let mut note = String::new();
            if reads {
                note += &source(memory, message);
            }
            if let Some(new) = new {
                note += &format!(" := {}", arena::value(new));
                if !memory.is_newest(message) {
                    note += &format!(", put right after {}", maker(memory, message));
                }
            }
            note
        });
    }

    fn end_wait(&mut self, thread: usize, location: usize, message: u16, act: Act) {
        if !self.order(thread, location, Access::Load) {
            return;
        }
        self.tell(|memory| {
            let end = match act {
                Act::Go => "",
                Act::Skip => ", waits on",
                _ => ", gives up",
            };
            source(memory, message) + end
        });
        let acquire = act == Act::Go && self.site(thread).order.acquires();
        self.reply = self.now.memory.read(thread, location, message, acquire);
        let t = &mut self.now.threads[thread];
        t.expired |= act == Act::GiveUp && !t.request.brief;
        if act == Act::Skip {
            // It stops again where it is: nothing to return to.
            self.testing = true;
        }
    }

    /// A code of the moment, the same for moments that no continuation can tell apart.
    pub fn code(&mut self) -> (u64, u64) {
        let mut code = std::mem::take(&mut self.code);
        code.clear();
        for thread in 0..self.now.threads.len() {
            self.encode_thread(thread, &mut code);
        }
        code.extend(self.now.outcomes);
        code.push((self.now.generation as u64) << 32 | (self.now.created as u64) << 48 | self.now.spurious as u64);
        if self.settings.moves > 0 {
            code.push(self.now.threads.iter().fold(u64::from(self.now.moves), |code, t| code << 4 | u64::from(t.cpu)));
        }
        if !self.queues.is_empty() {
            self.now.order.encode(&mut code);
        }
        if self.settings.bound.is_some() {
            let stale = self.settings.stale.map_or(0, |_| self.now.stale as u64);
            code.push(stale << 40 | (self.now.preemptions as u64) << 8 | self.now.last as u64);
        }
        for (address, size) in self.regions() {
            // SAFETY: no coroutine runs.
            code.push(xxh3_64(unsafe { arena::bytes(address, size) }));
        }
        let live = self.live();
        self.now.memory.encode(live, &mut self.coder, &mut code);
        // SAFETY: any u64 is 8 bytes.
        let bytes = unsafe { std::slice::from_raw_parts(code.as_ptr().cast::<u8>(), code.len() * 8) };
        let hash = xxh3_128(bytes);
        self.code = code;
        (hash as u64, (hash >> 64) as u64)
    }

    fn encode_thread(&self, thread: usize, code: &mut Vec<u64>) {
        let t = &self.now.threads[thread];
        let flags = [t.expired, t.yielded && self.settings.bound.is_some(), t.request.brief];
        let flags = flags.iter().fold(0, |flags, &flag| flags << 1 | flag as u64);
        code.push((t.status as u64) << 32 | flags);
        if t.status == Status::Ended {
            return;
        }
        code.push(t.stack as u64);
        code.push((t.stack >> 64) as u64);
        code.extend([t.request.site as u64, t.request.address as u64, t.request.operand, t.request.expected]);
        code.extend([t.request.deadline as u64, t.holds]);
    }
}

/// What a store or read-modify-write makes of `old`; None for a load or a compare-exchange that fails.
fn updated(site: &Site, request: &Request, old: u64) -> Option<u64> {
    let new = match site.kind {
        Kind::Load => return None,
        Kind::CompareExchange if old != request.expected => return None,
        Kind::FetchAdd => old.wrapping_add(request.operand),
        Kind::FetchOr => old | request.operand,
        Kind::FetchAnd => old & request.operand,
        _ => request.operand,
    };
    Some(if site.size == 4 { new as u32 as u64 } else { new })
}

fn maker(memory: &Memory, message: u16) -> String {
    let message = memory.message(message);
    match (message.writer, message.step) {
        (NOBODY, _) => "the start".into(),
        (writer, 0) => format!("T{writer}'s plain write"),
        (writer, step) => format!("step {step} of T{writer}"),
    }
}

fn source(memory: &Memory, message: u16) -> String {
    let stale = if memory.is_newest(message) { "" } else { ", not the newest" };
    let value = arena::value(memory.message(message).value);
    format!(" reads {value} of {}{stale}", maker(memory, message))
}

/// The file, without its folders, and line of `site`.
fn place(site: &Site) -> String {
    let file = abi::text(site.file);
    format!("{}:{}", file.rsplit('/').next().unwrap_or(file), site.line)
}

/// Where the code at `pc` comes from.
fn code_place(pc: *const c_void) -> String {
    let mut text = String::new();
    backtrace::resolve(pc.wrapping_byte_sub(1).cast_mut(), |symbol| {
        let (Some(file), Some(line)) = (symbol.filename(), symbol.lineno()) else { return };
        if text.is_empty() {
            text = format!("{}:{line}", file.file_name().unwrap_or_default().to_string_lossy());
        }
    });
    if text.is_empty() { format!("{pc:?}") } else { text }
}

extern "C" fn run_thread() -> ! {
    let machine = machine();
    (machine.client.thread)(machine.running as u32);
    machine.now.threads[machine.running].status = Status::Ended;
    machine.stop();
    unreachable!("an ended thread is not resumed");
}

/// Makes a crash of a client's thread a fault of the client.
pub fn catch_crashes() {
    let stack = vec![0u8; 1 << 16].leak();
    let alternative = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    // SAFETY: the stack stays allocated, and the handler does no more than `crashed` says.
    unsafe {
        libc::sigaltstack(&alternative, ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = crashed as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

/// Leaves the crashed coroutine for good. The signal was raised by that coroutine's own instruction, so nothing of the
/// engine's is half done.
extern "C" fn crashed(signal: i32, info: *mut libc::siginfo_t, _: *mut c_void) {
    let machine = machine();
    if !machine.inside {
        // SAFETY: the default action ends the process, as it must.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    }
    // SAFETY: the kernel passes a valid siginfo.
    let address = unsafe { (*info).si_addr() } as usize;
    machine.blame(machine.running, &format!("crash (signal {signal}) at address {address:#x} soon after"));
    machine.stop();
}

/// The table of hooks for world/check.
pub static HOOKS: abi::Engine = abi::Engine {
    operate,
    wait,
    plain,
    event,
    yield_,
    this,
    returned,
    ended,
    renewed,
    fail,
    outcome,
    node,
    generation,
    busy_nodes,
    cpu,
    domain,
    cpu_count,
    queue,
    acquires,
    acquired,
    arrival,
};

extern "C" fn operate(site: *const Site, object: *mut c_void, operand: u64, expected: u64) -> u64 {
    let machine = machine();
    // SAFETY: a site is a static object.
    let place = unsafe { &*site };
    let address = object as usize;
    if machine.direct {
        return machine.operate_directly(place, address, operand, expected);
    }
    let thread = machine.running;
    let t = &mut machine.now.threads[thread];
    if place.kind == Kind::Expired && (address == 0 || t.expired) {
        return (address != 0) as u64;
    }
    if place.kind == Kind::Move && machine.now.moves == 0 {
        return 0;
    }
    if place.kind == Kind::Fence && !machine.needs.fences {
        machine.needs.fences = true;
        machine.fault.get_or_insert("a fence".into());
    }
    let deadline = if place.kind == Kind::Park { expected as usize } else { 0 };
    let mask = if place.size == 4 { u32::MAX as u64 } else { u64::MAX };
    t.request = Request { site, address, operand: operand & mask, expected: expected & mask, brief: false, deadline };
    machine.check_request(thread, place);
    machine.stop();
    self::machine().reply
}

extern "C" fn wait(site: *const Site, object: *mut c_void, brief: bool, deadline: *const c_void, holds: bool) -> Wait {
    let machine = machine();
    // SAFETY: a site is a static object.
    let place = unsafe { &*site };
    if machine.direct {
        return Wait { value: machine.operate_directly(place, object as usize, 0, 0), more: 0 };
    }
    let thread = machine.running;
    if machine.testing {
        machine.answer = holds;
    } else {
        let (address, deadline) = (object as usize, deadline as usize);
        machine.now.threads[thread].request = Request { site, address, operand: 0, expected: 0, brief, deadline };
        machine.check_request(thread, place);
    }
    machine.stop();
    let machine = self::machine();
    Wait { value: machine.reply, more: machine.testing as u64 }
}

extern "C" fn plain(object: *const c_void, size: usize, write: bool, caller: *const Caller) {
    let machine = machine();
    // SAFETY: the glue passes its own frame.
    let (pc, frame_end) = unsafe { ((*caller).pc, caller.add(1) as usize) };
    let (address, own) = (object as usize, arena::stack_base(machine.running));
    if !machine.direct && (own..frame_end).contains(&address) {
        let place = code_place(pc);
        let (thread, name) = (machine.running, arena::name(address));
        machine.fault.get_or_insert_with(|| format!("{}: T{thread} plain access to {name} ({place})", Fault::Dead));
        return;
    }
    machine.plain_access(address, size, write, pc);
}

extern "C" fn event(event: u32) {
    let machine = machine();
    machine.events[event as usize] += 1;
    if machine.client.since == event + 1 && !machine.direct {
        machine.now.order.count(machine.running);
    }
}

extern "C" fn yield_() {
    let machine = machine();
    if !machine.direct {
        machine.now.threads[machine.running].yielded = true;
    }
}

extern "C" fn this() -> u32 {
    machine().running as u32
}

extern "C" fn returned(frame: *const c_void) {
    let machine = machine();
    let (base, end) = (arena::stack_base(machine.running), frame as usize);
    machine.check_frames(base, end);
    machine.end_life(base, end);
}

extern "C" fn ended(object: *const c_void, size: usize) {
    let machine = machine();
    let (start, end) = (object as usize, object as usize + size);
    machine.plain_access(start, size, true, ptr::null());
    machine.written.clear();
    machine.end_life(start, end);
}

extern "C" fn renewed() {
    let machine = machine();
    machine.now.threads[machine.running].expired = false;
}

extern "C" fn fail(file: *const c_char, line: i32, what: *const c_char) {
    let machine = machine();
    let file = abi::text(file);
    let file = file.rsplit('/').next().unwrap_or(file);
    let who = if machine.direct { machine.when.into() } else { format!("T{}", machine.running) };
    machine.fault.get_or_insert(format!("{}: {who} ({file}:{line})", abi::text(what)));
}

extern "C" fn outcome(slot: u32, value: u64) {
    machine().now.outcomes[slot as usize] = value;
}

extern "C" fn node(index: u32) -> *mut c_void {
    if index as usize >= arena::NODES_EACH {
        return ptr::null_mut();
    }
    arena::node(machine().running, index as usize) as *mut c_void
}

extern "C" fn generation() -> u32 {
    machine().now.generation
}

extern "C" fn busy_nodes() -> u32 {
    let threads = machine().now.threads.len();
    let nodes = (0..threads).flat_map(|thread| (0..arena::NODES_EACH).map(move |index| arena::node(thread, index)));
    nodes.filter(|&node| arena::load(node, 4) != 0).count() as u32
}

extern "C" fn cpu() -> u32 {
    let machine = machine();
    machine.now.threads[machine.running].cpu
}

extern "C" fn domain() -> u32 {
    cpu() % machine().settings.domains
}

extern "C" fn cpu_count() -> u32 {
    machine().settings.cpus
}

extern "C" fn queue(object: *const c_void) {
    machine().queues.push(object as usize);
}

extern "C" fn acquires() {
    let machine = machine();
    if !machine.direct {
        machine.now.order.begin(machine.running);
    }
}

extern "C" fn acquired(has: bool) {
    let machine = machine();
    if machine.direct || machine.queues.is_empty() {
        return;
    }
    let passed = machine.now.order.end(machine.running, has, machine.client.since == 0);
    let Some((waiter, times)) = passed.filter(|_| machine.client.flags & abi::CLIENT_ORDER != 0) else { return };
    machine.passed = machine.passed.max(times);
    let bound = machine.client.bypass;
    if times > bound {
        let last = machine.running;
        let what = format!("bypass: T{waiter} has been passed {times} times, lastly by T{last}, not {bound} at most");
        machine.fault.get_or_insert(what);
    }
}

extern "C" fn arrival(thread: u32) -> u64 {
    machine().now.order.arrival(thread as usize)
}

const NO_OBJECT: &str = "no atomic object of the client's";

/// Whether there can be an atomic object of the client's.
fn may_be_atomic(address: usize, size: usize) -> bool {
    matches!(size, 4 | 8) && address.is_multiple_of(size) && arena::holds(address, size)
}

impl Machine {
    /// Refuses what the machine cannot do, before it stops the thread there.
    fn check_request(&mut self, thread: usize, site: &Site) {
        let address = self.now.threads[thread].request.address;
        let size = site.size as usize;
        if size == 0 {
            return;
        }
        if !may_be_atomic(address, size) {
            self.blame(thread, NO_OBJECT);
        }
    }

    fn operate_directly(&mut self, site: &Site, address: usize, operand: u64, expected: u64) -> u64 {
        if site.size == 0 {
            return 0;
        }
        let size = site.size as usize;
        if !may_be_atomic(address, size) {
            self.fault.get_or_insert(format!("{NO_OBJECT}: {} ({})", self.when, place(site)));
            return 0;
        }
        let request = Request { site, address, operand, expected, brief: false, deadline: 0 };
        let location = self.places.number(address, size, &self.needs);
        if self.now.memory.is_dead(location) {
            self.fault.get_or_insert(format!("{}: {} ({})", Fault::Dead, self.when, place(site)));
        }
        let old = arena::load(address, size);
        if let Some(new) = updated(site, &request, old) {
            arena::store(address, size, new);
        }
        old
    }

    fn plain_access(&mut self, address: usize, size: usize, write: bool, pc: *const c_void) {
        if self.direct || self.fault.is_some() || arena::is_ghost(address) {
            return;
        }
        let thread = self.running;
        self.wrote |= write && !self.is_owner(thread, address);
        let result = if !arena::holds(address, size) {
            if write { Err(Fault::Limit("a write outside of the client's memory")) } else { Ok(()) }
        } else if self.is_gone(thread, address) {
            Err(Fault::Dead)
        } else {
            self.plain_pieces(address, address + size, write)
        };
        if let Err(fault) = result {
            let what = if write { "plain write to" } else { "plain read of" };
            let place = if pc.is_null() { "the end of its life".into() } else { code_place(pc) };
            self.fault = Some(format!("{fault}: T{thread} {what} {} ({place})", arena::name(address)));
        }
    }

    /// A plain access in pieces that lie within aligned words, as objects do.
    fn plain_pieces(&mut self, start: usize, end: usize, write: bool) -> Result<(), Fault> {
        let mut from = start;
        while from < end {
            let to = end.min((from / 8 + 1) * 8);
            self.plain_piece(from, to, write)?;
            from = to;
        }
        Ok(())
    }

    fn plain_piece(&mut self, start: usize, end: usize, write: bool) -> Result<(), Fault> {
        let thread = self.running;
        let owner = self.is_owner(thread, start);
        let memory = &mut self.now.memory;
        let mut covered = 0;
        for location in self.places.within(start, end) {
            let (address, size) = self.places.known[location];
            if address >= end || address + size <= start {
                continue;
            }
            let dead = memory.is_dead(location);
            if !memory.is_begun(location) && !(dead && (!owner || write)) {
                continue;
            }
            if dead && owner && (start, end) != (address, address + size) {
                continue; // the frame's memory has another use now
            }
            if !dead && !self.places.traced[location] {
                self.needs.trace(address, &mut self.fault);
            }
            memory.plain_on_atomic(thread, location, write, owner)?;
            covered += size;
            if write {
                self.written.push(location);
            }
        }
        if covered < end - start {
            memory.plain(start, end, owner)?;
        }
        memory.order(thread, start..end, if write { Access::PlainWrite } else { Access::PlainRead }, true)
    }

    /// Checks that all that others did to what lies on the running thread's stack from `start` to `end` was before the
    /// thread goes on to use that memory otherwise.
    fn check_frames(&mut self, start: usize, end: usize) {
        for location in 0..self.places.known.len() {
            let (address, _) = self.places.known[location];
            if (start..end).contains(&address) && self.now.memory.is_begun(location) && !self.places.traced[location] {
                self.needs.trace(address, &mut self.fault);
            }
        }
        if let Err(race) = self.now.memory.order(self.running, start..end, Access::PlainWrite, false) {
            let what = format!("{race}: T{} end of what lay on its stack", self.running);
            self.fault.get_or_insert(what);
        }
    }

    fn end_life(&mut self, start: usize, end: usize) {
        for location in 0..self.places.known.len() {
            let (address, _) = self.places.known[location];
            if (start..end).contains(&address) {
                self.now.memory.kill(location);
            }
        }
        self.now.memory.kill_cells(start, end);
    }
}
