// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agenda: the future events of the simulated machine, by time. Equal times keep the order of
//! their scheduling.

use crate::time::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The effect of an event on its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Resumes a thread.
    Resume,
    /// Issues or commits the first store of a thread's buffer.
    Store,
    /// Ends a thread's sleep or bounded spin.
    Deadline,
    /// Ends the time slice on a CPU.
    Slice,
    /// Lets an idle CPU look at its run queue.
    Pick,
    /// Ends the CPU's share of its control group's quota.
    Quota,
    /// Begins the next period of a control group.
    Period,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub at: Time,
    order: u64,
    pub action: Action,
    /// A thread, a CPU or a control group, by `action`.
    pub subject: u32,
    /// The event is void if its subject's generation has changed since.
    pub generation: u32,
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The earliest event is the greatest, since [`BinaryHeap`] pops that one.
    fn cmp(&self, other: &Event) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// The scheduled events.
#[derive(Default)]
pub(crate) struct Agenda {
    events: BinaryHeap<Event>,
    scheduled: u64,
}

impl Agenda {
    pub fn schedule(&mut self, at: Time, action: Action, subject: u32, generation: u32) {
        self.scheduled += 1;
        self.events.push(Event { at, order: self.scheduled, action, subject, generation });
    }

    /// Removes the earliest event.
    pub fn pop(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Whether nothing happens until `at`, inclusive.
    pub fn is_free_until(&self, at: Time) -> bool {
        self.events.peek().is_none_or(|next| next.at > at)
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}
