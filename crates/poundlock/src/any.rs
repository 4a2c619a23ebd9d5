//! `pound_lock_t`: a lock chosen by name at run time.

use crate::checks::{self, ALONE};
use crate::{GuardMarker, monotonic_in, until};
use poundlock_sys::{
    POUND_LOCK_INIT, pound_lock_check, pound_lock_destroy, pound_lock_init, pound_lock_lock,
    pound_lock_t, pound_lock_timedlock, pound_lock_trylock, pound_lock_unlock,
    pound_lock_unlock_fair,
};
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

/// An invalid spec: an unknown lock, or a setting that the lock does not have. Displays as one
/// line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub(crate) String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

/// A `T` protected by the lock of a spec `NAME[,KEY=VALUE...]`, such as `mcs,wait=spin`.
///
/// The settings are the lock's own; keys that the spec does not name have their defaults.
///
/// ```
/// let lock = poundlock::AnyLock::new("shfl_mutex", vec![1])?;
/// lock.lock().push(2);
/// assert_eq!(*lock.lock(), [1, 2]);
/// # Ok::<(), poundlock::SpecError>(())
/// ```
pub struct AnyLock<T: ?Sized> {
    raw: Raw,
    data: UnsafeCell<T>,
}

// SAFETY: one thread at a time accesses the data, so `T: Send` suffices.
unsafe impl<T: ?Sized + Send> Sync for AnyLock<T> {}

/// A lock at a fixed address, even if its owner moves: a holder's node may point to it, and a
/// forgotten guard leaves it held.
struct Raw(Box<UnsafeCell<pound_lock_t>>);

// SAFETY: the C lock serves any number of threads, and any thread may unlock it.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

/// Calls a C function with `spec` and a buffer for its one-line error.
pub(crate) fn with_spec(
    spec: &str,
    call: impl FnOnce(*const c_char, *mut c_char, usize) -> c_int,
) -> Result<(), SpecError> {
    let spec = CString::new(spec)
        .map_err(|_| SpecError(format!("a lock's name cannot contain NUL: {spec:?}")))?;
    let mut line = [0; 256];
    if call(spec.as_ptr(), line.as_mut_ptr().cast::<c_char>(), line.len()) == 0 {
        return Ok(());
    }
    let line = CStr::from_bytes_until_nul(&line).unwrap_or_default();
    Err(SpecError(line.to_string_lossy().into_owned()))
}

/// Creates an unlocked lock from `spec`.
fn init(spec: &str) -> Result<Box<UnsafeCell<pound_lock_t>>, SpecError> {
    let mut lock = Box::new(MaybeUninit::<UnsafeCell<pound_lock_t>>::uninit());
    // SAFETY: the lock and the buffer of with_spec() are writable.
    with_spec(spec, |spec, line, size| unsafe {
        pound_lock_init(lock.as_mut_ptr().cast(), spec, line, size)
    })?;
    // SAFETY: pound_lock_init succeeded; a MaybeUninit is laid out as its content.
    Ok(unsafe { Box::from_raw(Box::into_raw(lock).cast()) })
}

impl Raw {
    fn get(&self) -> *mut pound_lock_t {
        self.0.get()
    }
}

/// # Safety
/// The lock is valid, and its address is fixed until it is unlocked.
pub(crate) unsafe fn acquire(lock: *mut pound_lock_t) {
    checks::waits(lock, ALONE);
    // SAFETY: as the caller promises.
    unsafe { pound_lock_lock(lock) };
    checks::tried(lock, ALONE, true);
}

/// # Safety
/// The lock is held, and the holder no longer uses it.
pub(crate) unsafe fn release(lock: *mut pound_lock_t) {
    checks::releases(lock, ALONE);
    // SAFETY: as the caller promises.
    unsafe { pound_lock_unlock(lock) };
}

impl Drop for Raw {
    /// Releases the lock if a guard was forgotten, so that no node points to freed memory.
    fn drop(&mut self) {
        #[cfg(feature = "debug")]
        checks::drops(self.get());
        // SAFETY: no other thread can access the lock. If it is held, its guard was forgotten, and
        // this thread becomes the owner.
        unsafe {
            let _ = pound_lock_trylock(self.get());
            pound_lock_unlock(self.get());
            pound_lock_destroy(self.get());
        }
    }
}

impl<T> AnyLock<T> {
    /// Creates an unlocked lock from `spec`.
    pub fn new(spec: &str, data: T) -> Result<AnyLock<T>, SpecError> {
        Ok(AnyLock { raw: Raw(init(spec)?), data: UnsafeCell::new(data) })
    }

    /// Consumes the lock and returns the data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: Default> Default for AnyLock<T> {
    /// The default lock, unlocked, with the default value.
    fn default() -> AnyLock<T> {
        AnyLock::from(T::default())
    }
}

impl<T> From<T> for AnyLock<T> {
    /// The default lock, unlocked.
    fn from(data: T) -> AnyLock<T> {
        let raw = Raw(Box::new(UnsafeCell::new(POUND_LOCK_INIT)));
        AnyLock { raw, data: UnsafeCell::new(data) }
    }
}

impl<T: ?Sized> AnyLock<T> {
    pub(crate) fn raw(&self) -> *const pound_lock_t {
        self.raw.get()
    }

    /// Acquires the lock, waiting if it is held.
    pub fn lock(&self) -> AnyLockGuard<'_, T> {
        // SAFETY: new() initialised the lock, and its address is fixed until it is unlocked.
        unsafe { acquire(self.raw.get()) };
        AnyLockGuard { lock: self, data: PhantomData }
    }

    /// Acquires the lock if it is free.
    pub fn try_lock(&self) -> Option<AnyLockGuard<'_, T>> {
        // SAFETY: as in lock.
        let taken = unsafe { pound_lock_trylock(self.raw.get()) };
        checks::tried(self.raw.get(), ALONE, taken)
            .then(|| AnyLockGuard { lock: self, data: PhantomData })
    }

    /// Acquires the lock, or returns None after `timeout`.
    pub fn try_lock_for(&self, timeout: Duration) -> Option<AnyLockGuard<'_, T>> {
        let Some(deadline) = monotonic_in(timeout) else {
            return Some(self.lock());
        };
        // SAFETY: as in lock; the deadline is a valid timespec.
        let error =
            unsafe { pound_lock_timedlock(self.raw.get(), libc::CLOCK_MONOTONIC, &deadline) };
        checks::tried(self.raw.get(), ALONE, error == 0)
            .then(|| AnyLockGuard { lock: self, data: PhantomData })
    }

    /// Acquires the lock, or returns None at `deadline`.
    pub fn try_lock_until(&self, deadline: Instant) -> Option<AnyLockGuard<'_, T>> {
        self.try_lock_for(until(deadline))
    }

    /// Returns the data without locking: the exclusive borrow proves that there is no guard.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

/// Releases an [`AnyLock`] when it is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct AnyLockGuard<'a, T: ?Sized> {
    lock: &'a AnyLock<T>,
    /// Makes the guard `Sync` as `&mut T` is, and `Send` with the feature `send_guard`.
    data: PhantomData<(&'a mut T, GuardMarker)>,
}

impl<T: ?Sized> AnyLockGuard<'_, T> {
    pub(crate) fn raw(&self) -> *mut pound_lock_t {
        self.lock.raw.get()
    }

    /// Drops the guard. A `shfl_mutex`, the default, is left to its first waiter, if there is one.
    /// Other locks keep their own order.
    ///
    /// ```
    /// let lock = poundlock::AnyLock::new("shfl_mutex", 1)?;
    /// poundlock::AnyLockGuard::unlock_fair(lock.lock());
    /// assert!(lock.try_lock().is_some());
    /// # Ok::<(), poundlock::SpecError>(())
    /// ```
    pub fn unlock_fair(guard: Self) {
        let guard = ManuallyDrop::new(guard);
        checks::releases(guard.raw(), ALONE);
        // SAFETY: as in drop, which is not called.
        unsafe { pound_lock_unlock_fair(guard.raw()) }
    }
}

impl<T: ?Sized> Deref for AnyLockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock, and the borrow of the data cannot outlive that of the
        // guard.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for AnyLockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in deref, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized> Drop for AnyLockGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the guard holds the lock. Any thread may unlock it, so the guard may have been
        // sent.
        unsafe { release(self.raw()) }
    }
}

/// Checks that `spec` names a lock and settings that it has. Changes no setting.
pub fn check_spec(spec: &str) -> Result<(), SpecError> {
    // SAFETY: with_spec() passes a C string and a buffer with its size.
    with_spec(spec, |spec, line, size| unsafe { pound_lock_check(spec, line, size) })
}
