// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs and cores, and how many of them the model has room for.

/// The most cores of a machine.
pub(crate) const MOST_CORES: usize = 1024;
/// The most last-level caches of a machine.
pub(crate) const MOST_DOMAINS: usize = 64;

/// The place of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its core.
    pub core: usize,
    /// Its index among the core's hardware threads.
    pub sibling: usize,
    /// Its last-level cache.
    pub domain: usize,
    /// Its NUMA node.
    pub node: usize,
    /// Its socket.
    pub package: usize,
}

/// A core and its place in the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core {
    pub domain: usize,
    pub node: usize,
    pub package: usize,
    pub speed: f64,
}
