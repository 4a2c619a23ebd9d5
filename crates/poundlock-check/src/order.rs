// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of waiters: who arrived when, and how often each has been passed by later arrivals.
//!
//! A thread arrives when it first changes an object that the client has named, between `begin` and `end`; one that never
//! does, and acquires all the same, arrives as it acquires.

use crate::memory::THREADS;

#[derive(Clone, Copy, Default)]
struct Waiter {
    acquires: bool,
    /// When it arrived; 0: not yet.
    arrival: u32,
    /// From when on those who pass it count; 0: not yet.
    since: u32,
    /// What its arrival wrote.
    wrote: u64,
    passed: u32,
}

/// The waiters of one moment of an execution.
#[derive(Clone, Copy, Default)]
pub struct Order {
    waiters: [Waiter; THREADS],
    clock: u32,
    /// How often something has changed.
    version: u32,
}

impl Order {
    /// Another one whenever waiters come or go.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// `thread` begins to acquire.
    pub fn begin(&mut self, thread: usize) {
        self.waiters[thread] = Waiter { acquires: true, ..Waiter::default() };
        self.version += 1;
    }

    /// `thread` changes a queue to `wrote`.
    pub fn change(&mut self, thread: usize, wrote: u64) {
        let waiter = &mut self.waiters[thread];
        if waiter.acquires && waiter.arrival == 0 {
            self.clock += 1;
            (waiter.arrival, waiter.wrote) = (self.clock, wrote);
            self.version += 1;
        }
    }

    /// Those who pass `thread` count from now on.
    pub fn count(&mut self, thread: usize) {
        let waiter = &mut self.waiters[thread];
        if waiter.acquires && waiter.since == 0 {
            self.clock += 1;
            waiter.since = self.clock;
        }
    }

    /// `thread` has ended acquiring, with the lock or without. The waiter that later arrivals have now passed most often,
    /// of those it passes, and how often.
    pub fn end(&mut self, thread: usize, has: bool, from_arrival: bool) -> Option<(usize, u32)> {
        let arrival = self.waiters[thread].arrival;
        self.waiters[thread] = Waiter::default();
        self.version += 1;
        let mut most = None;
        for (other, waiter) in self.waiters.iter_mut().enumerate().filter(|_| has) {
            let since = if from_arrival { waiter.arrival } else { waiter.since };
            if waiter.acquires && since != 0 && (arrival == 0 || arrival > since) {
                waiter.passed += 1;
                most = most.max(Some((waiter.passed, other)));
            }
        }
        most.map(|(passed, other)| (other, passed))
    }

    /// What the arrival of `thread` wrote; 0: it does not wait.
    pub fn arrival(&self, thread: usize) -> u64 {
        self.waiters[thread].wrote
    }

    /// Appends a code that is the same for orders that no continuation can tell apart.
    pub fn encode(&self, into: &mut Vec<u64>) {
        let waiting = || self.waiters.iter().enumerate().filter(|(_, waiter)| waiter.acquires);
        let rank = |time: u32| {
            let earlier = |other: u32| u64::from(other != 0 && other < time);
            waiting().map(|(_, waiter)| earlier(waiter.arrival) + earlier(waiter.since)).sum::<u64>()
        };
        into.push(waiting().fold(0, |all, (thread, _)| all | 1 << thread));
        for (_, waiter) in waiting() {
            let Waiter { arrival, since, wrote, passed, .. } = *waiter;
            into.push(wrote);
            let has = u64::from(arrival != 0) | u64::from(since != 0) << 1;
            into.push(u64::from(passed) << 32 | rank(arrival) << 16 | rank(since) << 8 | has);
        }
    }
}
