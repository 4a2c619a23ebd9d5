// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exploration of a client: exhaustively, by random walks, or by replaying one execution.

mod fairness;
mod replay;
mod report;
mod search;
mod walks;

pub use replay::replay;
pub use report::{Execution, Report, Verdict};
pub use search::all;
pub use walks::{Walk, walks};

/// The most steps of an execution. A longer one is a fault.
pub const LONGEST: u32 = 20_000;
