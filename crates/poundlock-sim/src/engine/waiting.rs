// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting: bounded spins as in `world/user`, and busy-waiting without an event per read.

use super::Engine;
use super::agenda::Action;
use super::spins::{SPIN_NANOSECONDS, Spin, W_POLITE, W_SPIN, W_TURN, W_YIELD};
use super::thread::State;
use crate::ids::ThreadId;
use crate::time::{NEVER, Time, ns};

impl Engine {
    /// Begins a wait whose first read did not end it.
    pub fn wait_begin(&mut self, how: u32) {
        let mut spin = Spin { how, left: 0, next: 1, counted: false };
        let most = self.machine.cpus.len() as u64 - 1;
        if how != W_SPIN && self.load(self.spinners, 4) < most {
            self.update(self.spinners, 4, |count| Some(count + 1));
            spin.left = if how == W_POLITE { self.me().history.budget() } else { ns(SPIN_NANOSECONDS) };
            spin.counted = true;
            // The last load was not that of the awaited word.
            self.me().seen = None;
        }
        self.me().spin = spin;
    }

    /// Ends the bounded spin, if the wait is still in it.
    pub fn wait_end(&mut self, failed: bool) {
        if std::mem::take(&mut self.me().spin.counted) {
            self.update(self.spinners, 4, |count| Some(count - 1));
            if self.me().spin.how == W_POLITE {
                self.me().history.note(failed);
            }
        }
    }

    /// Whether to read again, after a pause or a sleep.
    pub fn wait_again(&mut self, deadline: Time) -> bool {
        self.sync();
        let spin = self.me().spin;
        if spin.left > 0 {
            let began = self.now;
            if spin.how == W_POLITE {
                self.advance(self.machine.pause * Time::from(spin.next));
            } else {
                self.spin(self.now + spin.left);
            }
            let took = (self.now - began).max(1);
            let spin = &mut self.me().spin;
            spin.left = spin.left.saturating_sub(took);
            if spin.how == W_POLITE {
                spin.next += spin.next / 2 + 1;
            }
            return true;
        }
        self.wait_end(true);
        match spin.how {
            W_SPIN => self.spin(deadline),
            W_YIELD | W_TURN => self.yield_cpu(),
            _ => return false,
        }
        self.now < deadline
    }

    /// Pauses; or sleeps until the line that was read changes or `limit` comes, if it has not changed since.
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
