// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data races, by vector clocks: the accesses that some thread does not yet know to happen before.
//!
//! Two accesses race if one of them writes, one of them is plain, and happens-before orders neither
//! before the other, whatever their outcome.

use std::ops::Range;

use crate::fault::Fault;

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Access {
    PlainWrite,
    PlainRead,
    /// Atomic, also a read-modify-write.
    Store,
    /// Atomic, also the load of a compare-exchange that fails.
    Load,
}

impl Access {
    fn is_plain(self) -> bool {
        matches!(self, Access::PlainRead | Access::PlainWrite)
    }

    fn writes(self) -> bool {
        matches!(self, Access::PlainWrite | Access::Store)
    }

    /// Whether two unordered accesses of these kinds race.
    fn conflicts(self, other: Access) -> bool {
        (self.writes() || other.writes()) && (self.is_plain() || other.is_plain())
    }

    fn name(self) -> &'static str {
        match self {
            Access::PlainWrite => "plain write",
            Access::PlainRead => "plain read",
            Access::Store => "atomic store",
            Access::Load => "atomic load",
        }
    }
}

/// The bytes, kind and thread of a remembered access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub start: usize,
    pub end: usize,
    pub access: Access,
    pub thread: u8,
}

/// The last access of its key since the last plain write to its bytes.
#[derive(Clone, Copy)]
pub struct Remembered {
    pub key: Key,
    /// The thread's clock at that access.
    pub clock: u32,
}

impl Remembered {
    /// The race of an `access` to `bytes`, by a thread of that view, with this one.
    fn race(&self, bytes: &Range<usize>, access: Access, view: &[u32]) -> Option<Fault> {
        let Key { start, end, access: did, thread } = self.key;
        let overlaps = start < bytes.end && bytes.start < end;
        let unordered = overlaps && self.clock > view[thread as usize];
        (unordered && did.conflicts(access)).then(|| Fault::Race { with: thread, did: did.name() })
    }
}

/// The remembered accesses, in order of their keys.
#[derive(Clone, Default)]
pub struct Accesses {
    list: Vec<Remembered>,
}

impl Accesses {
    /// Copies `source` into the existing allocation.
    pub fn copy_from(&mut self, source: &Accesses) {
        self.list.clone_from(&source.list);
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Remembered> {
        self.list.iter()
    }

    /// Checks that `access` to `bytes` by `thread`, whose view is `view`, races with no remembered
    /// one. Remembers it if `keep`.
    pub fn check(
        &mut self,
        thread: usize,
        bytes: Range<usize>,
        access: Access,
        view: &[u32],
        keep: bool,
    ) -> Result<(), Fault> {
        if let Some(race) = self.list.iter().find_map(|known| known.race(&bytes, access, view)) {
            return Err(race);
        }
        if keep {
            let key = Key { start: bytes.start, end: bytes.end, access, thread: thread as u8 };
            self.remember(key, view[thread]);
        }
        Ok(())
    }

    /// Remembers an access that races with nothing.
    fn remember(&mut self, key: Key, clock: u32) {
        match key.access {
            // Happens-before is transitive: an access ordered after this write is also ordered
            // after all accesses before it.
            Access::PlainWrite => {
                self.list.retain(|known| (known.key.start, known.key.end) != (key.start, key.end))
            }
            // A store conflicts with everything that a load conflicts with.
            Access::Load => {
                let store = self.find(Key { access: Access::Store, ..key });
                if store.is_ok_and(|at| self.list[at].clock == clock) {
                    return;
                }
            }
            Access::Store => {
                if let Ok(at) = self.find(Key { access: Access::Load, ..key }) {
                    self.list.remove(at);
                }
            }
            Access::PlainRead => {}
        }
        match self.find(key) {
            Ok(at) => self.list[at].clock = clock,
            Err(at) => self.list.insert(at, Remembered { key, clock }),
        }
    }

    /// The index of the access of that key, or where it belongs.
    fn find(&self, key: Key) -> Result<usize, usize> {
        self.list.binary_search_by_key(&key, |known| known.key)
    }

    /// Forgets the accesses that all threads know: those up to the clocks in `floor`.
    pub fn forget(&mut self, floor: &[u32]) {
        self.list.retain(|known| known.clock > floor[known.key.thread as usize]);
    }

    /// Forgets the accesses to the bytes from `start` to `end`, whose lifetime is over.
    pub fn remove(&mut self, start: usize, end: usize) {
        self.list.retain(|known| known.key.end <= start || end <= known.key.start);
    }
}
