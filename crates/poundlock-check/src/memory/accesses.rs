// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data races, by vector clocks: the accesses that some thread does not yet know to happen before.
//!
//! Two accesses race if one of them writes, one of them is plain, and happens-before orders neither
//! before the other, whatever their outcome.

use std::ops::Range;

use crate::abi::MAX_THREADS;
use crate::fault::Fault;

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    PlainRead,
    PlainWrite,
    /// Atomic, also the load of a compare-exchange that fails.
    Load,
    /// Atomic, also a read-modify-write.
    Store,
}

impl Access {
    fn is_plain(self) -> bool {
        matches!(self, Access::PlainRead | Access::PlainWrite)
    }

    fn writes(self) -> bool {
        matches!(self, Access::PlainWrite | Access::Store)
    }
}

type Clocks = [u32; MAX_THREADS];
const NO_CLOCKS: Clocks = [0; MAX_THREADS];

/// The accesses to some bytes: the last plain write and, by thread, the clock of the last access of
/// each other kind since.
#[derive(Clone, Copy)]
pub struct Cell {
    pub start: usize,
    pub end: usize,
    pub writer: u8,
    pub written: u32,
    pub read: Clocks,
    pub loaded: Clocks,
    pub stored: Clocks,
}

impl Cell {
    fn new(start: usize, end: usize) -> Cell {
        Cell {
            start,
            end,
            writer: 0,
            written: 0,
            read: NO_CLOCKS,
            loaded: NO_CLOCKS,
            stored: NO_CLOCKS,
        }
    }

    fn overlaps(&self, start: usize, end: usize) -> bool {
        self.start < end && start < self.end
    }

    /// The race of `access`, by a thread of that view, with a remembered access.
    fn race(&self, access: Access, view: &[u32]) -> Option<Fault> {
        if self.written > view[self.writer as usize] {
            return Some(Fault::Race { with: self.writer, did: "plain write" });
        }
        let others: [(bool, &Clocks, &str); 3] = [
            (access.writes(), &self.read, "plain read"),
            (access.is_plain(), &self.stored, "atomic store"),
            (access == Access::PlainWrite, &self.loaded, "atomic load"),
        ];
        others.into_iter().filter(|(conflicts, ..)| *conflicts).find_map(|(_, clocks, did)| {
            let with = (0..MAX_THREADS).find(|&thread| clocks[thread] > view[thread])? as u8;
            Some(Fault::Race { with, did })
        })
    }

    /// Remembers `access` by `thread` at its `clock`, which races with nothing.
    fn remember(&mut self, access: Access, thread: usize, clock: u32) {
        match access {
            // Happens-before is transitive: an access ordered after this write is also ordered
            // after all accesses before it.
            Access::PlainWrite => {
                *self = Cell {
                    writer: thread as u8,
                    written: clock,
                    ..Cell::new(self.start, self.end)
                };
            }
            Access::PlainRead => self.read[thread] = clock,
            Access::Load if self.stored[thread] == clock => {}
            Access::Load => self.loaded[thread] = clock,
            // A store conflicts with everything that a load conflicts with.
            Access::Store => (self.stored[thread], self.loaded[thread]) = (clock, 0),
        }
    }

    /// Forgets the accesses that all threads know. Returns whether any access is left.
    fn forget(&mut self, floor: &[u32]) -> bool {
        if self.written <= floor[self.writer as usize] {
            (self.writer, self.written) = (0, 0);
        }
        for clocks in [&mut self.read, &mut self.loaded, &mut self.stored] {
            let known = clocks.iter_mut().zip(floor).filter(|(clock, floor)| **clock <= **floor);
            known.for_each(|(clock, _)| *clock = 0);
        }
        self.written != 0 || [self.read, self.loaded, self.stored] != [NO_CLOCKS; 3]
    }
}

/// The remembered accesses, by address.
#[derive(Clone, Default)]
pub struct Accesses {
    cells: Vec<Cell>,
}

impl Accesses {
    /// Copies `source` into the existing allocation.
    pub fn copy_from(&mut self, source: &Accesses) {
        self.cells.clone_from(&source.cells);
    }

    /// All of them, in order of address.
    pub fn iter(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter()
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
        let mut exact = None;
        for (at, cell) in
            self.cells.iter().enumerate().filter(|(_, cell)| cell.overlaps(bytes.start, bytes.end))
        {
            if let Some(race) = cell.race(access, view) {
                return Err(race);
            }
            if (cell.start..cell.end) == bytes {
                exact = Some(at);
            }
        }
        if keep {
            let at = exact.unwrap_or_else(|| self.insert(bytes));
            self.cells[at].remember(access, thread, view[thread]);
        }
        Ok(())
    }

    fn insert(&mut self, bytes: Range<usize>) -> usize {
        let at =
            self.cells.partition_point(|cell| (cell.start, cell.end) < (bytes.start, bytes.end));
        self.cells.insert(at, Cell::new(bytes.start, bytes.end));
        at
    }

    /// Forgets the accesses that all threads know: those up to the clocks in `floor`.
    pub fn forget(&mut self, floor: &[u32]) {
        self.cells.retain_mut(|cell| cell.forget(floor));
    }

    /// Forgets the accesses to the bytes from `start` to `end`, whose lifetime is over.
    pub fn remove(&mut self, start: usize, end: usize) {
        self.cells.retain(|cell| !cell.overlaps(start, end));
    }
}
