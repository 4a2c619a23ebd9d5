// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report on simulated threads that make no progress: what each waits for, and the last writer
//! of that word.

use super::Engine;
use super::thread::State;
use crate::error::SimError;
use std::fmt::Write;

/// The most threads that are listed one by one.
const MOST: usize = 32;

impl Engine {
    /// `headline`, and a line for each thread: what it does, on which word it waits, and which
    /// thread wrote there last.
    pub(super) fn stuck(&self, headline: &str) -> SimError {
        let mut text = format!("{headline} (at {:.3} us of simulated time)", self.now as f64 / 1e6);
        let alive: Vec<usize> =
            (0..self.threads.len()).filter(|id| self.threads[*id].state != State::Done).collect();
        for id in alive.iter().take(MOST) {
            let thread = &self.threads[*id];
            let holds = if thread.holds { ", holds the lock," } else { "" };
            let _ =
                write!(text, "\n  thread {id} on CPU {}{holds} {}", thread.cpu, self.doing(*id));
        }
        if alive.len() > MOST {
            let _ = write!(text, "\n  and {} more", alive.len() - MOST);
        }
        SimError(text)
    }

    fn doing(&self, id: usize) -> String {
        let thread = &self.threads[id];
        let what = match thread.state {
            State::Runs => "runs",
            State::Ready => "waits for its CPU",
            State::Drains(_) => "waits for its stores",
            State::Spins => "spins",
            State::Parked => "sleeps",
            State::Done => "has ended",
        };
        let Some((_, address)) = thread.sleeps_on else { return what.to_owned() };
        let writer = match self.memory.known(address).and_then(|line| self.memory.writer(line)) {
            None => "no thread has written there".to_owned(),
            Some(writer) if writer as usize == id => "it wrote there last itself".to_owned(),
            Some(writer) => format!("thread {writer} wrote there last"),
        };
        let value = self.arena.read(address, 4);
        format!("{what} on {} (= {value}): {writer}", self.name_of(address))
    }

    fn name_of(&self, address: usize) -> String {
        let found = self.names.iter().find(|(at, bytes, _)| (*at..at + bytes).contains(&address));
        found.map_or(format!("{address:#x}"), |(at, _, name)| format!("{name}+{:#x}", address - at))
    }
}
