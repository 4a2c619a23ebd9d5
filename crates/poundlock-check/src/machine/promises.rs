// SPDX-License-Identifier: MIT OR Apache-2.0
//! Promises: stores that a thread performs before earlier operations of its own, as compilers and
//! processors do (load buffering).
//!
//! A promise is the message of a store or read-modify-write without release. Its thread makes it
//! while a read is pending, up to `REACH` operations before the store's turn. The other threads see
//! the message at once; the thread itself does not, and keeps the promise when it performs that
//! store. Until then it passes only operations that order no later store: no acquire, fence, sleep
//! or wake-up, no store to the promised location, and no read of its promise or a later message.
//!
//! A value cannot come out of thin air: in every state the thread can keep its promise running
//! alone. `choices` drops each step that leads to a state in which it cannot. So no state is stuck
//! because of a promise. At most one promise is open, and a fork waits until none is. Objects of
//! mixed sizes have no promises.
//!
//! Limit: an error of the thread itself between its promise and the store is not reported.

use super::Machine;
use super::reduction::NEVER;
use super::state::{Promise, Status};
use super::step::{Action, Alternative, Choice, FIRST_MESSAGE};
use crate::abi::Kind;
use crate::arena;
use crate::memory::{Access, Span};

/// The most operations that a thread passes between a promise and its store.
const REACH: u32 = 3;

/// An operation that a thread passes.
struct Passed {
    location: Option<usize>,
    stores: bool,
}

/// A store that a thread could promise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    location: usize,
    /// The message that the store directly follows.
    after: u16,
    /// Whether the store is a read-modify-write of that message.
    update: bool,
    value: u64,
}

fn is_update(kind: Kind) -> bool {
    use Kind::{CompareExchange, Exchange, FetchAdd, FetchAnd, FetchOr};
    matches!(kind, Exchange | CompareExchange | FetchAdd | FetchOr | FetchAnd)
}

impl Machine {
    /// Whether the promise of `thread` is open.
    pub(super) fn has_promised(&self, thread: usize) -> bool {
        self.now.promise.is_some_and(|promise| promise.thread as usize == thread)
    }

    /// Writes the stores that `thread` can promise into `self.candidates`.
    pub(super) fn find_candidates(&mut self, thread: usize) {
        self.candidates.clear();
        let can_promise = self.settings.promises && self.is_weak() && self.now.promise.is_none();
        if can_promise && self.is_ready(thread) && self.reads(thread) && !self.is_private(thread) {
            self.look_ahead(thread, &mut Vec::new());
            // A location that begins on the way has no message yet.
            let memory = &self.now.memory;
            let begin = self.candidates.iter_mut().filter(|it| !memory.is_begun(it.location));
            begin.for_each(|candidate| candidate.after = FIRST_MESSAGE);
        }
    }

    fn is_ready(&self, thread: usize) -> bool {
        self.now.threads[thread].status == Status::Ready
    }

    /// Whether the pending operation of `thread` reads an atomic object.
    fn reads(&self, thread: usize) -> bool {
        let kind = self.site(thread).kind;
        matches!(kind, Kind::Load | Kind::Wait) || is_update(kind)
    }

    /// Adds the stores that `thread`, running alone, performs after the operations in `passed`.
    fn look_ahead(&mut self, thread: usize, passed: &mut Vec<Passed>) {
        self.alternatives(thread);
        let mut options = self.options.clone();
        let location = (self.site(thread).size != 0).then(|| self.span(thread).location);
        if let (Some(location), Some(first)) = (location, passed.first()) {
            let is_own = passed.iter().any(|by| by.stores && by.location == Some(location));
            let other = first.location != Some(location);
            if other && !is_own && !self.is_mixed(thread) && !self.is_private(thread) {
                self.add_candidates(thread, location, &options);
            }
        }
        if passed.len() == REACH as usize {
            return;
        }
        options.retain(|option| self.passes(thread, option));
        for option in options {
            passed.push(Passed { location, stores: self.stored(thread, &option).is_some() });
            self.aside(|machine| {
                machine.advance(thread, option);
                if machine.fault.is_none() && machine.is_ready(thread) {
                    machine.look_ahead(thread, passed);
                }
            });
            passed.pop();
        }
    }

    /// Whether the pending operation of `thread` is on an object of mixed sizes.
    pub(super) fn is_mixed(&self, thread: usize) -> bool {
        let size = self.site(thread).size as usize;
        self.places.mixed(self.now.threads[thread].request.address, size).is_some()
    }

    /// Adds the stores to `location` that `options` of the pending operation of `thread` perform.
    fn add_candidates(&mut self, thread: usize, location: usize, options: &[Alternative]) {
        let site = self.site(thread);
        if site.order.releases() {
            return;
        }
        for option in options {
            let Some(value) = self.stored(thread, option) else { continue };
            let (after, update) = (option.message, site.kind != Kind::Store);
            let candidate = Candidate { location, after, update, value };
            if !self.candidates.contains(&candidate) {
                self.candidates.push(candidate);
            }
        }
    }

    /// The value that `option` of the pending operation of `thread` stores.
    fn stored(&mut self, thread: usize, option: &Alternative) -> Option<u64> {
        let site = self.site(thread);
        if site.kind != Kind::Store && !is_update(site.kind) {
            return None;
        }
        let old = self.value_of(thread, option);
        self.now.threads[thread].request.new_value(site, old)
    }

    /// The value of the message of `option`, one of an atomic access of `thread`.
    fn value_of(&mut self, thread: usize, option: &Alternative) -> u64 {
        if option.message == FIRST_MESSAGE {
            let (site, request) = (self.site(thread), &self.now.threads[thread].request);
            return arena::load(request.address, site.size as usize);
        }
        let span = self.span(thread);
        self.now.memory.value(span, option.message)
    }

    /// Whether a later store of `thread` can be performed before `option` of its pending operation.
    fn passes(&mut self, thread: usize, option: &Alternative) -> bool {
        let site = self.site(thread);
        match site.kind {
            Kind::Load | Kind::Exchange | Kind::FetchAdd | Kind::FetchOr | Kind::FetchAnd => {
                !site.order.acquires()
            }
            Kind::CompareExchange => {
                let expected = self.now.threads[thread].request.expected;
                !site.order.acquires() || self.value_of(thread, option) != expected
            }
            Kind::Wait => !site.order.acquires() || option.action != Action::Proceed,
            Kind::Store | Kind::Choose | Kind::Expired | Kind::Move => true,
            Kind::Fence
            | Kind::Park
            | Kind::Unpark
            | Kind::UnparkAll
            | Kind::Fork
            | Kind::Create
            | Kind::Created => false,
        }
    }

    /// Reduces the alternatives of `thread`, whose promise is open, to those that it can pass, or
    /// to the promised store.
    pub(super) fn restrict_to_promise(&mut self, thread: usize) {
        let Some(promise) = self.now.promise else { return };
        let Promise { location, message, after, .. } = promise;
        if !self.is_ready(thread) || !self.now.memory.holds(location, message, promise.step) {
            self.options.clear();
            return;
        }
        let here = self.site(thread).size != 0 && self.span(thread).location == location;
        let mut options = std::mem::take(&mut self.options);
        options.retain(|option| {
            let before = !here
                || self.stored(thread, option).is_none()
                    && self.now.memory.is_before(option.message, message);
            promise.left > 0 && before && self.passes(thread, option)
        });
        if here && self.is_promised(thread, &promise) {
            options.insert(0, Alternative { message: after, action: Action::Keep });
        }
        self.options = options;
    }

    /// Whether the pending operation of `thread`, on the promised location, is the promised store.
    fn is_promised(&mut self, thread: usize, promise: &Promise) -> bool {
        let site = self.site(thread);
        let update = site.kind != Kind::Store;
        if site.order.releases() || update != promise.update {
            return false;
        }
        let message = if update { promise.after } else { promise.message };
        let option = Alternative { message, action: Action::Proceed };
        let promised = self.now.memory.message(promise.message).value;
        self.stored(thread, &option) == Some(promised)
    }

    /// Makes a promise of `thread`. Returns the location that it changed.
    pub(super) fn promise(&mut self, thread: usize, candidate: Candidate) -> Option<usize> {
        let Candidate { location, mut after, update, value } = candidate;
        let (address, size) = self.places.extent(location);
        let (bytes, traced) = (address..address + size, self.places.is_traced(location));
        if !self.begin_location(thread, location) {
            return None;
        }
        if let Err(race) = self.now.memory.check_access(thread, bytes, Access::Store, traced) {
            self.report_fault(thread, &race);
            return None;
        }
        if after == FIRST_MESSAGE {
            self.now.memory.readable(thread, Span::all_of(location), &mut self.readable);
            after = self.readable[0];
        }
        self.now.stale += 1;
        self.effect.stale = NEVER;
        let step = self.now.step;
        self.describe_step(|_| format!(" {} := {}", arena::name(address), arena::value(value)));
        match self.now.memory.promise(thread, location, (after, update), value, step) {
            Ok(message) => {
                let thread = thread as u8;
                let promise =
                    Promise { thread, location, message, after, update, step, left: REACH };
                self.now.promise = Some(promise);
            }
            Err(fault) => {
                self.report_fault(thread, &fault);
                return None;
            }
        }
        arena::store(address, size, self.now.memory.newest_value(location));
        self.note_arrival(thread, address, value);
        Some(location)
    }

    /// Lets `thread` perform the store that it has promised.
    pub(super) fn keep_promise(&mut self, thread: usize) {
        let Some(promise) = self.now.promise.take() else { return };
        let Promise { location, message, after, update, .. } = promise;
        if !self.check_access(thread, location, Access::Store) {
            return;
        }
        self.describe_step(|_| format!(", as promised in step {}", promise.step));
        if update {
            let acquire = self.site(thread).order.acquires();
            self.reply = self.now.memory.read(thread, Span::all_of(location), after, acquire);
        }
        self.now.memory.keep(thread, location, message);
    }

    /// Counts the operation that `thread` is about to perform as passed by its open promise.
    pub(super) fn count_passed(&mut self, thread: usize) {
        if let Some(promise) = &mut self.now.promise
            && promise.thread as usize == thread
        {
            promise.left = promise.left.saturating_sub(1);
        }
    }

    /// Whether the thread of the open promise can keep it after `choice`. It cannot after its own
    /// error.
    pub(super) fn is_allowed(&mut self, choice: Choice) -> bool {
        self.aside(|machine| {
            machine.perform(choice);
            let Some(promise) = machine.now.promise else { return true };
            if machine.fault.is_some() {
                return choice.thread != promise.thread;
            }
            machine.can_keep(promise.thread as usize)
        })
    }

    /// Whether `thread`, running alone, can keep its open promise.
    fn can_keep(&mut self, thread: usize) -> bool {
        self.alternatives(thread);
        self.options.clone().into_iter().any(|option| {
            self.aside(|machine| {
                machine.advance(thread, option);
                machine.now.promise.is_none() || machine.fault.is_none() && machine.can_keep(thread)
            })
        })
    }

    /// Performs an alternative of `thread`, as in `perform`, without what concerns other threads.
    fn advance(&mut self, thread: usize, option: Alternative) {
        self.now.step += 1;
        self.count_passed(thread);
        self.act(thread, option);
        if self.fault.is_none() && self.is_ready(thread) {
            self.resume(thread);
        }
    }

    /// Tries `what`, and returns to the present state.
    fn aside<T>(&mut self, what: impl FnOnce(&mut Machine) -> T) -> T {
        let mut start = self.spare.pop().unwrap_or_else(|| self.snapshot());
        self.save(&mut start);
        let (events, bypasses, running) = (self.events, self.bypasses, self.running);
        let (needs, trace, fault) = (self.needs.clone(), self.trace.take(), self.fault.take());
        let result = what(self);
        self.restore(&start);
        self.written.clear();
        (self.events, self.bypasses, self.running) = (events, bypasses, running);
        self.foreseen.add(&std::mem::replace(&mut self.needs, needs));
        (self.trace, self.fault) = (trace, fault);
        self.spare.push(start);
        result
    }
}
