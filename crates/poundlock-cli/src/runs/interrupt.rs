//! Interrupts: the first one ends the runs, and the command reports what it has; the second one
//! ends the command.

use super::Outcome;
use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The exit status of a command that was interrupted.
const INTERRUPTED: u8 = 130;

/// Returns a flag that the first interrupt sets. The second interrupt exits at once.
pub fn interrupts() -> Result<Arc<AtomicBool>, Failure> {
    catch().map_err(|error| Failure::ours(format!("cannot catch interrupts: {error}")))
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
