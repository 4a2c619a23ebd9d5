// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of the locations of atomic objects, assigned on first use and stable over all
//! executions.

use super::settings::Needs;
use crate::arena;
use crate::memory::Span;

const UNKNOWN: u16 = u16::MAX;

/// The locations of atomic objects, by number and by address.
pub struct Places {
    /// By address, the numbers of locations of 4 bytes and of 8 bytes.
    small: Vec<u16>,
    large: Vec<u16>,
    /// By number, address and size; the size is 0 for the numbers that only stand for a slot.
    known: Vec<(usize, usize)>,
    /// By number, whether atomic accesses are remembered to find races with plain ones.
    traced: Vec<bool>,
    /// Address and size of the locations of mixed sizes.
    mixed: Vec<(usize, usize)>,
}

impl Places {
    pub fn new() -> Places {
        Places {
            small: vec![UNKNOWN; arena::GRANULES],
            large: vec![UNKNOWN; arena::GRANULES],
            known: Vec::new(),
            traced: Vec::new(),
            mixed: Vec::new(),
        }
    }

    /// Declares a location of `size` bytes, 4 or 8, at `address`, of which an operation may access
    /// some.
    pub fn mix(&mut self, address: usize, size: usize) {
        self.mixed.push((address, size));
    }

    /// The location of mixed sizes that contains the `size` bytes at `address`.
    pub fn mixed(&self, address: usize, size: usize) -> Option<(usize, usize)> {
        let holds = |&&(at, bytes): &&(usize, usize)| at <= address && address + size <= at + bytes;
        self.mixed.iter().find(holds).copied()
    }

    /// The `size` bytes at `address` as part of their location.
    pub fn span(&mut self, address: usize, size: usize, needs: &Needs) -> Span {
        match self.mixed(address, size) {
            None => Span::all_of(self.number(address, size, needs)),
            Some((at, bytes)) => Span::bytes_of(self.number(at, bytes, needs), address - at, size),
        }
    }

    /// All of a location.
    pub fn whole(&self, location: usize) -> Span {
        let (address, size) = self.known[location];
        match self.mixed(address, size) {
            None => Span::all_of(location),
            Some(_) => Span::bytes_of(location, 0, size),
        }
    }

    /// The number of the location of `size` bytes, 4 or 8, at `address`.
    fn number(&mut self, address: usize, size: usize, needs: &Needs) -> usize {
        let slots = if self.mixed(address, size).is_some() { size } else { 1 };
        let table = if size == 4 { &mut self.small } else { &mut self.large };
        let entry = &mut table[arena::granule(address)];
        if *entry == UNKNOWN {
            *entry = self.known.len() as u16;
            self.known.push((address, size));
            self.known.extend((1..slots).map(|byte| (address + byte, 0)));
            self.traced.resize(self.known.len(), needs.traced.contains(&address));
        }
        *entry as usize
    }

    /// How many locations there are.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// Address and size of a location.
    pub fn extent(&self, location: usize) -> (usize, usize) {
        self.known[location]
    }

    /// Whether atomic accesses to the location are remembered.
    pub fn is_traced(&self, location: usize) -> bool {
        self.traced[location]
    }

    /// The locations whose first byte is near enough to overlap the bytes from `start` to `end`.
    pub fn near(&self, start: usize, end: usize) -> impl Iterator<Item = usize> + '_ {
        let (first, last) = (arena::granule(start), arena::granule(end - 1));
        let small = self.small[first..=last].iter();
        let large = self.large[first.saturating_sub(1)..=last].iter();
        small.chain(large).filter(|&&number| number != UNKNOWN).map(|&number| number as usize)
    }

    /// Whether two locations overlap.
    pub fn overlap(&self, location: usize, other: usize) -> bool {
        let ((a, a_size), (b, b_size)) = (self.known[location], self.known[other]);
        a < b + b_size && b < a + a_size
    }
}
