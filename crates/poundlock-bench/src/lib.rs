//! The papers' benchmarks of locks, natively.
//!
//! A [`Workload`] says what threads do with one lock and its data; it can be read from TOML and written with its
//! figures. [`run`] does it in this process under one lock and returns what each thread counted; [`metrics`] says how
//! evenly that was shared out. The critical sections are C, in `bench/workloads`, since the simulator is to run the
//! same; threads, time and counting are here.

mod engine;
pub mod figures;
mod lock;
pub mod metrics;
mod placement;
mod section;
mod workload;

pub use engine::{Counts, Job, Limit, ThreadCounts, run};
pub use lock::{NATIVE, check_rwlock, rwlocks};
pub use workload::{BenchError, Class, CpuMax, Placement, Section, Unit, Work, Workload};
