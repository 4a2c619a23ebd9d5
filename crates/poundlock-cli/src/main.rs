//! The command `poundlock`: see the crate's library.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether SIGPIPE was ignored when the process began. Rust ignores it before main; the programs that `run` becomes
/// must find it as it was.
static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_RUST: extern "C" fn() = remember_sigpipe;

extern "C" fn remember_sigpipe() {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a sigaction may be zero, and asking for a signal's action changes nothing.
    let handler = unsafe {
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction
    };
    SIGPIPE_WAS_IGNORED.store(handler == libc::SIG_IGN, Ordering::Relaxed);
}

fn main() -> ExitCode {
    if !SIGPIPE_WAS_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: the default action runs no code of ours.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
    poundlock_cli::main()
}
