// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated NUMA machine that runs the locks as they ship.
//!
//! The source of `core/`, compiled for `world/sim`, runs on a model of a cache-coherent machine
//! with an operating system. [`simulate`] takes a [`Machine`], a workload and a lock, and returns
//! the counts of the native benchmark. `docs/simulator.md` describes the model as equations,
//! `docs/fidelity.md` compares it with published figures.
//!
//! The same seed gives the same bytes. Simulations in one process take turns.

mod abi;
mod arena;
#[cfg(feature = "clients")]
mod clients;
mod engine;
mod error;
mod hooks;
mod ids;
mod locks;
mod machine;
mod memory;
mod pingpong;
mod random;
mod run;
mod time;
mod trace;

#[cfg(feature = "clients")]
pub use clients::{Client, clients};
pub use error::SimError;
pub use locks::{LockSpec, event_names, names as lock_names};
pub use machine::{Cpu, Machine};
pub use memory::Traffic;
pub use pingpong::ping_pong;
pub use run::{Locality, Outcome, Point, simulate};
pub use time::Time;
pub use trace::TraceEvent;
