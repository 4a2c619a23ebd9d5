//! Statistics as CSV: one line per lock of each process.

use crate::statistics::Process;
use std::error::Error;

const HEADER: [&str; 34] = [
    "pid",
    "program",
    "lock_type",
    "name",
    "named_by",
    "side",
    "address",
    "lives",
    "acquisitions",
    "contended",
    "contended_share",
    "trylock_failures",
    "timeouts",
    "waiting",
    "wait_ns",
    "wait_mean_ns",
    "wait_max_ns",
    "queue_mean",
    "queue_max",
    "holds_timed",
    "hold_mean_ns",
    "hold_max_ns",
    "hold_ns",
    "handovers_local",
    "handovers_remote",
    "parks",
    "wakeups_in_section",
    "threads",
    "fairness_factor",
    "jain",
    "wait_share",
    "elapsed_ns",
    "thread_ns",
    "stack",
];

/// All locks of all processes. An absent figure is an empty cell.
pub fn csv(processes: &[Process]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for process in processes {
        for lock in &process.locks {
            writer.serialize((
                (process.pid, &process.program, process.lock_of(lock)),
                (&lock.name, lock.named_by, lock.side, &lock.address, lock.lives),
                (
                    lock.acquisitions,
                    lock.contended,
                    lock.contended_share,
                    lock.trylock_failures,
                    lock.timeouts,
                ),
                (
                    lock.waiting,
                    lock.wait_ns,
                    lock.wait_mean_ns,
                    lock.wait_max_ns,
                    lock.queue_mean,
                    lock.queue_max,
                ),
                (lock.holds_timed, lock.hold_mean_ns, lock.hold_max_ns, lock.hold_ns),
                (lock.handovers_local, lock.handovers_remote, lock.parks, lock.wakeups_in_section),
                (lock.threads, lock.fairness_factor, lock.jain),
                (lock.wait_share, process.elapsed_ns, process.thread_ns),
                lock.stack.join(";"),
            ))?;
        }
    }
    Ok(writer.into_inner()?)
}
