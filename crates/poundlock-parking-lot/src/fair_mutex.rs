//! `FairMutex`: the writers of Poundlock's FIFO readers-writer lock, `fair_rw`. A release leaves
//! the lock to the first waiter, since newcomers enter only if nobody waits.

use crate::GuardMarker;
use lock_api::{RawRwLock as _, RawRwLockTimed as _};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A FIFO mutex without data.
pub struct RawFairMutex(OnceLock<poundlock::RwLock<()>>);

/// A `T` protected by a [`RawFairMutex`].
pub type FairMutex<T> = lock_api::Mutex<RawFairMutex, T>;
/// Releases a [`FairMutex`] when it is dropped.
pub type FairMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawFairMutex, T>;
/// A guard of a [`FairMutex`] for a part of its data.
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;

/// Creates an unlocked fair mutex in a constant.
pub const fn const_fair_mutex<T>(data: T) -> FairMutex<T> {
    FairMutex::new(data)
}

impl RawFairMutex {
    /// The lock, which a constant cannot create.
    #[inline]
    fn raw(&self) -> &poundlock::RawRwLock {
        let lock = self.0.get_or_init(|| {
            poundlock::rw_lock_by_name("fair_rw", ()).expect("Poundlock has this lock")
        });
        // SAFETY: there are no guards: all acquisitions are of the raw lock.
        unsafe { lock.raw() }
    }
}

// SAFETY: one writer at a time, with acquire and release ordering. Any thread may release for
// another, so guards may be sent. A holder has no node, so a held mutex may be moved or dropped.
unsafe impl lock_api::RawMutex for RawFairMutex {
    // Required by lock_api: every use creates a mutex.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawFairMutex = RawFairMutex(OnceLock::new());
    type GuardMarker = GuardMarker;

    #[inline]
    fn lock(&self) {
        self.raw().lock_exclusive();
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.raw().try_lock_exclusive()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.raw().unlock_exclusive() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw().is_locked_exclusive()
    }
}

// SAFETY: as RawMutex: every release is fair.
unsafe impl lock_api::RawMutexFair for RawFairMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.raw().unlock_exclusive() }
    }
}

// SAFETY: as poundlock::RawRwLock.
unsafe impl lock_api::RawMutexTimed for RawFairMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.raw().try_lock_exclusive_for(timeout)
    }

    fn try_lock_until(&self, deadline: Instant) -> bool {
        self.raw().try_lock_exclusive_until(deadline)
    }
}
