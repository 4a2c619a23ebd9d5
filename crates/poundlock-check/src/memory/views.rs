// SPDX-License-Identifier: MIT OR Apache-2.0
//! Views: what a thread knows of the stores to each location, and what a message passes on.
//!
//! A view has one slot per thread, the clock up to which that thread's plain accesses happen
//! before, and one slot per location, or part of one of mixed sizes (`span`), the timestamp of its
//! newest known message. An older message can no longer be read through the view.

use super::Span;
use crate::abi::MAX_THREADS;

/// Stands for no view: the message passes nothing on.
pub const NO_VIEW: u16 = u16::MAX;
/// Views grow by this number of locations at a time.
const GROWTH: usize = 16;

/// All views of a memory.
///
/// They have one width and lie in one array, because a memory is copied in every state. The first
/// views belong to the threads: what each knows now, and, if the client has fences, what each would
/// know after an acquire fence, what each knew at its last release fence, and what sequentially
/// consistent fences pass on. The others belong to messages.
#[derive(Clone, Default)]
pub struct Views {
    threads: usize,
    fences: bool,
    width: usize,
    slots: Vec<u32>,
    free: Vec<u16>,
}

impl Views {
    /// The views of `threads` threads, with those that fences need if `fences`.
    pub fn new(threads: usize, fences: bool) -> Views {
        let count = if fences { 3 * threads + 1 } else { threads };
        let mut views = Views {
            threads,
            fences,
            width: MAX_THREADS,
            slots: vec![0; count * MAX_THREADS],
            free: Vec::new(),
        };
        for thread in 0..threads {
            views.get_mut(thread)[thread] = 1;
        }
        views
    }

    /// Copies `source` into the existing allocations.
    pub fn copy_from(&mut self, source: &Views) {
        (self.threads, self.fences, self.width) = (source.threads, source.fences, source.width);
        self.slots.clone_from(&source.slots);
        self.free.clone_from(&source.free);
    }

    /// The slot of `location` in each view.
    pub fn slot(location: usize) -> usize {
        MAX_THREADS + location
    }

    /// The slots of the view.
    pub fn get(&self, view: usize) -> &[u32] {
        &self.slots[view * self.width..][..self.width]
    }

    fn get_mut(&mut self, view: usize) -> &mut [u32] {
        &mut self.slots[view * self.width..][..self.width]
    }

    /// The view of `thread` after an acquire fence.
    pub fn acquire_fence_view(&self, thread: usize) -> usize {
        self.threads + thread
    }

    /// The view that `thread` had at its last release fence.
    pub fn release_fence_view(&self, thread: usize) -> usize {
        2 * self.threads + thread
    }

    /// The view that sequentially consistent fences pass on.
    pub fn sc_fence_view(&self) -> usize {
        3 * self.threads
    }

    /// The clock of `thread`.
    pub fn clock(&self, thread: usize) -> u32 {
        self.get(thread)[thread]
    }

    /// The newest message of `location` that `thread` knows.
    pub fn newest_known(&self, thread: usize, location: usize) -> u32 {
        self.get(thread)[Views::slot(location)]
    }

    /// Ensures that the views have a slot for `location`.
    pub fn widen(&mut self, location: usize) {
        if Views::slot(location) < self.width {
            return;
        }
        let width = MAX_THREADS + (location / GROWTH + 1) * GROWTH;
        let mut slots = vec![0; self.slots.len() / self.width * width];
        for (old, new) in self.slots.chunks_exact(self.width).zip(slots.chunks_exact_mut(width)) {
            new[..self.width].copy_from_slice(old);
        }
        (self.width, self.slots) = (width, slots);
    }

    /// The view that a store by `thread` passes on, without the one that it continues.
    pub fn passed_by(&self, thread: usize, release: bool) -> Option<&[u32]> {
        let view = if release { Some(thread) } else { None };
        view.or(self.fences.then(|| self.release_fence_view(thread))).map(|view| self.get(view))
    }

    /// A new view, equal to `view`.
    fn copy(&mut self, view: usize) -> u16 {
        let from = view * self.width;
        if let Some(free) = self.free.pop() {
            self.slots.copy_within(from..from + self.width, free as usize * self.width);
            return free;
        }
        self.slots.extend_from_within(from..from + self.width);
        (self.slots.len() / self.width - 1) as u16
    }

    /// Frees a message's view.
    pub fn free(&mut self, view: u16) {
        if view != NO_VIEW {
            self.free.push(view);
        }
    }

    fn set(&mut self, to: usize, from: usize) {
        self.slots.copy_within(from * self.width..(from + 1) * self.width, to * self.width);
    }

    /// Joins view `from` into view `to`.
    fn join(&mut self, to: usize, from: usize) {
        self.join_slots(to, from, 0);
    }

    /// Joins what `from` knows of locations into `to`. No plain accesses are ordered.
    fn join_locations(&mut self, to: usize, from: usize) {
        self.join_slots(to, from, MAX_THREADS);
    }

    fn join_slots(&mut self, to: usize, from: usize, first: usize) {
        if to == from {
            return;
        }
        let (low, high) = self.slots.split_at_mut(to.max(from) * self.width);
        let low = &mut low[to.min(from) * self.width..][first..self.width];
        let high = &mut high[first..self.width];
        let (to, from) = if to < from { (low, high) } else { (high, low) };
        to.iter_mut().zip(from).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
    }

    /// Whether `view` knows no more than `other`.
    pub fn is_within(&self, view: u16, other: &[u32]) -> bool {
        self.get(view as usize).iter().zip(other).all(|(mine, theirs)| mine <= theirs)
    }

    /// Records that `thread` has read or written the message of `location` at `time`.
    pub fn observe(&mut self, thread: usize, location: usize, time: u32) {
        self.observe_from(thread, location, time, true);
    }

    /// Records that `thread` knows the message of `location` at `time`, now or from its next
    /// acquire fence on.
    pub fn observe_from(&mut self, thread: usize, location: usize, time: u32, now: bool) {
        let slot = Views::slot(location);
        if now {
            let known = &mut self.get_mut(thread)[slot];
            *known = time.max(*known);
        }
        if self.fences {
            let view = self.acquire_fence_view(thread);
            let known = &mut self.get_mut(view)[slot];
            *known = time.max(*known);
        }
    }

    /// Joins the view of a message that `thread` reads, now or at its next acquire fence.
    pub fn receive(&mut self, thread: usize, view: u16, acquire: bool) {
        if view == NO_VIEW {
            return;
        }
        if self.fences {
            self.join(self.acquire_fence_view(thread), view as usize);
        }
        if acquire {
            self.join(thread, view as usize);
        }
    }

    /// `view`, which may be NO_VIEW, joined with `other`: `view` itself, or a new view.
    pub fn joined(&mut self, view: u16, other: u16) -> u16 {
        if view == NO_VIEW && other != NO_VIEW {
            return self.copy(other as usize);
        }
        if other != NO_VIEW {
            self.join(view as usize, other as usize);
        }
        view
    }

    /// The view of a new message of `thread` to `span`. The store continues the release sequence of
    /// messages with view `before`, which it consumes.
    pub fn of_store(&mut self, thread: usize, span: Span, before: u16, release: bool) -> u16 {
        let view = self.passed_on(thread, before, release);
        if view != NO_VIEW && span.parts().is_power_of_two() {
            // A reader of the message knows the message itself. Without that slot, messages that
            // pass on the same knowledge are equal. A reader of one of several parts learns of the
            // others from the view.
            span.slots().for_each(|slot| self.get_mut(view as usize)[Views::slot(slot)] = 0);
        }
        view
    }

    fn passed_on(&mut self, thread: usize, before: u16, release: bool) -> u16 {
        let view = if release {
            let view = self.copy(thread);
            self.get_mut(thread)[thread] += 1;
            view
        } else if self.fences {
            self.copy(self.release_fence_view(thread))
        } else {
            return before;
        };
        if before != NO_VIEW {
            self.join(view as usize, before as usize);
            self.free(before);
        }
        view
    }

    /// An acquire fence of `thread`.
    pub fn fence_acquire(&mut self, thread: usize) {
        let own = self.clock(thread);
        self.set(thread, self.acquire_fence_view(thread));
        self.get_mut(thread)[thread] = own;
    }

    /// A release fence of `thread`.
    pub fn fence_release(&mut self, thread: usize) {
        self.set(self.release_fence_view(thread), thread);
        self.get_mut(thread)[thread] += 1;
    }

    /// An acquire-release fence of `thread`.
    pub fn fence_acq_rel(&mut self, thread: usize) {
        self.fence_acquire(thread);
        self.fence_release(thread);
    }

    /// A sequentially consistent fence of `thread`. The order of these fences restricts which
    /// messages can be read and where stores can be inserted. It is not part of happens-before, so
    /// it orders no plain accesses.
    pub fn fence_seq_cst(&mut self, thread: usize) {
        self.fence_acquire(thread);
        self.join_locations(thread, self.sc_fence_view());
        self.join_locations(self.sc_fence_view(), thread);
        self.set(self.acquire_fence_view(thread), thread);
        self.fence_release(thread);
    }

    /// Lets every thread know what all threads know, and of each location its message at `newest`.
    pub fn share_all(&mut self, newest: impl Iterator<Item = u32>) {
        for thread in 1..self.threads {
            self.join(0, thread);
        }
        let clocks: Vec<u32> = (0..self.threads).map(|thread| self.clock(thread)).collect();
        for (location, time) in newest.enumerate() {
            self.get_mut(0)[Views::slot(location)] = time;
        }
        for (thread, clock) in clocks.into_iter().enumerate() {
            self.set(thread, 0);
            self.get_mut(thread)[thread] = clock;
            if self.fences {
                self.set(self.acquire_fence_view(thread), thread);
            }
        }
    }
}
