//! Inherited state that Rust changes before main: the action of SIGPIPE, and closed standard
//! descriptors. `run` passes both on unchanged.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether SIGPIPE was ignored when the process began. Rust ignores it.
static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether stdin, stdout and stderr were closed. Rust opens /dev/null in their place.
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_RUST: extern "C" fn() = remember;

extern "C" fn remember() {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a sigaction may be zero, and querying an action changes nothing.
    let handler = unsafe {
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction
    };
    SIGPIPE_WAS_IGNORED.store(handler == libc::SIG_IGN, Ordering::Relaxed);
    for (descriptor, closed) in (0..).zip(&CLOSED) {
        // SAFETY: reads the descriptor's flags, and fails if it is closed.
        closed.store(unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0, Ordering::Relaxed);
    }
}

/// Restores the default action of SIGPIPE, unless SIGPIPE was ignored when the process began.
pub fn restore_sigpipe() {
    if !SIGPIPE_WAS_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: the default action runs no code of ours.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    }
}

/// Whether the standard descriptor was closed when the process began.
pub fn is_closed(descriptor: libc::c_int) -> bool {
    usize::try_from(descriptor).is_ok_and(|index| CLOSED[index].load(Ordering::Relaxed))
}

/// Makes exec close the standard descriptors that were closed when the process began.
pub fn close_on_exec() {
    for descriptor in (0..3).filter(|descriptor| is_closed(*descriptor)) {
        // SAFETY: only changes what exec does with the descriptor, which is Rust's /dev/null.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
