//! What a benchmark's threads contend for: a lock of Poundlock's by its spec, or the C library's mutex.

use crate::workload::{BenchError, error};
use poundlock_sys::{pound_lock_destroy, pound_lock_init, pound_lock_lock, pound_lock_t, pound_lock_unlock};
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;

/// The name of the C library's mutex.
pub const NATIVE: &str = "native";

/// A lock that lies where it does and is called as a C program calls it.
///
/// # Safety
/// Between `lock` and `unlock` no other `lock` returns.
pub(crate) unsafe trait Lock: Sync {
    fn lock(&self);

    /// # Safety
    /// The calling thread holds the lock.
    unsafe fn unlock(&self);
}

/// `pthread_mutex_t` of the C library, with its default type.
pub(crate) struct Native(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is made for many threads.
unsafe impl Sync for Native {}

impl Native {
    pub(crate) fn new() -> Native {
        Native(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }
}

// SAFETY: it is the C library's mutex.
unsafe impl Lock for Native {
    fn lock(&self) {
        // SAFETY: it is initialised, and stays where it is while it is borrowed.
        let failed = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        debug_assert_eq!(failed, 0, "a normal mutex can be locked");
    }

    unsafe fn unlock(&self) {
        // SAFETY: as above, and the caller holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

/// `pound_lock_t`, in the memory of its owner.
pub(crate) struct Pound(UnsafeCell<pound_lock_t>);

// SAFETY: the lock is made for many threads.
unsafe impl Sync for Pound {}

impl Pound {
    /// An unlocked lock. It may be moved until it is used.
    pub(crate) fn new(spec: &str) -> Result<Pound, BenchError> {
        let Ok(text) = CString::new(spec) else {
            return error(format!("a lock's name has no NUL: {spec:?}"));
        };
        let mut lock = MaybeUninit::<pound_lock_t>::uninit();
        let mut line = [0; 256];
        // SAFETY: the lock and the line are there to be written to, and the spec is a C string.
        let failed = unsafe {
            pound_lock_init(lock.as_mut_ptr(), text.as_ptr(), line.as_mut_ptr().cast::<c_char>(), line.len())
        };
        if failed != 0 {
            return error(CStr::from_bytes_until_nul(&line).unwrap_or_default().to_string_lossy());
        }
        // SAFETY: pound_lock_init succeeded.
        Ok(Pound(UnsafeCell::new(unsafe { lock.assume_init() })))
    }
}

impl Drop for Pound {
    fn drop(&mut self) {
        // SAFETY: it was initialised, and nobody else can reach it; a benchmark's threads have all let go of it.
        unsafe { pound_lock_destroy(self.0.get()) };
    }
}

// SAFETY: pound_lock_t excludes.
unsafe impl Lock for Pound {
    fn lock(&self) {
        // SAFETY: it is initialised, and stays where it is while it is borrowed.
        unsafe { pound_lock_lock(self.0.get()) };
    }

    unsafe fn unlock(&self) {
        // SAFETY: as above, and the caller holds it.
        unsafe { pound_lock_unlock(self.0.get()) };
    }
}
