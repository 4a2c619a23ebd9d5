//! The error of this crate.

use poundlock_workload::WorkloadError;
use std::fmt;

/// The reason why a benchmark could not run, or a fault of the lock under test. Displays as one
/// line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchError(pub String);

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BenchError {}

impl From<WorkloadError> for BenchError {
    fn from(wrong: WorkloadError) -> BenchError {
        BenchError(wrong.0)
    }
}

pub(crate) fn error<T>(message: impl fmt::Display) -> Result<T, BenchError> {
    Err(BenchError(message.to_string()))
}
