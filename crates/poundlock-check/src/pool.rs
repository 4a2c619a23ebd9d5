// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parallel jobs in worker processes: a machine's memory is at a fixed address, so a process can
//! run only one.
//!
//! Promises: each job runs once, in a fork of this process, started in the given order as workers
//! become free. Its result, or the death of its worker, is reported once, as soon as it is known.
//! Changes that a job makes in memory are not visible here. The workers' CPU time is counted as
//! this process's children's.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A line that a worker writes.
#[derive(serde::Deserialize, Serialize)]
enum Message<T> {
    Begins(usize),
    Ends(usize, T),
}

/// The number of worker processes: one per CPU.
pub fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Calls `work` for each of `jobs`, and `done` with each result. Returns the first error of `done`;
/// the workers then end with this process.
pub fn run<T: Serialize + DeserializeOwned + Send + 'static>(
    jobs: &[usize],
    work: impl Fn(usize) -> T,
    mut done: impl FnMut(usize, Result<T>) -> Result<()>,
) -> Result<()> {
    let next = shared_counter()?;
    let started: Vec<Worker> =
        (0..workers().min(jobs.len())).map(|_| start(jobs, next, &work)).collect::<Result<_>>()?;
    let (send, receive) = mpsc::channel();
    let mut processes = Vec::new();
    for worker in started {
        let send = send.clone();
        processes.push(worker.process);
        std::thread::spawn(move || follow(worker.pipe, &send));
    }
    drop(send);
    receive.into_iter().try_for_each(|(job, result)| done(job, result))?;
    processes.into_iter().for_each(reap);
    if next.load(Ordering::Relaxed) < jobs.len() {
        bail!("all worker processes have died");
    }
    Ok(())
}

/// A counter that forked processes share. Never unmapped.
fn shared_counter() -> Result<&'static AtomicUsize> {
    let (size, access) = (size_of::<AtomicUsize>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping, zeroed, page-aligned and never unmapped.
    unsafe {
        let memory = libc::mmap(
            std::ptr::null_mut(),
            size,
            access,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if memory == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context("cannot map shared memory");
        }
        Ok(&*memory.cast())
    }
}

/// A worker process, and the pipe that it writes to.
struct Worker {
    process: libc::pid_t,
    pipe: File,
}

/// Starts a worker.
fn start<T: Serialize>(
    jobs: &[usize],
    next: &AtomicUsize,
    work: &impl Fn(usize) -> T,
) -> Result<Worker> {
    let mut ends = [0; 2];
    // SAFETY: the process has one thread when it forks, so the child may call any function. Each
    // end of the pipe is owned by one file.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(std::io::Error::last_os_error()).context("cannot create a pipe");
        }
        let (read, mut write) = (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]));
        match libc::fork() {
            -1 => Err(std::io::Error::last_os_error()).context("cannot fork"),
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let done = run_jobs(jobs, next, work, &mut write);
                libc::_exit(done.is_err().into())
            }
            process => Ok(Worker { process, pipe: read }),
        }
    }
}

/// Waits until the child `process`, whose pipe has ended, has ended itself.
fn reap(process: libc::pid_t) {
    // SAFETY: a null status is not written.
    unsafe { libc::waitpid(process, std::ptr::null_mut(), 0) };
}

/// Runs jobs in a worker until none is left.
fn run_jobs<T: Serialize>(
    jobs: &[usize],
    next: &AtomicUsize,
    work: &impl Fn(usize) -> T,
    to: &mut File,
) -> Result<()> {
    let mut send = |message: &Message<T>| -> Result<()> {
        let line = serde_json::to_string(message)? + "\n";
        Ok(to.write_all(line.as_bytes())?)
    };
    while let Some(&job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
        send(&Message::Begins(job))?;
        send(&Message::Ends(job, work(job)))?;
    }
    Ok(())
}

/// Passes on the results of a worker until it ends. A failure to send means that `run` has
/// returned.
fn follow<T: DeserializeOwned>(pipe: File, to: &mpsc::Sender<(usize, Result<T>)>) {
    let mut begun = None;
    for line in BufReader::new(pipe).lines() {
        match line.map_err(anyhow::Error::from).and_then(|line| Ok(serde_json::from_str(&line)?)) {
            Ok(Message::Begins(job)) => begun = Some(job),
            Ok(Message::Ends(job, result)) => {
                begun = None;
                if to.send((job, Ok(result))).is_err() {
                    return;
                }
            }
            Err(_) => break,
        }
    }
    if let Some(job) = begun {
        let _ = to.send((job, Err(anyhow::anyhow!("the worker process died"))));
    }
}
