// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain accesses and the store buffer: how loads and stores of the current thread reach memory.

use super::Engine;
use super::agenda::Action;
use super::store_buffer::Store;
use super::thread::State;
use crate::ids::LineId;
use crate::ids::ThreadId;
use crate::memory::Owned;
use crate::time::Time;

impl Engine {
    /// Performs a plain access of `size` bytes. The compiled code itself reads or writes the value.
    pub fn plain(&mut self, address: usize, size: usize, write: bool) {
        if self.preparing {
            return;
        }
        let step = self.me().step;
        if !self.memory.holds(address) {
            let hit = self.machine.hit;
            self.spend(hit + step);
            return;
        }
        let last = (address + size.max(1) - 1) & !63;
        let mut at = address & !63;
        while at <= last {
            self.plain_line(at.max(address), write, step);
            at += 64;
        }
    }

    pub(super) fn plain_line(&mut self, address: usize, write: bool, step: Time) {
        self.memory.traffic.operations += 1;
        let line = self.memory.line(&self.machine, address);
        if write {
            self.plain_store(address, line);
        } else {
            self.plain_load(address, line);
        }
        if step > 0 {
            self.spend(step);
        }
    }

    pub(super) fn plain_load(&mut self, address: usize, line: LineId) {
        let core = self.me().core;
        let place = address / 64;
        let streams = place == self.me().walk.place + 1;
        if place != self.me().walk.place {
            self.me().walk.place = place;
            if streams {
                self.prefetch(address);
            }
        }
        let buffered = self.me().buffer.has(line);
        if buffered || self.memory.readable(line, core) {
            let ready = self.now + self.me().ahead;
            let filled = self.memory.filled(line, core);
            if !buffered && filled > ready {
                self.me().ahead += filled - ready;
            }
            self.memory.traffic.hits += 1;
            let hit = self.machine.hit;
            self.spend(hit);
            return;
        }
        self.sync();
        let began = self.now;
        // The second line of a walk was requested while the first was on its way.
        let credit = if streams { began - self.me().walk.asked.min(began) } else { 0 };
        self.me().walk.asked = began;
        self.fetch(line, address, 0, credit);
    }

    /// Requests the following lines of the page, as a stream prefetcher does.
    pub(super) fn prefetch(&mut self, address: usize) {
        self.sync();
        for next in (1..=self.machine.stream as usize)
            .map(|k| address + 64 * k)
            .take_while(|next| next >> 12 == address >> 12)
        {
            self.ask_for(next);
        }
    }

    /// Performs a prefetch hint: requests the line, and does not wait for it.
    pub fn ask(&mut self, address: usize) {
        if self.preparing || !self.memory.holds(address) {
            return;
        }
        self.sync();
        self.ask_for(address);
    }

    /// Requests a line that some thread has accessed before.
    pub(super) fn ask_for(&mut self, address: usize) {
        let Some(line) = self.memory.known(address) else { return };
        let core = self.me().core;
        if !self.memory.readable(line, core) {
            let travel = self.memory.travel(&self.machine, line, core);
            self.memory.read(&self.machine, line, core, self.now, travel);
        }
    }

    pub(super) fn plain_store(&mut self, address: usize, line: LineId) {
        let core = self.me().core;
        let now = self.now;
        let empty = self.me().buffer.is_empty();
        if empty
            && self.memory.writable(line, core)
            && self.memory.filled(line, core) <= now + self.me().ahead
        {
            self.memory.traffic.hits += 1;
            self.memory.wrote(line, self.current);
            let store = self.machine.store;
            self.spend(store);
            return;
        }
        let merges = self.me().buffer.merges(line);
        if merges {
            self.memory.traffic.hits += 1;
        } else {
            self.push_store(Store::plain(address, line));
        }
        let store = self.machine.store;
        self.spend(store);
    }

    // ---- The store buffer ----

    /// Appends a store to the buffer; waits while that is full.
    pub(super) fn push_store(&mut self, store: Store) {
        let room = self.machine.store_buffer;
        if self.me().buffer.len() >= room {
            self.sync();
            self.drain_to(room - 1);
        }
        let core = self.me().core;
        let owned = self.memory.writable(store.line, core);
        let travel = if owned { 0 } else { self.memory.travel(&self.machine, store.line, core) };
        let ready = self.now + self.me().ahead + self.machine.store;
        let at = self.me().buffer.push(store, ready + travel);
        self.agenda.schedule(at, Action::Store, self.current, 0);
    }

    /// Waits until at most `most` stores are in the buffer.
    pub(super) fn drain_to(&mut self, most: usize) {
        if self.me().buffer.len() <= most {
            return;
        }
        let thread = self.me();
        thread.state = State::Drains(most);
        thread.goes_on = false;
        self.suspend();
    }

    /// Waits until all stores are visible.
    pub(super) fn drain(&mut self) {
        self.sync();
        self.drain_to(0);
    }

    /// Serves the request of the next store, or makes the oldest one visible.
    pub(super) fn store_event(&mut self, id: ThreadId) {
        let thread = &self.threads[id as usize];
        if thread.buffer.is_due(self.now) {
            self.commit(id);
            return;
        }
        let core = thread.core;
        let Some((line, before)) = thread.buffer.next_request() else { return };
        let done = if self.memory.writable(line, core) {
            self.now.max(self.memory.filled(line, core))
        } else if self.memory.lingers(line, core, self.now) && before <= self.now {
            self.now
        } else {
            let travelled = self.memory.travel(&self.machine, line, core);
            self.own(line, core, travelled).done
        };
        let commit = done.max(before);
        if self.memory.writable(line, core) {
            self.memory.hold(line, commit);
        }
        self.threads[id as usize].buffer.issue(commit);
        self.agenda.schedule(commit, Action::Store, id, 0);
    }

    /// Makes the oldest store visible.
    pub(super) fn commit(&mut self, id: ThreadId) {
        let thread = &mut self.threads[id as usize];
        let store = thread.buffer.pop();
        let core = thread.core;
        if let Some(value) = store.value {
            self.arena.write(store.address, store.size, value);
        }
        self.written(store.line, id, core);
        let thread = &mut self.threads[id as usize];
        if let State::Drains(most) = thread.state
            && thread.buffer.len() <= most
        {
            thread.goes_on = true;
            if self.system.running(thread.cpu) == Some(id) {
                thread.state = State::Runs;
                thread.resume_at = self.now;
                let generation = thread.generation;
                self.agenda.schedule(self.now, Action::Resume, id, generation);
            }
        }
    }

    /// Notes a write that has become visible. Threads of the same core that wait for it saw no
    /// transfer.
    pub(super) fn written(&mut self, line: LineId, id: ThreadId, core: u16) {
        self.memory.wrote(line, id);
        if self.memory.has_sleepers(line) {
            let at = self.now + self.machine.sibling(core);
            self.wake_sleepers(line, at, core);
        }
    }

    // ---- Lines ----

    /// Makes `core` the owner of the line, and wakes the threads that spin on it.
    pub(super) fn own(&mut self, line: LineId, core: u16, travelled: Time) -> Owned {
        let owned = self.memory.own(&self.machine, line, core, self.now, travelled);
        if self.memory.has_sleepers(line) {
            self.wake_sleepers(line, owned.began, core);
        }
        owned
    }

    /// Resumes the threads that spin on the line, which `by` has invalidated from `from` on.
    pub(super) fn wake_sleepers(&mut self, line: LineId, from: Time, by: u16) {
        for id in self.memory.sleepers(line) {
            let thread = &self.threads[id as usize];
            if thread.state != State::Spins {
                continue;
            }
            let (to, generation) = (thread.core, thread.generation);
            let invalidation =
                if to == by { 0 } else { self.memory.probe(&self.machine, line, to, by) };
            let period = (self.machine.pause + self.machine.hit) as f64;
            let phase = (self.threads[id as usize].random.unit() * period) as Time;
            let at = from.max(self.now) + invalidation + phase;
            let thread = &mut self.threads[id as usize];
            thread.state = State::Runs;
            thread.resume_at = at;
            thread.sleeps_on = None;
            self.agenda.schedule(at, Action::Resume, id, generation);
        }
    }
}
