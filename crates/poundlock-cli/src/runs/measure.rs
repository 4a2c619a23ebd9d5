//! Runs a program and measures its wall time, CPU time and peak memory, with those of the children
//! that it waited for.

use crate::program::preload::Changes;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum delay until an interrupt is noticed.
const GLANCE: Duration = Duration::from_millis(50);

/// The measurements of a run.
#[derive(Debug)]
pub struct Measured {
    pub wall: Duration,
    pub cpu_user: Duration,
    pub cpu_system: Duration,
    pub peak_rss_bytes: u64,
    pub end: End,
    /// The output to stdout and stderr, interleaved.
    pub output: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Killed(i32),
    TimedOut,
    Interrupted,
}

/// Runs `program` to its end, or kills it after `timeout` or when `interrupted` is set. Kills the
/// rest of its process group, so that the next run has the machine for itself.
pub fn measure(
    program: &[OsString],
    changes: &Changes,
    timeout: Option<Duration>,
    interrupted: &AtomicBool,
) -> io::Result<Measured> {
    let mut output = tempfile::tempfile()?;
    let mut command = command(program, changes, &output)?;
    let start = Instant::now();
    // reap() reads the resource usage, which std does not report.
    #[allow(clippy::zombie_processes)]
    let pid = Pid::from_raw(command.spawn()?.id().cast_signed());
    let ended = when_ended(pid);
    let cut_short = wait(&ended, start, timeout, interrupted);
    // The zombie keeps the process id from being reused. The group may be empty: ignore the error.
    let _ = killpg(pid, Signal::SIGKILL);
    let end_time = match cut_short {
        Ok(end_time) => end_time,
        Err(_) => ended.recv().unwrap_or_else(|_| Instant::now()),
    };
    let (status, usage) = reap(pid)?;
    let mut text = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut text)?;
    Ok(Measured {
        wall: end_time - start,
        cpu_user: duration(usage.ru_utime),
        cpu_system: duration(usage.ru_stime),
        peak_rss_bytes: kibibytes(usage.ru_maxrss),
        end: cut_short.err().unwrap_or_else(|| end_of(ExitStatus::from_raw(status))),
        output: text,
    })
}

/// The smallest measurable peak memory: a new process inherits this much from us before exec.
pub fn peak_rss_floor_bytes() -> u64 {
    // SAFETY: an rusage may be zero, and getrusage writes to nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    kibibytes(usage.ru_maxrss)
}

fn command(program: &[OsString], changes: &Changes, output: &File) -> io::Result<Command> {
    let mut command = Command::new(&program[0]);
    command
        .args(&program[1..])
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?);
    for (name, value) in changes {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.process_group(0);
    // SAFETY: prctl is a bare system call, which a forked child may make.
    unsafe {
        command.pre_exec(|| {
            // If poundlock is killed, kill the measured program too.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    Ok(command)
}

/// Sends the time at which the process ends. Does not reap it.
fn when_ended(pid: Pid) -> Receiver<Instant> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)
            == Err(nix::Error::EINTR)
        {}
        // The receiver outlives this send.
        let _ = sender.send(Instant::now());
    });
    receiver
}

/// Waits for the end. Fails on a time-out or an interrupt.
fn wait(
    ended: &Receiver<Instant>,
    start: Instant,
    timeout: Option<Duration>,
    interrupted: &AtomicBool,
) -> Result<Instant, End> {
    loop {
        let left = timeout.map_or(GLANCE, |timeout| timeout.saturating_sub(start.elapsed()));
        match ended.recv_timeout(left.min(GLANCE)) {
            Ok(end_time) => return Ok(end_time),
            Err(RecvTimeoutError::Disconnected) => return Ok(Instant::now()),
            Err(RecvTimeoutError::Timeout) if interrupted.load(Ordering::Relaxed) => {
                return Err(End::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(End::TimedOut),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn reap(pid: Pid) -> io::Result<(libc::c_int, libc::rusage)> {
    let mut status = 0;
    // SAFETY: an rusage may be zero; wait4 writes to the two only. The process is our child and not
    // reaped yet.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        while libc::wait4(pid.as_raw(), &mut status, 0, &mut usage) < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok((status, usage))
    }
}

/// How a process with this status ended.
pub fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(status), _) => End::Exited(status),
        (None, signal) => End::Killed(signal.unwrap_or_default()),
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_micros(time.tv_usec.unsigned_abs())
}

fn kibibytes(count: libc::c_long) -> u64 {
    count.unsigned_abs() * 1024
}
