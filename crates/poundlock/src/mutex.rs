//! `pound_mutex_t` behind `lock_api`.

use crate::checks::{self, ALONE};
use crate::{GuardMarker, RawThreadId, monotonic_in, until};
use poundlock_sys::{
    POUND_MUTEX_INIT, pound_mutex_is_locked, pound_mutex_lock, pound_mutex_t,
    pound_mutex_timedlock, pound_mutex_trylock, pound_mutex_unlock, pound_mutex_unlock_fair,
};
use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

/// The blocking, NUMA-aware mutex without data: 32 bytes, without allocation.
///
/// Waiters spin briefly and then sleep. Newcomers may overtake the queue until its head has waited
/// for long; then the lock goes to the head. `MutexGuard::unlock_fair` and `MutexGuard::bump` leave
/// the lock to the first waiter at once.
pub struct RawMutex(UnsafeCell<pound_mutex_t>);

/// A `T` protected by a [`RawMutex`]. [`lock_api::Mutex`] has the methods.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Releases a [`Mutex`] when it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A guard of a [`Mutex`] for a part of its data.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A `T` protected by a [`RawMutex`] that its holder may acquire again.
/// [`lock_api::ReentrantMutex`] has the methods.
///
/// ```
/// let count = poundlock::ReentrantMutex::new(std::cell::Cell::new(0));
/// let outer = count.lock();
/// count.lock().set(1);
/// assert_eq!(outer.get(), 1);
/// ```
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;
/// Releases one acquisition of a [`ReentrantMutex`] when it is dropped.
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;
/// A guard of a [`ReentrantMutex`] for a part of its data.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

// SAFETY: the C mutex serves any number of threads, and has no state that belongs to one of them.
unsafe impl Sync for RawMutex {}
// SAFETY: as above. Only its waiters are pointed to, and a moved mutex has none: waiting borrows
// it.
unsafe impl Send for RawMutex {}

impl RawMutex {
    #[allow(clippy::declare_interior_mutable_const)] // every use creates a mutex
    pub(crate) const UNLOCKED: RawMutex = RawMutex(UnsafeCell::new(POUND_MUTEX_INIT));

    #[inline]
    pub(crate) fn acquire(&self) {
        checks::waits(self.0.get(), ALONE);
        // SAFETY: UNLOCKED is a valid mutex, and the borrow fixes its address during the call.
        unsafe { pound_mutex_lock(self.0.get()) }
        checks::tried(self.0.get(), ALONE, true);
    }

    #[inline]
    pub(crate) fn try_acquire(&self) -> bool {
        // SAFETY: as in acquire.
        let acquired = unsafe { pound_mutex_trylock(self.0.get()) };
        checks::tried(self.0.get(), ALONE, acquired)
    }

    pub(crate) fn try_acquire_for(&self, timeout: Duration) -> bool {
        let Some(deadline) = monotonic_in(timeout) else {
            self.acquire();
            return true;
        };
        // SAFETY: as in acquire; the deadline is a valid timespec.
        let error =
            unsafe { pound_mutex_timedlock(self.0.get(), libc::CLOCK_MONOTONIC, &deadline) };
        checks::tried(self.0.get(), ALONE, error == 0)
    }

    /// # Safety
    /// The mutex is held, and the holder no longer uses it.
    #[inline]
    pub(crate) unsafe fn release(&self) {
        checks::releases(self.0.get(), ALONE);
        // SAFETY: as in acquire; as the caller promises.
        unsafe { pound_mutex_unlock(self.0.get()) }
    }

    /// # Safety
    /// As of release.
    pub(crate) unsafe fn release_fairly(&self) {
        checks::releases(self.0.get(), ALONE);
        // SAFETY: as in acquire; as the caller promises.
        unsafe { pound_mutex_unlock_fair(self.0.get()) }
    }

    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        // SAFETY: as in acquire.
        unsafe { pound_mutex_is_locked(self.0.get()) }
    }
}

#[cfg(feature = "debug")]
impl Drop for RawMutex {
    fn drop(&mut self) {
        checks::drops(self.0.get());
    }
}

// SAFETY: pound_mutex_t provides mutual exclusion with acquire and release ordering. Any thread may
// unlock it, so guards may be sent. A held mutex may be moved or dropped: its word is the only
// state, since a holder has no node and without borrows there are no waiters.
unsafe impl lock_api::RawMutex for RawMutex {
    // Required by lock_api: every use creates a mutex.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawMutex = RawMutex::UNLOCKED;
    type GuardMarker = GuardMarker;

    #[inline]
    fn lock(&self) {
        self.acquire();
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.try_acquire()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.release() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.is_held()
    }
}

// SAFETY: as RawMutex: a fair release unlocks as well.
unsafe impl lock_api::RawMutexFair for RawMutex {
    unsafe fn unlock_fair(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.release_fairly() }
    }
}

// SAFETY: a timed lock that succeeds is equivalent to lock; one that times out leaves the mutex
// unlocked by this thread.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.try_acquire_for(timeout)
    }

    fn try_lock_until(&self, deadline: Instant) -> bool {
        self.try_acquire_for(until(deadline))
    }
}
