//! Finds the preload library, and prepares the environment that makes a program load it.

use crate::failure::{Failure, reason};
use crate::options::OtherLocksArgs;
use crate::program::elf::{Elf, Head};
use crate::program::own_path;
use crate::spec::Choice;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "libpoundlock-preload.so";

/// A preload library that exists and is for this machine.
#[derive(Debug)]
pub struct Library {
    pub path: PathBuf,
}

impl Library {
    /// The library at `given`, or the first one found relative to this binary.
    pub fn find(given: Option<&Path>) -> Result<Library, Failure> {
        let path = match given {
            Some(path) => path.canonicalize().map_err(|error| unusable(path, &reason(&error)))?,
            None => search()?,
        };
        let Head { machine, .. } = Elf::head(&path).map_err(|why| unusable(&path, &why))?;
        if machine != own_machine() {
            return Err(unusable(
                &path,
                &format!("it is for {machine}, this machine is {}", own_machine()),
            ));
        }
        // LD_PRELOAD has no quoting for its separators.
        if path.as_os_str().as_bytes().iter().any(is_separator) {
            return Err(unusable(
                &path,
                "LD_PRELOAD cannot contain a path with a space or a colon",
            ));
        }
        Ok(Library { path })
    }

    /// Reads the whole library.
    pub fn elf(&self) -> Result<Elf, Failure> {
        Elf::read(&self.path).map_err(|why| unusable(&self.path, &why))
    }
}

fn unusable(path: &Path, why: &str) -> Failure {
    Failure::ours(format!("preload library '{}' cannot be used: {why}", path.display()))
}

/// The running machine, in the format of [`Head::machine`].
pub fn own_machine() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "64-bit X86_64",
        "aarch64" => "64-bit Aarch64",
        other => other,
    }
}

/// The folders of the library relative to that of this binary: the same, installed, or in a build
/// tree (target/PROFILE/poundlock or target/TRIPLE/PROFILE/poundlock).
fn places() -> [PathBuf; 9] {
    let debian = format!("../lib/{}-linux-gnu", std::env::consts::ARCH);
    let debian_own = format!("{debian}/poundlock");
    [
        ".",
        "../lib",
        "../lib/poundlock",
        "../lib64",
        "../lib64/poundlock",
        &debian,
        &debian_own,
        "../../build/preload",
        "../../../build/preload",
    ]
    .map(PathBuf::from)
}

fn search() -> Result<PathBuf, Failure> {
    let own = own_path()?;
    let directory = own.parent().unwrap_or(Path::new("/"));
    let mut candidates = places().into_iter().map(|place| directory.join(place).join(FILE_NAME));
    candidates.find_map(|candidate| candidate.canonicalize().ok()).ok_or_else(|| {
        let near = directory.display();
        Failure::ours(format!(
            "no {FILE_NAME} found near {near}: give its path with --preload or POUNDLOCK_PRELOAD"
        ))
    })
}

/// Changes to an environment: variables to set, or without a value to unset.
pub type Changes = Vec<(&'static str, Option<OsString>)>;

/// The changes that make a program load `library` with the lock of `choice`, or without a library
/// prevent that. The caller has checked `beside`.
pub fn changes(choice: &Choice, beside: &OtherLocksArgs, library: Option<&Library>) -> Changes {
    let inherited = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let others = entries(&inherited).filter(|entry| !is_ours(entry));
    let lock = library.map(|_| choice.to_string().into());
    let ours = library.map(|library| library.path.as_os_str());
    let preloads: Vec<&[u8]> = ours.into_iter().chain(others).map(OsStr::as_bytes).collect();
    let preloads = OsString::from_vec(preloads.join(&b':'));
    let mut changes: Changes = vec![
        ("LD_PRELOAD", Some(preloads).filter(|list| !list.is_empty())),
        ("POUNDLOCK_LOCK", lock),
        // An explicit lock overrides a POUNDLOCK_DISABLE that was inherited.
        ("POUNDLOCK_DISABLE", None),
    ];
    changes.extend(beside.rwlock.as_ref().map(|spec| ("POUNDLOCK_RWLOCK", Some(spec.into()))));
    changes.extend(beside.spinlock.as_ref().map(|spec| ("POUNDLOCK_SPINLOCK", Some(spec.into()))));
    changes
}

fn is_separator(byte: &u8) -> bool {
    matches!(byte, b' ' | b':')
}

fn entries(list: &OsStr) -> impl Iterator<Item = &OsStr> {
    list.as_bytes().split(is_separator).filter(|entry| !entry.is_empty()).map(OsStr::from_bytes)
}

/// Whether the file name of a path is that of the library.
pub fn is_ours(path: impl AsRef<Path>) -> bool {
    path.as_ref().file_name() == Some(OsStr::new(FILE_NAME))
}
