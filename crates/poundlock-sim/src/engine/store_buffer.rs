// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread's store buffer: stores that are issued but not yet visible to other threads, in program
//! order.

use crate::ids::LineId;
use crate::time::Time;
use std::collections::VecDeque;

/// A store that is not yet visible.
#[derive(Clone, Copy)]
pub(crate) struct Store {
    pub address: usize,
    pub size: u32,
    /// None if memory has the value already: compiled code writes plain objects itself, and stores
    /// to the thread's own stack take effect at once.
    pub value: Option<u64>,
    pub line: LineId,
    /// When the store becomes visible; none until its request has reached the line.
    commit: Option<Time>,
}

impl Store {
    /// An atomic store.
    pub fn atomic(address: usize, size: u32, value: Option<u64>, line: LineId) -> Store {
        Store { address, size, value, line, commit: None }
    }

    /// A plain store, whose value is in memory.
    pub fn plain(address: usize, line: LineId) -> Store {
        Store { address, size: 0, value: None, line, commit: None }
    }
}

#[derive(Default)]
pub(crate) struct StoreBuffer {
    stores: VecDeque<Store>,
    /// How many of them, from the front, have a commit time.
    issued: usize,
    /// When the newest store's request arrives.
    last_request: Time,
}

impl StoreBuffer {
    pub fn len(&self) -> usize {
        self.stores.len()
    }

    pub fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// Whether a store to `line` is pending.
    pub fn has(&self, line: LineId) -> bool {
        self.stores.iter().any(|store| store.line == line)
    }

    /// Whether another plain store to `line` would merge into the newest entry.
    pub fn merges(&self, line: LineId) -> bool {
        self.stores.back().is_some_and(|last| last.line == line && last.value.is_none())
    }

    /// Finds the newest store that overlaps `size` bytes at `address`, if its value is not yet in
    /// memory.
    pub fn overlapping(&self, address: usize, size: u32) -> Option<Store> {
        let overlaps = |store: &&Store| {
            let ends_behind = address < store.address + store.size as usize;
            store.value.is_some() && store.address < address + size as usize && ends_behind
        };
        self.stores.iter().rev().find(overlaps).copied()
    }

    /// Appends a store whose request needs until `arrival`. Returns when the request arrives: in
    /// program order.
    pub fn push(&mut self, store: Store, arrival: Time) -> Time {
        self.last_request = arrival.max(self.last_request);
        self.stores.push_back(store);
        self.last_request
    }

    /// Whether the oldest store becomes visible by `now`.
    pub fn is_due(&self, now: Time) -> bool {
        self.stores.front().and_then(|store| store.commit).is_some_and(|commit| commit <= now)
    }

    /// The line of the oldest store whose request has not been served, and when the store before it
    /// commits.
    pub fn next_request(&self) -> Option<(LineId, Time)> {
        let next = self.stores.get(self.issued)?;
        let before =
            self.issued.checked_sub(1).map_or(0, |before| self.stores[before].commit.unwrap_or(0));
        Some((next.line, before))
    }

    /// Sets the commit time of that store.
    pub fn issue(&mut self, commit: Time) {
        self.stores[self.issued].commit = Some(commit);
        self.issued += 1;
    }

    /// Removes the oldest store and makes it visible.
    pub fn pop(&mut self) -> Store {
        self.issued -= 1;
        self.stores.pop_front().expect("a store is due")
    }
}
