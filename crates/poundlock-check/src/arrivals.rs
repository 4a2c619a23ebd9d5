// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrivals: the order in which threads begin to wait, and how often each waiter is bypassed.
//!
//! A thread arrives when it first changes an object that the client has declared as a queue,
//! between `begin` and `end`. A thread that acquires without such a change arrives as it acquires.

use crate::abi::MAX_THREADS;

/// The checks that a client makes of its waiters.
#[derive(Clone, Copy)]
pub struct Watched {
    /// Whether its invariant reads what each arrival wrote.
    pub in_states: bool,
    /// Whether it has a bound on bypasses, and whether these count from a waiter's arrival on.
    pub in_order: bool,
    pub from_arrival: bool,
}

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

    /// Appends a code that is equal for arrivals that no continuation can distinguish, in a client
    /// that is `watched` so.
    pub fn encode(&self, watched: Watched, into: &mut Vec<u64>) {
        let waiting = || self.waiters.iter().enumerate().filter(|(_, waiter)| waiter.acquires);
        let bits = |of: &dyn Fn(&Waiter) -> bool| {
            waiting()
                .filter(|(_, waiter)| of(waiter))
                .fold(0, |bits, (thread, _)| bits | 1 << thread)
        };
        into.push(bits(&|_| true) | bits(&|waiter| waiter.arrival != 0) << 8);
        if watched.in_states {
            into.extend(waiting().map(|(_, waiter)| waiter.wrote));
        }
        if !watched.in_order {
            return;
        }
        for (_, waiter) in waiting() {
            // Whoever came no later does not bypass it. Later arrivals are alike.
            let since = if watched.from_arrival { waiter.arrival } else { waiter.since };
            let no_later = bits(&|other| other.arrival != 0 && other.arrival <= since);
            let counts = u64::from(since != 0);
            into.push(u64::from(waiter.bypasses) << 32 | counts << 8 | no_later);
        }
    }
}
