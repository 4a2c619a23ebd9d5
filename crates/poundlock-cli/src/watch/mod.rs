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

pub use report::{Report, Wait};
pub use sites::What;
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

/// A process that is watched.
pub struct Session {
    target: Target,
    seen: Seen,
    first: Vec<u32>,
    stacks: Stacks,
    kernel: Kernel,
    kernel_locks: bool,
    looked: Instant,
    ended: bool,
}

impl Session {
    /// Begins to watch. `kernel_locks`: also counts the kernel's locks.
    pub fn begin(pid: u32, kernel_locks: bool) -> Result<Session, Failure> {
        kernel::require()?;
        let target = Target::find(pid)?;
        let seen = Seen { pid, command: target.command(), program: target.program() };
        let mut stacks = Stacks::default();
        if !stacks.look(&target) {
            return Err(kernel::unreadable_code(pid));
        }
        let mut kernel = Kernel::attach(&target, &stacks.code().ranges, kernel_locks)?;
        let first = target.threads();
        add_sleepers(&target, &first, &mut kernel, &mut stacks)?;
        let looked = Instant::now();
        Ok(Session { target, seen, first, stacks, kernel, kernel_locks, looked, ended: false })
    }

    /// Keeps up with the BPF program for a moment, or for `limit` if that is shorter. Returns
    /// whether the process has ended.
    pub fn follow(&mut self, limit: Duration) -> Result<bool, Failure> {
        self.ended = self.target.ends_within(limit.min(TICK));
        self.kernel.follow_wakes()?;
        let mut has_changed = false;
        if !self.ended && self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            has_changed = self.stacks.look(&self.target);
        }
        let (stacks, target) = (&mut self.stacks, &self.target);
        self.kernel.samples(|sample, bytes| has_changed |= stacks.take(target, sample, bytes));
        if has_changed {
            self.kernel.set_ranges(&self.stacks.code().ranges)?;
        }
        Ok(self.ended)
    }

    /// The report so far.
    pub fn report(&mut self) -> Result<Report, Failure> {
        let counts = self.kernel.counts()?;
        let target = &self.target;
        let threads = Threads { first: self.first.clone(), last: target.threads() };
        self.stacks.finish(target);
        let value = |word| target.memory(word, 4).try_into().ok().map(u32::from_ne_bytes);
        let seen = self.seen.clone();
        let mut report = Report::of(seen, self.ended, &counts, &threads, value, &mut self.stacks);
        report.kernel_locks = self.kernel_locks.then(|| kernel_locks::summary(&counts.kernel));
        Ok(report)
    }

    /// Ends the watch, and reports.
    pub fn end(mut self) -> Result<Report, Failure> {
        let (stacks, target) = (&mut self.stacks, &self.target);
        self.kernel.detach(|sample, bytes| {
            stacks.take(target, sample, bytes);
        })?;
        self.report()
    }
}

/// Watches until the process ends, `limit` has passed, or `stop` is set.
pub fn watch(
    mut session: Session,
    limit: Option<Duration>,
    stop: &AtomicBool,
) -> Result<Report, Failure> {
    let began = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let left = limit.map_or(TICK, |limit| limit.saturating_sub(began.elapsed()));
        if left.is_zero() || session.follow(left)? {
            break;
        }
    }
    session.end()
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

#[cfg(test)]
mod tests {
    use super::{Session, kernel};
    use std::io::Read;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    /// Ends with the test, also if that fails.
    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn what_happens_until_the_program_is_detached_is_not_counted() {
        if let Err(error) = kernel::require() {
            println!("SKIPPED: {error:?}");
            return;
        }
        // One thread, which forks and waits.
        let shell = Command::new("sh")
            .args(["-c", "echo; while :; do sleep 0.01; done"])
            .stdout(Stdio::piped())
            .spawn();
        let mut shell = Killed(shell.expect("there is a shell"));
        let output = shell.0.stdout.as_mut().expect("a pipe");
        output.read_exact(&mut [0]).expect("the shell runs");
        let mut session = Session::begin(shell.0.id(), false).expect("it can be watched");
        for _ in 0..4 {
            session.follow(Duration::from_millis(50)).expect("it runs");
        }
        session.kernel.stop().expect("the kernel's map can be written");
        std::thread::sleep(Duration::from_secs(2));
        let report = session.end().expect("a report");
        assert!(report.time.total > 0.0, "{report:?}");
        assert!(report.time.total <= report.seconds * 1.01 + 0.001, "{report:?}");
    }
}
