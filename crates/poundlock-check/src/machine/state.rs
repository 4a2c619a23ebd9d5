// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of an execution, apart from the bytes that the client's code reads and writes.

use crate::abi::{Kind, MAX_THREADS, NO_THREAD, Site};
use crate::arena;
use crate::arrivals::Arrivals;
use crate::memory::Memory;

/// The number of figures in an outcome.
pub const OUTCOMES: usize = 8;

/// A thread's pending operation.
#[derive(Clone, Copy)]
pub struct Request {
    pub site: *const Site,
    pub address: usize,
    pub operand: u64,
    pub expected: u64,
    /// A wait that can end unsuccessfully at any time.
    pub brief: bool,
    pub deadline: usize,
}

impl Request {
    /// The value that the store or read-modify-write at `site` makes of `old`; None for a load, or
    /// a compare-exchange that fails.
    pub fn new_value(&self, site: &Site, old: u64) -> Option<u64> {
        let new = match site.kind {
            Kind::Load => return None,
            Kind::CompareExchange if old != self.expected => return None,
            Kind::FetchAdd => old.wrapping_add(self.operand),
            Kind::FetchOr => old | self.operand,
            Kind::FetchAnd => old & self.operand,
            _ => self.operand,
        };
        Some(new & site.mask())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    Ready,
    Parked,
    Ended,
}

#[derive(Clone, Copy)]
pub struct Thread {
    /// The stack pointer while the thread is suspended.
    pub sp: usize,
    /// The address from which on the stack belongs to the client's code.
    pub frame: usize,
    pub status: Status,
    pub request: Request,
    /// Bit n: the n-th message that the pending wait could read ends it.
    pub ending: u64,
    /// Whether the newest value lets the thread continue that is in a composed park (sleep.rs).
    pub leaves: bool,
    /// The bits of the threads that owe it a wake-up.
    pub owed_by: u8,
    /// Whether the thread's deadline has passed.
    pub expired: bool,
    pub yielded: bool,
    /// Whether the pending operation is on an object that no other thread can reach before it.
    pub unshared: bool,
    pub cpu: u32,
    /// The hash of the thread's stack from `frame` on.
    pub stack: u128,
}

/// A store that its thread has performed before earlier operations (promises.rs).
#[derive(Clone, Copy)]
pub struct Promise {
    pub thread: u8,
    pub location: usize,
    pub message: u16,
    /// The message that it directly follows.
    pub after: u16,
    /// Whether it is a read-modify-write of that message.
    pub update: bool,
    /// The step that made it.
    pub step: u32,
    /// The number of operations that the thread may still pass before the store.
    pub left: u32,
}

/// The state of an execution.
pub struct State {
    pub memory: Memory,
    pub threads: Vec<Thread>,
    pub outcomes: [u64; OUTCOMES],
    pub step: u32,
    /// The thread that ran last, or NO_THREAD.
    pub last: u8,
    pub preemptions: u32,
    /// How many more spurious returns from a park are allowed.
    pub spurious: u32,
    /// The number of forks.
    pub generation: u32,
    /// Whether the threads that wait for their creation have been created.
    pub created: bool,
    /// How many more moves to another CPU are allowed.
    pub moves: u32,
    /// The number of reads of messages other than the newest, of stores inserted before it, and of
    /// promises.
    pub stale: u32,
    /// The open promise.
    pub promise: Option<Promise>,
    /// The thread that has only read since another step than a read, or NO_THREAD (reduction.rs).
    pub reader: u8,
    pub arrivals: Arrivals,
}

impl Clone for State {
    fn clone(&self) -> Self {
        State { memory: self.memory.clone(), threads: self.threads.clone(), ..*self }
    }

    fn clone_from(&mut self, source: &Self) {
        self.memory.clone_from(&source.memory);
        self.threads.clone_from(&source.threads);
        (self.outcomes, self.step) = (source.outcomes, source.step);
        (self.last, self.preemptions, self.spurious) =
            (source.last, source.preemptions, source.spurious);
        (self.generation, self.created) = (source.generation, source.created);
        (self.moves, self.stale, self.arrivals) = (source.moves, source.stale, source.arrivals);
        (self.promise, self.reader) = (source.promise, source.reader);
    }
}

impl State {
    /// The state before the client's setup: `threads` threads on `cpus` CPUs.
    pub fn new(threads: usize, cpus: u32, memory: Memory) -> State {
        let request = Request {
            site: std::ptr::null(),
            address: 0,
            operand: 0,
            expected: 0,
            brief: false,
            deadline: 0,
        };
        let thread = |cpu| Thread {
            sp: 0,
            frame: 0,
            status: Status::Ready,
            request,
            ending: 0,
            leaves: false,
            owed_by: 0,
            expired: false,
            yielded: false,
            unshared: false,
            cpu,
            stack: 0,
        };
        State {
            memory,
            threads: (0..threads as u32).map(|index| thread(index % cpus)).collect(),
            outcomes: [0; OUTCOMES],
            step: 0,
            last: NO_THREAD,
            preemptions: 0,
            spurious: 0,
            generation: 0,
            created: false,
            moves: 0,
            stale: 0,
            promise: None,
            reader: NO_THREAD,
            arrivals: Arrivals::default(),
        }
    }

    /// The pending operation's site.
    pub fn site(&self, thread: usize) -> &'static Site {
        // SAFETY: sites are static objects of a library that stays loaded.
        unsafe { &*self.threads[thread].request.site }
    }

    /// The bits of the threads that have not ended.
    pub fn live(&self) -> u32 {
        let threads = self.threads.iter().enumerate();
        threads.fold(0, |live, (thread, t)| live | u32::from(t.status != Status::Ended) << thread)
    }

    /// The threads parked on `address`.
    pub fn sleepers(&self, address: usize) -> impl Iterator<Item = usize> + use<> {
        let mut sleepers = 0u32;
        for (thread, t) in self.threads.iter().enumerate() {
            sleepers |=
                ((t.status == Status::Parked && t.request.address == address) as u32) << thread;
        }
        (0..MAX_THREADS).filter(move |thread| sleepers >> thread & 1 != 0)
    }

    /// The used part of each thread's stack, as address and size.
    pub fn stacks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let mut stacks = [(0, 0); MAX_THREADS];
        for (thread, of) in self.threads.iter().enumerate() {
            stacks[thread] = (of.sp, arena::stack_top(thread) - of.sp);
        }
        stacks.into_iter().take(self.threads.len())
    }

    /// Whether `address` is in a stack frame of another thread than `thread` that has returned.
    pub fn is_gone(&self, thread: usize, address: usize) -> bool {
        arena::stack_owner(address)
            .is_some_and(|owner| owner != thread && address < self.threads[owner].sp)
    }
}
