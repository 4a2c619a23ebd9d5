// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine: runs a client's threads as coroutines, each suspended before its next operation.
//!
//! Promises: between two operations a thread's behaviour depends only on the results of earlier
//! operations. A `Snapshot` (memory, stacks and pending operations) is therefore the whole past of
//! an execution. `choices` lists everything that can happen next, the expected case first;
//! `perform` performs one choice and runs that thread up to its next operation.

mod choices;
mod code;
mod describe;
pub mod hooks;
mod perform;
mod places;
mod plain;
mod promises;
mod reduction;
mod requests;
mod settings;
mod sharing;
mod sleep;
mod state;
mod step;

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use xxhash_rust::xxh3::xxh3_128;

use crate::abi::{self, Client, Kind, MAX_THREADS, Site};
use crate::arena;
use crate::arrivals::Watched;
use crate::context;
use crate::fault::Fault;
use crate::memory::{Access, Coder, Memory, Span};
use places::Places;
use promises::Candidate;
pub use reduction::{Effect, NO_LOCATION};
pub use settings::{Needs, Settings};
use state::{State, Status};
use step::Alternative;
pub use step::Choice;

/// The most events that core/events.def can have.
pub const MAX_EVENTS: usize = 64;
/// The number of bytes below the stack pointer that are cleared, so that the remains of calls do
/// not make states differ.
const CLEARED: usize = 4096;

/// A state of an execution, to return to.
pub struct Snapshot {
    state: State,
    /// The bytes of the client's memory and of its threads' stacks.
    image: Vec<u8>,
}

/// The machine.
pub struct Machine {
    client: &'static Client,
    settings: Settings,
    now: State,
    places: Places,
    running: usize,
    /// The addresses of objects whose changes are arrivals.
    queues: Vec<usize>,
    /// The addresses of hints: objects whose loads return any value, and whose stores are no steps.
    hints: Vec<usize>,
    /// The most later arrivals that have bypassed a waiter.
    pub bypasses: u32,
    /// The return value of the running operation.
    reply: u64,
    /// Whether the running wait evaluates its condition for the reply.
    testing: bool,
    /// The result of that: whether the reply ends the wait.
    ends_wait: bool,
    /// Whether operations take effect at once, on the newest messages: outside of threads.
    direct: bool,
    /// Describes the current phase of direct operations in error messages.
    phase: &'static str,
    /// The locations that the running thread has written plainly since it was resumed.
    written: Vec<usize>,
    /// Whether the step has written plainly outside of the thread's own stack.
    wrote_shared: bool,
    /// The effect of the last step.
    pub effect: Effect,
    readable: Vec<u16>,
    options: Vec<Alternative>,
    /// The stores that a thread can promise.
    candidates: Vec<Candidate>,
    /// Snapshots for reuse.
    spare: Vec<Snapshot>,
    code: Vec<u64>,
    coder: Coder,
    floor: Vec<u32>,
    /// Of the last choices, the bits of the threads that could continue, but that the bound
    /// excludes.
    pub excluded: u32,
    /// Of the last choices, the bits of the threads that cannot continue, if the environment has
    /// none to make. A thread cannot continue on messages other than the newest alone.
    pub idle: u32,
    /// Of the last choices, the number of the first ones that represent all (reduction.rs).
    pub enough: usize,
    /// Whether they do so only if the step is not `effect.visible`.
    pub if_invisible: bool,
    /// Whether the last choices are of the environment: a random number, the time, a deadline.
    pub chance: bool,
    /// The needs that the client has shown and that this machine models or stops for.
    needs: Needs,
    /// Those that it has shown in steps that were only tried.
    foreseen: Needs,
    /// The first error of the execution.
    pub fault: Option<String>,
    /// How often each event of core/events.def has occurred.
    pub events: [u64; MAX_EVENTS],
    /// Descriptions of the steps, if requested.
    pub trace: Option<Vec<String>>,
    detail: String,
}

static CURRENT: AtomicPtr<Machine> = AtomicPtr::new(ptr::null_mut());

/// The machine that runs the calling C code.
pub fn current() -> &'static mut Machine {
    // SAFETY: hooks are called by code that runs within `switch_to` or `call_directly`. Both lend
    // the machine, and do not access it before the code returns or stops. After a stop, the caller
    // must get it again.
    unsafe { &mut *CURRENT.load(Ordering::Relaxed) }
}

extern "C" fn run_thread() -> ! {
    let machine = current();
    (machine.client.thread)(machine.running as u32);
    machine.check_paid();
    machine.now.threads[machine.running].status = Status::Ended;
    machine.stop();
    unreachable!("an ended thread is not resumed");
}

impl Machine {
    /// The machine of `client`, with each thread before its first operation.
    pub fn new(client: &'static Client, settings: Settings, needs: Needs) -> Box<Machine> {
        let threads = client.threads as usize;
        assert!((1..=MAX_THREADS).contains(&threads), "a client has 1 to {MAX_THREADS} threads");
        let mut now = State::new(threads, settings.cpus, Memory::new(threads, needs.fences));
        (now.spurious, now.moves) = (settings.spurious, settings.moves);
        let mut machine = Box::new(Machine {
            client,
            settings,
            now,
            places: Places::new(),
            running: 0,
            queues: Vec::new(),
            hints: Vec::new(),
            bypasses: 0,
            reply: 0,
            testing: false,
            ends_wait: false,
            direct: false,
            phase: "",
            written: Vec::new(),
            wrote_shared: false,
            effect: Effect::default(),
            readable: Vec::new(),
            options: Vec::new(),
            candidates: Vec::new(),
            spare: Vec::new(),
            code: Vec::new(),
            coder: Coder::default(),
            floor: Vec::new(),
            excluded: 0,
            idle: 0,
            enough: 0,
            if_invisible: false,
            chance: false,
            needs,
            foreseen: Needs::default(),
            fault: None,
            events: [0; MAX_EVENTS],
            trace: None,
            detail: String::new(),
        });
        machine.begin();
        machine
    }

    fn begin(&mut self) {
        for (address, size) in self.regions() {
            // SAFETY: the region is in the mapped memory, which no coroutine uses now.
            unsafe { ptr::write_bytes(address as *mut u8, 0, size) }
        }
        self.call_directly(self.client.setup, "in setup");
        for thread in 0..self.now.threads.len() {
            let base = arena::stack_base(thread);
            // SAFETY: as above; the stack belongs to the new coroutine.
            unsafe {
                ptr::write_bytes(base as *mut u8, 0, arena::stack_top(thread) - base);
                self.now.threads[thread].sp =
                    context::prepare(arena::stack_top(thread), run_thread);
            }
            self.resume(thread);
        }
    }

    /// Lends this machine to the hooks that the C code about to run calls.
    fn lend(&mut self) {
        CURRENT.store(self, Ordering::Relaxed);
    }

    /// Calls a function of the client whose operations take effect at once.
    fn call_directly(&mut self, function: Option<extern "C" fn()>, phase: &'static str) {
        if let Some(function) = function {
            (self.direct, self.phase) = (true, phase);
            self.lend();
            function();
            self.direct = false;
        }
    }

    /// Runs the client's final checks, after all threads have ended.
    pub fn finish(&mut self) {
        self.call_directly(self.client.finish, "in finish");
    }

    /// The client's memory outside of stacks, as address and size: shared, ghost, nodes.
    fn regions(&self) -> [(usize, usize); 3] {
        let nodes = self.now.threads.len() * arena::NODES_EACH * arena::NODE_SIZE;
        [
            (arena::SHARED, self.client.shared),
            (arena::GHOST, self.client.ghost),
            (arena::NODES, nodes),
        ]
    }

    /// All memory that a snapshot includes.
    fn areas(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        self.regions().into_iter().chain(self.now.stacks())
    }

    /// Writes the present state into `into`.
    pub fn save(&mut self, into: &mut Snapshot) {
        into.image.clear();
        for (address, size) in self.areas() {
            // SAFETY: no coroutine runs.
            into.image.extend_from_slice(unsafe { arena::bytes(address, size) });
        }
        into.state.clone_from(&self.now);
    }

    /// The present state.
    pub fn snapshot(&mut self) -> Snapshot {
        let mut snapshot = Snapshot { state: self.now.clone(), image: Vec::new() };
        self.save(&mut snapshot);
        snapshot
    }

    /// Returns to the state of `snapshot`.
    pub fn restore(&mut self, snapshot: &Snapshot) {
        self.now.clone_from(&snapshot.state);
        self.fault = None;
        let mut at = 0;
        for (address, size) in self.areas() {
            // SAFETY: no coroutine runs, and `save` made the image of the same regions and stacks.
            unsafe {
                ptr::copy_nonoverlapping(snapshot.image[at..].as_ptr(), address as *mut u8, size);
            }
            at += size;
        }
    }

    fn switch_to(&mut self, thread: usize) {
        self.running = thread;
        self.lend();
        // SAFETY: the thread is suspended at its stack pointer; it stops later.
        unsafe { context::enter(self.now.threads[thread].sp) }
    }

    /// Suspends the running thread for good.
    pub fn stop(&mut self) {
        let sp = &raw mut self.now.threads[self.running].sp;
        // SAFETY: the engine is suspended in `switch_to`.
        unsafe { context::leave(sp) }
    }

    /// Returns from the pending operation of `thread` and runs it up to its next one.
    fn resume(&mut self, thread: usize) {
        self.switch_to(thread);
        if self.fault.is_some() {
            return; // a thread that has crashed may not be on its stack
        }
        for location in std::mem::take(&mut self.written) {
            let (address, size) = self.places.extent(location);
            self.now.memory.set_plain_value(location, arena::load(address, size));
        }
        let sp = self.now.threads[thread].sp;
        if sp < arena::stack_base(thread) + 2 * CLEARED {
            self.report(thread, "stack overflow");
            return;
        }
        // SAFETY: no coroutine runs, and a suspended one uses nothing below its stack pointer.
        unsafe { ptr::write_bytes((sp - CLEARED) as *mut u8, 0, CLEARED) }
        if self.now.threads[thread].status == Status::Ready {
            if self.settings.exhaustive {
                self.hash_stack(thread);
            }
            if self.is_waiting(thread) {
                self.test_wait(thread);
            }
            self.now.threads[thread].owed_by = 0;
            if self.is_parking(thread) {
                self.test_park(thread);
            }
            let [shared, ghost, _] = self.regions();
            self.now.threads[thread].unshared = self.settings.exhaustive
                && sharing::is_unshared(&self.now, &[shared, ghost], thread);
        }
    }

    fn hash_stack(&mut self, thread: usize) {
        let frame = self.now.threads[thread].frame;
        // SAFETY: no coroutine runs.
        self.now.threads[thread].stack =
            xxh3_128(unsafe { arena::bytes(frame, arena::stack_top(thread) - frame) });
    }

    fn site(&self, thread: usize) -> &'static Site {
        self.now.site(thread)
    }

    fn is_waiting(&self, thread: usize) -> bool {
        self.site(thread).kind == Kind::Wait
    }

    /// The object, or part of one, of the pending operation of `thread`.
    fn span(&mut self, thread: usize) -> Span {
        let size = self.site(thread).size as usize;
        self.places.span(self.now.threads[thread].request.address, size, &self.needs)
    }

    /// Determines which of the messages that `thread` could read end its pending wait.
    fn test_wait(&mut self, thread: usize) {
        let span = self.span(thread);
        if !self.begin_location(thread, span.location) {
            return;
        }
        self.now.memory.readable(thread, span, &mut self.readable);
        let mut ending = 0;
        for (bit, message) in self.readable.clone().into_iter().enumerate() {
            if bit == 64 {
                self.report_fault(thread, &Fault::Limit("too many values that a wait could read"));
                return;
            }
            (self.reply, self.testing) = (self.now.memory.value(span, message), true);
            self.switch_to(thread);
            ending |= (self.ends_wait as u64) << bit;
        }
        self.testing = false;
        self.now.threads[thread].ending = ending;
    }

    /// The checks that the client makes of its waiters.
    fn watched(&self) -> Watched {
        Watched {
            in_states: self.client.invariant.is_some(),
            in_order: self.client.flags & abi::CLIENT_ORDER != 0,
            from_arrival: self.client.since == 0,
        }
    }

    /// Records that `thread` has changed the object at `address` to `value`, which may be its
    /// arrival. A value that nothing reads would keep states apart.
    fn note_arrival(&mut self, thread: usize, address: usize, value: u64) {
        if self.queues.contains(&address) {
            let value = if self.watched().in_states { value } else { 0 };
            self.now.arrivals.change(thread, value);
        }
    }

    fn is_owner(&self, thread: usize, address: usize) -> bool {
        arena::stack_owner(address) == Some(thread)
    }

    /// Begins the lifetime of `location` for an access by `thread`, if necessary. Returns false
    /// after a fault.
    fn begin_location(&mut self, thread: usize, location: usize) -> bool {
        let (address, size) = self.places.extent(location);
        let is_gone = self.now.is_gone(thread, address);
        if self.now.memory.is_begun(location) && !is_gone {
            return true;
        }
        if is_gone {
            self.report_fault(thread, &Fault::Dead);
            return false;
        }
        let (memory, places) = (&self.now.memory, &self.places);
        let conflicts = |&other: &usize| {
            other != location && memory.is_begun(other) && places.overlap(location, other)
        };
        let conflict = places.near(address, address + size).find(conflicts);
        if let Some(other) = conflict {
            let (at, bytes) = self.places.extent(other);
            self.report(
                thread,
                &format!("mixed sizes: {size} bytes here, {bytes} at {}", arena::name(at)),
            );
            return false;
        }
        let owner = self.is_owner(thread, address);
        let value = arena::load(address, size);
        let whole = self.places.whole(location);
        let result = self.now.memory.begin(thread, whole, address..address + size, value, owner);
        result.map_err(|fault| self.report_fault(thread, &fault)).is_ok()
    }

    /// Checks that the pending operation of `thread`, an atomic access to `location`, races with no
    /// plain one. Returns false after a fault.
    fn check_access(&mut self, thread: usize, location: usize, access: Access) -> bool {
        let address = self.now.threads[thread].request.address;
        let bytes = address..address + self.site(thread).size as usize;
        let traced = self.places.is_traced(location);
        let result = self.now.memory.check_access(thread, bytes, access, traced);
        result.map_err(|fault| self.report_fault(thread, &fault)).is_ok()
    }

    fn report_fault(&mut self, thread: usize, fault: &Fault) {
        self.report(thread, &fault.to_string());
    }

    /// Records an error of the pending operation of `thread`.
    fn report(&mut self, thread: usize, what: &str) {
        if self.fault.is_none() {
            self.fault = Some(format!("{what}: {}", describe::operation(&self.now, thread)));
        }
    }

    /// Records a crash of the running thread.
    pub fn report_crash(&mut self, signal: i32, address: usize) {
        self.report(
            self.running,
            &format!("crash (signal {signal}) at address {address:#x} soon after"),
        );
    }

    /// Whether all threads have ended.
    pub fn is_over(&self) -> bool {
        self.now.threads.iter().all(|thread| thread.status == Status::Ended)
    }

    /// The outcome that the client has recorded.
    pub fn outcome(&self, width: usize) -> String {
        self.now.outcomes[..width].iter().map(u64::to_string).collect()
    }

    /// Whether nothing can happen next, except that parks among `choices` end spuriously.
    pub fn is_stuck(&self, choices: &[Choice]) -> bool {
        choices.iter().all(|choice| self.is_asleep(choice.thread as usize))
    }

    /// Describes why nothing can happen although threads have not ended.
    pub fn deadlock(&self) -> String {
        let waits: Vec<String> = (0..self.now.threads.len())
            .filter(|&thread| self.now.threads[thread].status != Status::Ended)
            .map(|thread| describe::operation(&self.now, thread))
            .collect();
        let is_parked = |thread: usize| self.now.threads[thread].status == Status::Parked;
        let asleep = self.threads().any(|thread| is_parked(thread) || self.is_parking(thread));
        let what = if asleep { "lost wake-up, or deadlock with sleepers" } else { "deadlock" };
        format!("{what}: {}", waits.join("; "))
    }

    /// The last thread, if it has yielded.
    pub fn yielded(&self) -> Option<u8> {
        let last = self.now.last;
        self.now.threads.get(last as usize).is_some_and(|thread| thread.yielded).then_some(last)
    }

    /// The client's threads.
    pub fn threads(&self) -> Range<usize> {
        0..self.now.threads.len()
    }

    /// All needs that the client has shown.
    pub fn needs(&self) -> Needs {
        let mut needs = self.needs.clone();
        needs.add(&self.foreseen);
        needs
    }

    /// The number of steps so far.
    pub fn steps(&self) -> u32 {
        self.now.step
    }
}
