//! What is known of the locks, from the C library.

use std::ffi::{CStr, c_char};

/// A lock of `core/locks.def`. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct LockInfo {
    /// The name that a spec begins with.
    pub name: &'static str,
    /// The default way of waiting: spin, yield or park.
    pub wait: &'static str,
    /// What it promises about the order of waiters.
    pub promise: &'static str,
    /// The paper that it is from.
    pub paper: &'static str,
    /// The settings that a spec may give, comma-separated.
    pub keys: String,
    /// Whether it lies in a box behind a pointer, since it is too large for a `pthread_mutex_t`.
    pub boxed: bool,
    /// What a lock takes, its box included.
    pub bytes_per_lock: usize,
    /// What each waiter adds.
    pub bytes_per_waiter: usize,
    /// What a holder keeps.
    pub bytes_per_holder: usize,
    /// Atomic read-modify-writes of an acquisition and release, as counted; NaN where that was not done.
    /// Of a readers-writer lock: as a writer.
    pub atomics_alone: f64,
    /// The same as the mean of four threads that all want the lock all the time; of a readers-writer lock, and write
    /// every other time.
    pub atomics_contended: f64,
    /// Of a readers-writer lock: alone, as a reader. Else NaN.
    pub atomics_reading: f64,
}

/// Every lock that there is, in the list's order.
pub fn locks() -> impl Iterator<Item = LockInfo> {
    each(poundlock_sys::pound_lock_info)
}

/// Every readers-writer lock that there is, in the list's order.
pub fn rw_locks() -> impl Iterator<Item = LockInfo> {
    each(poundlock_sys::pound_rwlock_info)
}

fn each(get: unsafe extern "C" fn(usize) -> *const poundlock_sys::pound_lock_info) -> impl Iterator<Item = LockInfo> {
    (0..).map_while(move |index| {
        // SAFETY: any index may be asked for; the result is null or valid until this thread asks again.
        let info = unsafe { get(index).as_ref() }?;
        Some(LockInfo {
            // SAFETY: these are literals of the C library.
            name: unsafe { text(info.name) },
            // SAFETY: as above.
            wait: unsafe { text(info.wait) },
            // SAFETY: as above.
            promise: unsafe { text(info.promise) },
            // SAFETY: as above.
            paper: unsafe { text(info.paper) },
            // SAFETY: the keys are valid as long as the structure is; they are copied here.
            keys: unsafe { text(info.keys) }.to_owned(),
            boxed: info.boxed,
            bytes_per_lock: info.bytes_per_lock,
            bytes_per_waiter: info.bytes_per_waiter,
            bytes_per_holder: info.bytes_per_holder,
            atomics_alone: info.atomics_alone,
            atomics_contended: info.atomics_contended,
            atomics_reading: info.atomics_reading,
        })
    })
}

/// # Safety
/// `string` is a C string that stays as it is for as long as the result is used.
unsafe fn text<'a>(string: *const c_char) -> &'a str {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(string) }.to_str().expect("locks.def is UTF-8")
}
