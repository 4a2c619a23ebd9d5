// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cache lines: their owners and copies, and the latency of transfers. docs/simulator.md has the
//! equations, with the names used here.
//!
//! Caches are infinite: a core loses a line only to another core.

use crate::ids::LineId;
use crate::machine::{MOST_CORES, Machine};
use crate::random::Random;
use crate::time::Time;

const NO_CORE: u16 = u16::MAX;
const WORDS: usize = MOST_CORES / 64;
/// Bytes of a line, as a power of two.
const LINE_SHIFT: usize = 6;
/// Recent transfers remembered per core.
const RECENT: usize = 16;

/// A cache line.
#[derive(Clone)]
struct Line {
    /// The only core that may write it.
    owner: u16,
    home: u16,
    /// Cores with a copy.
    sharers: [u64; WORDS],
    /// Domains whose last-level cache has a copy.
    domains: u64,
    /// When the next transfer may begin.
    busy: Time,
    /// By domain: when its last-level cache may serve the line again.
    served: Box<[Time]>,
    /// Changes with each transfer of ownership and each visible write.
    version: u32,
    /// Threads that wait for a new version.
    sleepers: Vec<u32>,
    /// The last thread that wrote to it.
    writer: u32,
    /// The last thread of the owner's core that accessed it.
    visitor: u32,
}

impl Line {
    fn has(&self, core: u16) -> bool {
        self.sharers[usize::from(core) / 64] >> (core % 64) & 1 == 1
    }

    fn add(&mut self, core: u16) {
        self.sharers[usize::from(core) / 64] |= 1 << (core % 64);
    }

    fn copies(&self) -> u32 {
        self.sharers.iter().map(|word| word.count_ones()).sum()
    }
}

/// A transfer to a core: when the core has the line, and when the next transfer's probe takes it
/// away.
#[derive(Clone, Copy, Default)]
struct Transfer {
    line: LineId,
    filled: Time,
    lost: Time,
}

/// The times of a read that misses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    /// When the value is captured.
    pub captured: Time,
    /// The time at which the reader has the line.
    pub done: Time,
}

/// The times of a transfer for a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owned {
    /// When the request was served: copies are invalidated from then on.
    pub began: Time,
    /// The time at which the writer has the line.
    pub done: Time,
}

/// Counts of memory operations.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// Memory operations of the simulated threads.
    pub operations: u64,
    /// Operations that found the line in their core.
    pub hits: u64,
    /// Transfers from another core or cache of the same domain.
    pub local: u64,
    /// Transfers from another domain.
    pub remote: u64,
    /// Transfers from memory.
    pub memory: u64,
}

/// All lines of the simulated memory.
pub(crate) struct Memory {
    base: usize,
    /// By line of the arena: one more than its number; 0 before its first use.
    index: Vec<u32>,
    lines: Vec<Line>,
    /// By page of the arena: its node.
    homes: Vec<u16>,
    /// By node: when its directory becomes free.
    directories: Vec<Time>,
    recent: Vec<[Transfer; RECENT]>,
    oldest: Vec<usize>,
    random: Random,
    pub traffic: Traffic,
}

const PAGE_SHIFT: usize = 12;

impl Memory {
    pub fn new(machine: &Machine, base: usize, bytes: usize, random: Random) -> Memory {
        let cores = machine.cores.len();
        Memory {
            base,
            index: vec![0; bytes >> LINE_SHIFT],
            lines: vec![],
            homes: vec![0; (bytes >> PAGE_SHIFT) + 1],
            directories: vec![0; machine.nodes],
            recent: vec![[Transfer::default(); RECENT]; cores],
            oldest: vec![0; cores],
            random,
            traffic: Traffic::default(),
        }
    }

    /// Places the pages from `address` on at a node.
    pub fn place(&mut self, address: usize, bytes: usize, node: usize) {
        let first = (address - self.base) >> PAGE_SHIFT;
        let last = (address + bytes - 1 - self.base) >> PAGE_SHIFT;
        self.homes[first..=last].fill(node as u16);
    }

    /// Whether the address is simulated memory.
    pub fn holds(&self, address: usize) -> bool {
        address.wrapping_sub(self.base) >> LINE_SHIFT < self.index.len()
    }

    /// The line of an address of the simulated memory.
    pub fn line(&mut self, machine: &Machine, address: usize) -> LineId {
        let at = (address - self.base) >> LINE_SHIFT;
        if self.index[at] == 0 {
            self.lines.push(Line {
                owner: NO_CORE,
                home: self.homes[(address - self.base) >> PAGE_SHIFT],
                sharers: [0; WORDS],
                domains: 0,
                busy: 0,
                served: vec![0; machine.domains].into(),
                version: 0,
                sleepers: vec![],
                writer: u32::MAX,
                visitor: u32::MAX,
            });
            self.index[at] = self.lines.len() as u32;
        }
        self.index[at] - 1
    }

    /// The line of an address, if it was accessed before.
    pub fn known(&self, address: usize) -> Option<LineId> {
        self.index.get((address - self.base) >> LINE_SHIFT).and_then(|entry| entry.checked_sub(1))
    }

    /// The latency of an invalidation from `by` to `to`.
    pub fn probe(&self, machine: &Machine, line: LineId, to: u16, by: u16) -> Time {
        (machine.transfer(to.into(), by.into(), self.at(line).home.into()) as f64 * machine.travel)
            as Time
    }

    fn at(&self, line: LineId) -> &Line {
        &self.lines[line as usize]
    }

    fn at_mut(&mut self, line: LineId) -> &mut Line {
        &mut self.lines[line as usize]
    }

    // ---- The state of a core ----

    /// Whether the core may read it, now or when its transfer ends.
    pub fn readable(&self, line: LineId, core: u16) -> bool {
        self.at(line).has(core)
    }

    /// Whether the core may write it, now or when its transfer ends.
    pub fn writable(&self, line: LineId, core: u16) -> bool {
        self.at(line).owner == core
    }

    /// When the last transfer to the core ends or ended.
    pub fn filled(&self, line: LineId, core: u16) -> Time {
        self.transfer_of(line, core).map_or(0, |transfer| transfer.filled)
    }

    /// Whether the core still hits a line that it loses, because the probe has not arrived.
    pub fn lingers(&self, line: LineId, core: u16, now: Time) -> bool {
        self.transfer_of(line, core)
            .is_some_and(|transfer| transfer.filled <= now && now < transfer.lost)
    }

    fn transfer_of(&self, line: LineId, core: u16) -> Option<&Transfer> {
        // One more than a line's number, so that 0 marks an empty entry.
        self.recent[usize::from(core)].iter().find(|transfer| transfer.line == line + 1)
    }

    fn note(&mut self, line: LineId, core: u16, change: impl FnOnce(&mut Transfer)) {
        let core = usize::from(core);
        if let Some(transfer) =
            self.recent[core].iter_mut().find(|transfer| transfer.line == line + 1)
        {
            return change(transfer);
        }
        let mut transfer = Transfer { line: line + 1, ..Transfer::default() };
        change(&mut transfer);
        self.recent[core][self.oldest[core] % RECENT] = transfer;
        self.oldest[core] += 1;
    }

    // ---- Transfers ----

    /// How long a request of `core` travels to where the line is served.
    pub fn travel(&self, machine: &Machine, line: LineId, core: u16) -> Time {
        let (at, here) = (self.at(line), machine.cores[usize::from(core)]);
        let far = if at.owner != NO_CORE {
            machine.transfer(core.into(), at.owner.into(), at.home.into())
        } else if at.domains >> here.domain & 1 == 1 {
            machine.shared_cache
        } else if usize::from(at.home) == here.node {
            machine.memory_local
        } else {
            machine.memory_remote
        };
        (far as f64 * machine.travel) as Time
    }

    fn noisy(&mut self, machine: &Machine, time: Time) -> Time {
        let factor = 1.0 + machine.noise * (2.0 * self.random.unit() - 1.0);
        (time as f64 * factor) as Time
    }

    /// When a request that arrives now is served: after the line's transfer, and when the home's
    /// directory is free.
    fn turn(&mut self, machine: &Machine, line: LineId, now: Time, needs_home: bool) -> Time {
        let (busy, home) = (self.at(line).busy, usize::from(self.at(line).home));
        let mut start = now;
        if needs_home {
            start = start.max(self.directories[home]);
            self.directories[home] = start + machine.directory;
        }
        start.max(busy)
    }

    /// The rest of a transfer whose request has `travelled` and is served at `start`. A request
    /// that queued saved nothing by its travel.
    fn rest(latency: Time, travelled: Time, now: Time, start: Time) -> Time {
        if start > now { latency } else { latency.saturating_sub(travelled) }
    }

    /// The latency of a transfer from the nearest domain with a copy.
    fn nearest(&self, machine: &Machine, line: LineId, core: u16) -> Time {
        let at = self.at(line);
        (0..machine.domains)
            .filter(|domain| at.domains >> domain & 1 == 1)
            .map(|domain| machine.transfer(core.into(), machine.first_core(domain), at.home.into()))
            .min()
            .unwrap_or(machine.memory_remote)
    }

    /// Transfers a copy to `core`, whose request arrives now, after `travelled`.
    pub fn read(
        &mut self,
        machine: &Machine,
        line: LineId,
        core: u16,
        now: Time,
        travelled: Time,
    ) -> Fetched {
        let here = machine.cores[usize::from(core)];
        let (owner, home, domains) =
            (self.at(line).owner, usize::from(self.at(line).home), self.at(line).domains);
        let fetched = if owner != NO_CORE && owner != core {
            let there = machine.cores[usize::from(owner)].domain;
            let start = self.turn(machine, line, now, there != here.domain);
            let full = machine.transfer(core.into(), owner.into(), home);
            let latency = self.noisy(machine, full);
            let done = start + Self::rest(latency, travelled, now, start);
            let captured = (start + (latency as f64 * machine.travel) as Time).min(done);
            self.count(there == here.domain);
            self.note(line, owner, |transfer| transfer.lost = captured);
            let at = self.at_mut(line);
            at.owner = NO_CORE;
            at.domains |= 1 << here.domain | 1 << there;
            at.busy = done;
            at.served[here.domain] = done;
            at.served[there] = done;
            Fetched { captured, done }
        } else if domains >> here.domain & 1 == 1 {
            let start = self.at(line).busy.max(now).max(self.at(line).served[here.domain]);
            let done =
                start + machine.shared_cache.saturating_sub(travelled.min(machine.shared_cache));
            self.traffic.local += 1;
            self.at_mut(line).served[here.domain] = start + machine.serve_shared;
            Fetched { captured: start, done }
        } else if domains != 0 {
            let start = self.turn(machine, line, now, true);
            let full = (self.nearest(machine, line, core) as f64 * machine.clean) as Time;
            let latency = self.noisy(machine, full);
            let done = start + Self::rest(latency, travelled, now, start);
            self.traffic.remote += 1;
            let at = self.at_mut(line);
            at.domains |= 1 << here.domain;
            at.busy = start + machine.serve_remote;
            at.served[here.domain] = done;
            Fetched { captured: start, done }
        } else {
            let done = self.fetch_from_memory(machine, line, core, now, travelled).done;
            self.at_mut(line).owner = core;
            Fetched { captured: done, done }
        };
        self.at_mut(line).add(core);
        self.note(line, core, |transfer| {
            transfer.filled = fetched.done;
            transfer.lost = 0;
        });
        fetched
    }

    fn fetch_from_memory(
        &mut self,
        machine: &Machine,
        line: LineId,
        core: u16,
        now: Time,
        travelled: Time,
    ) -> Owned {
        let here = machine.cores[usize::from(core)];
        let start = self.turn(machine, line, now, true);
        let near = here.node == usize::from(self.at(line).home);
        let latency =
            self.noisy(machine, if near { machine.memory_local } else { machine.memory_remote });
        let done = start + Self::rest(latency, travelled, now, start);
        self.traffic.memory += 1;
        let at = self.at_mut(line);
        at.domains |= 1 << here.domain;
        at.busy = done;
        Owned { began: start, done }
    }

    /// The latency of invalidating all copies of other cores; and whether another domain has one.
    fn invalidation(&self, machine: &Machine, line: LineId, core: u16) -> (Time, bool) {
        let (at, here) = (self.at(line), machine.cores[usize::from(core)]);
        let near = machine.near(core.into());
        let elsewhere =
            (0..machine.domains).filter(|d| *d != here.domain && at.domains >> d & 1 == 1);
        let far = elsewhere
            .map(|domain| machine.transfer(core.into(), machine.first_core(domain), at.home.into()))
            .max();
        let base = ((far.unwrap_or(0).max(near)) as f64 * machine.upgrade) as Time;
        let others = at.copies().saturating_sub(u32::from(at.has(core)));
        (base + machine.sharer * Time::from(others.saturating_sub(1)), far.is_some())
    }

    /// Makes `core` the owner; its request arrives now, after `travelled`. The caller wakes
    /// sleepers.
    pub fn own(
        &mut self,
        machine: &Machine,
        line: LineId,
        core: u16,
        now: Time,
        travelled: Time,
    ) -> Owned {
        let here = machine.cores[usize::from(core)];
        let (owner, home) = (self.at(line).owner, usize::from(self.at(line).home));
        if owner == core {
            let began = now.max(self.at(line).busy);
            return Owned { began, done: began };
        }
        let owned = if owner != NO_CORE {
            let there = machine.cores[usize::from(owner)].domain;
            let start = self.turn(machine, line, now, there != here.domain);
            let full = machine.transfer(core.into(), owner.into(), home);
            let latency = self.noisy(machine, full);
            let done = start + Self::rest(latency, travelled, now, start);
            self.count(there == here.domain);
            let lost = (start + (latency as f64 * machine.travel) as Time).min(done);
            self.note(line, owner, |transfer| transfer.lost = lost);
            Owned { began: start, done }
        } else if self.at(line).domains == 0 {
            self.fetch_from_memory(machine, line, core, now, travelled)
        } else {
            let (full, far) = self.invalidation(machine, line, core);
            let start = self.turn(machine, line, now, far);
            let latency = self.noisy(machine, full);
            self.count(!far);
            Owned { began: start, done: start + Self::rest(latency, travelled, now, start) }
        };
        let at = self.at_mut(line);
        at.version = at.version.wrapping_add(1);
        at.owner = core;
        at.sharers = [0; WORDS];
        at.add(core);
        at.domains = 1 << here.domain;
        at.busy = owned.done;
        at.served[here.domain] = owned.done;
        self.note(line, core, |transfer| {
            transfer.filled = owned.done;
            transfer.lost = 0;
        });
        owned
    }

    /// Delays the next transfer.
    pub fn hold(&mut self, line: LineId, until: Time) {
        let at = self.at_mut(line);
        at.busy = at.busy.max(until);
    }

    fn count(&mut self, local: bool) {
        if local {
            self.traffic.local += 1;
        } else {
            self.traffic.remote += 1;
        }
    }

    // ---- Sleepers ----

    /// A number that changes when sleepers must read again.
    pub fn version(&self, line: LineId) -> u32 {
        self.at(line).version
    }

    /// Notes a visible write, which causes no transfer for siblings of its core.
    pub fn wrote(&mut self, line: LineId, thread: u32) {
        let at = self.at_mut(line);
        at.version = at.version.wrapping_add(1);
        at.writer = thread;
        at.visitor = thread;
    }

    /// Whether a sibling wrote to the line, which their core owns, since the last access of
    /// `thread`.
    pub fn meets_sibling(&mut self, line: LineId, core: u16, thread: u32) -> bool {
        let at = self.at_mut(line);
        if at.owner != core || at.visitor == thread {
            return false;
        }
        std::mem::replace(&mut at.visitor, thread) != u32::MAX
    }

    /// The last thread that wrote to the line.
    pub fn writer(&self, line: LineId) -> Option<u32> {
        Some(self.at(line).writer).filter(|writer| *writer != u32::MAX)
    }

    pub fn sleep(&mut self, line: LineId, thread: u32) {
        self.at_mut(line).sleepers.push(thread);
    }

    pub fn forget(&mut self, line: LineId, thread: u32) {
        self.at_mut(line).sleepers.retain(|sleeper| *sleeper != thread);
    }

    pub fn sleepers(&mut self, line: LineId) -> Vec<u32> {
        std::mem::take(&mut self.at_mut(line).sleepers)
    }

    pub fn has_sleepers(&self, line: LineId) -> bool {
        !self.at(line).sleepers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_line_in_transfer_does_not_delay_other_lines_of_its_home() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/graviton3.toml");
        let machine = Machine::read(Path::new(file)).expect("a machine");
        let base = 1 << PAGE_SHIFT;
        let mut memory = Memory::new(&machine, base, 1 << PAGE_SHIFT, Random::new(1, 0));
        let [busy, other] = [0, 1].map(|n| memory.line(&machine, base + (n << LINE_SHIFT)));
        let until = 1000 * machine.directory;
        memory.at_mut(busy).busy = until;
        assert_eq!(memory.turn(&machine, busy, 0, true), until);
        assert_eq!(memory.turn(&machine, other, 0, true), machine.directory);
    }
}
