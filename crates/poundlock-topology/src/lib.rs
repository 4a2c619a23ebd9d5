//! What a machine's CPUs share, how far they are from each other, and the shortest route over them.
//!
//! - [`machine`]: packages, dies, NUMA nodes, L3 groups and SMT siblings, from sysfs.
//! - [`latency`]: how long a cache line takes from one CPU to another, measured.
//! - [`matrix`]: such latencies from a file.
//! - [`tour`]: the shortest closed tour, with a bound.
//! - [`saved`]: the file in which the library finds a route.

pub mod cpus;
pub mod input;
pub mod latency;
pub mod machine;
pub mod matrix;
pub mod saved;
pub mod tour;

use std::fmt;

/// What is wrong with somebody's data or cannot be done, in one line.
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

/// The largest number of CPUs, as world/user/world.h has it.
pub const MOST_CPUS: usize = 4096;
