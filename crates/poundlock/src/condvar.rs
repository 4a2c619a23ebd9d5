//! The condition variable of `poundlock.h`, for the guards of Rust's locks.

use crate::{AbortOnUnwinding, AnyLockGuard, any, monotonic_in, until};
use poundlock_sys as sys;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::fmt;
use std::ops::DerefMut;
use std::ptr::null;
use std::time::{Duration, Instant};

/// Lets threads sleep until another thread has changed the data of a lock. Waiters are notified in
/// the order of arrival.
///
/// It waits with the guard of a [`crate::Mutex`], an [`crate::AnyLock`], the writer of an
/// [`crate::RwLock`], or any other mutex or readers-writer lock of `lock_api`. All threads that
/// wait at the same time must use the same lock.
///
/// A wait ends by a notification or at its deadline, never without a reason. The condition must be
/// checked all the same: another thread may have acquired the lock after the notification. There
/// is no poisoning. After `fork`, the condition variable has no waiters in the child. 16 bytes.
///
/// ```
/// use poundlock::{Condvar, Mutex};
///
/// let (ready, changed) = (Mutex::new(false), Condvar::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *ready.lock() = true;
///         changed.notify_one();
///     });
///     let mut ready = ready.lock();
///     changed.wait_while(&mut ready, |ready| !*ready);
///     assert!(*ready);
/// });
/// ```
pub struct Condvar {
    raw: UnsafeCell<sys::pound_cond_t>,
}

// SAFETY: all functions of the C library may be called by any thread.
unsafe impl Send for Condvar {}
// SAFETY: as above, at the same time.
unsafe impl Sync for Condvar {}

/// Why a timed wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// For crates that wait in a loop of their own.
    #[doc(hidden)]
    pub fn new(timed_out: bool) -> WaitTimeoutResult {
        WaitTimeoutResult(timed_out)
    }

    /// Whether the deadline passed before a notification.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

/// A guard that a [`Condvar`] can wait with.
pub trait WaitGuard: DerefMut + sealed::Relock {}

impl<G: DerefMut + sealed::Relock> WaitGuard for G {}

pub(crate) mod sealed {
    /// A guard whose lock can be released and acquired again.
    pub trait Relock {
        /// The lock.
        fn lock(&self) -> *const ();
        /// # Safety
        /// `lock` is the lock of a guard of this type, whose data is not accessed until
        /// [`Relock::acquire`].
        unsafe fn release(lock: *const ());
        /// # Safety
        /// [`Relock::release`] was called, once.
        unsafe fn acquire(lock: *const ());
    }
}

/// # Safety
/// As of [`sealed::Relock::release`].
unsafe extern "C" fn release<G: sealed::Relock>(lock: *mut c_void) {
    // A lock that panicked would leave the waiter in the list.
    let no_unwinding = AbortOnUnwinding;
    // SAFETY: as the caller promises.
    unsafe { G::release(lock.cast_const().cast()) };
    std::mem::forget(no_unwinding);
}

/// # Safety
/// As of [`sealed::Relock::acquire`].
unsafe extern "C" fn acquire<G: sealed::Relock>(lock: *mut c_void) {
    // A lock that panicked would leave the guard without the lock.
    let no_unwinding = AbortOnUnwinding;
    // SAFETY: as the caller promises.
    unsafe { G::acquire(lock.cast_const().cast()) };
    std::mem::forget(no_unwinding);
}

impl Condvar {
    /// Creates a condition variable without waiters.
    pub const fn new() -> Condvar {
        Condvar { raw: UnsafeCell::new(sys::POUND_COND_INIT) }
    }

    /// Notifies the first waiter. Returns whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        // SAFETY: the condition variable is valid while it is borrowed.
        unsafe { sys::pound_cond_signal(self.raw.get()) }
    }

    /// Notifies all waiters. Returns their number.
    #[inline]
    pub fn notify_all(&self) -> usize {
        // SAFETY: as above.
        unsafe { sys::pound_cond_broadcast(self.raw.get()) }
    }

    /// Releases the guard's lock, waits for a notification, and acquires the lock again.
    ///
    /// # Panics
    /// If other threads wait with another lock.
    pub fn wait<G: WaitGuard>(&self, guard: &mut G) {
        self.wait_until_clock(guard, None);
    }

    /// As [`Condvar::wait`], but also ends at `deadline`.
    pub fn wait_until<G: WaitGuard>(&self, guard: &mut G, deadline: Instant) -> WaitTimeoutResult {
        self.wait_for(guard, until(deadline))
    }

    /// As [`Condvar::wait`], but also ends after `timeout`.
    pub fn wait_for<G: WaitGuard>(&self, guard: &mut G, timeout: Duration) -> WaitTimeoutResult {
        self.wait_until_clock(guard, monotonic_in(timeout).as_ref())
    }

    /// Waits while `condition` holds.
    pub fn wait_while<G: WaitGuard>(
        &self,
        guard: &mut G,
        condition: impl FnMut(&mut G::Target) -> bool,
    ) {
        self.wait_while_until_clock(guard, condition, None);
    }

    /// Waits while `condition` holds, until `deadline`. Timed out means that it still holds.
    pub fn wait_while_until<G: WaitGuard>(
        &self,
        guard: &mut G,
        condition: impl FnMut(&mut G::Target) -> bool,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.wait_while_for(guard, condition, until(deadline))
    }

    /// Waits while `condition` holds, for up to `timeout`. Timed out means that it still holds.
    pub fn wait_while_for<G: WaitGuard>(
        &self,
        guard: &mut G,
        condition: impl FnMut(&mut G::Target) -> bool,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_while_until_clock(guard, condition, monotonic_in(timeout).as_ref())
    }

    fn wait_while_until_clock<G: WaitGuard>(
        &self,
        guard: &mut G,
        mut condition: impl FnMut(&mut G::Target) -> bool,
        deadline: Option<&libc::timespec>,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult(false);
        while !result.timed_out() && condition(guard) {
            result = self.wait_until_clock(guard, deadline);
        }
        WaitTimeoutResult(result.timed_out() && condition(guard))
    }

    fn wait_until_clock<G: WaitGuard>(
        &self,
        guard: &mut G,
        deadline: Option<&libc::timespec>,
    ) -> WaitTimeoutResult {
        let lockable = sys::pound_lockable { lock: Some(acquire::<G>), unlock: Some(release::<G>) };
        let deadline = deadline.map_or(null(), |deadline| deadline as *const libc::timespec);
        // SAFETY: the guard holds the lock, and is borrowed mutably until it is acquired again. The
        // deadline is null or valid.
        let result = unsafe {
            sys::pound_cond_wait_only(
                self.raw.get(),
                guard.lock().cast_mut().cast(),
                &lockable,
                libc::CLOCK_MONOTONIC,
                deadline,
            )
        };
        assert!(
            result != libc::EBUSY,
            "attempted to use a condition variable with more than one mutex"
        );
        WaitTimeoutResult(result == libc::ETIMEDOUT)
    }
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}

impl<R: lock_api::RawMutex, T: ?Sized> sealed::Relock for lock_api::MutexGuard<'_, R, T> {
    fn lock(&self) -> *const () {
        // SAFETY: only its address is used.
        let raw: *const R = unsafe { lock_api::MutexGuard::mutex(self).raw() };
        raw.cast()
    }

    unsafe fn release(lock: *const ()) {
        // SAFETY: the guard borrows and holds the lock, and the caller does not use the data.
        unsafe { (*lock.cast::<R>()).unlock() }
    }

    unsafe fn acquire(lock: *const ()) {
        // SAFETY: the guard borrows the lock, and holds it from here on.
        unsafe { (*lock.cast::<R>()).lock() }
    }
}

impl<R: lock_api::RawRwLock, T: ?Sized> sealed::Relock for lock_api::RwLockWriteGuard<'_, R, T> {
    fn lock(&self) -> *const () {
        // SAFETY: only its address is used.
        let raw: *const R = unsafe { lock_api::RwLockWriteGuard::rwlock(self).raw() };
        raw.cast()
    }

    unsafe fn release(lock: *const ()) {
        // SAFETY: the guard borrows the lock and is its writer, and the caller does not use the
        // data.
        unsafe { (*lock.cast::<R>()).unlock_exclusive() }
    }

    unsafe fn acquire(lock: *const ()) {
        // SAFETY: the guard borrows the lock, and is its writer from here on.
        unsafe { (*lock.cast::<R>()).lock_exclusive() }
    }
}

impl<T: ?Sized> sealed::Relock for AnyLockGuard<'_, T> {
    fn lock(&self) -> *const () {
        self.raw().cast()
    }

    unsafe fn release(lock: *const ()) {
        // SAFETY: the guard borrows and holds the lock, and the caller does not use the data.
        unsafe { any::release(lock.cast_mut().cast()) }
    }

    unsafe fn acquire(lock: *const ()) {
        // SAFETY: the guard borrows the lock, and holds it from here on.
        unsafe { any::acquire(lock.cast_mut().cast()) }
    }
}
