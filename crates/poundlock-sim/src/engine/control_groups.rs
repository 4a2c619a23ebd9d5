// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups: threads whose CPU time is limited, as by cgroup v2's cpu.max.

use super::Engine;
use super::agenda::Action;
use crate::ids::ThreadId;

impl Engine {
    /// Whether the quota of the thread's group lets it run on the CPU. If not, it is throttled
    /// until the next period.
    pub(super) fn admit(&mut self, cpu: usize, id: ThreadId) -> bool {
        let Some(number) = self.threads[id as usize].group else { return true };
        let group = &mut self.system.groups[number];
        let begins = (!std::mem::replace(&mut group.armed, true))
            .then(|| (self.now / group.period + 1) * group.period);
        let may = group.take(cpu);
        if !may {
            group.throttled.push(id);
        }
        if let Some(at) = begins {
            self.agenda.schedule(at, Action::Period, number as u32, 0);
        }
        may
    }

    /// Handles the end of the CPU's share of the quota: takes more of it, or throttles the running
    /// thread.
    pub fn quota_over(&mut self, cpu: usize, generation: u32) {
        let queue = &self.system.cpus[cpu];
        let Some(id) = queue.running.filter(|_| queue.generation == generation) else { return };
        self.charge(id);
        let number = self.threads[id as usize].group.expect("only groups have quotas");
        let group = &mut self.system.groups[number];
        if group.take(cpu) {
            let until = self.now + group.taken[cpu];
            self.agenda.schedule(until, Action::Quota, cpu as u32, generation);
            return;
        }
        group.throttled.push(id);
        self.preempt(id);
        self.system.cpus[cpu].running = None;
        self.pick(cpu);
    }

    /// Refills the quota and makes throttled threads runnable. The period of an idle group ends
    /// here.
    pub fn period_begins(&mut self, number: usize) {
        let at = self.now + self.system.groups[number].period;
        let group = &mut self.system.groups[number];
        group.left = group.quota;
        let throttled = std::mem::take(&mut group.throttled);
        group.armed = std::mem::take(&mut group.used) || !throttled.is_empty();
        if group.armed {
            self.agenda.schedule(at, Action::Period, number as u32, 0);
        }
        for id in throttled {
            let cpu = self.threads[id as usize].cpu;
            self.enqueue(cpu, id);
            if self.system.cpus[cpu].running.is_none() {
                self.pick(cpu);
            }
        }
    }
}
