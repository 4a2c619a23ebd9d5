// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting: bounded spins as in `world/user`, and busy-waiting without an event per read.

use super::agenda::Action;
use super::spins::{self, How, Spin};
use super::thread::State;
use super::{Engine, SEAT};
use crate::abi::SpinHistory;
use crate::ids::ThreadId;
use crate::time::{NEVER, Time};

impl Engine {
    /// Begins a wait whose first read did not end it.
    pub fn wait_begin(&mut self, way: u32, pace: u64) {
        let cpus = self.machine.cpus.len();
        let mut spin = Spin::new(way);
        let rounds = spins::rounds(way, cpus);
        if rounds > 0 && self.has_own_cpu() {
            spin.rounds = rounds;
            spin.left = spins::whole();
        } else if spin.how.spins && self.load(self.spinners, 4) < spins::spinners_limit(cpus) {
            self.update(self.spinners, 4, |count| Some(count + 1));
            spin.left = if spin.how.adapts {
                self.history(spin.how).budget()
            } else {
                spins::part(spin.how.parts)
            };
            spin.next = spins::first_pauses(way, pace, spin.left / self.machine.pause);
            spin.counted = true;
        }
        // The last load was not that of the awaited word.
        if spin.left > 0 {
            self.me().seen = None;
        }
        self.me().spin = spin;
    }

    /// Whether no other thread has waited on the current one's CPU recently.
    pub fn has_own_cpu(&mut self) -> bool {
        let (cpu, name) = (self.me().cpu, u64::from(self.current) + 1);
        let seat = self.seats + SEAT * cpu;
        if self.load(seat, 4) != name {
            let former = self.me().seat.replace(cpu).filter(|former| *former != cpu);
            if let Some(former) = former.map(|former| self.seats + SEAT * former)
                && self.load(former, 4) == name
            {
                self.store(former, 4, 0);
            }
            if self.update(seat, 4, |_| Some(name)) != 0 {
                self.me().sharing_until = self.now + spins::sharing();
            }
        }
        self.now >= self.me().sharing_until
    }

    /// The thread's history of such spins; at first, that of the last thread that ended one.
    fn history(&mut self, how: How) -> &mut SpinHistory {
        let kind = how.history as usize;
        let last = self.last_histories[kind].unwrap_or_default();
        self.me().histories[kind].get_or_insert(last)
    }

    /// Ends the bounded spin, if the wait is still in it.
    pub fn wait_end(&mut self, failed: bool) {
        if !std::mem::take(&mut self.me().spin.counted) {
            return;
        }
        self.update(self.spinners, 4, |count| Some(count - 1));
        let how = self.me().spin.how;
        if how.adapts {
            let history = self.history(how);
            history.learn(failed);
            let history = *history;
            self.last_histories[how.history as usize] = Some(history);
        }
    }

    /// Whether to read again, after a pause or a sleep.
    pub fn wait_again(&mut self, deadline: Time) -> bool {
        self.sync();
        let spin = self.me().spin;
        if spin.left > 0 {
            let began = self.now;
            if spin.how.backs_off {
                self.advance(self.machine.pause * Time::from(spin.next));
            } else {
                self.spin(self.now + spin.left);
            }
            let took = (self.now - began).max(1);
            self.me().spin.spend(took);
            return true;
        }
        if spin.rounds > 1 && self.has_own_cpu() {
            let spin = &mut self.me().spin;
            spin.rounds -= 1;
            spin.left = spins::whole();
            self.me().seen = None;
            return self.now < deadline;
        }
        self.wait_end(true);
        if spin.how.returns {
            return false;
        }
        self.go_on(deadline);
        self.now < deadline
    }

    /// Waits once more after the bounded spin. A wait that only spins never sleeps, since simulated
    /// threads have no real-time priorities.
    fn go_on(&mut self, deadline: Time) {
        let rules = spins::rules();
        if !self.me().spin.how.spins {
            return self.spin(deadline);
        }
        let next = self.me().spin.go_on();
        if next == rules.next_sched_yield {
            self.yield_cpu();
        } else {
            self.nap();
        }
    }

    /// Pauses; or sleeps until the line that was read changes or `limit` comes, if it has not
    /// changed since.
    pub(super) fn spin(&mut self, limit: Time) {
        let core = self.me().core;
        let seen = self.me().seen;
        let same = seen.filter(|(line, version)| {
            self.memory.readable(*line, core)
                && self.memory.version(*line) == *version
                && !self.threads[self.current as usize].buffer.has(*line)
        });
        let Some((line, _)) = same.filter(|_| limit > self.now + self.machine.pause) else {
            self.advance(self.machine.pause);
            return;
        };
        self.memory.sleep(line, self.current);
        let thread = self.me();
        thread.state = State::Spins;
        thread.sleeps_on = Some((line, thread.last_load));
        thread.generation += 1;
        thread.resume_at = NEVER;
        let generation = thread.generation;
        if limit != NEVER {
            self.agenda.schedule(limit, Action::Deadline, self.current, generation);
        }
        self.suspend();
        self.end_interrupts();
    }

    /// Ends a thread's sleep on its line.
    pub fn stop_sleeping(&mut self, id: ThreadId) {
        if let Some((line, _)) = self.threads[id as usize].sleeps_on.take() {
            self.memory.forget(line, id);
        }
    }

    /// Pauses `pauses` times.
    pub fn pause_for(&mut self, pauses: u32) {
        self.sync();
        let pause = self.machine.pause;
        self.me().computing = true;
        self.advance(pause * Time::from(pauses));
        self.me().computing = false;
    }

    /// Enters the kernel: all stores become visible, and the system call takes its time.
    pub fn enter_system(&mut self) {
        self.drain();
        self.advance(self.machine.syscall);
    }
}
