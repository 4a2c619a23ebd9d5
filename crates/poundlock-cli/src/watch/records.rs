//! The records of `bpf/watch.bpf.c`, in its layout. The loader compares the sizes.

use aya::Pod;

/// Kinds of waits: the enum `kind`.
pub const FUTEX: u32 = 1;
pub const STOPPED: u32 = 2;

/// States of a thread: the enum `state`.
pub const RUNNING: u32 = 0;
pub const RUNNABLE: u32 = 1;
pub const BLOCKED: u32 = 2;

pub const CODE_RANGES: usize = 4;

/// The addresses of code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// Start and end.
    pub code: [[u64; 2]; CODE_RANGES],
}

/// A place of waiting.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    pub word: u64,
    pub stack: u64,
    pub kind: u32,
    pub syscall: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    pub count: u64,
    pub blocked_ns: u64,
    pub delayed_ns: u64,
    pub longest_ns: u64,
}

impl Waits {
    /// A wait that lasts.
    pub fn unfinished(time: u64) -> Waits {
        Waits { count: 1, blocked_ns: time, delayed_ns: 0, longest_ns: time }
    }

    pub fn total_ns(&self) -> u64 {
        self.blocked_ns + self.delayed_ns
    }

    pub fn add(&mut self, more: &Waits) {
        self.count += more.count;
        self.blocked_ns += more.blocked_ns;
        self.delayed_ns += more.delayed_ns;
        self.longest_ns = self.longest_ns.max(more.longest_ns);
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Thread {
    /// 0: the record is free.
    pub number: u32,
    pub state: u32,
    pub since: u64,
    pub run_delay: u64,
    pub running_ns: u64,
    pub runnable_ns: u64,
    pub off: u64,
    pub on: u64,
    pub slept: u8,
    pub counted: u8,
    pub granted: u8,
    pub unused: [u8; 5],
    pub place: Place,
    /// Its waits at `place` that are not in the map of places.
    pub pending: Waits,
    pub more_unused: u64,
}

impl Thread {
    /// A thread that sleeps since `since`.
    pub fn sleeping(since: u64, place: Place) -> Thread {
        Thread { since, place, state: BLOCKED, slept: 1, ..Thread::default() }
    }
}

/// The clocks of the BPF program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocks {
    /// CLOCK_MONOTONIC less the clock of the times in the records of threads.
    pub offset: u64,
    /// When they were compared last; 0: not yet.
    pub compared: u64,
}

/// A sleeping goroutine.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Goroutine {
    pub since: u64,
    pub place: Place,
}

/// A place that wakes waiters, or where a holder runs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Release {
    pub word: u64,
    pub stack: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Releases {
    pub count: u64,
    pub waited_ns: u64,
    pub off_ns: u64,
}

/// A place where the kernel waits for a lock of its own.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KernelPlace {
    /// Its number, or an error.
    pub stack: i32,
    pub flags: u32,
}

/// The head of a copy of a stack; the bytes follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub stack: u64,
    pub instruction: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    pub link: u64,
    pub size: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub ended_threads: u64,
    pub running_ns: u64,
    pub runnable_ns: u64,
    pub lost_threads: u64,
    pub lost_places: u64,
    pub lost_waits_ns: u64,
    pub lost_releases: u64,
    pub lost_samples: u64,
    pub lost_goroutines: u64,
    pub level: u64,
    pub begin: u64,
    pub futex_ns: u64,
}

macro_rules! plain {
    ($($record:ty),*) => {
        $(
            // SAFETY: integers alone, in repr(C) without padding: any bytes are a value.
            unsafe impl Pod for $record {}
        )*
    };
}

plain!(
    Ranges,
    Place,
    Waits,
    Thread,
    Release,
    Releases,
    KernelPlace,
    Sample,
    Sums,
    Goroutine,
    Clocks
);
