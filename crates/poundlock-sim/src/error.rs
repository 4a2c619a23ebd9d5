// SPDX-License-Identifier: MIT OR Apache-2.0
//! The error of this crate.

use std::fmt;

/// An error in a machine's file, a lock's specification or a simulation. Displays as one
/// line, except for a deadlock or livelock, which lists the threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimError(pub String);

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SimError {}

pub(crate) fn error<T>(message: impl fmt::Display) -> Result<T, SimError> {
    Err(SimError(message.to_string()))
}
