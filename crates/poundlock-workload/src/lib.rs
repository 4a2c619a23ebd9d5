// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a lock benchmark does and counts, as data.
//!
//! A [`Workload`] describes threads that contend for one lock and its data. The native benchmark
//! (`poundlock-bench`) and the simulator (`poundlock-sim`) run the same description, return the
//! same [`Counts`], and derive the same [`figures`] from them. Workloads are read from and written
//! to TOML (`bench/workloads`).

mod counts;
pub mod figures;
pub mod metrics;
pub mod section;
mod workload;

pub use counts::{Counts, ThreadCounts};
pub use workload::{Class, CpuMax, Placement, Section, Unit, Work, Workload, WorkloadError};
