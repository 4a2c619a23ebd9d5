//! Reasons why a program cannot load the preload library. The checks are cheap: they read the
//! program's headers and its mode.

use crate::output::note;
use crate::program::elf::{Elf, Head};
use crate::program::preload::own_machine;
use crate::program::{self, script};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A reason why the loader does not load the library into a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The program is for another machine.
    Machine(String),
    Static,
    Musl,
    Privileged,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Machine(machine) => {
                write!(f, "is a {machine} program; the preload library is {}", own_machine())
            }
            Obstacle::Static => f.write_str("is statically linked"),
            Obstacle::Musl => f.write_str("is linked with musl; the preload library needs glibc"),
            Obstacle::Privileged => f.write_str(
                "is set-user-id, set-group-id or has capabilities: the loader ignores LD_PRELOAD",
            ),
        }
    }
}

impl Obstacle {
    /// The obstacle of the program at `path`, which is not a script.
    pub fn of(path: &Path, head: &Head) -> Option<Obstacle> {
        if head.machine != own_machine() {
            return Some(Obstacle::Machine(head.machine.clone()));
        }
        let Some(loader) = &head.loader else {
            return Some(Obstacle::Static);
        };
        if loader.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-musl")) {
            return Some(Obstacle::Musl);
        }
        is_privileged(path).then_some(Obstacle::Privileged)
    }

    /// The obstacle of the program that the command runs, or of its interpreter. None if it cannot
    /// be read: the attempt to run it then reports the reason.
    fn of_command(program: &OsStr) -> Option<Obstacle> {
        let path = script::resolve(program::find(program).ok()?, &mut Vec::new()).ok()?;
        Obstacle::of(&path, &Elf::head(&path).ok()?)
    }

    /// Whether the program fails or prints errors with the library in LD_PRELOAD. With other
    /// obstacles the library is harmless, and serves the programs that the program starts.
    pub fn is_harmful(&self) -> bool {
        matches!(self, Obstacle::Machine(_) | Obstacle::Musl)
    }
}

/// Returns the obstacle of the command `program` and reports it in one line.
pub fn report(program: &OsStr) -> Option<Obstacle> {
    let obstacle = Obstacle::of_command(program)?;
    note(format_args!("'{}' {obstacle}: it runs with its own locks", program.display()));
    Some(obstacle)
}

/// Whether the program gets other privileges than its caller, so that the loader ignores
/// LD_PRELOAD.
fn is_privileged(path: &Path) -> bool {
    let (user, group) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
    let other_owner = path.metadata().is_ok_and(|file| {
        (file.mode() & libc::S_ISUID != 0 && file.uid() != user)
            || (file.mode() & libc::S_ISGID != 0 && file.gid() != group)
    });
    other_owner || (user != 0 && has_capabilities(path))
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: both names are C strings; with size 0 nothing is written.
    unsafe {
        libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0
    }
}
