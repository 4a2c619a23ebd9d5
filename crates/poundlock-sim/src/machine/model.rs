// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine as the model uses it: figures as times, latencies by pair of cores.

use super::parts::{Core, Cpu};
use crate::time::{Time, ns};

/// A machine: its topology and its latencies.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// A description of one line.
    pub about: String,
    /// By the operating system's number.
    pub cpus: Vec<Cpu>,
    pub(crate) cores: Vec<Core>,
    pub(crate) domains: usize,
    pub(crate) nodes: usize,
    /// By node: the node that its threads allocate memory at.
    pub(crate) memory_nodes: Vec<usize>,
    /// By domain: its first core and its number of cores.
    pub(super) domain_cores: Vec<(usize, usize)>,
    /// Latency of a modified line from core to core; on the diagonal, between siblings.
    pub(super) transfer: Vec<u32>,
    /// Additional latency between domains, by how many of the two nodes are not the home.
    pub(super) home: [Time; 3],
    pub(crate) shared_cache: Time,
    pub(crate) clean: f64,
    pub(crate) memory_local: Time,
    pub(crate) memory_remote: Time,
    pub(crate) travel: f64,
    pub(crate) upgrade: f64,
    pub(crate) sharer: Time,
    pub(crate) serve_shared: Time,
    pub(crate) serve_remote: Time,
    pub(crate) directory: Time,
    /// In nanoseconds.
    pub(crate) cycle: f64,
    pub(crate) hit: Time,
    pub(crate) store: Time,
    pub(crate) atomic: Time,
    pub(crate) pause: Time,
    pub(crate) store_buffer: usize,
    pub(crate) stream: u32,
    pub(crate) sibling_computes: f64,
    pub(crate) sibling_spins: f64,
    pub(crate) noise: f64,
    pub(crate) clock: Time,
    pub(crate) syscall: Time,
    pub(crate) switch: Time,
    pub(crate) wake: Time,
    pub(crate) waking: Time,
    pub(crate) futex: Time,
    pub(crate) slice: Time,
    pub(crate) period: Time,
    pub(crate) interrupt_every: Time,
    pub(crate) interrupt: Time,
    /// By pair of CPUs: the latency that a ping-pong should measure, in nanoseconds.
    pub(super) published: Vec<f32>,
}

impl Machine {
    /// The one-way latency between two CPUs that the machine's file specifies, in nanoseconds.
    pub fn published(&self, from: usize, to: usize) -> f64 {
        self.published[from * self.cpus.len() + to].into()
    }

    /// The time in which the scheduler lets every thread of a CPU run once, in seconds.
    pub fn period(&self) -> f64 {
        self.period as f64 / 1e12
    }

    /// The time in which each of `threads` threads had a time slice, in seconds.
    pub fn round(&self, threads: usize) -> f64 {
        let threads_of_a_cpu = threads.div_ceil(self.cpus.len()) as Time;
        self.period.max(self.slice * threads_of_a_cpu) as f64 / 1e12
    }

    /// How long a modified line takes from `owner` to `to`; `home` is its home node.
    pub(crate) fn transfer(&self, to: usize, owner: usize, home: usize) -> Time {
        let base = Time::from(self.transfer[to * self.cores.len() + owner]);
        let (a, b) = (self.cores[to], self.cores[owner]);
        if a.domain == b.domain {
            return base;
        }
        base + self.home[away(a.node, b.node, home)]
    }

    /// How long a thread's write takes to reach its sibling.
    pub(crate) fn sibling(&self, core: u16) -> Time {
        Time::from(self.transfer[usize::from(core) * (self.cores.len() + 1)])
    }

    /// The first core of a domain.
    pub(crate) fn first_core(&self, domain: usize) -> usize {
        self.domain_cores[domain].0
    }

    /// How long a line takes from a neighbour in the domain to the core.
    pub(crate) fn near(&self, core: usize) -> Time {
        let (first, count) = self.domain_cores[self.cores[core].domain];
        if count == 1 {
            return self.shared_cache;
        }
        let neighbour = if core == first { first + 1 } else { first };
        Time::from(self.transfer[core * self.cores.len() + neighbour])
    }

    /// Derives the transfers from the published latencies, which include the read-modify-write that
    /// ends a ping-pong's transfer.
    pub(super) fn calibrate(&mut self) {
        let (cpus, cores) = (self.cpus.len(), self.cores.len());
        let mut sum = vec![0f64; cores * cores];
        let mut pairs = vec![0u32; cores * cores];
        for a in 0..cpus {
            for b in (0..cpus).filter(|b| *b != a) {
                let figure = f64::from(self.published[a * cpus + b]);
                let (ca, cb) = (self.cpus[a], self.cpus[b]);
                sum[ca.core * cores + cb.core] += figure;
                pairs[ca.core * cores + cb.core] += 1;
            }
        }
        let atomic = self.atomic as f64 / 1000.0;
        let at = |(i, (sum, pairs)): (usize, (&f64, &u32))| {
            if *pairs == 0 {
                return 0;
            }
            let (a, b) = (self.cores[i / cores], self.cores[i % cores]);
            let mean = sum / f64::from(*pairs);
            let atomic = atomic * (1.0 / a.speed + 1.0 / b.speed) / 2.0;
            if i / cores == i % cores {
                // Siblings share the line and retry every `sibling + atomic`: on average they meet
                // half-way.
                return ns((2.0 * mean - atomic).max(0.0)) as u32;
            }
            // Tables are measured, and classes specified, with the line's home at one of the two
            // nodes.
            let home =
                if a.domain == b.domain { 0 } else { self.home[away(a.node, b.node, a.node)] };
            ns((mean - atomic).max(1.0)).saturating_sub(home) as u32
        };
        self.transfer = sum.iter().zip(&pairs).enumerate().map(at).collect();
    }
}

/// The first core and the number of cores of each domain; cores are numbered domain by domain.
pub(super) fn domain_cores(cores: &[Core]) -> Vec<(usize, usize)> {
    let mut domains: Vec<(usize, usize)> = vec![];
    for (number, core) in cores.iter().enumerate() {
        if core.domain == domains.len() {
            domains.push((number, 0));
        }
        domains[core.domain].1 += 1;
    }
    domains
}

/// How many of the two nodes are not the home.
fn away(a: usize, b: usize, home: usize) -> usize {
    usize::from(a != home) + usize::from(b != home && b != a)
}
