//! Writes a command's results: text for the reader, documents and pictures to files. All output
//! goes through this module.

use crate::failure::{Failure, reason};
use crate::inherited;
use nix::unistd::{AccessFlags, access};
use serde::Serialize;
use std::error::Error;
use std::fmt::Display;
use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The permissions of a new file, before the umask.
const NEW_FILE: u32 = 0o666;

/// The destination of text for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Stdout,
    /// Stderr, because one of the output files is stdout.
    Stderr,
}

impl Page {
    /// Checks before the work that all `files` can be written and that at most one is stdout.
    pub fn beside<'a>(
        files: impl IntoIterator<Item = &'a Option<PathBuf>>,
    ) -> Result<Page, Failure> {
        let mut page = Page::Stdout;
        for file in files.into_iter().flatten() {
            if !is_stdout(file) {
                check(file).map_err(|error| unwritable(file, &error))?;
            } else if page == Page::Stdout {
                page = Page::Stderr;
            } else {
                return Err(Failure::ours("only one file can be '-' (stdout)"));
            }
        }
        Ok(page)
    }

    /// The width of the terminal in characters; None if this is no terminal.
    pub fn width(self) -> Option<usize> {
        let is_terminal = match self {
            Page::Stdout => io::stdout().is_terminal(),
            Page::Stderr => io::stderr().is_terminal(),
        };
        let (width, _) = is_terminal.then(crossterm::terminal::size)?.ok()?;
        (width > 0).then_some(width.into())
    }

    /// Writes `text` and a newline.
    pub fn show(self, text: impl Display) -> Result<(), Failure> {
        match self {
            Page::Stdout => print(format!("{text}\n")),
            Page::Stderr => {
                let written = io::stderr().write_all(format!("{text}\n").as_bytes());
                written.map_err(|error| {
                    Failure::ours(format!("cannot write to stderr: {}", reason(&error)))
                })
            }
        }
    }
}

/// Formats a document as JSON with a final newline.
pub fn json(document: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(document).map_err(Failure::ours)? + "\n")
}

/// Writes to stdout. If the reader has closed it, fails without a message.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    to_stdout(text.as_ref()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::closed_pipe(),
        _ => Failure::ours(format!("cannot write to stdout: {}", reason(&error))),
    })
}

/// Writes to stdout. Rust ignores errors of a closed descriptor, so that is checked first.
fn to_stdout(text: &[u8]) -> io::Result<()> {
    if inherited::is_closed(libc::STDOUT_FILENO) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(text)?;
    stdout.flush()
}

/// Writes one line to stderr, prefixed with "poundlock: ". Errors are ignored: there is no other
/// place to report them.
pub fn note(line: impl Display) {
    // One write for the whole line, so that lines of other processes do not mix with it.
    let _ = io::stderr().write_all(format!("poundlock: {line}\n").as_bytes());
}

/// Whether `file` means stdout.
pub fn is_stdout(file: &Path) -> bool {
    file == Path::new("-")
}

/// Writes `content` to `file`, or to stdout if that is `-`.
///
/// A regular file is replaced atomically. Other files are written in place, as by a shell's `>`:
/// devices, FIFOs, targets of symbolic links, and files with several links or another owner.
pub fn write(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    let content = content.as_ref();
    if is_stdout(file) {
        return print(content);
    }
    let written = replace(file, content)
        .and_then(|replaced| if replaced { Ok(()) } else { fs::write(file, content) });
    written.map_err(|error| unwritable(file, &error))
}

/// Replaces a regular file, or creates one. Returns false and changes nothing for any other file.
fn replace(file: &Path, content: &[u8]) -> io::Result<bool> {
    let old = match fs::symlink_metadata(file) {
        Ok(old) if old.is_file() => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        _ => return Ok(false),
    };
    if old.is_some() {
        // The folder may be writable although the file is not.
        OpenOptions::new().write(true).open(file)?;
    }
    let made = tempfile::Builder::new()
        .permissions(Permissions::from_mode(NEW_FILE))
        .tempfile_in(folder_of(file));
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

/// Whether a new file in place of `old` has the same owner and device, and `old` has one link.
fn same_place(old: &Metadata, new: &Metadata) -> bool {
    old.nlink() == 1 && (old.uid(), old.gid(), old.dev()) == (new.uid(), new.gid(), new.dev())
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Checks that `file` is writable, without creating it or opening it: the reader of a FIFO would
/// notice.
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

/// The failure to draw a picture.
pub fn undrawable(error: Box<dyn Error>) -> Failure {
    Failure::ours(format!("cannot draw: {error}"))
}

/// The failure to read a file.
pub fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::ours(format!("cannot read '{}': {}", file.display(), reason(error)))
}

/// The failure to write a file.
fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::ours(format!("cannot write '{}': {}", file.display(), reason(error)))
}
