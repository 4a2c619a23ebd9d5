// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is told when simulated threads can get no further: who waits for what, and who should end it.

use crate::engine::{Engine, State, ThreadId};
use crate::machine::SimError;
use std::fmt::Write;

/// The most threads that are told one by one.
const MOST: usize = 32;

/// `headline`, and a line for each thread: what it does, and on what memory it waits, and who wrote there last.
pub(crate) fn stuck(engine: &Engine, headline: &str) -> SimError {
    let mut text = format!("{headline} (at {:.3} us of simulated time)", engine.now as f64 / 1e6);
    let alive: Vec<usize> = (0..engine.threads.len()).filter(|id| engine.threads[*id].state != State::Done).collect();
    for id in alive.iter().take(MOST) {
        let thread = &engine.threads[*id];
        let holds = if thread.holds { ", holds the lock," } else { "" };
        let _ = write!(text, "\n  thread {id} on CPU {}{holds} {}", thread.cpu, doing(engine, *id));
    }
    if alive.len() > MOST {
        let _ = write!(text, "\n  and {} more", alive.len() - MOST);
    }
    SimError(text)
}

fn doing(engine: &Engine, id: usize) -> String {
    let thread = &engine.threads[id];
    let what = match thread.state {
        State::Runs => "runs".to_owned(),
        State::Ready => "waits for its CPU".to_owned(),
        State::Drains(_) => "waits for its stores".to_owned(),
        State::Spins => "spins".to_owned(),
        State::Parked => "sleeps".to_owned(),
        State::Done => "has ended".to_owned(),
    };
    let Some((_, address)) = thread.sleeps_on else { return what };
    let writer = engine.memory.known(address).and_then(|line| engine.memory.writer(line));
    let wrote = writer.map_or("nobody has written there".to_owned(), |writer| {
        let also = if writer as ThreadId == id as ThreadId { "itself" } else { "thread" };
        if also == "itself" {
            "itself wrote there last".to_owned()
        } else {
            format!("thread {writer} wrote there last")
        }
    });
    let value = engine.arena.read(address, 4);
    format!("{what} on {} (= {value}): {wrote}", engine.name_of(address))
}
