//! The same locks behind lock_api 0.5. The types of the crate's root are behind lock_api 0.4.
//!
//! [`crate::Condvar`] waits with the guards of both.
//!
//! ```
//! static COUNT: poundlock::v0_5::Mutex<u64> = poundlock::v0_5::Mutex::new(0);
//!
//! *COUNT.lock() += 1;
//! assert_eq!(*COUNT.lock(), 1);
//! ```

use crate::condvar::sealed::Relock;
use crate::rwlock::raw_by_name;
use crate::{RawMutex, RawRwLock, RawThreadId, SpecError, until};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

pub use ::lock_api_05 as lock_api;

#[cfg(not(feature = "send_guard"))]
type Held = lock_api::GuardNoSend;
#[cfg(feature = "send_guard")]
type Held = lock_api::GuardSend;

/// As [`crate::Mutex`].
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Releases a [`Mutex`] when it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A guard of a [`Mutex`] for a part of its data.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// As [`crate::ReentrantMutex`].
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;
/// Releases one acquisition of a [`ReentrantMutex`] when it is dropped.
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// As [`crate::RwLock`].
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Shared access to the data of an [`RwLock`] until it is dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Exclusive access to the data of an [`RwLock`] until it is dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// As [`crate::rw_lock_by_name`].
pub fn rw_lock_by_name<T>(spec: &str, data: T) -> Result<RwLock<T>, SpecError> {
    Ok(RwLock::from_raw(raw_by_name(spec)?, data))
}

// SAFETY: as for lock_api 0.4. Acquisitions have no state of their own, and do not unwind.
unsafe impl lock_api::RawMutex for RawMutex {
    // Required by lock_api: every use creates a mutex.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawMutex = RawMutex::UNLOCKED;
    type Guard = Held;

    #[inline]
    fn lock(&self) -> Held {
        self.acquire();
        Held::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<Held> {
        self.try_acquire().then(Held::new)
    }

    #[inline]
    unsafe fn unlock(&self, _held: Held) {
        // SAFETY: as the caller promises.
        unsafe { self.release() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.is_held()
    }
}

// SAFETY: as for lock_api 0.4.
unsafe impl lock_api::RawMutexFair for RawMutex {
    unsafe fn unlock_fair(&self, _held: Held) {
        // SAFETY: as the caller promises.
        unsafe { self.release_fairly() }
    }
}

// SAFETY: as for lock_api 0.4.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<Held> {
        self.try_acquire_for(timeout).then(Held::new)
    }

    fn try_lock_until(&self, deadline: Instant) -> Option<Held> {
        self.try_acquire_for(until(deadline)).then(Held::new)
    }
}

// SAFETY: as for lock_api 0.4. A reader too many panics without having acquired the lock.
unsafe impl lock_api::RawRwLock for RawRwLock {
    // Required by lock_api: every use creates a lock.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawRwLock = RawRwLock::UNLOCKED;
    type SharedGuard = Held;
    type ExclusiveGuard = Held;

    fn lock_shared(&self) -> Held {
        self.acquire_shared();
        Held::new()
    }

    fn try_lock_shared(&self) -> Option<Held> {
        self.try_acquire_shared().then(Held::new)
    }

    unsafe fn unlock_shared(&self, _held: Held) {
        // SAFETY: as the caller promises.
        unsafe { self.release_shared() }
    }

    fn lock_exclusive(&self) -> Held {
        self.acquire_exclusive();
        Held::new()
    }

    fn try_lock_exclusive(&self) -> Option<Held> {
        self.try_acquire_exclusive().then(Held::new)
    }

    unsafe fn unlock_exclusive(&self, _held: Held) {
        // SAFETY: as the caller promises.
        unsafe { self.release_exclusive() }
    }

    fn is_locked(&self) -> bool {
        self.is_held()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.is_held_exclusive()
    }
}

// SAFETY: as for lock_api 0.4.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self, _held: Held) {
        // SAFETY: as the caller promises.
        unsafe { self.release_shared_fairly() }
    }

    unsafe fn unlock_exclusive_fair(&self, _held: Held) {
        // SAFETY: as the caller promises.
        unsafe { self.release_exclusive_fairly() }
    }
}

// SAFETY: as for lock_api 0.4.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> Option<Held> {
        self.try_acquire_shared_for(timeout).then(Held::new)
    }

    fn try_lock_shared_until(&self, deadline: Instant) -> Option<Held> {
        self.try_acquire_shared_for(until(deadline)).then(Held::new)
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<Held> {
        self.try_acquire_exclusive_for(timeout).then(Held::new)
    }

    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<Held> {
        self.try_acquire_exclusive_for(until(deadline)).then(Held::new)
    }
}

// SAFETY: as for lock_api 0.4.
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: RawThreadId = RawThreadId;

    fn nonzero_thread_id(&self) -> NonZeroUsize {
        RawThreadId::current()
    }
}

impl<T: ?Sized> Relock for MutexGuard<'_, T> {
    fn lock(&self) -> *const () {
        // SAFETY: only its address is used.
        let raw: *const RawMutex = unsafe { MutexGuard::mutex(self).raw() };
        raw.cast()
    }

    unsafe fn release(lock: *const ()) {
        // SAFETY: the guard borrows and holds the lock, and the caller does not use the data.
        unsafe { (*lock.cast::<RawMutex>()).release() }
    }

    unsafe fn acquire(lock: *const ()) {
        // SAFETY: the guard borrows the lock, and holds it from here on.
        unsafe { (*lock.cast::<RawMutex>()).acquire() }
    }
}

impl<T: ?Sized> Relock for RwLockWriteGuard<'_, T> {
    fn lock(&self) -> *const () {
        // SAFETY: only its address is used.
        let raw: *const RawRwLock = unsafe { RwLockWriteGuard::rwlock(self).raw() };
        raw.cast()
    }

    unsafe fn release(lock: *const ()) {
        // SAFETY: the guard borrows the lock and is its writer, and the caller does not use the
        // data.
        unsafe { (*lock.cast::<RawRwLock>()).release_exclusive() }
    }

    unsafe fn acquire(lock: *const ()) {
        // SAFETY: the guard borrows the lock, and is its writer from here on.
        unsafe { (*lock.cast::<RawRwLock>()).acquire_exclusive() }
    }
}
