// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses to some bytes of a location.
//!
//! A location of mixed sizes has one order of stores like any other, but each of its bytes has a
//! slot in the views: knowledge of a store to one byte says nothing about the other bytes. An
//! access reads the bytes as they are at one place in the order, each from the last message before
//! it that wrote the byte, and receives the views of those messages only. An acquire also knows
//! what those messages wrote to other bytes, since a store is visible as a whole.
//!
//! A store leaves the other bytes as they are. It may be inserted before stores to other bytes that
//! its thread has seen, unless the view that it passes on knows them. A read-modify-write forbids
//! insertions before it of stores to the bytes that it accesses.
//!
//! All other locations have one part, which each access covers.

use super::messages::{Kind, NO_MESSAGE};
use super::views::{NO_VIEW, Views};
use super::{Memory, Message};

/// The most parts of a location.
const MAX_PARTS: usize = 8;

/// The part of a location that an operation accesses.
#[derive(Clone, Copy)]
pub struct Span {
    pub location: usize,
    /// Bit n: part n, whose slot is that of location number `location` + n.
    parts: u8,
    /// The position of the lowest bit in the location's value, and the mask of the value.
    shift: u8,
    mask: u64,
}

impl Span {
    /// All of a location that is accessed at one size.
    pub fn all_of(location: usize) -> Span {
        Span { location, parts: 1, shift: 0, mask: u64::MAX }
    }

    /// The `count` bytes from byte `first` on of a location of mixed sizes.
    pub fn bytes_of(location: usize, first: usize, count: usize) -> Span {
        let ones = |bits: usize| u64::MAX >> (64 - bits);
        Span {
            location,
            parts: (ones(count) as u8) << first,
            shift: 8 * first as u8,
            mask: ones(8 * count),
        }
    }

    /// The location numbers of the parts' slots.
    pub(super) fn slots(self) -> impl Iterator<Item = usize> {
        slots(self.location, self.parts)
    }

    /// The bits of the parts.
    pub(super) fn parts(self) -> u8 {
        self.parts
    }

    fn value_in(self, value: u64) -> u64 {
        value >> self.shift & self.mask
    }

    fn insert(self, part: u64, value: u64) -> u64 {
        value & !(self.mask << self.shift) | part << self.shift
    }
}

/// The location numbers of the slots of `parts` of `location`.
pub(super) fn slots(location: usize, parts: u8) -> impl Iterator<Item = usize> {
    let end = MAX_PARTS - parts.leading_zeros() as usize;
    (0..end).filter(move |part| parts >> part & 1 != 0).map(move |part| location + part)
}

impl Memory {
    /// The value of `span` at `message`.
    pub fn value(&self, span: Span, message: u16) -> u64 {
        span.value_in(self.messages[message].value)
    }

    /// The newest value of `span`.
    pub fn newest(&self, span: Span) -> u64 {
        span.value_in(self.newest_value(span.location))
    }

    /// The value of the location after a store of `value` to `span` directly after `message`.
    pub(super) fn value_with(&self, span: Span, message: u16, value: u64) -> u64 {
        span.insert(value, self.messages[message].value)
    }

    /// The slot of each part of `span`, and the message that last wrote the part at `message` or
    /// before. None that all threads know and that passes nothing on.
    pub(super) fn origins(
        &self,
        span: Span,
        message: u16,
    ) -> impl Iterator<Item = (usize, u16)> + use<> {
        let mut origins = [NO_MESSAGE; MAX_PARTS];
        let mut note = |index: u16| {
            let wrote = self.messages[index].wrote & span.parts;
            slots(0, wrote).for_each(|part| origins[part] = index);
            wrote == span.parts
        };
        if !note(message) {
            for index in self.messages_of(span.location) {
                note(index);
                if index == message {
                    break;
                }
            }
        }
        let origin = move |slot: usize| (slot, origins[slot - span.location]);
        span.slots().map(origin).filter(|(_, origin)| *origin != NO_MESSAGE)
    }

    /// The newest of the messages that `span` is read from at `message`.
    pub fn origin(&self, span: Span, message: u16) -> u16 {
        let origins = self.origins(span, message).map(|(_, origin)| origin);
        origins.max_by_key(|&origin| self.messages[origin].time).unwrap_or(message)
    }

    /// A copy of the view that a read-modify-write of `span` at `message` continues.
    pub(super) fn continued(&mut self, span: Span, message: u16) -> u16 {
        let mut joined = NO_VIEW;
        for (_, origin) in self.origins(span, message) {
            joined = self.views.joined(joined, self.messages[origin].view);
        }
        joined
    }

    /// Whether a store to `span` by `thread` can be inserted directly after the message, one of
    /// `storable`.
    pub fn is_open(&self, thread: usize, span: Span, message: u16, release: bool) -> bool {
        self.divides_no_update(span, message)
            && (self.locations[span.location].parts == 1
                || self.follows_known(thread, span.location, message, release))
    }

    /// Whether no part that the view of a store by `thread` knows was written after the message.
    fn follows_known(&self, thread: usize, location: usize, message: u16, release: bool) -> bool {
        let view = self.views.passed_by(thread, release);
        let known = |&index: &u16| {
            let Message { wrote, time, .. } = self.messages[index];
            slots(location, wrote).any(|slot| view.is_some_and(|of| of[Views::slot(slot)] >= time))
        };
        !self.messages.list_from(self.messages[message].next).any(|index| known(&index))
    }

    /// Whether a store to `span` directly after the message comes between no read-modify-write and
    /// a message that it read.
    fn divides_no_update(&self, span: Span, message: u16) -> bool {
        let mut parts = span.parts;
        let mut next = self.messages[message].next;
        while next != NO_MESSAGE && parts != 0 {
            let Message { wrote, kind, next: after, .. } = self.messages[next];
            if wrote & parts != 0 && kind == Kind::Update {
                return false;
            }
            parts &= !wrote;
            next = after;
        }
        true
    }

    /// Lets the messages after `message` have the value that it stored to `span`, up to the next
    /// stores to the same parts.
    pub(super) fn pass_on(&mut self, span: Span, message: u16) {
        let value = self.messages[message].value;
        let mut parts = span.parts;
        let mut next = self.messages[message].next;
        while next != NO_MESSAGE && parts != 0 {
            let message = &mut self.messages[next];
            parts &= !message.wrote;
            for part in slots(0, parts) {
                let byte = Span::bytes_of(0, part, 1);
                message.value = byte.insert(byte.value_in(value), message.value);
            }
            next = message.next;
        }
    }

    /// Writes the messages at which `thread` may read `span` into `into`, oldest first: of those at
    /// which the span is the same, the last.
    pub fn readable(&self, thread: usize, span: Span, into: &mut Vec<u16>) {
        self.storable(thread, span, into);
        if self.locations[span.location].parts == 1 {
            return;
        }
        into.retain(|&message| {
            let next = self.messages[message].next;
            next == NO_MESSAGE || self.messages[next].wrote & span.parts != 0
        });
    }

    /// Writes the messages at which `thread` may read `span`, and after which it may store to it if
    /// they are open, into `into`, oldest first.
    pub fn storable(&self, thread: usize, span: Span, into: &mut Vec<u16>) {
        into.clear();
        for index in self.messages_of(span.location) {
            let Message { wrote, time, .. } = self.messages[index];
            let mut parts = slots(span.location, wrote & span.parts);
            if parts.any(|slot| time <= self.views.newest_known(thread, slot)) {
                into.clear();
            }
            into.push(index);
        }
    }

    /// Whether `next`, which follows the oldest message `head`, can become the oldest: no thread
    /// can read what it replaced, and no part that it leaves is still to pass on a view.
    pub(super) fn replaces(&self, location: usize, head: u16, next: u16, floor: &[u32]) -> bool {
        let Message { wrote, time, .. } = self.messages[next];
        let old = &self.messages[head];
        let known = || slots(location, wrote).all(|slot| floor[Views::slot(slot)] >= time);
        let passes = || {
            old.view != NO_VIEW && old.wrote & !wrote != 0 && !self.views.is_within(old.view, floor)
        };
        known() && !passes()
    }
}
