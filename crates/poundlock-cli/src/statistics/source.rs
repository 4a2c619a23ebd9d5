//! Gets statistics: from a program that is run, from a running process, or from files.

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

/// Statistics, and the exit status of the program if one was run.
pub struct Source {
    pub observed: Vec<Observed>,
    pub status: Option<ExitStatus>,
    /// The compiler of the preload library, if a program was run.
    pub compiler: Option<String>,
}

impl Source {
    /// Gets the statistics that `args` name. `profile`: a program that is run also records stacks.
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

    /// The exit status of the program, as a shell reports it. 0 if none was run.
    pub fn exit_code(&self) -> u8 {
        let Some(status) = self.status else {
            return 0;
        };
        let code =
            status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
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

/// The value of POUNDLOCK_STATS or POUNDLOCK_CONTROL: an absolute path, or 1 to let the library
/// choose. `what` is written there.
pub fn folder_or_default(folder: Option<&Path>, what: &str) -> Result<OsString, Failure> {
    let Some(folder) = folder else {
        return Ok("1".into());
    };
    let unusable = |error| {
        Failure::ours(format!("cannot write {what} to '{}': {}", folder.display(), reason(&error)))
    };
    let folder = folder.canonicalize().map_err(unusable)?;
    if !folder.is_dir() {
        return Err(unusable(io::Error::from_raw_os_error(libc::ENOTDIR)));
    }
    Ok(folder.into_os_string())
}

/// A temporary folder, in memory if possible: the kernel would write files on a disk back to it.
pub fn scratch() -> Result<tempfile::TempDir, Failure> {
    let new_in =
        |folder: &Path| tempfile::Builder::new().prefix("poundlock-stats-").tempdir_in(folder);
    new_in(Path::new("/dev/shm")).or_else(|_| new_in(&std::env::temp_dir())).map_err(|error| {
        Failure::ours(format!("cannot create a folder for statistics: {}", reason(&error)))
    })
}

fn run(args: &SourceArgs, profile: bool) -> Result<Source, Failure> {
    let choice = Choice::parse(&args.lock)?;
    spec::check_others(&args.others)?;
    let library = Library::find(args.preload.preload.as_deref())?;
    let compiler = library.elf()?.compiler;
    let harmful = obstacle::report(&args.program[0]).is_some_and(|obstacle| obstacle.is_harmful());
    let folder = scratch()?;
    let mut command = Command::new(&args.program[0]);
    command.args(&args.program[1..]);
    for (name, value) in preload::changes(&choice, &args.others, (!harmful).then_some(&library)) {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .env("POUNDLOCK_STATS", folder.path())
        .env("POUNDLOCK_PROFILE", if profile { "1" } else { "0" });
    let status =
        to_its_end(&mut command).map_err(|error| Failure::of_program(&args.program[0], &error))?;
    Ok(Source { observed: files_in(folder.path())?, status: Some(status), compiler })
}

/// Runs a command to its end. Interrupts from the terminal reach both processes, and the command
/// decides what they do. SIGTERM and SIGHUP are passed on to the command.
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
                // The program may have ended.
                let _ = kill(Pid::from_raw(pid), signal);
            }
        };
        // SAFETY: the handler only calls kill and loads an atomic.
        unsafe { signal_hook::low_level::register(signal, pass_on)? };
    }
    let mut child: Child = command.spawn()?;
    program.store(child.id().cast_signed(), Ordering::Relaxed);
    let status = child.wait()?;
    program.store(0, Ordering::Relaxed);
    Ok(status)
}
