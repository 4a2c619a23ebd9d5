// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a memory access.

use std::fmt;

use crate::abi::NO_THREAD;

/// An error of a memory access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A data race with thread `with`, which performed access `did`.
    Race { with: u8, did: &'static str },
    /// The object's lifetime is over.
    Dead,
    /// A limit of this checker.
    Limit(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Race { with: NO_THREAD, did } => {
                write!(f, "data race: not ordered after the {did} during setup")
            }
            Fault::Race { with, did } => {
                write!(f, "data race: not ordered after the {did} by T{with}")
            }
            Fault::Dead => write!(f, "access to memory whose lifetime is over"),
            Fault::Limit(what) => write!(f, "beyond the limits of this checker: {what}"),
        }
    }
}
