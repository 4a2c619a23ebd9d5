// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters of a machine.

use std::collections::BTreeSet;

use crate::arena;

/// The environment of a client, and the limits of its exploration.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The number of locality domains. CPU n is in domain n modulo this.
    pub domains: u32,
    /// The number of CPUs. Thread n starts on CPU n modulo this.
    pub cpus: u32,
    /// How often threads move to another CPU in an execution.
    pub moves: u32,
    /// How often a park returns spuriously in an execution.
    pub spurious: u32,
    /// The most preemptions: switches away from a thread that could continue. None: unlimited.
    pub bound: Option<u32>,
    /// The most reads of messages other than the newest, stores inserted before it, and promises.
    /// None: unlimited.
    pub stale: Option<u32>,
    /// Whether reads can be of old messages, and stores can be inserted before others.
    pub weak: bool,
    /// Whether threads can promise stores.
    pub promises: bool,
    /// Whether the explorer visits all states. Operations that concern one thread alone are then
    /// performed at once. Random walks need neither that analysis nor hashes of stacks.
    pub exhaustive: bool,
    /// Whether the explorer omits executions that differ from others in the order of independent
    /// steps alone (reduction.rs).
    pub reduced: bool,
    /// Whether threads sleep by the specification of sleeping (sleep.rs).
    pub composed: bool,
    /// The exploration ends unfinished when an execution has more steps.
    pub longest: u32,
}

/// Features of a client that cost states or time to model, and are modelled only on demand. A
/// machine that meets a feature that it does not model records it here and stops with a fault.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Fences.
    pub fences: bool,
    /// Forks, and threads that are created. Only a reduced exploration needs to know.
    pub forks: bool,
    /// The addresses on which threads may sleep. Only a reduced exploration needs to know.
    pub sleeps: BTreeSet<usize>,
    /// The addresses on which several threads may sleep at once. Only a composed exploration needs
    /// to know.
    pub shared_sleeps: BTreeSet<usize>,
    /// The addresses of atomic objects that are also accessed plainly.
    pub traced: BTreeSet<usize>,
}

impl Needs {
    /// Repeats `explore`, which returns its result and the needs that it met, until it models them
    /// all. Returns the last result.
    pub fn retry<T>(explore: impl Fn(Needs) -> (T, Needs)) -> T {
        let mut needs = Needs::default();
        loop {
            let (result, met) = explore(needs.clone());
            if met == needs {
                return result;
            }
            needs = met;
        }
    }

    /// Adds the needs of `other`.
    pub fn add(&mut self, other: &Needs) {
        self.fences |= other.fences;
        self.forks |= other.forks;
        self.sleeps.extend(&other.sleeps);
        self.shared_sleeps.extend(&other.shared_sleeps);
        self.traced.extend(&other.traced);
    }

    /// Records a fence.
    pub fn add_fence(&mut self, fault: &mut Option<String>) {
        self.fences = true;
        fault.get_or_insert("a fence".into());
    }

    /// Records a fork or the creation of threads.
    pub fn add_fork(&mut self, fault: &mut Option<String>) {
        self.forks = true;
        fault.get_or_insert("a fork".into());
    }

    /// Records that threads may sleep on the object at `address`, and on the same object of other
    /// threads.
    pub fn add_sleep(&mut self, address: usize, fault: &mut Option<String>) {
        self.sleeps.extend(arena::alike(address));
        fault.get_or_insert("a sleep".into());
    }

    /// Records that several threads may sleep on the object at `address` at once, and on the same
    /// object of other threads.
    pub fn add_shared_sleep(&mut self, address: usize, fault: &mut Option<String>) {
        self.shared_sleeps.extend(arena::alike(address));
        fault.get_or_insert("a second sleeper".into());
    }

    /// Records that the atomic object at `address` is accessed plainly, and the same object of
    /// other threads: each new record restarts the exploration.
    pub fn trace(&mut self, address: usize, fault: &mut Option<String>) {
        self.traced.extend(arena::alike(address));
        fault.get_or_insert("a plain access to an atomic object".into());
    }
}
