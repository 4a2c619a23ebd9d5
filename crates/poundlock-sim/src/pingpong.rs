// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two threads that pass a word to and fro by compare-and-swap, as `poundlock latency` has them: what the machine's
//! table of latencies was measured by, and so what the model must give back.

use crate::arena::Arena;
use crate::engine::{Engine, engine};
use crate::machine::{Machine, SimError, ns};
use std::cell::Cell;
use std::rc::Rc;

/// The one-way latency between two CPUs in nanoseconds, over so many round trips.
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

/// Round trips that are not counted.
const WARM: u64 = 10;
