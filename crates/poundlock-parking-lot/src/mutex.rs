//! `Mutex` and `ReentrantMutex`: `poundlock::RawMutex`.

use crate::{GuardMarker, RawThreadId};
use std::time::{Duration, Instant};

/// Poundlock's default mutex without data.
pub struct RawMutex(poundlock::RawMutex);

/// A `T` protected by a [`RawMutex`].
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Releases a [`Mutex`] when it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A guard of a [`Mutex`] for a part of its data.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A `T` protected by a [`RawMutex`] that its holder may acquire again.
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;
/// Releases one acquisition of a [`ReentrantMutex`] when it is dropped.
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;
/// A guard of a [`ReentrantMutex`] for a part of its data.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Creates an unlocked mutex in a constant.
pub const fn const_mutex<T>(data: T) -> Mutex<T> {
    Mutex::new(data)
}

/// Creates an unlocked reentrant mutex in a constant.
pub const fn const_reentrant_mutex<T>(data: T) -> ReentrantMutex<T> {
    ReentrantMutex::new(data)
}

// SAFETY: as poundlock::RawMutex, whose guards may be sent.
unsafe impl lock_api::RawMutex for RawMutex {
    // Required by lock_api: every use creates a mutex.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawMutex = RawMutex(poundlock::RawMutex::INIT);
    type GuardMarker = GuardMarker;

    #[inline]
    fn lock(&self) {
        self.0.lock();
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.0.unlock() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as poundlock::RawMutex.
unsafe impl lock_api::RawMutexFair for RawMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.0.unlock_fair() }
    }
}

// SAFETY: as poundlock::RawMutex.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.0.try_lock_for(timeout)
    }

    fn try_lock_until(&self, deadline: Instant) -> bool {
        self.0.try_lock_until(deadline)
    }
}
