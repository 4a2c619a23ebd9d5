// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run counts.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The counts of a whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Duration of the measured part.
    pub elapsed_ns: u64,
    /// CPU time of all threads in the measured part.
    pub cpu_ns: u64,
    /// The counts of each thread.
    pub threads: Vec<ThreadCounts>,
    /// How often each event of `core/events.def` happened; none for the native mutex.
    pub events: Option<BTreeMap<String, u64>>,
    /// Voluntary context switches since the start of the process.
    pub sleeps: u64,
    /// Involuntary context switches since the start of the process.
    pub preemptions: u64,
}

/// The counts of one thread. Times are sums over the timed acquisitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadCounts {
    /// Index of the thread's class in the workload.
    pub class: usize,
    /// The CPU that the thread is bound to.
    pub cpu: Option<usize>,
    /// Acquisitions of the lock.
    pub acquisitions: u64,
    /// Acquisitions whose previous holder was another thread.
    pub handovers: u64,
    /// Hand-overs from another locality domain.
    pub handovers_remote: u64,
    /// Acquisitions that were timed.
    pub timed: u64,
    /// From the request to the acquisition.
    pub wait_ns: u64,
    /// The longest single wait.
    pub longest_wait_ns: u64,
    /// From the acquisition to the release.
    pub hold_ns: u64,
    /// Timed hand-overs to a thread that was already waiting.
    pub timed_handovers: u64,
    /// From the previous holder's release to the acquisition, summed over `timed_handovers`.
    pub handover_ns: u64,
}
