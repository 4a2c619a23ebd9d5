// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sleeping by its specification: a park is a wait, and each change that ends it needs a wake-up.
//!
//! A composed exploration has no sleepers. A park waits until its object does not have the expected
//! value, and a wake-up is an obligation:
//! - a thread that changes an object from a value with which another is in a park there owes a
//!   wake-up of that object;
//! - a wake-up of the object by any thread pays it, at once. If several threads may be in a park
//!   there, a wake-up of one is a step, and the explorer chooses whom it reaches. That thread then
//!   owes what its waker owed to the others;
//! - a change back to that value ends the obligation: the sleeper may sleep on;
//! - a thread that owes must not wait without a bound, sleep, yield or end. If it polls, the
//!   sleeper is one that has to wait: a fair execution may leave it there.
//!
//! So a sleeper whose object has changed is woken without anybody waiting for it: an execution with
//! sleepers is one of this exploration in which the sleeper is slow. docs/verification.md has the
//! assumptions. A debt is noted at the sleeper: executions in which it is slow until the payment
//! are all explored. A thread with a deadline is woken by that at the latest.

use super::Machine;
use super::state::Status;
use super::step::{Action, Alternative};
use crate::abi::Kind;
use crate::memory::Access;

impl Machine {
    /// Whether `thread` is in a park that is a wait.
    pub(super) fn is_parking(&self, thread: usize) -> bool {
        let t = &self.now.threads[thread];
        let begun = !t.request.site.is_null();
        let ready = t.status == Status::Ready;
        self.settings.composed && begun && ready && self.site(thread).kind == Kind::Park
    }

    /// Whether the newest value keeps `thread` in its park, without a deadline.
    pub(super) fn is_asleep(&self, thread: usize) -> bool {
        self.is_parking(thread) && !self.now.threads[thread].leaves
    }

    /// Whether `thread`, which is parking, certainly continues: it sleeps until a debt is paid.
    pub(super) fn leaves(&self, thread: usize) -> bool {
        let t = &self.now.threads[thread];
        t.leaves && t.owed_by == 0
    }

    /// Determines whether `thread`, which is parking, can continue on the newest value.
    pub(super) fn test_park(&mut self, thread: usize) {
        let span = self.span(thread);
        if self.begin_location(thread, span.location) {
            let request = self.now.threads[thread].request;
            self.now.threads[thread].leaves =
                self.now.memory.newest(span) != request.operand || request.deadline != 0;
        }
    }

    /// Writes the alternatives of `thread`, which is parking.
    pub(super) fn composed_alternatives(&mut self, thread: usize) {
        let span = self.span(thread);
        self.now.memory.readable(thread, span, &mut self.readable);
        let request = self.now.threads[thread].request;
        for &message in self.readable.iter().rev() {
            let ends = self.now.memory.value(span, message) != request.operand;
            if ends && (self.is_weak() || self.now.memory.is_newest(message)) {
                self.options.push(Alternative { message, action: Action::Proceed });
            }
        }
        if request.deadline != 0 {
            self.options.push(Alternative { message: 0, action: Action::TimeOut });
        } else if self.now.spurious > 0 && self.is_asleep(thread) {
            self.options.push(Alternative { message: 0, action: Action::SpuriousWake });
        }
    }

    /// Ends the park of `thread`, which has read `message`.
    pub(super) fn end_park(&mut self, thread: usize, message: u16) {
        let span = self.span(thread);
        if !self.check_access(thread, span.location, Access::Load) {
            return;
        }
        let newest = self.now.memory.is_newest(message);
        self.now.stale += u32::from(!newest);
        if !newest {
            self.effect.stale = span.location as u16;
        }
        self.effect.reads = !self.is_mixed(thread);
        self.describe_step(|memory| super::describe::read(memory, span, message));
        self.now.memory.read(thread, span, message, false);
    }

    /// Notes that `thread` has changed the object of `location`, whose newest value was `old`. A
    /// sleeper whose expected value is back may sleep on, unless it owes a wake-up.
    pub(super) fn owe(&mut self, thread: usize, location: usize, old: u64, new: u64) {
        let mut back = Vec::new();
        for sleeper in 0..self.now.threads.len() {
            if !self.is_parking(sleeper) || self.span(sleeper).location != location {
                continue;
            }
            let t = &mut self.now.threads[sleeper];
            if new == t.request.operand {
                t.owed_by = 0;
                back.push(sleeper);
            } else if t.request.deadline == 0 && old == t.request.operand {
                t.owed_by |= 1 << thread;
            }
        }
        back.into_iter().for_each(|sleeper| self.check_paid_by(sleeper));
    }

    /// The threads that are in a park of the object at `address`.
    pub(super) fn parking_at(&self, address: usize) -> impl Iterator<Item = usize> {
        let at = move |&thread: &usize| {
            self.is_parking(thread) && self.now.threads[thread].request.address == address
        };
        (0..self.now.threads.len()).filter(at)
    }

    /// The running thread is about to be in a park of the object at `address`. A wake-up of one of
    /// several threads is a step: whom it reaches depends on who is in a park when it is performed.
    pub(super) fn begin_park(&mut self, address: usize) {
        self.check_paid();
        let running = self.running;
        let shared = self.parking_at(address).any(|other| other != running);
        if shared && !self.needs.shared_sleeps.contains(&address) {
            self.needs.add_shared_sleep(address, &mut self.fault);
        }
    }

    /// Pays the wake-ups of `address` that any threads owe.
    pub(super) fn pay_all(&mut self, address: usize) {
        let sleepers: Vec<usize> = self.parking_at(address).collect();
        sleepers.into_iter().for_each(|sleeper| self.now.threads[sleeper].owed_by = 0);
    }

    /// Pays the wake-ups that any threads owe to `woken`, which then owes what `thread` owed to
    /// others in a park of the same object.
    pub(super) fn pay_one(&mut self, thread: usize, woken: usize) {
        self.describe_step(|_| format!(" wakes T{woken}"));
        self.now.threads[woken].owed_by = 0;
        let address = self.now.threads[woken].request.address;
        let others: Vec<usize> = self.parking_at(address).filter(|&other| other != woken).collect();
        for other in others {
            let owed_by = &mut self.now.threads[other].owed_by;
            if *owed_by >> thread & 1 != 0 {
                *owed_by = *owed_by & !(1 << thread) | 1 << woken;
            }
        }
        if self.is_asleep(woken) {
            self.check_paid_by(woken);
        }
    }

    /// Reports an error if the running thread, which is about to wait or end, owes a wake-up.
    pub(super) fn check_paid(&mut self) {
        self.check_paid_by(self.running);
    }

    /// Reports an error if `thread`, which does not continue, owes a wake-up.
    fn check_paid_by(&mut self, thread: usize) {
        let owed = |&sleeper: &usize| {
            self.is_parking(sleeper) && self.now.threads[sleeper].owed_by >> thread & 1 != 0
        };
        if let Some(sleeper) = (0..self.now.threads.len()).find(owed) {
            self.report(sleeper, &format!("T{thread} owes a wake-up and does not continue"));
        }
    }
}
