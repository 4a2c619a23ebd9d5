//! What poundlock could not do, as one line and an exit status.

use std::fmt::Display;
use std::io;

/// The exit status of what poundlock itself could not do.
const OURS: u8 = 125;
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
/// What a shell makes of SIGPIPE.
const CLOSED_PIPE: u8 = 128 + libc::SIGPIPE as u8;

/// Ends the command with a line on stderr and an exit status.
#[derive(Debug)]
pub struct Failure {
    pub status: u8,
    /// Empty: no line.
    pub message: String,
}

impl Failure {
    /// Something that poundlock itself could not do.
    pub fn ours(message: impl Display) -> Failure {
        Failure { status: OURS, message: message.to_string() }
    }

    /// Nobody reads stdout any more: as SIGPIPE would end the command, if it were not ignored.
    pub fn closed_pipe() -> Failure {
        Failure { status: CLOSED_PIPE, message: String::new() }
    }

    /// A program that could not be started.
    pub fn of_program(program: &std::ffi::OsStr, error: &io::Error) -> Failure {
        let status = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN };
        Failure { status, message: format!("cannot run '{}': {}", program.display(), reason(error)) }
    }
}

/// An error of the system without Rust's "(os error 2)".
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// A mistake on the command line: the first paragraph of clap's explanation, on one line.
pub fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let paragraph: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let line = paragraph.join(" ");
    Failure::ours(line.strip_prefix("error: ").unwrap_or(&line))
}
