//! Interrupts: the first one ends the runs, and the command reports what it has; the second one
//! ends the command, unless that has something to undo.

use super::Outcome;
use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The exit status of a command that was interrupted.
pub const INTERRUPTED: u8 = 130;

/// Returns a flag that the first interrupt sets. The second interrupt exits at once.
pub fn interrupts() -> Result<Arc<AtomicBool>, Failure> {
    catch().map_err(uncaught)
}

/// Returns a flag that every signal sets that would end the command from outside, except SIGKILL.
/// None of them ends it: a command with something to undo calls this before it changes anything.
pub fn stop_requests() -> Result<Arc<AtomicBool>, Failure> {
    let requested = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE] {
        signal_hook::flag::register(signal, Arc::clone(&requested)).map_err(uncaught)?;
    }
    Ok(requested)
}

fn uncaught(error: io::Error) -> Failure {
    Failure::ours(format!("cannot catch interrupts: {error}"))
}

fn catch() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(
            signal,
            INTERRUPTED.into(),
            Arc::clone(&interrupted),
        )?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

/// The exit status of a command: interrupted, some run failed, or all succeeded.
pub fn exit_code<'a>(
    interrupted: bool,
    mut outcomes: impl Iterator<Item = &'a Outcome>,
) -> ExitCode {
    match (interrupted, outcomes.any(|outcome| *outcome != Outcome::Ok)) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    }
}
