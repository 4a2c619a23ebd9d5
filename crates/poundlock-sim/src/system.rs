// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulated operating system: run queues by virtual time as CFS has them, slices, preemption, futexes, migration,
//! and control groups whose CPU time is limited.

use crate::engine::{Engine, NEVER, State, Thread, ThreadId, What};
use crate::machine::{Machine, Time};
use crate::trace::Mark;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Default)]
struct Queue {
    running: Option<ThreadId>,
    ready: Vec<ThreadId>,
    /// Changes with each thread that gets the CPU.
    generation: u32,
    /// An event will look at the queue.
    picks: bool,
}

#[derive(Default)]
struct Bucket {
    sleepers: VecDeque<ThreadId>,
    /// Its lock is taken until then.
    busy: Time,
}

/// What a CPU takes of a group's quota at a time, and what it keeps of that when the group has nothing to do there:
/// Linux's sched_cfs_bandwidth_slice_us and min_cfs_rq_runtime.
const QUOTA_SLICE: Time = 5_000_000_000;
const QUOTA_KEPT: Time = 1_000_000_000;

/// A control group with a limit, as cgroup v2's cpu.max sets it.
pub(crate) struct Group {
    quota: Time,
    period: Time,
    /// Of this period's quota, what no CPU has taken.
    left: Time,
    /// What each CPU has taken and not used.
    taken: Vec<Time>,
    /// Those that would run, but may not.
    throttled: Vec<ThreadId>,
    /// The next period's begin is an event.
    armed: bool,
    /// Something was taken since this period began.
    used: bool,
}

impl Group {
    /// Whether the CPU has something of the quota, or takes it now.
    fn take(&mut self, cpu: usize) -> bool {
        if self.taken[cpu] == 0 {
            self.taken[cpu] = self.left.min(QUOTA_SLICE);
            self.left -= self.taken[cpu];
            self.used = true;
        }
        self.taken[cpu] > 0
    }

    /// None of the group's threads wants the CPU.
    fn give_back(&mut self, cpu: usize) {
        let slack = self.taken[cpu].saturating_sub(QUOTA_KEPT);
        self.taken[cpu] -= slack;
        self.left += slack;
    }
}

/// What the system knows.
pub(crate) struct System {
    cpus: Vec<Queue>,
    siblings: Vec<Vec<usize>>,
    futexes: BTreeMap<usize, Bucket>,
    groups: Vec<Group>,
    /// Threads stay where they were put.
    pub pinned: bool,
}

impl System {
    pub fn new(machine: &Machine) -> System {
        let siblings = |cpu: usize| {
            let same = |other: &usize| *other != cpu && machine.cpus[*other].core == machine.cpus[cpu].core;
            (0..machine.cpus.len()).filter(same).collect()
        };
        System {
            cpus: vec![Queue::default(); machine.cpus.len()],
            siblings: (0..machine.cpus.len()).map(siblings).collect(),
            futexes: BTreeMap::new(),
            groups: vec![],
            pinned: true,
        }
    }

    pub fn running(&self, cpu: usize) -> Option<ThreadId> {
        self.cpus[cpu].running
    }

    pub fn siblings(&self, cpu: usize) -> &[usize] {
        &self.siblings[cpu]
    }

    /// A group whose threads may run for `quota` in each `period`, all of them together.
    pub fn add_group(&mut self, quota: Time, period: Time) -> usize {
        let taken = vec![0; self.cpus.len()];
        self.groups.push(Group { quota, period, left: quota, taken, throttled: vec![], armed: false, used: false });
        self.groups.len() - 1
    }

    /// A thread that has never run.
    pub fn enqueue_new(&mut self, thread: ThreadId, cpu: usize) {
        self.cpus[cpu].ready.push(thread);
    }
}

impl Engine {
    /// The first thread of a CPU begins.
    pub fn start_cpu(&mut self, cpu: usize, delay: Time) {
        while self.system.cpus[cpu].running.is_none() && !self.system.cpus[cpu].ready.is_empty() {
            let first = self.system.cpus[cpu].ready.remove(0);
            if self.admit(cpu, first) {
                self.give_cpu(cpu, first, delay);
            }
        }
    }

    /// Half of CFS's latency, split among the threads of the CPU, but no less than its granularity.
    fn slice(&self, cpu: usize) -> Time {
        let threads = self.system.cpus[cpu].ready.len() as Time + 1;
        (self.machine.period / threads).max(self.machine.slice)
    }

    /// How long it takes until each thread of the fullest CPU has had its slice.
    pub fn longest_round(&self) -> Time {
        let round = |cpu| self.slice(cpu) * (self.system.cpus[cpu].ready.len() as Time + 1);
        (0..self.system.cpus.len()).map(round).max().unwrap_or(0)
    }

    fn give_cpu(&mut self, cpu: usize, id: ThreadId, delay: Time) {
        let at = self.now + delay;
        let queue = &mut self.system.cpus[cpu];
        queue.running = Some(id);
        queue.generation += 1;
        let (generation, others) = (queue.generation, !queue.ready.is_empty());
        let core = self.machine.cpus[cpu].core as u16;
        let thread = &mut self.threads[id as usize];
        thread.on_since = self.now;
        thread.cpu = cpu;
        // Its buffer was empty before it could move.
        thread.core = core;
        let drains = matches!(thread.state, State::Drains(_)) && !thread.goes_on;
        if !drains {
            thread.state = State::Runs;
            thread.generation += 1;
            thread.resume_at = at + std::mem::take(&mut thread.rest);
            let (at, generation) = (thread.resume_at, thread.generation);
            self.schedule(at, What::Resume, id, generation);
        }
        self.trace.note(at, id, Mark::OnCpu(cpu as u32));
        if others {
            let slice = self.slice(cpu);
            self.schedule(at + slice, What::Slice, cpu as u32, generation);
        }
        if let Some(group) = self.threads[id as usize].group {
            let until = self.now + self.system.groups[group].taken[cpu];
            self.schedule(until, What::Quota, cpu as u32, generation);
        }
    }

    // ---- Control groups ----

    /// Whether the thread may run on the CPU, by its group's quota: else it is throttled until the next period.
    fn admit(&mut self, cpu: usize, id: ThreadId) -> bool {
        let Some(number) = self.threads[id as usize].group else { return true };
        let group = &mut self.system.groups[number];
        let begins = (!std::mem::replace(&mut group.armed, true)).then(|| (self.now / group.period + 1) * group.period);
        let may = group.take(cpu);
        if !may {
            group.throttled.push(id);
        }
        if let Some(at) = begins {
            self.schedule(at, What::Period, number as u32, 0);
        }
        may
    }

    /// The thread that runs has used up what its CPU had of the quota, unless it has left meanwhile.
    pub fn quota_over(&mut self, cpu: usize, generation: u32) {
        let queue = &self.system.cpus[cpu];
        let Some(id) = queue.running.filter(|_| queue.generation == generation) else { return };
        self.charge(id);
        let number = self.threads[id as usize].group.expect("only groups have quotas");
        let group = &mut self.system.groups[number];
        if group.take(cpu) {
            let until = self.now + group.taken[cpu];
            self.schedule(until, What::Quota, cpu as u32, generation);
            return;
        }
        group.throttled.push(id);
        self.preempt(id);
        self.system.cpus[cpu].running = None;
        self.pick(cpu);
    }

    /// The quota is whole again, and who was throttled wants its CPU. A group that has done nothing sleeps.
    pub fn period_begins(&mut self, number: usize) {
        let at = self.now + self.system.groups[number].period;
        let group = &mut self.system.groups[number];
        group.left = group.quota;
        let throttled = std::mem::take(&mut group.throttled);
        group.armed = std::mem::take(&mut group.used) || !throttled.is_empty();
        if group.armed {
            self.schedule(at, What::Period, number as u32, 0);
        }
        for id in throttled {
            let cpu = self.threads[id as usize].cpu;
            self.enqueue(cpu, id);
            if self.system.cpus[cpu].running.is_none() {
                self.pick(cpu);
            }
        }
    }

    /// Into the CPU's queue. One that has run alone until now gets a slice.
    fn enqueue(&mut self, cpu: usize, id: ThreadId) {
        self.system.cpus[cpu].ready.push(id);
        if self.system.cpus[cpu].running.is_some() && self.system.cpus[cpu].ready.len() == 1 {
            let (slice, generation) = (self.slice(cpu), self.system.cpus[cpu].generation);
            self.schedule(self.now + slice, What::Slice, cpu as u32, generation);
        }
    }

    // ---- Running ----

    /// The thread's time on the CPU counts, by its weight.
    fn charge(&mut self, id: ThreadId) {
        let now = self.now;
        let thread = &mut self.threads[id as usize];
        let time = now.saturating_sub(thread.on_since);
        thread.virtual_run += (time as f64 * 1024.0 / f64::from(thread.weight)) as Time;
        thread.on_since = now;
        let (group, cpu) = (thread.group, thread.cpu);
        if let Some(group) = group {
            let taken = &mut self.system.groups[group].taken[cpu];
            *taken = taken.saturating_sub(time);
        }
    }

    /// Takes the CPU from a thread that would go on.
    fn preempt(&mut self, id: ThreadId) {
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

    pub fn pick_event(&mut self, cpu: usize) {
        self.system.cpus[cpu].picks = false;
        if self.system.cpus[cpu].running.is_none() {
            self.pick(cpu);
        }
    }

    /// Gives an idle CPU to the thread that has run least; one that has none takes a neighbour's.
    fn pick(&mut self, cpu: usize) {
        loop {
            if self.system.cpus[cpu].ready.is_empty() && !self.system.pinned {
                self.pull(cpu);
            }
            let ready = &self.system.cpus[cpu].ready;
            let least = (0..ready.len()).min_by_key(|i| self.threads[ready[*i] as usize].virtual_run);
            let Some(at) = least else { return };
            let id = self.system.cpus[cpu].ready.remove(at);
            if self.admit(cpu, id) {
                let switch = self.machine.switch;
                return self.give_cpu(cpu, id, switch);
            }
        }
    }

    /// Takes a waiting thread from the longest queue, of the same domain if there is one.
    fn pull(&mut self, cpu: usize) {
        let here = self.machine.cpus[cpu];
        let longest = (0..self.system.cpus.len())
            .filter(|other| !self.system.cpus[*other].ready.is_empty())
            .max_by_key(|other| {
                let near = self.machine.cpus[*other].domain == here.domain;
                (near, self.system.cpus[*other].ready.len(), usize::MAX - *other)
            });
        if let Some(other) = longest {
            // One that waits for its stores to drain is not moved: they are its core's.
            let queue = &self.system.cpus[other].ready;
            let movable = |id: &ThreadId| !matches!(self.threads[*id as usize].state, State::Drains(_));
            if let Some(at) = queue.iter().position(movable) {
                let id = self.system.cpus[other].ready.remove(at);
                self.system.cpus[cpu].ready.push(id);
            }
        }
    }

    /// The thread has ended, or sleeps.
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

    /// sched_yield: behind all others of the CPU.
    pub fn yield_cpu(&mut self) {
        self.enter_system();
        let id = self.current;
        let cpu = self.me().cpu;
        if self.system.cpus[cpu].ready.is_empty() {
            return;
        }
        self.charge(id);
        let ready = &self.system.cpus[cpu].ready;
        let last = ready.iter().map(|other| self.threads[*other as usize].virtual_run).max().unwrap_or(0);
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

    // ---- Futexes ----

    /// Takes the lock of the futex's hash bucket for its usual time.
    fn bucket(&mut self, address: usize) {
        let (now, hold) = (self.now, self.machine.futex);
        let bucket = self.system.futexes.entry(address).or_default();
        bucket.busy = bucket.busy.max(now) + hold;
        let until = bucket.busy;
        self.advance(until - now);
    }

    pub fn park(&mut self, address: usize, expected: u64, deadline: Time) {
        self.enter_system();
        self.bucket(address);
        if self.load(address, 4) != expected || self.arena.read(address, 4) != expected || self.now >= deadline {
            return;
        }
        let id = self.current;
        self.system.futexes.entry(address).or_default().sleepers.push_back(id);
        self.charge(id);
        let now = self.now;
        self.trace.note(now, id, Mark::Parks);
        let thread = self.me();
        thread.sleeps += 1;
        thread.state = State::Parked;
        thread.generation += 1;
        thread.sleeps_on = Some((u32::MAX, address));
        let generation = thread.generation;
        if deadline != NEVER {
            self.schedule(deadline, What::Deadline, id, generation);
        }
        self.leave_cpu(id);
        self.suspend();
    }

    /// A sleeper's deadline has come.
    pub fn sleep_over(&mut self, id: ThreadId) {
        let address = self.threads[id as usize].sleeps_on.expect("a sleeper sleeps on something").1;
        if let Some(bucket) = self.system.futexes.get_mut(&address) {
            bucket.sleepers.retain(|sleeper| *sleeper != id);
        }
        // It is nobody who wakes it.
        self.current = id;
        self.wake(id);
    }

    pub fn unpark(&mut self, address: usize, all: bool) {
        self.enter_system();
        if self.system.futexes.get(&address).is_none_or(|bucket| bucket.sleepers.is_empty()) {
            return;
        }
        self.bucket(address);
        // Who comes to sleep from now on is not meant, as under the bucket's lock of Linux: else a waker of all goes on for
        // as long as those that it has woken find nothing and sleep again.
        let sleepers = &mut self.system.futexes.entry(address).or_default().sleepers;
        let count = if all { sleepers.len() } else { sleepers.len().min(1) };
        let woken: Vec<ThreadId> = sleepers.drain(..count).collect();
        for id in &woken {
            // Its deadline means nothing any more.
            self.threads[*id as usize].generation += 1;
        }
        for id in woken {
            self.wake(id);
            self.advance(self.machine.waking);
        }
    }

    /// Where a woken thread goes: where it was, or to an idle CPU of its domain if it may move.
    fn place_woken(&self, id: ThreadId) -> usize {
        let cpu = self.threads[id as usize].cpu;
        let idle = |cpu: &usize| self.system.cpus[*cpu].running.is_none() && self.system.cpus[*cpu].ready.is_empty();
        if self.system.pinned || idle(&cpu) {
            return cpu;
        }
        let domain = self.machine.cpus[cpu].domain;
        let near = (0..self.machine.cpus.len()).filter(|other| self.machine.cpus[*other].domain == domain);
        near.filter(idle).min().unwrap_or(cpu)
    }

    fn wake(&mut self, id: ThreadId) {
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
                self.schedule(now + wake, What::Pick, cpu as u32, 0);
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
