// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can happen next.

use super::Machine;
use super::state::{Status, Thread};
use super::step::{Action, Alternative, Choice, FIRST_MESSAGE};
use crate::abi::Kind;
use crate::arena;

const PROCEED: Alternative = Alternative { message: 0, action: Action::Proceed };

fn act(action: Action) -> Alternative {
    Alternative { message: 0, action }
}

impl Machine {
    /// Writes what can happen next into `into`. The first choice continues the last thread, if it
    /// can continue.
    pub fn choices(&mut self, into: &mut Vec<Choice>) {
        into.clear();
        (self.excluded, self.idle, self.chance) = (0, 0, false);
        let count = self.now.threads.len();
        if let Some(thread) = (0..count).find(|&thread| self.is_private(thread)) {
            self.push_choices(thread, into);
            self.chance = self.is_chance(thread);
            (self.enough, self.if_invisible) = (into.len(), false);
            return;
        }
        let first = self.representative();
        if let Some(thread) = first {
            self.push_choices(thread, into);
        }
        let enough = into.len();
        self.push_others(first, into);
        self.enough = if enough == 0 { into.len() } else { enough };
    }

    /// Adds the choices of the threads other than `first`, whose choices are in `into`.
    fn push_others(&mut self, first: Option<usize>, into: &mut Vec<Choice>) {
        let (count, last) = (self.now.threads.len(), self.now.last as usize);
        if last < count {
            if first != Some(last) {
                self.push_choices(last, into);
            }
            let bound = self.settings.bound.is_some_and(|bound| self.now.preemptions >= bound);
            let continues = into.iter().any(|choice| choice.thread as usize == last);
            if bound && continues && !self.now.threads[last].yielded {
                self.note_excluded(last);
                return;
            }
        }
        for thread in (0..count).filter(|&thread| thread != last && first != Some(thread)) {
            self.push_choices(thread, into);
        }
    }

    fn push_choices(&mut self, thread: usize, into: &mut Vec<Choice>) {
        self.alternatives(thread);
        // A thread can always keep its promise, if only by reads of old messages.
        let idle = !self.can_continue(thread) && !self.has_promised(thread);
        self.idle |= u32::from(idle) << thread;
        let count = self.options.len() as u8;
        self.find_candidates(thread);
        let open = self.now.promise.is_some();
        for alternative in 0..count + self.candidates.len() as u8 {
            let choice = Choice { thread: thread as u8, alternative };
            if !open && alternative < count || self.is_allowed(choice) {
                into.push(choice);
            }
        }
    }

    /// Records the threads that could continue if the bound did not exclude them.
    fn note_excluded(&mut self, last: usize) {
        for thread in (0..self.now.threads.len()).filter(|&thread| thread != last) {
            self.alternatives(thread);
            self.excluded |= u32::from(!self.options.is_empty()) << thread;
            self.idle |= u32::from(self.options.is_empty()) << thread;
        }
    }

    /// Whether `thread`, whose alternatives were written last, can continue on the newest messages.
    pub(super) fn can_continue(&self, thread: usize) -> bool {
        let continues = |option: &Alternative| {
            option.action != Action::Skip && self.now.memory.is_newest(option.message)
        };
        match self.now.threads[thread].status {
            Status::Ready if self.is_waiting(thread) => self.options.iter().any(continues),
            _ if self.is_parking(thread) => self.leaves(thread),
            _ => !self.options.is_empty(),
        }
    }

    /// Whether the pending operation of `thread` concerns no other thread.
    pub(super) fn is_private(&self, thread: usize) -> bool {
        let t = &self.now.threads[thread];
        t.status == Status::Ready && (t.unshared || self.is_chance(thread))
    }

    /// Whether the pending operation of `thread` reads a hint. An adversary chooses the value: it
    /// is no chance, which takes each value again and again.
    pub(super) fn reads_hint(&self, thread: usize) -> bool {
        let t = &self.now.threads[thread];
        t.status == Status::Ready && self.hints.contains(&t.request.address)
    }

    /// Whether the environment chooses the result of the pending operation of `thread`.
    fn is_chance(&self, thread: usize) -> bool {
        matches!(self.site(thread).kind, Kind::Choose | Kind::Expired | Kind::Move)
    }

    /// Writes the alternatives of `thread`, but for promises, into `self.options`.
    pub(super) fn alternatives(&mut self, thread: usize) {
        self.unrestricted(thread);
        if self.has_promised(thread) {
            self.restrict_to_promise(thread);
        }
    }

    /// Writes the alternatives that `thread` has if it has made no promise.
    fn unrestricted(&mut self, thread: usize) {
        self.options.clear();
        let Thread { status, request, expired, .. } = self.now.threads[thread];
        match status {
            Status::Ended => return,
            Status::Parked => {
                if request.deadline != 0 {
                    self.options.push(act(Action::TimeOut));
                }
                return;
            }
            Status::Ready => {}
        }
        match self.site(thread).kind {
            Kind::Load if self.reads_hint(thread) => {
                self.options.extend((0..2).map(|value| act(Action::Choose(value))));
            }
            Kind::Created if !self.now.created => {}
            Kind::Fence | Kind::UnparkAll | Kind::Fork | Kind::Create | Kind::Created => {
                self.options.push(PROCEED)
            }
            kind @ (Kind::Choose | Kind::Expired) => {
                let count = if kind == Kind::Choose { request.operand as u32 } else { 2 };
                self.options.extend((0..count).map(|value| act(Action::Choose(value))));
            }
            Kind::Move => {
                let others = if self.now.moves > 0 { self.settings.cpus } else { 1 };
                self.options.extend((0..others).map(|by| act(Action::Choose(by))));
            }
            Kind::Unpark => {
                let sleepers: Vec<usize> = match self.settings.composed {
                    true => self.parking_at(request.address).collect(),
                    false => self.now.sleepers(request.address).collect(),
                };
                let wake = |thread| act(Action::Wake(thread as u8));
                self.options.extend(sleepers.into_iter().map(wake));
                if self.options.is_empty() {
                    self.options.push(PROCEED);
                }
            }
            Kind::Park if self.settings.composed => self.composed_alternatives(thread),
            Kind::Park => self.park_alternatives(thread, expired),
            Kind::Wait => self.wait_alternatives(thread),
            _ => self.access_alternatives(thread),
        }
    }

    fn park_alternatives(&mut self, thread: usize, expired: bool) {
        let request = self.now.threads[thread].request;
        let span = self.span(thread);
        let value = if self.now.memory.is_begun(span.location) {
            self.now.memory.newest(span)
        } else {
            arena::load(request.address, 4)
        };
        if value != request.operand || expired && request.deadline != 0 {
            self.options.push(PROCEED);
            return;
        }
        self.options.push(act(Action::Sleep));
        if self.now.spurious > 0 {
            self.options.push(act(Action::SpuriousWake));
        }
    }

    /// Whether reads of messages other than the newest, stores before it, and promises are still
    /// allowed.
    pub(super) fn is_weak(&self) -> bool {
        self.settings.weak && self.settings.stale.is_none_or(|most| self.now.stale < most)
    }

    fn wait_alternatives(&mut self, thread: usize) {
        let span = self.span(thread);
        self.now.memory.readable(thread, span, &mut self.readable);
        let Thread { request, ending, .. } = self.now.threads[thread];
        let can_give_up = request.brief || request.deadline != 0;
        let weak = self.is_weak();
        let newest = self.readable.len() - 1;
        let mut unsuccessful = Vec::new();
        for (bit, &message) in
            self.readable.iter().enumerate().rev().filter(|(bit, _)| weak || *bit == newest)
        {
            if ending >> bit & 1 != 0 {
                self.options.push(Alternative { message, action: Action::Proceed });
            } else if can_give_up {
                unsuccessful.push(Alternative { message, action: Action::GiveUp });
            } else if weak && ending & ((1 << bit) - 1) != 0 {
                unsuccessful.push(Alternative { message, action: Action::Skip });
            }
        }
        self.options.append(&mut unsuccessful);
    }

    fn access_alternatives(&mut self, thread: usize) {
        let span = self.span(thread);
        if !self.now.memory.is_begun(span.location) {
            self.options.push(Alternative { message: FIRST_MESSAGE, action: Action::Proceed });
            return;
        }
        let (kind, release) = (self.site(thread).kind, self.site(thread).order.releases());
        let expected = self.now.threads[thread].request.expected;
        let weak = self.is_weak();
        let memory = &self.now.memory;
        let is_open = |message| memory.is_open(thread, span, message, release);
        if kind == Kind::Load {
            memory.readable(thread, span, &mut self.readable);
        } else {
            memory.storable(thread, span, &mut self.readable);
        }
        for &message in self.readable.iter().rev() {
            let possible = match kind {
                Kind::Load => true,
                Kind::CompareExchange => {
                    memory.value(span, message) != expected || is_open(message)
                }
                _ => is_open(message),
            };
            if possible && (weak || memory.is_newest(message)) {
                self.options.push(Alternative { message, action: Action::Proceed });
            }
        }
    }
}
