// SPDX-License-Identifier: MIT OR Apache-2.0
//! Futexes: sleeping and waking in the kernel.

use super::Engine;
use super::agenda::Action;
use super::spins;
use super::thread::State;
use crate::ids::ThreadId;
use crate::time::{NEVER, Time, ns};
use crate::trace::Mark;

/// Linux's default timer slack.
const TIMER_SLACK: Time = 50_000_000;

impl Engine {
    /// Acquires the lock of the futex's hash bucket, and holds it for the time of a futex
    /// operation.
    pub(super) fn bucket(&mut self, address: usize) {
        let (now, hold) = (self.now, self.machine.futex);
        let bucket = self.system.futexes.entry(address).or_default();
        bucket.busy = bucket.busy.max(now) + hold;
        let until = bucket.busy;
        self.advance(until - now);
    }

    /// FUTEX_WAIT: sleeps while the word equals `expected`, until `deadline`.
    pub fn park(&mut self, address: usize, expected: u64, deadline: Time) {
        self.enter_system();
        self.bucket(address);
        if self.load(address, 4) != expected
            || self.arena.read(address, 4) != expected
            || self.now >= deadline
        {
            return;
        }
        let id = self.current;
        self.system.futexes.entry(address).or_default().sleepers.push_back(id);
        self.charge(id);
        let now = self.now;
        self.trace.note(now, id, Mark::Parks);
        let thread = self.me();
        thread.sleeps += 1;
        thread.state = State::Parked;
        thread.generation += 1;
        thread.sleeps_on = Some((u32::MAX, address));
        let generation = thread.generation;
        if deadline != NEVER {
            self.agenda.schedule(deadline, Action::Deadline, id, generation);
        }
        self.leave_cpu(id);
        self.suspend();
    }

    /// Sleeps for W_YIELD_NANOSECONDS and the kernel's timer slack, as w_yield() of `world/user`:
    /// on a futex that no thread wakes.
    pub fn nap(&mut self) {
        self.enter_system();
        let id = self.current;
        self.charge(id);
        self.trace.note(self.now, id, Mark::Parks);
        let until = self.now + ns(f64::from(spins::rules().yield_nanoseconds)) + TIMER_SLACK;
        let thread = self.me();
        thread.sleeps += 1;
        thread.state = State::Parked;
        thread.generation += 1;
        let generation = thread.generation;
        self.agenda.schedule(until, Action::Deadline, id, generation);
        self.leave_cpu(id);
        self.suspend();
    }

    /// Handles the deadline of a sleeper.
    pub fn sleep_over(&mut self, id: ThreadId) {
        let address = self.threads[id as usize].sleeps_on.map(|(_, address)| address);
        if let Some(bucket) = address.and_then(|address| self.system.futexes.get_mut(&address)) {
            bucket.sleepers.retain(|sleeper| *sleeper != id);
        }
        // No other thread wakes it.
        self.current = id;
        self.wake(id);
    }

    /// FUTEX_WAKE: wakes one sleeper of the address, or all of them.
    pub fn unpark(&mut self, address: usize, all: bool) {
        self.enter_system();
        if self.system.futexes.get(&address).is_none_or(|bucket| bucket.sleepers.is_empty()) {
            return;
        }
        self.bucket(address);
        // Only threads that sleep now are woken, as under the bucket's lock of Linux. Otherwise a
        // waker of all would go on for as long as woken threads sleep again.
        let sleepers = &mut self.system.futexes.entry(address).or_default().sleepers;
        let count = if all { sleepers.len() } else { sleepers.len().min(1) };
        let woken: Vec<ThreadId> = sleepers.drain(..count).collect();
        for id in &woken {
            // Voids its deadline.
            self.threads[*id as usize].generation += 1;
        }
        for id in woken {
            self.wake(id);
            self.advance(self.machine.waking);
        }
    }
}
