//! The topology of a machine's CPUs, the latencies between them, and the shortest route over them.
//!
//! - [`machine`]: packages, dies, NUMA nodes, L3 groups and SMT siblings, from sysfs.
//! - [`latency`]: measured latencies of a cache line's transfer between CPUs.
//! - [`matrix`]: latencies read from a file.
//! - [`tour`]: a shortest closed tour, with a lower bound.
//! - [`saved`]: the file from which the library reads a route.

pub mod cpus;
pub mod input;
pub mod latency;
pub mod machine;
pub mod matrix;
pub mod saved;
pub mod tour;

use std::fmt;

/// A one-line description of invalid input or of a failed operation.
#[derive(Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    fn new(message: impl fmt::Display) -> Error {
        Error(message.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// The largest supported number of CPUs; the same as in world/user/world.h.
pub const MOST_CPUS: usize = 4096;
