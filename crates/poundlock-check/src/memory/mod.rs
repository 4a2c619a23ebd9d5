// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory: C11, as a view machine.
//!
//! Each atomic location has a list of messages, the stores to it in modification order. A thread's
//! view contains, per location, the oldest message that the thread may still read. A message's view
//! is joined by a thread that reads it with acquire. A store may be inserted before messages that
//! its thread has not seen, but never between a read-modify-write and the message that it read.
//!
//! Promises: the allowed reads are those of RC11 (Lahav et al., PLDI'17) for relaxed, acquire,
//! release and SC-fence operations, with two differences, both within what compilers and processors
//! do. A read takes its value from a store that is later in every order (load buffering) only where
//! the machine lets threads promise stores (machine/promises.rs). A release sequence is continued
//! only by read-modify-writes, as in C++20 and C23. Data races are found by vector clocks, whatever
//! their outcome; atomic accesses are remembered only for traced locations.
//!
//! Messages that no thread can read are dropped, and knowledge that all threads share is not part
//! of the code: `encode` gives equivalent memories the same code, which makes the state space
//! finite.

mod accesses;
mod coder;
mod encode;
mod messages;
mod objects;
mod span;
mod views;

use std::ops::Range;

use crate::abi::NO_THREAD;
use crate::fault::Fault;
pub use accesses::Access;
use accesses::Accesses;
pub use coder::Coder;
use messages::{Kind, Message, Messages, NO_MESSAGE};
use objects::{Objects, code_of};
pub use span::Span;
use views::{NO_VIEW, Views};

/// The most atomic locations of a client.
const MAX_LOCATIONS: usize = 1 << 14;
/// The distance in time between messages. Its binary logarithm is how often stores can be inserted
/// between the same two messages.
const TIME_STEP: u32 = 1 << 16;

#[derive(Clone, Copy)]
struct Location {
    /// The oldest message that some thread can read; NO_MESSAGE before the first access.
    head: u16,
    dead: bool,
    last_time: u32,
    /// The bits of its parts; 0 for the numbers of a location's further slots.
    parts: u8,
}

const UNTOUCHED: Location = Location { head: NO_MESSAGE, dead: false, last_time: 0, parts: 1 };

/// The code of a dead location, as an element of the set of all dead locations.
fn code_of_dead(location: usize) -> u128 {
    code_of([1, location as u64])
}

/// The threads whose bit is set in `bits`.
fn threads_in(bits: u32, threads: usize) -> impl Iterator<Item = usize> {
    (0..threads).filter(move |thread| bits >> thread & 1 != 0)
}

/// The memory in one state of an execution. The caller numbers the locations, identically in all
/// executions.
pub struct Memory {
    threads: usize,
    /// Whether the views of fences are maintained.
    fences: bool,
    views: Views,
    messages: Messages,
    locations: Vec<Location>,
    /// The locations with more than one message, or whose message has a view, in order.
    busy: Vec<u16>,
    objects: Objects,
    accesses: Accesses,
    /// The code of the set of dead locations.
    dead: u128,
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Memory {
            threads: self.threads,
            fences: self.fences,
            views: self.views.clone(),
            messages: self.messages.clone(),
            locations: self.locations.clone(),
            busy: self.busy.clone(),
            objects: self.objects.clone(),
            accesses: self.accesses.clone(),
            dead: self.dead,
        }
    }

    // Reuses the allocations, because the explorer copies a memory in every state.
    fn clone_from(&mut self, source: &Self) {
        (self.threads, self.fences, self.dead) = (source.threads, source.fences, source.dead);
        self.views.copy_from(&source.views);
        self.messages.copy_from(&source.messages);
        self.locations.clone_from(&source.locations);
        self.busy.clone_from(&source.busy);
        self.objects.copy_from(&source.objects);
        self.accesses.copy_from(&source.accesses);
    }
}

impl Memory {
    /// The memory at the start of an execution. `fences`: the client has fences.
    pub fn new(threads: usize, fences: bool) -> Memory {
        Memory {
            threads,
            fences,
            views: Views::new(threads, fences),
            messages: Messages::default(),
            locations: Vec::new(),
            busy: Vec::new(),
            objects: Objects::default(),
            accesses: Accesses::default(),
            dead: 0,
        }
    }

    /// The views of threads and messages, for fences.
    pub fn views(&mut self) -> &mut Views {
        &mut self.views
    }

    fn messages_of(&self, location: usize) -> impl Iterator<Item = u16> + '_ {
        self.messages.list_from(self.locations.get(location).map_or(NO_MESSAGE, |l| l.head))
    }

    fn free_message(&mut self, index: u16) {
        self.views.free(self.messages[index].view);
        self.messages.free(index);
    }

    fn mark_busy(&mut self, location: usize) {
        if let Err(at) = self.busy.binary_search(&(location as u16)) {
            self.busy.insert(at, location as u16);
        }
    }

    /// The message at `index`.
    pub fn message(&self, index: u16) -> &Message {
        &self.messages[index]
    }

    /// Whether the message is the newest of its location.
    pub fn is_newest(&self, message: u16) -> bool {
        self.messages.is_newest(message)
    }

    /// The value of the newest message of `location`.
    pub fn newest_value(&self, location: usize) -> u64 {
        let newest = self.messages_of(location).last().expect("an accessed location has a message");
        self.messages[newest].value
    }

    /// The values that threads can read of locations that have more than one, or pass on a view.
    pub fn old_values(&self) -> impl Iterator<Item = u64> + '_ {
        let messages = self.busy.iter().flat_map(|&location| self.messages_of(location as usize));
        messages.map(|index| self.messages[index].value)
    }

    /// Begins the lifetime of a location, all of which is `span`, consists of `bytes` and holds
    /// `value`, unless it has begun in this execution.
    pub fn begin(
        &mut self,
        thread: usize,
        span: Span,
        bytes: Range<usize>,
        value: u64,
        owner: bool,
    ) -> Result<(), Fault> {
        let location = span.location;
        let last = span.slots().last().unwrap_or(location);
        if last >= MAX_LOCATIONS {
            return Err(Fault::Limit("too many atomic objects"));
        }
        if self.locations.len() <= last {
            self.locations.resize(last + 1, UNTOUCHED);
            self.views.widen(last);
        }
        if self.locations[location].dead {
            if !owner {
                return Err(Fault::Dead);
            }
            self.rewrite(thread, location, value);
            // The compiler may omit the call for the initializing write.
            self.check_access(thread, bytes.clone(), Access::PlainWrite, true)?;
        }
        if self.locations[location].head == NO_MESSAGE {
            span.slots().for_each(|slot| self.locations[slot].parts = 0);
            self.locations[location].parts = span.parts();
            self.locations[location].head = self.messages.add(Message {
                value,
                writer: NO_THREAD,
                step: 0,
                time: 0,
                next: NO_MESSAGE,
                view: NO_VIEW,
                kind: Kind::Store,
                wrote: span.parts(),
            });
            self.objects.replace(bytes, owner)?;
        }
        Ok(())
    }

    /// Whether `location` has been accessed in this execution and is alive.
    pub fn is_begun(&self, location: usize) -> bool {
        self.locations.get(location).is_some_and(|place| place.head != NO_MESSAGE)
    }

    /// Whether the lifetime of `location` is over.
    pub fn is_dead(&self, location: usize) -> bool {
        self.locations.get(location).is_some_and(|place| place.dead)
    }

    /// Checks that `access` by `thread` to `bytes` races with no earlier one. Remembers it if
    /// `keep`.
    pub fn check_access(
        &mut self,
        thread: usize,
        bytes: Range<usize>,
        access: Access,
        keep: bool,
    ) -> Result<(), Fault> {
        self.accesses.check(thread, bytes, access, self.views.get(thread), keep)
    }

    /// Lets `thread` read `span` at `message`. Returns the value.
    pub fn read(&mut self, thread: usize, span: Span, message: u16, acquire: bool) -> u64 {
        for (slot, origin) in self.origins(span, message) {
            let Message { time, view, wrote, .. } = self.messages[origin];
            self.views.observe(thread, slot, time);
            self.views.receive(thread, view, acquire);
            for other in span::slots(span.location, wrote & !span.parts()) {
                self.views.observe_from(thread, other, time, acquire);
            }
        }
        self.value(span, message)
    }

    /// Lets `thread` store `value` to `span` directly after message `after.0`; atomically with a
    /// read at that message if `after.1`.
    pub fn write(
        &mut self,
        thread: usize,
        span: Span,
        after: (u16, bool),
        value: u64,
        release: bool,
        step: u32,
    ) -> Result<(), Fault> {
        let time = self.time_after(span.location, after.0)?;
        span.slots().for_each(|slot| self.views.observe(thread, slot, time));
        self.add(thread, span, after, value, release, (step, time));
        Ok(())
    }

    /// Lets `thread` store to all of `location`, as `write` does without release, but not into the
    /// thread's view. Returns the message.
    pub fn promise(
        &mut self,
        thread: usize,
        location: usize,
        after: (u16, bool),
        value: u64,
        step: u32,
    ) -> Result<u16, Fault> {
        let time = self.time_after(location, after.0)?;
        Ok(self.add(thread, Span::all_of(location), after, value, false, (step, time)))
    }

    /// Adds the message of a store that is made in the step `made.0` and has the time `made.1`.
    fn add(
        &mut self,
        thread: usize,
        span: Span,
        after: (u16, bool),
        value: u64,
        release: bool,
        made: (u32, u32),
    ) -> u16 {
        let ((after, update), (step, time)) = (after, made);
        let next = self.messages[after].next;
        let continued = if update { self.continued(span, after) } else { NO_VIEW };
        let view = self.views.of_store(thread, span, continued, release);
        let message = self.messages.add(Message {
            value: self.value_with(span, after, value),
            writer: thread as u8,
            step,
            time,
            next,
            view,
            kind: if update { Kind::Update } else { Kind::Store },
            wrote: span.parts(),
        });
        self.messages[after].next = message;
        self.pass_on(span, message);
        self.mark_busy(span.location);
        message
    }

    /// Lets `thread` know that it has performed the store of its promise `message` to `location`.
    pub fn keep(&mut self, thread: usize, location: usize, message: u16) {
        self.views.observe(thread, location, self.messages[message].time);
    }

    /// Whether `message` is one of `location` that was made in `step`.
    pub fn holds(&self, location: usize, message: u16, step: u32) -> bool {
        self.messages_of(location).any(|other| other == message)
            && self.messages[message].step == step
    }

    /// Whether `message` precedes `other`, one of the same location, in modification order.
    pub fn is_before(&self, message: u16, other: u16) -> bool {
        self.messages[message].time < self.messages[other].time
    }

    /// The number of messages of `location` that precede `message` and that threads can read.
    pub fn position(&self, location: usize, message: u16) -> usize {
        self.messages_of(location).take_while(|&other| other != message).count()
    }

    fn time_after(&mut self, location: usize, before: u16) -> Result<u32, Fault> {
        let before = self.messages[before];
        if before.next == NO_MESSAGE {
            let last = &mut self.locations[location].last_time;
            *last = last
                .checked_add(TIME_STEP)
                .ok_or(Fault::Limit("too many stores in an execution"))?;
            return Ok(*last);
        }
        let next = self.messages[before.next].time;
        let time = before.time + (next - before.time) / 2;
        if time == before.time {
            return Err(Fault::Limit("too many stores inserted between two others"));
        }
        Ok(time)
    }

    /// Lets all threads know everything that was done. After a fork the child sees the memory as it
    /// is; a created thread knows what its creator does.
    pub fn share_all(&mut self) {
        let newest = |place: &Location| {
            std::iter::repeat_n(place.last_time, place.parts.count_ones() as usize)
        };
        self.views.share_all(self.locations.iter().flat_map(newest));
    }

    /// A plain write of the atomic `location` by `thread`, which may begin a new lifetime.
    fn rewrite(&mut self, thread: usize, location: usize, value: u64) {
        self.free_messages_of(location);
        let place = &mut self.locations[location];
        if std::mem::take(&mut place.dead) {
            self.dead ^= code_of_dead(location);
        }
        place.last_time += TIME_STEP;
        let (time, parts) = (place.last_time, place.parts);
        self.locations[location].head = self.messages.add(Message {
            value,
            writer: thread as u8,
            step: 0,
            time,
            next: NO_MESSAGE,
            view: NO_VIEW,
            kind: Kind::Store,
            wrote: parts,
        });
        span::slots(location, parts).for_each(|slot| self.views.observe(thread, slot, time));
    }

    fn free_messages_of(&mut self, location: usize) {
        let old: Vec<u16> = self.messages_of(location).collect();
        old.into_iter().for_each(|message| self.free_message(message));
    }

    /// A plain access by `thread` that covers the atomic `location` and that `check_access`
    /// accepts. `owner`: the thread owns the memory, so a write may begin a new lifetime.
    pub fn plain_on_atomic(
        &mut self,
        thread: usize,
        location: usize,
        write: bool,
        owner: bool,
    ) -> Result<(), Fault> {
        let Some(&place) = self.locations.get(location) else { return Ok(()) };
        if place.dead && !(owner && write) {
            return Err(Fault::Dead);
        }
        if write && (place.dead || place.head != NO_MESSAGE) {
            self.rewrite(thread, location, 0);
        }
        Ok(())
    }

    /// Sets the value that a plain write has left in `location`.
    pub fn set_plain_value(&mut self, location: usize, value: u64) {
        let head = self.locations[location].head;
        if head != NO_MESSAGE && self.messages.is_newest(head) {
            self.messages[head].value = value;
        }
    }

    /// A plain access to the bytes from `start` to `end`, where no atomic object is.
    pub fn plain(&mut self, start: usize, end: usize, owner: bool) -> Result<(), Fault> {
        self.objects.access(start, end, owner)
    }

    /// Ends the lifetime of the plain objects from `start` to `end`.
    pub fn kill_plain(&mut self, start: usize, end: usize) {
        self.accesses.remove(start, end);
        self.objects.kill(start, end);
    }

    /// Ends the lifetime of `location`.
    pub fn kill(&mut self, location: usize) {
        if !self.is_begun(location) {
            return;
        }
        self.free_messages_of(location);
        let place = &mut self.locations[location];
        place.head = NO_MESSAGE;
        place.dead = true;
        self.dead ^= code_of_dead(location);
    }

    /// Drops what no continuation can observe. `live` has the bits of the threads that have not
    /// ended; `floor` is scratch memory.
    pub fn collect(&mut self, live: u32, floor: &mut Vec<u32>) {
        let mut threads = threads_in(live, self.threads);
        let Some(first) = threads.next() else { return };
        floor.clear();
        floor.extend_from_slice(self.views.get(first));
        for thread in threads {
            floor
                .iter_mut()
                .zip(self.views.get(thread))
                .for_each(|(mine, theirs)| *mine = (*mine).min(*theirs));
        }
        let mut busy = std::mem::take(&mut self.busy);
        busy.retain(|&location| self.collect_location(location as usize, floor));
        self.busy = busy;
        self.accesses.forget(floor);
    }

    /// Drops the messages of `location` that no thread can read, and views that all threads know.
    /// Returns whether the location is still busy.
    fn collect_location(&mut self, location: usize, floor: &[u32]) -> bool {
        let mut head = self.locations[location].head;
        if head == NO_MESSAGE {
            return false;
        }
        loop {
            let next = self.messages[head].next;
            if next == NO_MESSAGE || !self.replaces(location, head, next, floor) {
                break;
            }
            self.free_message(head);
            head = next;
        }
        self.locations[location].head = head;
        let mut at = head;
        while at != NO_MESSAGE {
            let Message { view, next, .. } = self.messages[at];
            if view != NO_VIEW && self.views.is_within(view, floor) {
                self.views.free(view);
                self.messages[at].view = NO_VIEW;
            }
            at = next;
        }
        let Message { next, view, .. } = self.messages[head];
        next != NO_MESSAGE || view != NO_VIEW
    }
}
