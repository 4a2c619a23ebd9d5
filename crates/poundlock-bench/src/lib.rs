//! The papers' lock benchmarks, run natively.
//!
//! [`run`] runs a [`Workload`] in this process under one lock and returns what each thread counted.
//! Workloads, counts and the figures derived from them are those of `poundlock-workload`,
//! re-exported here. The critical sections are C, in `bench/workloads`, because the simulator
//! compiles the same sources; threads, time and counting are here.

mod engine;
mod error;
mod lock;
mod placement;
mod section;

pub use engine::{Job, Limit, run};
pub use error::BenchError;
pub use lock::{NATIVE, check_rwlock, rwlocks};
pub use poundlock_workload::{
    Class, Counts, CpuMax, Placement, Section, ThreadCounts, Unit, Work, Workload, figures, metrics,
};
