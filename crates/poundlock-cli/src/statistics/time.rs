//! The time of a process and of its threads: what waits are a share of.

use super::file::{Observed, Thread};
use super::find::is_live;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// From the start of the library in the process to the end of the process; for a process that
    /// was killed, to the last time that a thread read the clock.
    pub elapsed_ns: u64,
    /// The sum over the threads, each from its first lock operation to its end.
    pub thread_ns: u64,
}

impl Times {
    /// The times of a process; up to now if it runs.
    pub fn of(observed: &Observed) -> Times {
        let end = observed
            .end_ns
            .unwrap_or_else(|| if is_live(observed) { now() } else { last_seen(observed) });
        let threads = observed.threads.iter().map(|thread| time_of(thread, end));
        Times {
            elapsed_ns: end.saturating_sub(observed.start_ns),
            thread_ns: threads.fold(observed.ended_threads_ns, u64::saturating_add),
        }
    }
}

/// The clock of the file, CLOCK_MONOTONIC.
fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn last_seen(observed: &Observed) -> u64 {
    let seen = observed.threads.iter().map(|thread| thread.end_ns.unwrap_or(thread.seen_ns));
    seen.max().unwrap_or(observed.start_ns)
}

fn time_of(thread: &Thread, end_of_process: u64) -> u64 {
    if thread.start_ns == 0 {
        return 0;
    }
    thread.end_ns.unwrap_or(end_of_process).saturating_sub(thread.start_ns)
}

#[cfg(test)]
mod tests {
    use super::time_of;
    use crate::statistics::file::Thread;

    #[test]
    fn a_thread_ends_by_itself_or_with_its_process() {
        let thread = |start_ns, end_ns| Thread {
            serial: 1,
            start_ns,
            seen_ns: start_ns,
            end_ns,
            events: Vec::new(),
            rows: Vec::new(),
        };
        assert_eq!(time_of(&thread(10, Some(30)), 100), 20);
        assert_eq!(time_of(&thread(10, None), 100), 90);
        assert_eq!(time_of(&thread(0, None), 100), 0);
        // A damaged file.
        assert_eq!(time_of(&thread(200, None), 100), 0);
    }
}
