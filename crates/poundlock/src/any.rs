//! `pound_lock_t`: a lock chosen by name.

use crate::{monotonic_in, until};
use poundlock_sys::{
    pound_lock_check, pound_lock_destroy, pound_lock_init, pound_lock_lock, pound_lock_t, pound_lock_timedlock,
    pound_lock_trylock, pound_lock_unlock,
};
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

/// A spec that names no lock, or a setting that its lock does not have. Displays as one line that names what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub(crate) String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

/// Protects a `T` by the lock that a spec `NAME[,KEY=VALUE...]` names, such as `mcs,wait=spin`.
///
/// Settings, but for `wait`, are shared by all locks of that name in the process: the keys that the spec names are set for all
/// of them.
///
/// ```
/// let lock = poundlock::AnyLock::new("ticket", vec![1])?;
/// lock.lock().push(2);
/// assert_eq!(*lock.lock(), [1, 2]);
/// # Ok::<(), poundlock::SpecError>(())
/// ```
pub struct AnyLock<T: ?Sized> {
    raw: Raw,
    data: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time reach the data, which must therefore be allowed to change threads.
unsafe impl<T: ?Sized + Send> Sync for AnyLock<T> {}

/// A lock that stays where it is, whatever happens to its owner: a holder's node may point to it, and a guard that was
/// forgotten leaves it held.
struct Raw(Box<UnsafeCell<pound_lock_t>>);

// SAFETY: the C lock is made for many threads at once, and any thread may unlock it.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

/// Calls a C function with `spec` and room for the one line that says what is wrong with it.
pub(crate) fn with_spec(
    spec: &str,
    call: impl FnOnce(*const c_char, *mut c_char, usize) -> c_int,
) -> Result<(), SpecError> {
    let spec = CString::new(spec).map_err(|_| SpecError(format!("a lock's name has no NUL: {spec:?}")))?;
    let mut line = [0; 256];
    if call(spec.as_ptr(), line.as_mut_ptr().cast::<c_char>(), line.len()) == 0 {
        return Ok(());
    }
    let line = CStr::from_bytes_until_nul(&line).unwrap_or_default();
    Err(SpecError(line.to_string_lossy().into_owned()))
}

/// An unlocked lock as `spec` says.
fn init(spec: &str) -> Result<Box<UnsafeCell<pound_lock_t>>, SpecError> {
    let mut lock = Box::new(MaybeUninit::<UnsafeCell<pound_lock_t>>::uninit());
    // SAFETY: the lock is there to be written to, and so is what with_spec() gives.
    with_spec(spec, |spec, line, size| unsafe { pound_lock_init(lock.as_mut_ptr().cast(), spec, line, size) })?;
    // SAFETY: pound_lock_init succeeded.
    Ok(unsafe { lock.assume_init() })
}

impl Raw {
    fn get(&self) -> *mut pound_lock_t {
        self.0.get()
    }
}

impl Drop for Raw {
    /// Takes the lock back from a guard that was forgotten, so that no node points to memory that is freed.
    fn drop(&mut self) {
        // SAFETY: nobody else can reach the lock. If it is not free, its guard was forgotten, and the ownership with it.
        unsafe {
            let _ = pound_lock_trylock(self.get());
            pound_lock_unlock(self.get());
            pound_lock_destroy(self.get());
        }
    }
}

impl<T> AnyLock<T> {
    /// An unlocked lock as `spec` says.
    pub fn new(spec: &str, data: T) -> Result<AnyLock<T>, SpecError> {
        Ok(AnyLock { raw: Raw(init(spec)?), data: UnsafeCell::new(data) })
    }

    /// The data, without the lock.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> AnyLock<T> {
    /// Takes the lock, waiting for it if need be.
    pub fn lock(&self) -> AnyLockGuard<'_, T> {
        // SAFETY: new() initialised it, and the guard's borrow keeps it where it is until it is unlocked.
        unsafe { pound_lock_lock(self.raw.get()) };
        AnyLockGuard { lock: self, data: PhantomData }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<AnyLockGuard<'_, T>> {
        // SAFETY: as in lock.
        let taken = unsafe { pound_lock_trylock(self.raw.get()) };
        taken.then(|| AnyLockGuard { lock: self, data: PhantomData })
    }

    /// Takes the lock unless that takes longer than `timeout`.
    pub fn try_lock_for(&self, timeout: Duration) -> Option<AnyLockGuard<'_, T>> {
        let Some(deadline) = monotonic_in(timeout) else {
            return Some(self.lock());
        };
        // SAFETY: as in lock; the deadline is a valid timespec.
        let error = unsafe { pound_lock_timedlock(self.raw.get(), libc::CLOCK_MONOTONIC, &deadline) };
        (error == 0).then(|| AnyLockGuard { lock: self, data: PhantomData })
    }

    /// Takes the lock unless `deadline` passes first.
    pub fn try_lock_until(&self, deadline: Instant) -> Option<AnyLockGuard<'_, T>> {
        self.try_lock_for(until(deadline))
    }

    /// The data, which nobody else can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

/// Holds an [`AnyLock`] until it is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct AnyLockGuard<'a, T: ?Sized> {
    lock: &'a AnyLock<T>,
    /// Shared and sent between threads as the data that it gives access to.
    data: PhantomData<&'a mut T>,
}

impl<T: ?Sized> Deref for AnyLockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock, and borrows of the data last no longer than those of the guard.
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
        // SAFETY: the guard holds the lock, and this is the end of it. A guard that was sent to another thread took the
        // ownership with it.
        unsafe { pound_lock_unlock(self.lock.raw.get()) }
    }
}

/// Whether `spec` names a lock and settings that it has. Sets nothing.
pub fn check_spec(spec: &str) -> Result<(), SpecError> {
    // SAFETY: with_spec() gives it what it takes.
    with_spec(spec, |spec, line, size| unsafe { pound_lock_check(spec, line, size) })
}
