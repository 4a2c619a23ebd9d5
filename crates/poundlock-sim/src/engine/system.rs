// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the simulated operating system: run queues, futexes, and control groups.

use crate::ids::ThreadId;
use crate::machine::Machine;
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};

/// The run queue of a CPU.
#[derive(Clone, Default)]
pub(super) struct Queue {
    pub running: Option<ThreadId>,
    pub ready: Vec<ThreadId>,
    /// Changes with each thread that gets or leaves the CPU.
    pub generation: u32,
    /// An event is scheduled that looks at the queue.
    pub picks: bool,
}

impl Queue {
    /// Whether another CPU may pull a thread. If only one is runnable, this CPU is about to run it.
    pub fn is_overloaded(&self) -> bool {
        usize::from(self.running.is_some()) + self.ready.len() > 1
    }
}

/// A futex's hash bucket.
#[derive(Default)]
pub(super) struct Bucket {
    pub sleepers: VecDeque<ThreadId>,
    /// When its lock becomes free.
    pub busy: Time,
}

/// How much of a group's quota a CPU takes at a time, and how much it keeps when no thread of the
/// group is left there: Linux's sched_cfs_bandwidth_slice_us and min_cfs_rq_runtime.
const QUOTA_SLICE: Time = 5_000_000_000;
const QUOTA_KEPT: Time = 1_000_000_000;

/// A control group with a limit.
pub(super) struct Group {
    pub quota: Time,
    pub period: Time,
    /// The rest of this period's quota that no CPU has taken.
    pub left: Time,
    /// By CPU: the part of the quota that it has taken and not used.
    pub taken: Vec<Time>,
    /// Runnable threads that wait for the next period.
    pub throttled: Vec<ThreadId>,
    /// The next period's begin is scheduled.
    pub armed: bool,
    /// A CPU took some of the quota in this period.
    pub used: bool,
}

impl Group {
    /// Whether the CPU has some of the quota, or can take some now.
    pub fn take(&mut self, cpu: usize) -> bool {
        if self.taken[cpu] == 0 {
            self.taken[cpu] = self.left.min(QUOTA_SLICE);
            self.left -= self.taken[cpu];
            self.used = true;
        }
        self.taken[cpu] > 0
    }

    /// Returns the CPU's slack to the group, since none of its threads is runnable there.
    pub fn give_back(&mut self, cpu: usize) {
        let slack = self.taken[cpu].saturating_sub(QUOTA_KEPT);
        self.taken[cpu] -= slack;
        self.left += slack;
    }
}

pub(crate) struct System {
    pub(super) cpus: Vec<Queue>,
    siblings: Vec<Vec<usize>>,
    pub(super) futexes: BTreeMap<usize, Bucket>,
    pub(super) groups: Vec<Group>,
    /// Threads never migrate.
    pub pinned: bool,
}

impl System {
    pub fn new(machine: &Machine) -> System {
        let siblings = |cpu: usize| {
            let same = |other: &usize| {
                *other != cpu && machine.cpus[*other].core == machine.cpus[cpu].core
            };
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

    /// The other hardware threads of the CPU's core.
    pub fn siblings(&self, cpu: usize) -> &[usize] {
        &self.siblings[cpu]
    }

    /// Adds a group whose threads together may run for `quota` in each `period`. Returns its
    /// number.
    pub fn add_group(&mut self, quota: Time, period: Time) -> usize {
        let taken = vec![0; self.cpus.len()];
        self.groups.push(Group {
            quota,
            period,
            left: quota,
            taken,
            throttled: vec![],
            armed: false,
            used: false,
        });
        self.groups.len() - 1
    }

    /// Appends a thread that has never run to the CPU's run queue.
    pub fn enqueue_new(&mut self, thread: ThreadId, cpu: usize) {
        self.cpus[cpu].ready.push(thread);
    }
}
