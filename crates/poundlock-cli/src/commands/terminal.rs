//! The terminal of commands that refresh what they show.

use crate::failure::{Failure, reason};
use ratatui::DefaultTerminal;
use std::io;

/// Takes over the terminal until `ratatui::restore()`. `otherwise` names what works without one.
pub fn take(otherwise: &str) -> Result<DefaultTerminal, Failure> {
    ratatui::try_init().map_err(|error| {
        Failure::ours(format!(
            "cannot use the terminal: {}; {otherwise} works without one",
            reason(&error)
        ))
    })
}

/// The failure to draw, or to read keys.
pub fn failed(error: io::Error) -> Failure {
    Failure::ours(format!("the terminal failed: {}", reason(&error)))
}
