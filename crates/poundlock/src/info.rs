//! The properties of all locks, from the C library.

use std::ffi::{CStr, c_char};

/// The properties of a lock of `core/locks.def`. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct LockInfo {
    /// The name at the start of a spec.
    pub name: &'static str,
    /// The default way of waiting: spin, yield or park.
    pub wait: &'static str,
    /// The guarantee about the order of waiters.
    pub promise: &'static str,
    /// The paper that describes the lock.
    pub paper: &'static str,
    /// The keys of its settings, comma-separated.
    pub keys: String,
    /// The settings, except `wait`.
    pub settings: Vec<Setting>,
    /// Whether the lock is allocated behind a pointer, since it does not fit into a
    /// `pthread_mutex_t`.
    pub boxed: bool,
    /// The size of a lock, including its allocation.
    pub bytes_per_lock: usize,
    /// Additional memory per waiter.
    pub bytes_per_waiter: usize,
    /// Additional memory while the lock is held.
    pub bytes_per_holder: usize,
    /// Atomic read-modify-writes per uncontended acquisition and release; NaN if not counted. Of a
    /// readers-writer lock: as a writer.
    pub atomics_alone: f64,
    /// The same for four threads that contend permanently, as a mean. Of a readers-writer lock:
    /// with every second acquisition as a writer.
    pub atomics_contended: f64,
    /// Of a readers-writer lock: per uncontended acquisition as a reader. NaN for other locks.
    pub atomics_reading: f64,
}

/// A setting of a lock: `KEY=VALUE` in a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key.
    pub key: &'static str,
    /// The names of the values, from 0 on. Empty: the values are numbers.
    pub choices: Vec<&'static str>,
    /// The value of a lock whose spec does not name the key.
    pub default: u32,
    /// The lowest value.
    pub least: u32,
    /// The highest value.
    pub most: u32,
}

/// All mutual-exclusion locks, in the order of `core/locks.def`.
pub fn locks() -> impl Iterator<Item = LockInfo> {
    each(poundlock_sys::pound_lock_info)
}

/// All readers-writer locks, in the order of `core/locks.def`.
pub fn rw_locks() -> impl Iterator<Item = LockInfo> {
    each(poundlock_sys::pound_rwlock_info)
}

fn each(
    get: unsafe extern "C" fn(usize) -> *const poundlock_sys::pound_lock_info,
) -> impl Iterator<Item = LockInfo> {
    (0..).map_while(move |index| {
        // SAFETY: any index is valid; the result is null, or valid until this thread's next call.
        let info = unsafe { get(index).as_ref() }?;
        Some(LockInfo {
            // SAFETY: the string is a literal of the C library.
            name: unsafe { text(info.name) },
            // SAFETY: as above.
            wait: unsafe { text(info.wait) },
            // SAFETY: as above.
            promise: unsafe { text(info.promise) },
            // SAFETY: as above.
            paper: unsafe { text(info.paper) },
            // SAFETY: the keys are valid as long as the structure is, and are copied here.
            keys: unsafe { text(info.keys) }.to_owned(),
            // SAFETY: as of the name.
            settings: unsafe { settings(info.name) }.collect(),
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
/// `lock` is a C string, during the life of the result.
unsafe fn settings(lock: *const c_char) -> impl Iterator<Item = Setting> {
    (0..).map_while(move |index| {
        // SAFETY: any index is valid; the result is null, or valid until this thread's next call.
        let setting = unsafe { poundlock_sys::pound_lock_setting(lock, index).as_ref() }?;
        Some(Setting {
            // SAFETY: the string is a literal of the C library.
            key: unsafe { text(setting.key) },
            // SAFETY: as above.
            choices: unsafe { text(setting.choices) }.split_whitespace().collect(),
            default: setting.by_default,
            least: setting.least,
            most: setting.most,
        })
    })
}

/// # Safety
/// `string` is a C string that is valid and unchanged during `'a`.
unsafe fn text<'a>(string: *const c_char) -> &'a str {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(string) }.to_str().expect("locks.def is UTF-8")
}
