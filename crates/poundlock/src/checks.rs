//! The feature `debug`: operations are reported to the C library's checks of how locks are used.
//! Without it, these functions are empty.

use std::ffi::c_uint;

/// The thread is the only holder.
pub(crate) const ALONE: c_uint = 0;
/// The thread reads.
pub(crate) const READ: c_uint = poundlock_sys::POUND_WATCH_READ;
/// The thread reads, and may already do so.
pub(crate) const READ_AGAIN: c_uint = READ | poundlock_sys::POUND_WATCH_AGAIN;

/// Calls a function of the checks, with the feature.
macro_rules! report {
    ($function:ident($lock:ident, $mode:ident)) => {
        #[cfg(feature = "debug")]
        // SAFETY: the address is only a key.
        unsafe {
            poundlock_sys::$function($lock.cast(), $mode);
        }
        let _ = ($lock, $mode);
    };
}

/// Before the thread waits for `lock`.
#[inline]
pub(crate) fn waits<L>(lock: *mut L, mode: c_uint) {
    report!(pound_debug_wait(lock, mode));
}

/// After an attempt to acquire `lock`. Returns whether it is `acquired`.
#[inline]
pub(crate) fn tried<L>(lock: *mut L, mode: c_uint, acquired: bool) -> bool {
    if acquired {
        report!(pound_debug_locked(lock, mode));
    }
    acquired
}

/// Before the thread releases `lock`.
#[inline]
pub(crate) fn releases<L>(lock: *mut L, mode: c_uint) {
    report!(pound_debug_unlock(lock, mode));
}

/// Before `lock` is dropped: its memory may become another lock's, also if a guard was forgotten.
#[cfg(feature = "debug")]
pub(crate) fn drops<L>(lock: *mut L) {
    // SAFETY: the address is only a key.
    unsafe { poundlock_sys::pound_debug_destroy(lock.cast()) }
}
