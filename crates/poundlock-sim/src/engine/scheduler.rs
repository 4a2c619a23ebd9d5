// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scheduler: assigns threads to CPUs by run queues in order of virtual time, as CFS does.

use super::Engine;
use super::agenda::Action;
use super::thread::{State, Thread};
use crate::ids::ThreadId;
use crate::time::Time;
use crate::trace::Mark;

impl Engine {
    /// Starts the first thread of a CPU after `delay`.
    pub fn start_cpu(&mut self, cpu: usize, delay: Time) {
        while self.system.cpus[cpu].running.is_none() && !self.system.cpus[cpu].ready.is_empty() {
            let first = self.system.cpus[cpu].ready.remove(0);
            if self.admit(cpu, first) {
                self.give_cpu(cpu, first, delay);
            }
        }
    }

    /// The time slice: `period` divided among the threads of the CPU, at least `slice`.
    pub(super) fn slice(&self, cpu: usize) -> Time {
        let threads = self.system.cpus[cpu].ready.len() as Time + 1;
        (self.machine.period / threads).max(self.machine.slice)
    }

    /// How long every thread of the fullest CPU needs for one slice each.
    pub fn longest_round(&self) -> Time {
        let round = |cpu| self.slice(cpu) * (self.system.cpus[cpu].ready.len() as Time + 1);
        (0..self.system.cpus.len()).map(round).max().unwrap_or(0)
    }

    /// Switches the CPU to the thread, which runs after `delay`.
    pub(super) fn give_cpu(&mut self, cpu: usize, id: ThreadId, delay: Time) {
        let at = self.now + delay;
        if self.threads[id as usize].next_interrupt < self.now {
            // Interrupts that came while the thread had no CPU did not delay it.
            self.draw_interrupt(id, self.now);
        }
        let queue = &mut self.system.cpus[cpu];
        queue.running = Some(id);
        queue.generation += 1;
        let (generation, others) = (queue.generation, !queue.ready.is_empty());
        let core = self.machine.cpus[cpu].core as u16;
        let thread = &mut self.threads[id as usize];
        thread.on_since = self.now;
        thread.cpu = cpu;
        // Its buffer was empty before it could migrate.
        thread.core = core;
        let drains = matches!(thread.state, State::Drains(_)) && !thread.goes_on;
        if !drains {
            thread.state = State::Runs;
            thread.generation += 1;
            thread.resume_at = at + std::mem::take(&mut thread.rest);
            let (at, generation) = (thread.resume_at, thread.generation);
            self.agenda.schedule(at, Action::Resume, id, generation);
        }
        self.trace.note(at, id, Mark::OnCpu(cpu as u32));
        if others {
            let slice = self.slice(cpu);
            self.agenda.schedule(at + slice, Action::Slice, cpu as u32, generation);
        }
        if let Some(group) = self.threads[id as usize].group {
            let until = self.now + self.system.groups[group].taken[cpu];
            self.agenda.schedule(until, Action::Quota, cpu as u32, generation);
        }
    }

    /// Appends the thread to the run queue. The running thread gets a time slice if it was alone.
    pub(super) fn enqueue(&mut self, cpu: usize, id: ThreadId) {
        self.system.cpus[cpu].ready.push(id);
        if self.system.cpus[cpu].running.is_some() && self.system.cpus[cpu].ready.len() == 1 {
            let (slice, generation) = (self.slice(cpu), self.system.cpus[cpu].generation);
            self.agenda.schedule(self.now + slice, Action::Slice, cpu as u32, generation);
        }
    }

    /// The time that all threads have had a CPU so far.
    pub fn cpu_time(&self) -> Time {
        let now = |id: ThreadId| self.now.saturating_sub(self.threads[id as usize].on_since);
        let running = self.system.cpus.iter().filter_map(|cpu| cpu.running).map(now).sum::<Time>();
        self.threads.iter().map(|thread| thread.ran).sum::<Time>() + running
    }

    // ---- Running ----

    /// Adds the thread's time on the CPU to its virtual time and its group's usage.
    pub(super) fn charge(&mut self, id: ThreadId) {
        let now = self.now;
        let thread = &mut self.threads[id as usize];
        let time = now.saturating_sub(thread.on_since);
        thread.virtual_run += (time as f64 * 1024.0 / f64::from(thread.weight)) as Time;
        thread.ran += time;
        thread.on_since = now;
        let (group, cpu) = (thread.group, thread.cpu);
        if let Some(group) = group {
            let taken = &mut self.system.groups[group].taken[cpu];
            *taken = taken.saturating_sub(time);
        }
    }

    /// Takes the CPU from a thread that would continue.
    pub(super) fn preempt(&mut self, id: ThreadId) {
        self.charge(id);
        let now = self.now;
        let state = self.threads[id as usize].state;
        if state == State::Spins {
            self.stop_sleeping(id);
        }
        let thread = &mut self.threads[id as usize];
        match state {
            State::Drains(_) => {}
            State::Spins => {
                thread.rest = 0;
                thread.state = State::Ready;
                thread.generation += 1;
            }
            _ => {
                thread.rest = thread.resume_at.saturating_sub(now);
                thread.state = State::Ready;
                thread.generation += 1;
            }
        }
        thread.preempted += 1;
        self.trace.note(now, id, Mark::Preempted);
    }

    /// Handles the end of a time slice.
    pub fn slice_over(&mut self, cpu: usize, generation: u32) {
        let queue = &self.system.cpus[cpu];
        let Some(id) = queue.running else { return };
        if queue.generation != generation || queue.ready.is_empty() {
            return;
        }
        self.preempt(id);
        self.system.cpus[cpu].ready.push(id);
        self.system.cpus[cpu].running = None;
        self.pick(cpu);
    }

    /// Lets an idle CPU look at its run queue.
    pub fn pick_event(&mut self, cpu: usize) {
        self.system.cpus[cpu].picks = false;
        if self.system.cpus[cpu].running.is_none() {
            self.pick(cpu);
        }
    }

    /// Gives an idle CPU to the thread with the least virtual time, of its own queue or pulled from
    /// another.
    pub(super) fn pick(&mut self, cpu: usize) {
        loop {
            if self.system.cpus[cpu].ready.is_empty() && !self.system.pinned {
                self.pull(cpu);
            }
            let ready = &self.system.cpus[cpu].ready;
            let least =
                (0..ready.len()).min_by_key(|i| self.threads[ready[*i] as usize].virtual_run);
            let Some(at) = least else { return };
            let id = self.system.cpus[cpu].ready.remove(at);
            if self.admit(cpu, id) {
                let switch = self.machine.switch;
                return self.give_cpu(cpu, id, switch);
            }
        }
    }

    /// Moves a waiting thread here from the longest queue, preferably of the same domain.
    pub(super) fn pull(&mut self, cpu: usize) {
        let here = self.machine.cpus[cpu];
        let longest = (0..self.system.cpus.len())
            .filter(|other| self.system.cpus[*other].is_overloaded())
            .max_by_key(|other| {
                let near = self.machine.cpus[*other].domain == here.domain;
                (near, self.system.cpus[*other].ready.len(), usize::MAX - *other)
            });
        if let Some(other) = longest {
            // A thread that drains its stores stays: they belong to its core.
            let queue = &self.system.cpus[other].ready;
            let movable =
                |id: &ThreadId| !matches!(self.threads[*id as usize].state, State::Drains(_));
            if let Some(at) = queue.iter().position(movable) {
                let id = self.system.cpus[other].ready.remove(at);
                self.system.cpus[cpu].ready.push(id);
            }
        }
    }

    /// Handles a thread that has ended or sleeps.
    pub fn leave_cpu(&mut self, id: ThreadId) {
        self.charge(id);
        let Thread { cpu, group, .. } = self.threads[id as usize];
        let queue = &mut self.system.cpus[cpu];
        queue.running = None;
        queue.generation += 1;
        let same = |other: &ThreadId| self.threads[*other as usize].group == group;
        if let Some(group) = group.filter(|_| !self.system.cpus[cpu].ready.iter().any(same)) {
            self.system.groups[group].give_back(cpu);
        }
        self.pick(cpu);
    }

    /// sched_yield: the thread goes behind all others of its CPU.
    pub fn yield_cpu(&mut self) {
        self.enter_system();
        let id = self.current;
        let cpu = self.me().cpu;
        if self.system.cpus[cpu].ready.is_empty() {
            return;
        }
        self.charge(id);
        let ready = &self.system.cpus[cpu].ready;
        let last =
            ready.iter().map(|other| self.threads[*other as usize].virtual_run).max().unwrap_or(0);
        let thread = self.me();
        thread.virtual_run = thread.virtual_run.max(last + 1);
        thread.state = State::Ready;
        thread.generation += 1;
        thread.rest = 0;
        self.system.cpus[cpu].ready.push(id);
        self.system.cpus[cpu].running = None;
        self.pick(cpu);
        self.suspend();
    }

    // ---- Waking ----

    /// Chooses the CPU of a woken thread: its last one, or an idle one of the same domain if it may
    /// migrate.
    pub(super) fn place_woken(&self, id: ThreadId) -> usize {
        let cpu = self.threads[id as usize].cpu;
        let idle = |cpu: &usize| {
            self.system.cpus[*cpu].running.is_none() && self.system.cpus[*cpu].ready.is_empty()
        };
        if self.system.pinned || idle(&cpu) {
            return cpu;
        }
        let domain = self.machine.cpus[cpu].domain;
        let near =
            (0..self.machine.cpus.len()).filter(|other| self.machine.cpus[*other].domain == domain);
        near.filter(idle).min().unwrap_or(cpu)
    }

    /// Makes a sleeping thread runnable; it may preempt the running one.
    pub(super) fn wake(&mut self, id: ThreadId) {
        let cpu = self.place_woken(id);
        let (now, running) = (self.now, self.system.cpus[cpu].running);
        if let Some(other) = running {
            self.charge(other);
        }
        let queue = &self.system.cpus[cpu];
        let runs = |id: &ThreadId| self.threads[*id as usize].virtual_run;
        let least = running.iter().chain(&queue.ready).map(runs).min();
        let sleeper_credit = self.machine.period / 2;
        let thread = &mut self.threads[id as usize];
        thread.state = State::Ready;
        thread.sleeps_on = None;
        thread.rest = 0;
        thread.cpu = cpu;
        if let Some(least) = least {
            thread.virtual_run = thread.virtual_run.max(least.saturating_sub(sleeper_credit));
        }
        let mine = thread.virtual_run;
        self.trace.note(now, id, Mark::Woken);
        let wake = self.machine.wake;
        let queue = &mut self.system.cpus[cpu];
        let Some(other) = running else {
            queue.ready.push(id);
            if !std::mem::replace(&mut queue.picks, true) {
                self.agenda.schedule(now + wake, Action::Pick, cpu as u32, 0);
            }
            return;
        };
        let far_behind = self.threads[other as usize].virtual_run > mine + self.machine.slice;
        if !far_behind || other == self.current {
            self.enqueue(cpu, id);
        } else if self.admit(cpu, id) {
            self.preempt(other);
            let queue = &mut self.system.cpus[cpu];
            queue.ready.push(other);
            queue.running = None;
            let switch = self.machine.switch;
            self.give_cpu(cpu, id, switch);
        }
    }
}
