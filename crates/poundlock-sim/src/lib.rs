// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated NUMA machine that runs the locks as they ship.
//!
//! The very code of `core/`, compiled for `world/sim`, runs on a model of a cache-coherent machine with an operating
//! system: [`simulate`] takes a [`Machine`], a workload and a lock, and counts what the native benchmark counts.
//! `docs/simulator.md` has the model as equations, `docs/fidelity.md` what it gets right and what not.
//!
//! The same seed gives the same bytes. A process runs one simulation at a time.

mod abi;
mod arena;
#[cfg(feature = "clients")]
mod clients;
mod engine;
mod locks;
mod machine;
mod memory;
mod pingpong;
mod random;
mod report;
mod run;
mod system;
mod table;
mod trace;

#[cfg(feature = "clients")]
pub use clients::{Client, clients};
pub use locks::{LockSpec, event_names, names as lock_names};
pub use machine::{Cpu, Machine, SimError, Time};
pub use memory::Traffic;
pub use pingpong::ping_pong;
pub use run::{Locality, Outcome, Point, simulate};
pub use trace::TraceEvent;
