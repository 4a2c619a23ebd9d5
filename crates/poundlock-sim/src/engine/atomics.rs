// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomic accesses of the current thread.

use super::Engine;
use super::store_buffer::Store;
use crate::arena::STACK;
use crate::ids::LineId;
use crate::time::Time;

impl Engine {
    pub fn load(&mut self, address: usize, size: u32) -> u64 {
        if self.preparing {
            return self.arena.read(address, size);
        }
        self.sync();
        self.me().last_load = address;
        if !self.memory.holds(address) {
            self.advance(self.machine.hit);
            return self.arena.read(address, size);
        }
        self.memory.traffic.operations += 1;
        if let Some(value) = self.forwarded(address, size) {
            return value;
        }
        let line = self.memory.line(&self.machine, address);
        let core = self.me().core;
        let readable = self.memory.readable(line, core);
        if readable && self.memory.filled(line, core) > self.now {
            self.advance(self.memory.filled(line, core) - self.now);
        }
        if readable || self.memory.lingers(line, core, self.now) {
            self.memory.traffic.hits += 1;
            self.meet_sibling(line, core);
            let value = self.arena.read(address, size);
            self.me().seen = readable.then_some((line, self.memory.version(line)));
            let hit = (self.machine.hit as f64 * self.slowness()) as Time;
            self.advance(hit);
            return value;
        }
        let (value, version) = self.fetch(line, address, size, 0);
        self.me().seen = Some((line, version));
        value
    }

    /// Brings the line. Returns the value (of `size` bytes, or none) and the version that it had
    /// when it was sent. `credit`: the time that the transfer has already taken.
    pub(super) fn fetch(
        &mut self,
        line: LineId,
        address: usize,
        size: u32,
        credit: Time,
    ) -> (u64, u32) {
        let core = self.me().core;
        let travel = self.memory.travel(&self.machine, line, core);
        self.advance(travel.saturating_sub(credit));
        // A sibling may have fetched the line in the meantime.
        let (captured, done) = if self.memory.readable(line, core) {
            let filled = self.memory.filled(line, core).max(self.now);
            (filled, filled)
        } else {
            let fetched = self.memory.read(&self.machine, line, core, self.now, travel.max(credit));
            (fetched.captured.max(self.now), fetched.done)
        };
        self.advance(captured - self.now);
        let sent = (self.arena.read(address, size), self.memory.version(line));
        self.advance(done.saturating_sub(self.now));
        sent
    }

    /// The value of the thread's own store that is not visible yet.
    pub(super) fn forwarded(&mut self, address: usize, size: u32) -> Option<u64> {
        let stores = &self.threads[self.current as usize].buffer;
        let Some(same) = stores.overlapping(address, size) else {
            let line = self.memory.known(address);
            if !line.is_some_and(|line| stores.has(line)) {
                return None;
            }
            // A store to another word of the line is pending, or one whose value is in memory.
            self.me().seen = None;
            self.advance(self.machine.hit);
            return Some(self.arena.read(address, size));
        };
        if same.address == address && same.size == size {
            let value = same.value;
            self.me().seen = None;
            self.advance(self.machine.hit);
            return value;
        }
        // Objects are accessed at one size, but memory may be reused for another object.
        self.drain_to(0);
        None
    }

    pub fn store(&mut self, address: usize, size: u32, value: u64) {
        if self.preparing {
            return self.arena.write(address, size, value);
        }
        self.sync();
        if !self.memory.holds(address) {
            self.arena.write(address, size, value);
            return;
        }
        self.memory.traffic.operations += 1;
        let line = self.memory.line(&self.machine, address);
        let core = self.me().core;
        let empty = self.me().buffer.is_empty();
        let owned = self.memory.writable(line, core) && self.memory.filled(line, core) <= self.now;
        if empty && (owned || self.memory.lingers(line, core, self.now)) {
            self.memory.traffic.hits += 1;
            self.arena.write(address, size, value);
            self.written(line, self.current, core);
        } else {
            // A frame may end before its last stores are visible, and the host's own pushes are not
            // ordered with them: stores to the thread's own stack take effect at once, and only
            // take the buffer's time.
            let own = (self.me().stack..self.me().stack + STACK).contains(&address);
            if own {
                self.arena.write(address, size, value);
            }
            self.push_store(Store::atomic(address, size, (!own).then_some(value), line));
        }
        let store = (self.machine.store as f64 * self.slowness()) as Time;
        self.advance(store);
    }

    pub fn fence(&mut self) {
        self.drain();
        self.advance(self.machine.atomic);
    }

    /// Performs a read-modify-write: `change` returns what to write, if anything. Returns the old
    /// value.
    pub fn update(
        &mut self,
        address: usize,
        size: u32,
        change: impl FnOnce(u64) -> Option<u64>,
    ) -> u64 {
        if self.preparing || !self.memory.holds(address) {
            let old = self.arena.read(address, size);
            if let Some(value) = change(old) {
                self.arena.write(address, size, value);
            }
            return old;
        }
        self.drain();
        self.memory.traffic.operations += 1;
        let line = self.memory.line(&self.machine, address);
        let core = self.me().core;
        self.me().seen = None;
        let mut travel = 0;
        if !self.may_write(line, core) && !self.memory.writable(line, core) {
            travel = self.memory.travel(&self.machine, line, core);
            self.advance(travel);
        }
        let atomic = (self.machine.atomic as f64 * self.slowness()) as Time;
        if self.may_write(line, core) {
            self.memory.traffic.hits += 1;
            self.meet_sibling(line, core);
            let old = self.arena.read(address, size);
            if let Some(value) = change(old) {
                self.arena.write(address, size, value);
                self.written(line, self.current, core);
            }
            if self.memory.writable(line, core) {
                self.memory.hold(line, self.now + atomic);
            }
            self.advance(atomic);
            return old;
        }
        let done = if self.memory.writable(line, core) {
            self.memory.filled(line, core).max(self.now)
        } else {
            self.own(line, core, travel).done
        };
        self.memory.hold(line, done + atomic);
        self.advance(done + atomic - self.now);
        let old = self.arena.read(address, size);
        if let Some(value) = change(old) {
            self.arena.write(address, size, value);
            self.written(line, self.current, core);
        }
        old
    }

    /// Waits for a sibling's recent write, in the cache that both share.
    pub(super) fn meet_sibling(&mut self, line: LineId, core: u16) {
        if self.memory.meets_sibling(line, core, self.current) {
            self.advance(self.machine.sibling(core));
        }
    }

    /// Whether the core may write the line now.
    pub(super) fn may_write(&self, line: LineId, core: u16) -> bool {
        (self.memory.writable(line, core) && self.memory.filled(line, core) <= self.now)
            || self.memory.lingers(line, core, self.now)
    }
}
