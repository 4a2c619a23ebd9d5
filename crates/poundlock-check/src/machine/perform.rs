// SPDX-License-Identifier: MIT OR Apache-2.0
//! One step of an execution.

use super::reduction::Effect;
use super::state::Status;
use super::step::{Action, Alternative, Choice, FIRST_MESSAGE};
use super::{Machine, describe};
use crate::abi::{Kind, Order};
use crate::arena;
use crate::memory::{Access, Memory, Span};

/// A walk collects the memory's garbage once in this number of steps, an exhaustive search in each.
const COLLECT_INTERVAL: u32 = 16;

impl Machine {
    /// Performs `choice`, one of `choices`.
    pub fn perform(&mut self, choice: Choice) {
        let thread = choice.thread as usize;
        self.count_preemption(thread);
        let alternative = self.alternative(choice);
        let promises = matches!(alternative.action, Action::Promise(_));
        self.now.step += 1;
        self.count_passed(thread);
        // A step that is performed at once does not end a yield: no other thread could run instead.
        let private = self.is_private(thread) || self.reads_hint(thread);
        self.now.threads[thread].yielded &= private || self.is_immediate(thread);
        self.wrote_shared = false;
        self.effect = Effect::default();
        let before = self.trace.is_some().then(|| match promises {
            true => format!("T{thread} promises"),
            false => describe::operation(&self.now, thread),
        });
        let arrivals = self.now.arrivals.version();
        let changed = self.act(thread, alternative);
        if let (Some(before), Some(trace)) = (before, &mut self.trace) {
            trace.push(format!(
                "{:5}  {before}{}",
                self.now.step,
                std::mem::take(&mut self.detail)
            ));
        }
        if self.fault.is_some() {
            return;
        }
        if !promises && self.now.threads[thread].status == Status::Ready {
            self.resume(thread);
        }
        if let Some(location) = changed {
            self.retest_waits(location);
        }
        self.note_reader(thread, private);
        if self.settings.exhaustive || self.now.step.is_multiple_of(COLLECT_INTERVAL) {
            let live = self.now.live();
            self.now.memory.collect(live, &mut self.floor);
        }
        // The invariant depends on the newest values and on the waiters only.
        let changed =
            changed.is_some() || self.wrote_shared || self.now.arrivals.version() != arrivals;
        if self.fault.is_none() && changed {
            self.call_directly(self.client.invariant, "after that step");
        }
    }

    /// The alternative that `choice` names. A thread's promises follow its other alternatives.
    fn alternative(&mut self, choice: Choice) -> Alternative {
        let thread = choice.thread as usize;
        self.alternatives(thread);
        let count = self.options.len() as u8;
        if choice.alternative < count {
            return self.options[choice.alternative as usize];
        }
        self.find_candidates(thread);
        Alternative { message: 0, action: Action::Promise(choice.alternative - count) }
    }

    /// Counts the switch to `thread`, unless its operation is performed at once.
    fn count_preemption(&mut self, thread: usize) {
        if self.is_private(thread) || self.reads_hint(thread) || self.is_immediate(thread) {
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

    /// Tests the pending waits on `location` again.
    fn retest_waits(&mut self, location: usize) {
        for thread in 0..self.now.threads.len() {
            let ready = self.fault.is_none() && self.now.threads[thread].status == Status::Ready;
            let waits = ready && (self.is_waiting(thread) || self.is_parking(thread));
            if !waits || self.span(thread).location != location {
                continue;
            }
            if self.is_parking(thread) {
                self.test_park(thread);
            } else {
                self.test_wait(thread);
                self.hash_stack(thread);
            }
        }
    }

    /// Adds to the description of the step.
    pub(super) fn describe_step(&mut self, detail: impl FnOnce(&Memory) -> String) {
        if self.trace.is_some() {
            self.detail += &detail(&self.now.memory);
        }
    }

    /// Performs the alternative up to its reply. Returns the location that it changed.
    pub(super) fn act(&mut self, thread: usize, alternative: Alternative) -> Option<usize> {
        let request = self.now.threads[thread].request;
        self.reply = 0;
        match (alternative.action, self.site(thread).kind) {
            (Action::Promise(number), _) => {
                return self.promise(thread, self.candidates[number as usize]);
            }
            (Action::Keep, _) => self.keep_promise(thread),
            (Action::Choose(by), Kind::Move) => self.move_thread(thread, by),
            (Action::Choose(value), kind) => {
                self.reply = value as u64;
                self.now.threads[thread].expired |= kind == Kind::Expired && value == 1;
                self.describe_step(|_| format!(" chosen: {value}"));
            }
            (Action::TimeOut, _) => {
                self.now.threads[thread].status = Status::Ready;
                self.now.threads[thread].expired = true;
                self.describe_step(|_| " sleeps until its deadline".into());
            }
            (Action::Wake(sleeper), _) if self.settings.composed => {
                self.pay_one(thread, sleeper as usize)
            }
            (Action::Wake(sleeper), _) => self.wake(sleeper as usize),
            (_, Kind::UnparkAll) => {
                self.now.sleepers(request.address).for_each(|sleeper| self.wake(sleeper))
            }
            (_, Kind::Unpark) => self.describe_step(|_| " wakes no thread".into()),
            (_, Kind::Fence) => self.fence(thread),
            (_, Kind::Fork) => self.fork(thread),
            (_, Kind::Create) => {
                self.now.created = true;
                self.now.memory.share_all();
            }
            (_, Kind::Created) => {}
            (Action::Proceed, Kind::Park) if self.settings.composed => {
                self.end_park(thread, alternative.message)
            }
            (_, Kind::Park) => self.park(thread, alternative.action),
            _ => return self.access(thread, alternative),
        }
        None
    }

    fn move_thread(&mut self, thread: usize, by: u32) {
        let cpu = &mut self.now.threads[thread].cpu;
        *cpu = (*cpu + by) % self.settings.cpus;
        let cpu = *cpu;
        self.now.moves -= u32::from(by != 0);
        self.describe_step(|_| if by == 0 { " stays".into() } else { format!(" to CPU {cpu}") });
    }

    fn fence(&mut self, thread: usize) {
        let order = self.site(thread).order;
        let views = self.now.memory.views();
        match order {
            Order::Acquire => views.fence_acquire(thread),
            Order::Release => views.fence_release(thread),
            Order::AcqRel => views.fence_acq_rel(thread),
            _ => views.fence_seq_cst(thread),
        }
    }

    fn wake(&mut self, sleeper: usize) {
        self.describe_step(|_| format!(" wakes T{sleeper}"));
        self.now.threads[sleeper].status = Status::Ready;
        let running = self.running;
        self.resume(sleeper);
        self.running = running;
        self.reply = 0;
    }

    /// Continues as the child of a fork: the other threads, but for those not yet created, end.
    fn fork(&mut self, thread: usize) {
        self.now.generation += 1;
        self.now.memory.share_all();
        for other in (0..self.now.threads.len()).filter(|&other| other != thread) {
            let stays = self.now.threads[other].status == Status::Ready
                && self.site(other).kind == Kind::Created;
            if !stays && self.now.threads[other].status != Status::Ended {
                self.now.threads[other].status = Status::Ended;
                self.free_nodes(other);
            }
        }
    }

    /// Returns the nodes of a thread that does not exist in the child to their pool.
    fn free_nodes(&mut self, thread: usize) {
        for node in (0..arena::NODES_EACH).map(|index| arena::node(thread, index)) {
            let location = self.places.span(node, 4, &self.needs).location;
            self.now.memory.kill(location);
            arena::store(node, 4, 0);
        }
    }

    fn park(&mut self, thread: usize, action: Action) {
        let span = self.span(thread);
        if !self.begin_location(thread, span.location)
            || !self.check_access(thread, span.location, Access::Load)
        {
            return;
        }
        self.now.memory.readable(thread, span, &mut self.readable);
        let newest = *self.readable.last().expect("a location has a message");
        let value = self.now.memory.read(thread, span, newest, false);
        match action {
            Action::Sleep => self.now.threads[thread].status = Status::Parked,
            Action::SpuriousWake => self.now.spurious -= 1,
            _ => {}
        }
        self.describe_step(|_| match action {
            Action::Sleep => " sleeps".into(),
            Action::SpuriousWake => " returns spuriously".into(),
            _ => format!(" returns at once: the value is {}", arena::value(value)),
        });
    }

    /// Loads, stores, read-modify-writes and waits.
    fn access(&mut self, thread: usize, alternative: Alternative) -> Option<usize> {
        let span = self.span(thread);
        let location = span.location;
        if !self.begin_location(thread, location) {
            return None;
        }
        let site = self.site(thread);
        let request = self.now.threads[thread].request;
        let mut message = alternative.message;
        if message == FIRST_MESSAGE {
            self.now.memory.readable(thread, span, &mut self.readable);
            message = self.readable[0];
        }
        let newest = self.now.memory.is_newest(message);
        self.now.stale += u32::from(!newest);
        if !newest {
            self.effect.stale = location as u16;
        }
        if site.kind == Kind::Wait {
            self.effect.reads = !self.is_mixed(thread);
            self.end_wait(thread, span, message, alternative.action);
            return None;
        }
        let old = self.now.memory.value(span, message);
        let new = request.new_value(site, old);
        if !self.check_access(
            thread,
            location,
            if new.is_some() { Access::Store } else { Access::Load },
        ) {
            return None;
        }
        let reads = site.kind != Kind::Store;
        self.describe_access(span, message, reads, new);
        if reads {
            let acquire =
                site.order.acquires() && (site.kind != Kind::CompareExchange || new.is_some());
            self.reply = self.now.memory.read(thread, span, message, acquire);
        }
        self.effect.reads = new.is_none() && !self.is_mixed(thread);
        let new = new?;
        if newest {
            self.effect.appends = location as u16;
            self.owe(thread, location, old, new);
        }
        let release = site.order.releases();
        let step = self.now.step;
        if let Err(fault) =
            self.now.memory.write(thread, span, (message, reads), new, release, step)
        {
            self.report_fault(thread, &fault);
            return None;
        }
        let (address, size) = self.places.extent(location);
        arena::store(address, size, self.now.memory.newest_value(location));
        self.note_arrival(thread, request.address, new);
        Some(location)
    }

    fn describe_access(&mut self, span: Span, message: u16, reads: bool, new: Option<u64>) {
        self.describe_step(|memory| {
            let mut detail = String::new();
            if reads {
                detail += &describe::read(memory, span, message);
            }
            if let Some(new) = new {
                detail += &format!(" := {}", arena::value(new));
                if !memory.is_newest(message) {
                    detail += &format!(", inserted after {}", describe::writer(memory, message));
                }
            }
            detail
        });
    }

    fn end_wait(&mut self, thread: usize, span: Span, message: u16, action: Action) {
        if !self.check_access(thread, span.location, Access::Load) {
            return;
        }
        self.describe_step(|memory| {
            let end = match action {
                Action::Proceed => "",
                Action::Skip => ", continues to wait",
                _ => ", gives up",
            };
            describe::read(memory, span, message) + end
        });
        let acquire = action == Action::Proceed && self.site(thread).order.acquires();
        self.reply = self.now.memory.read(thread, span, message, acquire);
        let t = &mut self.now.threads[thread];
        t.expired |= action == Action::GiveUp && !t.request.brief;
        if action == Action::Skip {
            // The wait's loop tests the value and stops again at the same place.
            self.testing = true;
        }
    }
}
