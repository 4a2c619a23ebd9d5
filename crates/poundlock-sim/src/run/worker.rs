// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of a run: they acquire the lock, do an operation, and count what the native
//! benchmark counts.

use super::windows::Windows;
use crate::abi;
use crate::engine::{Engine, engine};
use crate::random::Random;
use crate::time::Time;
use poundlock_workload::section::Settings;
use poundlock_workload::{Class, ThreadCounts, Unit, Work, Workload};
use std::cell::RefCell;
use std::rc::Rc;

/// Cycles per step of [`Unit::Steps`]: a multiplication and an addition.
pub(super) const STEP_CYCLES: f64 = 5.0;

/// The shared state of a run. Access takes no simulated time.
pub(super) struct Shared {
    pub workload: Workload,
    pub settings: Settings,
    pub data: usize,
    pub lock: usize,
    pub ops: abi::Ops,
    pub windows: Windows,
    pub step: Time,
    pub step_nanoseconds: f64,
    /// By class: its control group.
    pub groups: Vec<Option<usize>>,
    /// Exclusive sections done, all sections done, and `sections` as the holders of the lock count
    /// it.
    pub sections: u64,
    pub total: u64,
    pub seen: u64,
    pub net: i64,
    pub holder: usize,
    pub domain: usize,
    pub released: Time,
    pub counts: Vec<ThreadCounts>,
    /// The CPU time of all threads before the measured part, and in it.
    pub cpu_before: Time,
    pub cpu: Time,
}

impl Shared {
    /// Ends all parts of the run that end by `now`. Returns whether the run is over.
    fn is_over(&mut self, now: Time) -> bool {
        while !self.windows.over && now >= self.windows.end {
            let cpu = sim().cpu_time();
            self.cpu = cpu - self.cpu_before;
            self.windows.next(self.counts.iter().map(|thread| thread.acquisitions).sum());
            if !self.windows.over {
                self.cpu_before = cpu;
                for thread in &mut self.counts {
                    let ThreadCounts { class, cpu, .. } = *thread;
                    *thread = ThreadCounts { class, cpu, ..ThreadCounts::default() };
                }
            }
        }
        self.windows.over
    }
}

/// A simulated thread at work. It holds only copies across a switch of coroutines.
pub(super) struct Worker {
    pub index: usize,
    pub class: Class,
    pub random: u64,
    /// Acquisitions until the next timed one.
    pub untimed: u32,
}

/// The engine, for one call at a time.
fn sim<'a>() -> &'a mut Engine {
    // SAFETY: only workers call this, which the engine runs.
    unsafe { engine() }
}

impl Worker {
    /// Acquires the lock repeatedly until the end. The random state of its operations lies `behind`
    /// bytes after its record.
    pub fn work(mut self, shared: &Rc<RefCell<Shared>>, behind: usize) {
        let random = (sim().record() + behind.next_multiple_of(64)) as *mut u64;
        // SAFETY: the thread's own memory.
        unsafe { random.write(self.random) };
        while !shared.borrow_mut().is_over(sim().now) {
            self.turn(shared, random);
            self.compute(self.class.outside, shared);
        }
    }

    fn turn(&mut self, shared: &Rc<RefCell<Shared>>, random: *mut u64) {
        let (settings, data, lock, ops, step, readers) = {
            let shared = shared.borrow();
            (
                shared.settings,
                shared.data,
                shared.lock,
                shared.ops,
                shared.step,
                shared.workload.readers,
            )
        };
        sim().me().step = step;
        // SAFETY: the settings are valid, and the state is the thread's own.
        let operation = unsafe { abi::sim_section_draw(&settings, random) };
        sim().me().step = 0;
        sim().asks();
        let asked = sim().now;
        let reads = readers && operation.reads();
        // SAFETY: the lock was made for these functions.
        let node = unsafe {
            if reads {
                ops.lock_shared.expect("a readers-writer lock")(lock as *mut _);
                std::ptr::null_mut()
            } else {
                ops.lock.expect("no alias")(lock as *mut _)
            }
        };
        sim().acquired();
        let acquired = sim().now;
        let before = (!reads).then(|| self.enter(shared));
        self.compute(self.class.inside, shared);
        sim().me().step = step;
        // SAFETY: the lock is held, and the data are those of the settings.
        let change = unsafe { abi::sim_section_do(&settings, data as *mut _, operation) };
        sim().me().step = 0;
        sim().releases();
        let released = sim().now;
        if let Some(before) = &before {
            self.leave(shared, before, released, change);
        }
        // SAFETY: this thread holds the lock, with this node.
        unsafe {
            if reads {
                ops.unlock_shared.expect("a readers-writer lock")(lock as *mut _);
            } else {
                ops.unlock.expect("no alias")(lock as *mut _, node);
            }
        }
        sim().sync();
        self.note(shared, before.as_ref(), [asked, acquired, released]);
    }

    /// Notes the new holder. Returns what the previous holder left.
    fn enter(&self, shared: &Rc<RefCell<Shared>>) -> Before {
        let cpu = sim().me().cpu;
        let domain = sim().machine.cpus[cpu].node;
        let mut shared = shared.borrow_mut();
        let before = Before {
            sections: shared.seen,
            holder: shared.holder,
            remote: shared.domain != domain,
            released: shared.released,
        };
        shared.holder = self.index;
        shared.domain = domain;
        before
    }

    /// Counts the section. The count was read at its begin, so that overlapping holders lose some.
    fn leave(&self, shared: &Rc<RefCell<Shared>>, before: &Before, released: Time, change: i32) {
        let mut shared = shared.borrow_mut();
        shared.seen = before.sections + 1;
        shared.sections += 1;
        shared.net += i64::from(change);
        shared.released = released;
    }

    fn note(&mut self, shared: &Rc<RefCell<Shared>>, before: Option<&Before>, times: [Time; 3]) {
        let mut shared = shared.borrow_mut();
        shared.total += 1;
        let timed = self.untimed == 0;
        self.untimed = if timed { shared.workload.timed } else { self.untimed } - 1;
        let [asked, acquired, released] = times;
        shared.is_over(released);
        if released < shared.windows.begin || released >= shared.windows.end {
            return;
        }
        let counts = &mut shared.counts[self.index];
        counts.acquisitions += 1;
        let handover =
            before.filter(|before| before.holder != usize::MAX && before.holder != self.index);
        if let Some(before) = handover {
            counts.handovers += 1;
            counts.handovers_remote += u64::from(before.remote);
        }
        if !timed {
            return;
        }
        let nanoseconds = |from: Time, to: Time| (to - from) / 1000;
        let wait = nanoseconds(asked, acquired);
        counts.timed += 1;
        counts.wait_ns += wait;
        counts.longest_wait_ns = counts.longest_wait_ns.max(wait);
        counts.hold_ns += nanoseconds(acquired, released);
        if let Some(before) =
            handover.filter(|before| asked <= before.released && before.released <= acquired)
        {
            counts.timed_handovers += 1;
            counts.handover_ns += nanoseconds(before.released, acquired);
        }
    }

    fn compute(&mut self, work: Work, shared: &Rc<RefCell<Shared>>) {
        if work.length == 0 {
            return;
        }
        let spread = work.length as f64 * work.spread;
        let drawn = Random::new(self.random, 3).unit();
        self.random = self.random.wrapping_add(2);
        let length = work.length as f64 + spread * (2.0 * drawn - 1.0);
        match work.unit {
            Unit::Steps => {
                let each = shared.borrow().step_nanoseconds;
                sim().compute(length * each);
            }
            Unit::Nanoseconds => sim().pass(length),
        }
    }
}

/// The record of the previous holder.
struct Before {
    sections: u64,
    holder: usize,
    remote: bool,
    released: Time,
}
