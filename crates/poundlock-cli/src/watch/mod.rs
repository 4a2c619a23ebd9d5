//! Watches the threads of a running process: what they wait for, where, and for how long. The
//! counting is done in the kernel, by `bpf/watch.bpf.c`.

mod kernel;
mod kernel_locks;
mod records;
mod report;
mod sites;
mod stacks;
mod target;
mod text;
mod unwind;

pub use report::Report;
pub use text::text;

use crate::failure::Failure;
use kernel::Kernel;
use records::{FUTEX, Place, STOPPED};
use report::{Seen, Threads};
use stacks::Stacks;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use target::Target;

/// The time between two looks at what the BPF program copied.
const TICK: Duration = Duration::from_millis(50);

/// The time between two looks at the code of the process.
const LOOK: Duration = Duration::from_secs(1);

/// The bytes of a stack that are read of a thread that sleeps at the beginning.
const STACK: usize = 16 << 10;

/// Watches until the process ends, `limit` has passed, or `stop` is set.
/// `kernel_locks`: also counts the kernel's locks.
pub fn watch(
    pid: u32,
    limit: Option<Duration>,
    kernel_locks: bool,
    stop: &AtomicBool,
) -> Result<Report, Failure> {
    kernel::require()?;
    let target = Target::find(pid)?;
    let seen = Seen { pid, command: target.command(), program: target.program() };
    let mut stacks = Stacks::default();
    if !stacks.look(&target) {
        return Err(Failure::ours(format!("cannot read the code of process {pid}")));
    }
    let mut kernel = Kernel::attach(pid, &stacks.code().ranges, kernel_locks)?;
    let first = target.threads();
    add_sleepers(&target, &first, &mut kernel, &mut stacks)?;
    let began = Instant::now();
    let mut looked = began;
    let mut ended = false;
    while !ended && !stop.load(Ordering::Relaxed) {
        let left = limit.map_or(TICK, |limit| limit.saturating_sub(began.elapsed()));
        if left.is_zero() {
            break;
        }
        ended = target.ends_within(left.min(TICK));
        if !ended && looked.elapsed() >= LOOK {
            looked = Instant::now();
            if stacks.look(&target) {
                kernel.set_ranges(&stacks.code().ranges)?;
            }
        }
        let mut has_changed = false;
        kernel.samples(|sample, bytes| has_changed |= stacks.take(&target, sample, bytes));
        if has_changed {
            kernel.set_ranges(&stacks.code().ranges)?;
        }
    }
    let counts = kernel.detach(|sample, bytes| {
        stacks.take(&target, sample, bytes);
    })?;
    let threads = Threads { first, last: target.threads() };
    stacks.finish(&target);
    let value = |word| target.memory(word, 4).try_into().ok().map(u32::from_ne_bytes);
    let mut report = Report::of(seen, ended, &counts, &threads, value, &mut stacks);
    report.kernel_locks = kernel_locks.then(|| kernel_locks::summary(&counts.kernel));
    Ok(report)
}

/// Adds the threads that sleep: they may do so until the end, unseen by the BPF program.
fn add_sleepers(
    target: &Target,
    threads: &[u32],
    kernel: &mut Kernel,
    stacks: &mut Stacks,
) -> Result<(), Failure> {
    for &thread in threads {
        let Some(sleep) = target.sleep(thread) else { continue };
        let mut place = Place { syscall: sleep.syscall, ..Place::default() };
        if sleep.stopped {
            place = Place { kind: STOPPED, syscall: -1, ..place };
        } else if sleep.in_futex() {
            // No hash of the BPF program is even.
            place = Place { kind: FUTEX, word: sleep.word, stack: u64::from(thread) << 1, ..place };
            let bytes = target.memory(sleep.registers.stack_pointer, STACK);
            stacks.add(place.stack, sleep.registers, &bytes);
        }
        kernel.add_sleeper(thread, place)?;
    }
    Ok(())
}
