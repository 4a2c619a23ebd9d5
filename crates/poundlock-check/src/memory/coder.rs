// SPDX-License-Identifier: MIT OR Apache-2.0
//! Canonical codes of views: timestamps and clocks, which differ between equivalent executions,
//! become ranks, which do not.

use crate::abi::MAX_THREADS;

/// The ranks of the timestamps and clocks of one memory. Reused for the next memory to keep its
/// allocations.
///
/// Usage: `clear`, `add_clock` for each remembered clock, `add_thread_slots`, `add_location_slot`
/// for each location in order; then the encoding functions.
#[derive(Default)]
pub struct Coder {
    /// By thread, the clocks of remembered accesses, in order.
    clocks: [Vec<u32>; MAX_THREADS],
    /// The slots in which views can differ, each with the end of its part of `times`.
    slots: Vec<(usize, usize)>,
    /// By slot, in order, the times that an entry of a view can be before, or at and past.
    times: Vec<u32>,
}

impl Coder {
    /// Starts with a new memory.
    pub fn clear(&mut self) {
        self.clocks.iter_mut().for_each(Vec::clear);
        self.slots.clear();
        self.times.clear();
    }

    /// Adds the clock of a remembered access by `thread`.
    pub fn add_clock(&mut self, thread: usize, clock: u32) {
        if let Err(at) = self.clocks[thread].binary_search(&clock) {
            self.clocks[thread].insert(at, clock);
        }
    }

    /// Adds the slots of the threads that have clocks.
    pub fn add_thread_slots(&mut self) {
        for (thread, clocks) in
            self.clocks.iter().enumerate().filter(|(_, clocks)| !clocks.is_empty())
        {
            self.times.extend_from_slice(clocks);
            self.slots.push((thread, self.times.len()));
        }
    }

    /// Adds the slot of a location whose messages, but for the first, which all threads know, have
    /// these times.
    pub fn add_location_slot(&mut self, slot: usize, times: impl Iterator<Item = u32>) {
        let before = self.times.len();
        self.times.extend(times);
        if self.times.len() > before {
            self.slots.push((slot, self.times.len()));
        }
    }

    /// Appends the slots in which views can differ.
    pub fn encode_slots(&self, into: &mut Vec<u64>) {
        into.push(self.slots.len() as u64);
        pack(self.slots.iter().map(|&(slot, _)| slot as u64), into);
    }

    /// The rank of a clock of `thread`.
    pub fn clock_rank(&self, thread: usize, clock: u32) -> u64 {
        self.clocks[thread].iter().filter(|&&known| known <= clock).count() as u64
    }

    /// Appends the ranks of a view.
    pub fn encode_view(&self, view: &[u32], into: &mut Vec<u64>) {
        let mut start = 0;
        let rank = |&(slot, end): &(usize, usize)| {
            let times = &self.times[std::mem::replace(&mut start, end)..end];
            let known = view[slot];
            times.iter().map(|&time| u64::from(time <= known)).sum()
        };
        pack(self.slots.iter().map(rank), into);
    }
}

/// Appends numbers of at most 16 bits, four per word.
fn pack(numbers: impl Iterator<Item = u64>, into: &mut Vec<u64>) {
    let (mut word, mut shift) = (0, 0);
    for number in numbers {
        word |= number << shift;
        shift += 16;
        if shift == u64::BITS {
            into.push(word);
            (word, shift) = (0, 0);
        }
    }
    if shift != 0 {
        into.push(word);
    }
}
