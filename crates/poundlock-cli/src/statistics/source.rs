//! Where statistics come from: a program that is run for them, a living process, or files that processes left.

use super::file::Observed;
use super::find::{file_of, files_in};
use crate::failure::{Failure, reason};
use crate::options::SourceArgs;
use crate::program::obstacle;
use crate::program::preload::{self, Library};
use crate::spec::{self, Choice};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Statistics, and how the program that was run for them ended.
pub struct Source {
    pub observed: Vec<Observed>,
    pub status: Option<ExitStatus>,
    /// The compiler of the preload library, where a program was run.
    pub compiler: Option<String>,
}

impl Source {
    /// Gets what `args` name. `profile`: with the stacks of waits and holds, of a program that is run.
    pub fn get(args: &SourceArgs, profile: bool) -> Result<Source, Failure> {
        match args.pid {
            Some(pid) => Ok(Source::kept(vec![Observed::read(&file_of(pid)?)?])),
            None if !args.file.is_empty() => Ok(Source::kept(read_all(&args.file)?)),
            None => run(args, profile),
        }
    }

    fn kept(observed: Vec<Observed>) -> Source {
        Source { observed, status: None, compiler: None }
    }

    /// The exit status for a command that is to end as the program did.
    pub fn exit_code(&self) -> u8 {
        let Some(status) = self.status else {
            return 0;
        };
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        u8::try_from(code).unwrap_or(1)
    }
}

fn read_all(files: &[PathBuf]) -> Result<Vec<Observed>, Failure> {
    let mut all = Vec::new();
    for file in files {
        if file.is_dir() {
            all.extend(files_in(file)?);
        } else {
            all.push(Observed::read(file)?);
        }
    }
    Ok(all)
}

/// The folder as POUNDLOCK_STATS takes it: from the root; 1 where the library chooses one.
pub fn folder_or_default(folder: Option<&Path>) -> Result<OsString, Failure> {
    let Some(folder) = folder else {
        return Ok("1".into());
    };
    let unusable = |error| Failure::ours(format!("'{}' takes no statistics: {}", folder.display(), reason(&error)));
    let folder = folder.canonicalize().map_err(unusable)?;
    if !folder.is_dir() {
        return Err(unusable(io::Error::from_raw_os_error(libc::ENOTDIR)));
    }
    Ok(folder.into_os_string())
}

/// A folder in memory where that is possible: a file on a disk would have to be written there.
fn scratch() -> Result<tempfile::TempDir, Failure> {
    let new_in = |folder: &Path| tempfile::Builder::new().prefix("poundlock-stats-").tempdir_in(folder);
    new_in(Path::new("/dev/shm"))
        .or_else(|_| new_in(&std::env::temp_dir()))
        .map_err(|error| Failure::ours(format!("cannot make a folder for statistics: {}", reason(&error))))
}

fn run(args: &SourceArgs, profile: bool) -> Result<Source, Failure> {
    let choice = Choice::parse(&args.lock)?;
    if choice == Choice::Native {
        return Err(Failure::ours("native locks are not observed: name another with --lock"));
    }
    spec::check_others(&args.others)?;
    let library = Library::find(args.preload.preload.as_deref())?;
    let compiler = library.elf()?.compiler;
    let harmful = obstacle::report(&args.program[0]).is_some_and(|obstacle| obstacle.is_harmful());
    let choice = if harmful { Choice::Native } else { choice };
    let folder = scratch()?;
    let mut command = Command::new(&args.program[0]);
    command.args(&args.program[1..]);
    for (name, value) in preload::changes(&choice, &args.others, Some(&library)) {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("POUNDLOCK_STATS", folder.path()).env("POUNDLOCK_PROFILE", if profile { "1" } else { "0" });
    let status = to_its_end(&mut command).map_err(|error| Failure::of_program(&args.program[0], &error))?;
    Ok(Source { observed: files_in(folder.path())?, status: Some(status), compiler })
}

/// Runs a command to its end. Interrupts from the terminal reach it, and us too, who wait for what it does about them;
/// signals to us alone are passed on to it.
fn to_its_end(command: &mut Command) -> io::Result<ExitStatus> {
    let program = Arc::new(AtomicI32::new(0));
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    for signal in [SIGTERM, SIGHUP] {
        let program = Arc::clone(&program);
        let pass_on = move || {
            let pid = program.load(Ordering::Relaxed);
            if let (Ok(signal), true) = (Signal::try_from(signal), pid > 0) {
                // It may have ended just now.
                let _ = kill(Pid::from_raw(pid), signal);
            }
        };
        // SAFETY: kill and an atomic load are all that the handler does.
        unsafe { signal_hook::low_level::register(signal, pass_on)? };
    }
    let mut child: Child = command.spawn()?;
    program.store(child.id().cast_signed(), Ordering::Relaxed);
    let status = child.wait()?;
    program.store(0, Ordering::Relaxed);
    Ok(status)
}
