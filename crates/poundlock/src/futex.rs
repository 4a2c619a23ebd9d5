//! Sleeping on a word.

use std::ptr::null;
use std::sync::atomic::AtomicU32;

/// Sleeps until a wake-up of `word`, unless its value is not `value`. Returns false if `deadline`,
/// on CLOCK_MONOTONIC, passed first. May wake up without a reason.
pub(crate) fn sleep(word: &AtomicU32, value: u32, deadline: Option<&libc::timespec>) -> bool {
    let deadline = deadline.map_or(null(), |deadline| deadline as *const libc::timespec);
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is readable during the call; the deadline is null or a valid timespec.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            value,
            deadline,
            null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ETIMEDOUT)
}

/// Wakes up to `count` threads that sleep on `word`. The kernel does not access the word, so it may
/// have been freed; a thread that sleeps on new memory at its address wakes up without a reason.
pub(crate) fn wake(word: *const AtomicU32, count: i32) {
    // SAFETY: the call only compares the address with those of sleepers.
    unsafe {
        libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count);
    }
}
