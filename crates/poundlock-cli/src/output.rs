//! Where a command's results go: text for the reader, documents and pictures for files. Every byte that the command
//! writes goes through here.

use crate::failure::{Failure, reason};
use crate::inherited;
use nix::unistd::{AccessFlags, access};
use serde::Serialize;
use std::error::Error;
use std::fmt::Display;
use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A new file's permissions, less the umask.
const NEW_FILE: u32 = 0o666;

/// Where text for the reader goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Stdout,
    /// One of the command's files is stdout.
    Stderr,
}

impl Page {
    /// Checks that all `files` can be written, before hours of work that would be lost, and that at most one is stdout.
    pub fn beside<'a>(files: impl IntoIterator<Item = &'a Option<PathBuf>>) -> Result<Page, Failure> {
        let mut page = Page::Stdout;
        for file in files.into_iter().flatten() {
            if !is_stdout(file) {
                check(file).map_err(|error| unwritable(file, &error))?;
            } else if page == Page::Stdout {
                page = Page::Stderr;
            } else {
                return Err(Failure::ours("only one file can be '-', stdout"));
            }
        }
        Ok(page)
    }

    /// Writes `text` and a newline.
    pub fn show(self, text: impl Display) -> Result<(), Failure> {
        match self {
            Page::Stdout => print(format!("{text}\n")),
            Page::Stderr => {
                let written = io::stderr().write_all(format!("{text}\n").as_bytes());
                written.map_err(|error| Failure::ours(format!("cannot write to stderr: {}", reason(&error))))
            }
        }
    }
}

/// A document as JSON, with a newline at its end.
pub fn json(document: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(document).map_err(Failure::ours)? + "\n")
}

/// Writes to stdout. A closed pipe fails quietly.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    to_stdout(text.as_ref()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::closed_pipe(),
        _ => Failure::ours(format!("cannot write to stdout: {}", reason(&error))),
    })
}

/// Rust takes writes to a closed descriptor for successful.
fn to_stdout(text: &[u8]) -> io::Result<()> {
    if inherited::is_closed(libc::STDOUT_FILENO) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(text)?;
    stdout.flush()
}

/// Writes one line to stderr, after "poundlock: ". Failure is ignored: there is no other place to report it.
pub fn note(line: impl Display) {
    // One write for the whole line: other processes may write there, too.
    let _ = io::stderr().write_all(format!("poundlock: {line}\n").as_bytes());
}

/// Whether `file` stands for stdout.
pub fn is_stdout(file: &Path) -> bool {
    file == Path::new("-")
}

/// Writes `content` to `file`, or to stdout if that is `-`.
///
/// Readers of a regular file see the old content or the new one, never a part. What cannot be replaced is written through,
/// as by a shell's `>`: devices, FIFOs, targets of symbolic links, files with other links or another owner.
pub fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let content = content.as_ref();
    if is_stdout(file) {
        return print(content);
    }
    let written = replace(file, content).and_then(|replaced| if replaced { Ok(()) } else { fs::write(file, content) });
    written.map_err(|error| unwritable(file, &error))
}

/// Replaces a regular file, or makes a new one. False, with nothing changed, if `file` is anything else.
fn replace(file: &Path, content: &[u8]) -> io::Result<bool> {
    let old = match fs::symlink_metadata(file) {
        Ok(old) if old.is_file() => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        _ => return Ok(false),
    };
    if old.is_some() {
        // A folder may be writable where the file is not.
        OpenOptions::new().write(true).open(file)?;
    }
    let made = tempfile::Builder::new().permissions(Permissions::from_mode(NEW_FILE)).tempfile_in(folder_of(file));
    let Ok(mut new) = made else {
        return Ok(false);
    };
    if let Some(old) = old {
        if !same_place(&old, &new.as_file().metadata()?) {
            return Ok(false);
        }
        new.as_file().set_permissions(old.permissions())?;
    }
    new.write_all(content)?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(true)
}

/// Whether a new file in place of `old` differs only by its content.
fn same_place(old: &Metadata, new: &Metadata) -> bool {
    old.nlink() == 1 && (old.uid(), old.gid(), old.dev()) == (new.uid(), new.gid(), new.dev())
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether `file` looks writable. Neither opens it, which a FIFO's reader would notice, nor makes it.
fn check(file: &Path) -> io::Result<()> {
    match file.metadata() {
        Ok(there) if there.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        Ok(_) => Ok(access(file, AccessFlags::W_OK)?),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(access(folder_of(file), AccessFlags::W_OK | AccessFlags::X_OK)?)
        }
        Err(error) => Err(error),
    }
}

/// That a picture cannot be drawn.
pub fn undrawable(error: Box<dyn Error>) -> Failure {
    Failure::ours(format!("cannot draw: {error}"))
}

/// That a file cannot be read.
pub fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::ours(format!("cannot read '{}': {}", file.display(), reason(error)))
}

/// That a file cannot be written.
fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::ours(format!("cannot write '{}': {}", file.display(), reason(error)))
}
