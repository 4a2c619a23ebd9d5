//! Points: a lock with a number of threads, measured or simulated, with its runs and tables.

mod report;
pub mod table;

pub use report::{Point, Report, Run, Settings};
