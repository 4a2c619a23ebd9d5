// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrivals: the order in which threads begin to wait, and how often each waiter is bypassed.
//!
//! A thread arrives when it first changes an object that the client has declared as a queue,
//! between `begin` and `end`. A thread that acquires without such a change arrives as it acquires.

use crate::abi::MAX_THREADS;

#[derive(Clone, Copy, Default)]
struct Waiter {
    acquires: bool,
    /// The time of its arrival; 0 before.
    arrival: u32,
    /// The time from which on bypasses count; 0 before.
    since: u32,
    /// The value that its arrival wrote.
    wrote: u64,
    bypasses: u32,
}

/// The waiters in one state of an execution.
#[derive(Clone, Copy, Default)]
pub struct Arrivals {
    waiters: [Waiter; MAX_THREADS],
    clock: u32,
    version: u32,
}

impl Arrivals {
    /// A number that differs after each arrival or departure.
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

    /// Counts the bypasses of `thread` from now on.
    pub fn count(&mut self, thread: usize) {
        let waiter = &mut self.waiters[thread];
        if waiter.acquires && waiter.since == 0 {
            self.clock += 1;
            waiter.since = self.clock;
        }
    }

    /// `thread` has ended acquiring; `has`: with the lock. Bypasses count from the waiter's
    /// arrival, or from `count`. Returns the most often bypassed waiter among those that `thread`
    /// has bypassed, and its number of bypasses.
    pub fn end(&mut self, thread: usize, has: bool, from_arrival: bool) -> Option<(usize, u32)> {
        let arrival = self.waiters[thread].arrival;
        self.waiters[thread] = Waiter::default();
        self.version += 1;
        let mut most = None;
        for (other, waiter) in self.waiters.iter_mut().enumerate().filter(|_| has) {
            let since = if from_arrival { waiter.arrival } else { waiter.since };
            if waiter.acquires && since != 0 && (arrival == 0 || arrival > since) {
                waiter.bypasses += 1;
                most = most.max(Some((waiter.bypasses, other)));
            }
        }
        most.map(|(bypasses, other)| (other, bypasses))
    }

    /// The value that the arrival of `thread` wrote; 0 if it does not wait.
    pub fn arrival(&self, thread: usize) -> u64 {
        self.waiters[thread].wrote
    }

    /// Appends a code that is equal for arrivals that no continuation can distinguish.
    pub fn encode(&self, into: &mut Vec<u64>) {
        let waiting = || self.waiters.iter().enumerate().filter(|(_, waiter)| waiter.acquires);
        let rank = |time: u32| {
            let earlier = |other: u32| u64::from(other != 0 && other < time);
            waiting()
                .map(|(_, waiter)| earlier(waiter.arrival) + earlier(waiter.since))
                .sum::<u64>()
        };
        into.push(waiting().fold(0, |all, (thread, _)| all | 1 << thread));
        for (_, waiter) in waiting() {
            let Waiter { arrival, since, wrote, bypasses, .. } = *waiter;
            into.push(wrote);
            let has = u64::from(arrival != 0) | u64::from(since != 0) << 1;
            into.push(u64::from(bypasses) << 32 | rank(arrival) << 16 | rank(since) << 8 | has);
        }
    }
}
