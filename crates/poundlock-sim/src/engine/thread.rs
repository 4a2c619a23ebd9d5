// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated thread: what the engine and the operating system know about it.

use super::spins::{Histories, Spin};
use super::store_buffer::StoreBuffer;
use crate::ids::LineId;
use crate::random::Random;
use crate::time::{NEVER, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Has a CPU, or resumes at a known time.
    Runs,
    /// Busy-waits for a line that does not change; no event until it does.
    Spins,
    /// Waits until at most this many stores are in its buffer.
    Drains(usize),
    /// Waits for a CPU.
    Ready,
    /// Sleeps in the kernel.
    Parked,
    Done,
}

/// Consecutive plain loads of neighbouring lines, which the hardware prefetcher follows.
#[derive(Clone, Copy, Default)]
pub(super) struct Walk {
    /// The line of the last load: its address / 64.
    pub place: usize,
    /// When the last load that missed was issued.
    pub asked: Time,
}

pub(crate) struct Thread {
    pub cpu: usize,
    pub core: u16,
    pub state: State,
    /// Changes whenever a scheduled event of the thread becomes void.
    pub generation: u32,
    pub resume_at: Time,
    /// The remaining computing time when it lost the CPU.
    pub rest: Time,
    /// Its stores drained while it had no CPU.
    pub goes_on: bool,
    pub(super) buffer: StoreBuffer,
    /// The time by which it has run ahead of the clock.
    pub(super) ahead: Time,
    /// The line of its last load, and the line's version then.
    pub(super) seen: Option<(LineId, u32)>,
    pub(super) walk: Walk,
    pub(super) spin: Spin,
    pub(super) histories: Histories,
    /// The CPU on which it waited last, and until when it is assumed to share its CPU.
    pub(super) seat: Option<usize>,
    pub(super) sharing_until: Time,
    /// The line and the address that it waits for while it spins or sleeps.
    pub sleeps_on: Option<(LineId, usize)>,
    /// The address of its last load.
    pub(super) last_load: usize,
    /// CPU time by weight, as CFS counts it.
    pub virtual_run: Time,
    pub on_since: Time,
    /// How long it had a CPU before that.
    pub ran: Time,
    pub weight: u32,
    /// The control group that limits its CPU time.
    pub group: Option<usize>,
    pub(super) computing: bool,
    /// The cost of each plain access of a critical section, in addition to the access.
    pub step: Time,
    pub(super) next_interrupt: Time,
    pub(super) random: Random,
    /// Addresses of its `struct sim_self` and of the low end of its stack.
    pub(super) record: usize,
    pub(super) stack: usize,
    pub holds: bool,
    /// The number of times that it slept, and that it lost the CPU.
    pub sleeps: u64,
    pub preempted: u64,
}

impl Thread {
    /// A thread that has never run.
    pub fn new(
        cpu: usize,
        core: u16,
        weight: u32,
        random: Random,
        record: usize,
        stack: usize,
    ) -> Thread {
        Thread {
            cpu,
            core,
            state: State::Ready,
            generation: 0,
            resume_at: 0,
            rest: 0,
            goes_on: true,
            buffer: StoreBuffer::default(),
            ahead: 0,
            seen: None,
            walk: Walk::default(),
            spin: Spin::default(),
            histories: Histories::default(),
            seat: None,
            sharing_until: 0,
            sleeps_on: None,
            last_load: 0,
            virtual_run: 0,
            on_since: 0,
            ran: 0,
            weight,
            group: None,
            computing: false,
            step: 0,
            next_interrupt: NEVER,
            random,
            record,
            stack,
            holds: false,
            sleeps: 0,
            preempted: 0,
        }
    }
}
