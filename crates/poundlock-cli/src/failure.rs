//! Errors of the command: one line and an exit status.

use clap::error::{ContextKind, ContextValue};
use std::ffi::CStr;
use std::fmt::Display;
use std::io;

/// The exit status of failures of poundlock itself.
const OURS: u8 = 125;
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
/// The exit status that a shell reports for SIGPIPE.
const CLOSED_PIPE: u8 = 128 + libc::SIGPIPE as u8;

/// Ends the command with a line on stderr and an exit status.
#[derive(Debug)]
pub struct Failure {
    pub status: u8,
    /// Empty: nothing is printed.
    pub message: String,
}

impl Failure {
    /// A failure of poundlock itself.
    pub fn ours(message: impl Display) -> Failure {
        Failure { status: OURS, message: message.to_string() }
    }

    /// The reader of stdout has closed it, and SIGPIPE is ignored: ends as SIGPIPE would.
    pub fn closed_pipe() -> Failure {
        Failure { status: CLOSED_PIPE, message: String::new() }
    }

    /// A program that could not be started.
    pub fn of_program(program: &std::ffi::OsStr, error: &io::Error) -> Failure {
        let status = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN };
        Failure {
            status,
            message: format!("cannot run '{}': {}", program.display(), reason(error)),
        }
    }
}

/// A system error without Rust's "(os error 2)".
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// A command-line error: the first paragraph of clap's message and its suggestion, on one line.
pub fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let paragraph: Vec<&str> =
        text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let line = paragraph.join(" ");
    let hint = suggestion(error).map_or(String::new(), |word| format!("; did you mean '{word}'?"));
    Failure::ours(format!("{}{hint}", line.strip_prefix("error: ").unwrap_or(&line)))
}

/// The closest word that clap knows instead of a wrong one.
fn suggestion(error: &clap::Error) -> Option<&str> {
    use ContextKind::{SuggestedArg, SuggestedSubcommand, SuggestedValue};
    let suggested = [SuggestedSubcommand, SuggestedArg, SuggestedValue]
        .into_iter()
        .find_map(|of| error.get(of));
    match suggested? {
        ContextValue::String(word) => Some(word),
        // The closest is the last.
        ContextValue::Strings(words) => words.last().map(String::as_str),
        _ => None,
    }
}

/// The text that a function of the C library wrote into `buffer`, such as the line of an error.
pub fn text_from_c(buffer: &[u8]) -> String {
    CStr::from_bytes_until_nul(buffer).unwrap_or_default().to_string_lossy().into_owned()
}
