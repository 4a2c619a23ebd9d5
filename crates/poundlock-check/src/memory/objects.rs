// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain objects: their extents and whether their lifetimes are over.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_128;

use crate::fault::Fault;

/// The code of one element of a set. The code of the set is the exclusive or of its elements'.
pub fn code_of(words: [u64; 2]) -> u128 {
    // SAFETY: any u64 is 8 bytes.
    xxh3_128(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(&words)) })
}

/// A plain object that has been accessed.
#[derive(Clone, Copy)]
struct Object {
    start: usize,
    end: usize,
    dead: bool,
}

impl Object {
    fn code(&self) -> u128 {
        code_of([self.start as u64, self.end as u64])
    }

    fn overlaps(&self, start: usize, end: usize) -> bool {
        self.start < end && start < self.end
    }
}

/// The plain objects that have been accessed, by address. Each lies within one aligned word.
#[derive(Clone, Default)]
pub struct Objects {
    list: Vec<Object>,
    dead: u128,
}

impl Objects {
    /// Copies `source` into the existing allocation.
    pub fn copy_from(&mut self, source: &Objects) {
        self.list.clone_from(&source.list);
        self.dead = source.dead;
    }

    /// The code of the set of dead objects.
    pub fn code_of_dead(&self) -> u128 {
        self.dead
    }

    fn first_near(&self, start: usize) -> usize {
        self.list.partition_point(|object| object.start < start / 8 * 8)
    }

    /// A plain access to the bytes from `start` to `end`, where no atomic object is. `owner`: the
    /// thread owns the memory, so the access may begin the lifetime of a new object.
    pub fn access(&mut self, start: usize, end: usize, owner: bool) -> Result<(), Fault> {
        let mut at = self.first_near(start);
        let mut known = false;
        while let Some(object) = self.list.get_mut(at).filter(|object| object.start < end) {
            if object.overlaps(start, end) {
                // The owner reuses its frame. The compiler may omit the call for the initializing
                // write, so a read can come first.
                if object.dead && !owner {
                    return Err(Fault::Dead);
                }
                if std::mem::take(&mut object.dead) {
                    self.dead ^= object.code();
                }
                known |= (object.start, object.end) == (start, end);
            }
            at += 1;
        }
        if !known {
            self.list.insert(at, Object { start, end, dead: false });
        }
        Ok(())
    }

    /// Removes the objects within `bytes`, where an atomic object begins.
    pub fn replace(&mut self, bytes: Range<usize>, owner: bool) -> Result<(), Fault> {
        if !owner
            && self.list.iter().any(|object| object.dead && object.overlaps(bytes.start, bytes.end))
        {
            return Err(Fault::Dead);
        }
        self.list.retain(|object| object.start < bytes.start || bytes.end < object.end);
        let dead = self.list.iter().filter(|object| object.dead);
        self.dead = dead.fold(0, |all, object| all ^ object.code());
        Ok(())
    }

    /// Ends the lifetime of the objects from `start` to `end`.
    pub fn kill(&mut self, start: usize, end: usize) {
        let first = self.first_near(start);
        let objects = self.list[first..].iter_mut().take_while(|object| object.start < end);
        for object in objects.filter(|object| object.end > start && !object.dead) {
            object.dead = true;
            self.dead ^= object.code();
        }
    }
}
