// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs in several processes: a machine's memory lies at a fixed address, so that a process has only one.
//!
//! Promises: each job is done once, in a fork of this process, in the given order as far as workers are free; its result,
//! or that its worker died of it, is told once. What a job changes in memory does not come back.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a worker writes, a line each.
#[derive(serde::Deserialize, Serialize)]
enum Message<T> {
    Begins(usize),
    Ends(usize, T),
}

/// How many processes are worth their while.
pub fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does `work` for each of `jobs`, and tells `done` of each as it ends.
pub fn run<T: Serialize + DeserializeOwned + Send>(
    jobs: &[usize],
    work: impl Fn(usize) -> T,
    mut done: impl FnMut(usize, Result<T>),
) -> Result<()> {
    let next = shared_counter()?;
    let pipes: Vec<File> = (0..workers().min(jobs.len())).map(|_| start(jobs, next, &work)).collect::<Result<_>>()?;
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for pipe in pipes {
            let send = send.clone();
            scope.spawn(move || follow(pipe, &send));
        }
        drop(send);
        receive.into_iter().for_each(|(job, result)| done(job, result));
    });
    match next.load(Ordering::Relaxed) < jobs.len() {
        true => bail!("all workers have died"),
        false => Ok(()),
    }
}

/// A counter that forks share; never unmapped.
fn shared_counter() -> Result<&'static AtomicUsize> {
    let (size, access) = (size_of::<AtomicUsize>(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping, zeroed, aligned to a page and kept for good.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context("cannot map memory to share");
        }
        Ok(&*memory.cast())
    }
}

/// Starts a worker. Returns what it writes.
fn start<T: Serialize>(jobs: &[usize], next: &AtomicUsize, work: &impl Fn(usize) -> T) -> Result<File> {
    let mut ends = [0; 2];
    // SAFETY: the process has one thread here, so that its fork can do all that it could; the two ends of the pipe are
    // each owned by the file made of them.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(std::io::Error::last_os_error()).context("cannot make a pipe");
        }
        let (read, mut write) = (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]));
        match libc::fork() {
            -1 => Err(std::io::Error::last_os_error()).context("cannot fork"),
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let done = toil(jobs, next, work, &mut write);
                libc::_exit(done.is_err().into())
            }
            _ => Ok(read),
        }
    }
}

/// A worker's life.
fn toil<T: Serialize>(jobs: &[usize], next: &AtomicUsize, work: &impl Fn(usize) -> T, to: &mut File) -> Result<()> {
    let mut tell = |message: &Message<T>| -> Result<()> {
        let line = serde_json::to_string(message)? + "\n";
        Ok(to.write_all(line.as_bytes())?)
    };
    while let Some(&job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
        tell(&Message::Begins(job))?;
        tell(&Message::Ends(job, work(job)))?;
    }
    Ok(())
}

/// Passes on what a worker tells, to its end.
fn follow<T: DeserializeOwned>(pipe: File, to: &mpsc::Sender<(usize, Result<T>)>) {
    let mut begun = None;
    for line in BufReader::new(pipe).lines() {
        match line.map_err(anyhow::Error::from).and_then(|line| Ok(serde_json::from_str(&line)?)) {
            Ok(Message::Begins(job)) => begun = Some(job),
            Ok(Message::Ends(job, result)) => {
                begun = None;
                to.send((job, Ok(result))).expect("somebody listens until all workers have ended");
            }
            Err(_) => break,
        }
    }
    if let Some(job) = begun {
        to.send((job, Err(anyhow::anyhow!("the checker itself died")))).expect("as above");
    }
}
