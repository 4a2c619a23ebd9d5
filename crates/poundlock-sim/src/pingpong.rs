// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ping-pong: two threads pass a word back and forth by compare-and-swap, as in `poundlock
//! latency`. Machines' tables of latencies are measured this way, so the model must reproduce them.

use crate::arena::Arena;
use crate::engine::{Engine, engine};
use crate::error::SimError;
use crate::machine::Machine;
use crate::time::ns;
use std::cell::Cell;
use std::rc::Rc;

/// Measures the one-way latency between two CPUs in nanoseconds, over `round_trips`.
pub fn ping_pong(machine: &Machine, a: usize, b: usize, round_trips: u64) -> Result<f64, SimError> {
    let mut machinery = Box::new(Engine::new(machine.clone(), Arena::map()?, 1, 0, false));
    let word = machinery.allocate(64, 64, machine.cpus[a].node);
    let span = Rc::new(Cell::new((0, 0)));
    for (side, cpu) in [a, b].into_iter().enumerate() {
        let span = span.clone();
        machinery.spawn(cpu, 1024, 64, move || {
            let (from, to) = (side as u64, 1 - side as u64);
            for trip in 0..round_trips + WARM {
                // SAFETY: the engine runs this thread.
                let sim = || unsafe { engine() };
                while sim().update(word, 4, |old| (old == from).then_some(to)) != from {}
                sim().acquired();
                let now = sim().now;
                if side == 0 && trip == WARM {
                    span.set((now, now));
                }
                if side == 0 {
                    span.set((span.get().0, now));
                }
            }
        });
    }
    machinery.run(ns(1e12), 0)?;
    let (began, ended) = span.get();
    Ok((ended - began) as f64 / 1000.0 / (2.0 * (round_trips - 1) as f64))
}

/// Round trips before the measurement.
const WARM: u64 = 10;
