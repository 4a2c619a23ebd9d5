//! Locks under test: Poundlock's locks by specification, and the locks of the C library.

use crate::error::{BenchError, error};
use poundlock_sys::{
    pound_lock_destroy, pound_lock_init, pound_lock_lock, pound_lock_t, pound_lock_unlock,
    pound_rwlock_check, pound_rwlock_info, pound_rwlock_init, pound_rwlock_rdlock,
    pound_rwlock_rdunlock, pound_rwlock_t, pound_rwlock_wrlock, pound_rwlock_wrunlock,
};
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;

/// The name of the C library's mutex.
pub const NATIVE: &str = "native";

/// A lock that is implemented by C functions.
///
/// # Safety
/// No other `lock` or `lock_shared` returns between `lock` and `unlock`, and no `lock` returns
/// between `lock_shared` and `unlock_shared`.
pub(crate) unsafe trait Lock: Sync {
    fn lock(&self);

    /// # Safety
    /// The calling thread holds the lock.
    unsafe fn unlock(&self);

    /// Acquires as a reader, if the lock has readers.
    fn lock_shared(&self) {
        self.lock();
    }

    /// # Safety
    /// The calling thread holds the lock by `lock_shared`.
    unsafe fn unlock_shared(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.unlock() }
    }
}

/// `pthread_mutex_t` of the C library, with its default type.
pub(crate) struct Native(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex may be used by several threads.
unsafe impl Sync for Native {}

impl Native {
    pub(crate) fn new() -> Native {
        Native(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }
}

// SAFETY: a pthread_mutex_t provides mutual exclusion.
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
    /// An unlocked lock, which may be moved before its first use.
    pub(crate) fn new(spec: &str) -> Result<Pound, BenchError> {
        // SAFETY: pound_lock_init has the contract that `initialised` requires.
        Ok(Pound(UnsafeCell::new(unsafe { initialised(spec, pound_lock_init)? })))
    }
}

/// An initialiser of a C lock.
type Init<T> = unsafe extern "C" fn(*mut T, *const c_char, *mut c_char, usize) -> c_int;

/// A lock initialised by `spec`.
///
/// # Safety
/// `init` either initialises the lock from the C string and returns 0, or writes a line into the
/// buffer of the given size and returns another value.
unsafe fn initialised<T>(spec: &str, init: Init<T>) -> Result<T, BenchError> {
    let mut lock = MaybeUninit::<T>::uninit();
    // SAFETY: the lock and the buffers of with_spec() are valid for writes.
    with_spec(spec, |spec, line, size| unsafe { init(lock.as_mut_ptr(), spec, line, size) })?;
    // SAFETY: it is initialised.
    Ok(unsafe { lock.assume_init() })
}

/// Calls a C function with `spec` and a buffer for an error of one line.
fn with_spec(
    spec: &str,
    call: impl FnOnce(*const c_char, *mut c_char, usize) -> c_int,
) -> Result<(), BenchError> {
    let Ok(spec) = CString::new(spec) else {
        return error(format!("a lock's name has no NUL: {spec:?}"));
    };
    let mut line = [0; 256];
    match call(spec.as_ptr(), line.as_mut_ptr().cast::<c_char>(), line.len()) {
        0 => Ok(()),
        _ => error(CStr::from_bytes_until_nul(&line).unwrap_or_default().to_string_lossy()),
    }
}

impl Drop for Pound {
    fn drop(&mut self) {
        // SAFETY: it is initialised, no other reference exists, and no thread holds it.
        unsafe { pound_lock_destroy(self.0.get()) };
    }
}

// SAFETY: a pound_lock_t provides mutual exclusion.
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

/// `pthread_rwlock_t` of the C library, with its default kind.
pub(crate) struct NativeRw(UnsafeCell<libc::pthread_rwlock_t>);

// SAFETY: a readers-writer lock may be used by several threads.
unsafe impl Sync for NativeRw {}

impl NativeRw {
    pub(crate) fn new() -> NativeRw {
        NativeRw(UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER))
    }
}

// SAFETY: a pthread_rwlock_t excludes writers from all other holders.
unsafe impl Lock for NativeRw {
    fn lock(&self) {
        // SAFETY: it is initialised, and stays where it is while it is borrowed.
        unsafe { libc::pthread_rwlock_wrlock(self.0.get()) };
    }

    unsafe fn unlock(&self) {
        // SAFETY: as above, and the caller holds it.
        unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
    }

    fn lock_shared(&self) {
        // SAFETY: as above.
        unsafe { libc::pthread_rwlock_rdlock(self.0.get()) };
    }

    unsafe fn unlock_shared(&self) {
        // SAFETY: as above, and the caller holds it.
        unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
    }
}

/// `pound_rwlock_t`, in the memory of its owner.
pub(crate) struct PoundRw(UnsafeCell<pound_rwlock_t>);

// SAFETY: the lock is made for many threads.
unsafe impl Sync for PoundRw {}

impl PoundRw {
    /// An unlocked lock. It may be moved until it is used.
    pub(crate) fn new(spec: &str) -> Result<PoundRw, BenchError> {
        // SAFETY: pound_rwlock_init has the contract that `initialised` requires.
        Ok(PoundRw(UnsafeCell::new(unsafe { initialised(spec, pound_rwlock_init)? })))
    }
}

// SAFETY: a pound_rwlock_t excludes writers from all other holders.
unsafe impl Lock for PoundRw {
    fn lock(&self) {
        // SAFETY: it is initialised, and stays where it is while it is borrowed.
        unsafe { pound_rwlock_wrlock(self.0.get()) };
    }

    unsafe fn unlock(&self) {
        // SAFETY: as above, and the caller holds it.
        unsafe { pound_rwlock_wrunlock(self.0.get()) };
    }

    fn lock_shared(&self) {
        // SAFETY: as above; no thread of a benchmark is a reader twice.
        unsafe { pound_rwlock_rdlock(self.0.get()) };
    }

    unsafe fn unlock_shared(&self) {
        // SAFETY: as above, and the caller is a reader.
        unsafe { pound_rwlock_rdunlock(self.0.get()) };
    }
}

/// Checks that `spec` names a readers-writer lock and its settings.
pub fn check_rwlock(spec: &str) -> Result<(), BenchError> {
    // SAFETY: with_spec() passes a C string and a buffer of the given size.
    with_spec(spec, |spec, line, size| unsafe { pound_rwlock_check(spec, line, size) })
}

/// The names of the readers-writer locks.
pub fn rwlocks() -> impl Iterator<Item = &'static str> {
    (0..).map_while(|index| {
        // SAFETY: any index is valid; the result is null, or valid until this thread's next call
        let info = unsafe { pound_rwlock_info(index).as_ref() }?;
        // SAFETY: a name is a literal of the C library.
        Some(unsafe { CStr::from_ptr(info.name) }.to_str().expect("locks.def is UTF-8"))
    })
}
