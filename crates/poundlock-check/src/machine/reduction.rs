// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reduction: executions that differ only in the order of independent steps are explored once.
//!
//! Each thread's steps form transactions: reads, then any one step, then stores (Lipton, CACM'75).
//! Threads switch between transactions only. In this memory
//! - a read can be delayed past the steps of other threads: they do not depend on it, and the
//!   message that it reads stays readable. So a thread that has read continues;
//! - a store that is no read-modify-write can be advanced past the steps of other threads: they can
//!   still read the older messages, and insert theirs before it. So it is performed at once.
//!
//! The code that a thread runs after its operation moves with it. So it must not be visible: it
//! does not access the client's own records, on which other threads' steps may depend. Races
//! between plain accesses do not depend on the order. The explorer also visits the other threads'
//! steps if a step is visible, or if it leads back to a state whose exploration has not ended (the
//! cycle proviso of ample sets). So no thread is postponed indefinitely.
//!
//! A read of a hint depends on no step at all, in any memory model, so it is performed at once too.
//!
//! Traps are kept as well: a state from which the end cannot be reached is still one after the
//! threads have completed their transactions. For executions without an end, see
//! explore/fairness.rs: a moved step may read an old message, but no message indefinitely.
//!
//! Excluded are
//! - all steps if only the newest messages can be read, if the number of other reads is bounded, or
//!   if threads can promise stores, fork, or be created: those share views or end threads;
//! - operations on objects of mixed sizes;
//! - stores to objects on which threads sleep, as a sleep depends on the newest value; and all
//!   stores if the client has an invariant, which depends on all newest values.

use super::Machine;
use super::state::Status;
use crate::abi::{Kind, NO_THREAD};

/// Stands for no location.
pub const NO_LOCATION: u16 = u16::MAX;
/// A location to which no step appends.
pub const NEVER: u16 = u16::MAX - 1;

/// The effect of a step.
#[derive(Clone, Copy)]
pub struct Effect {
    /// The location of which it read a message other than the newest, or stored before it.
    pub stale: u16,
    /// The location to which it stored after the newest message.
    pub appends: u16,
    /// Whether it only read an atomic object.
    pub reads: bool,
    /// Whether the thread then accessed what the memory model does not cover.
    pub visible: bool,
}

impl Default for Effect {
    fn default() -> Effect {
        Effect { stale: NO_LOCATION, appends: NO_LOCATION, reads: false, visible: false }
    }
}

impl Machine {
    /// Whether independent steps are explored in one order.
    fn reduces(&self) -> bool {
        let settings = &self.settings;
        let all = settings.weak && settings.stale.is_none() && !settings.promises;
        settings.reduced && settings.exhaustive && all && !self.needs.forks
    }

    /// Records that the client has operations of `kind`, here on the object at `address`, which
    /// stores depend on.
    pub(super) fn note_dependence(&mut self, kind: Kind, address: usize) {
        if !self.reduces() {
            return;
        }
        match kind {
            Kind::Fork | Kind::Create | Kind::Created => self.needs.add_fork(&mut self.fault),
            Kind::Park if !self.needs.sleeps.contains(&address) => {
                self.needs.add_sleep(address, &mut self.fault)
            }
            _ => {}
        }
    }

    /// Whether the pending operation of `thread` is a store that is performed at once.
    pub(super) fn is_immediate(&self, thread: usize) -> bool {
        let t = &self.now.threads[thread];
        t.status == Status::Ready
            && self.site(thread).kind == Kind::Store
            && self.reduces()
            && self.client.invariant.is_none()
            && !self.needs.sleeps.contains(&t.request.address)
            && !self.is_mixed(thread)
    }

    /// The thread whose choices represent those of all threads.
    pub(super) fn representative(&mut self) -> Option<usize> {
        self.if_invisible = false;
        if self.now.reader != NO_THREAD {
            return Some(self.now.reader as usize);
        }
        self.if_invisible = true;
        let mut threads = 0..self.now.threads.len();
        threads.find(|&thread| self.reads_hint(thread) || self.is_immediate(thread))
    }

    /// Records whether `thread`, which has performed a step, now only has to continue. `private`:
    /// the step concerned no other thread.
    pub(super) fn note_reader(&mut self, thread: usize, private: bool) {
        if !self.reduces() {
            return;
        }
        let own = self.now.reader == thread as u8;
        if private && !own && !self.effect.visible {
            return;
        }
        let moves = if private { own } else { self.effect.reads };
        let t = &self.now.threads[thread];
        let ready = t.status == Status::Ready && !t.yielded && self.fault.is_none();
        let continues = moves && ready && !self.effect.visible && self.goes_on(thread);
        self.now.reader = if continues { thread as u8 } else { NO_THREAD };
    }

    /// Whether `thread` can continue on the newest messages.
    fn goes_on(&mut self, thread: usize) -> bool {
        if self.site(thread).kind != Kind::Wait && !self.is_parking(thread) {
            return true;
        }
        self.alternatives(thread);
        self.can_continue(thread)
    }
}
