//! `pound_mutex_t` behind `lock_api`.

use crate::{monotonic_in, until};
use lock_api::{GuardSend, RawMutexTimed};
use poundlock_sys::{
    POUND_MUTEX_INIT, pound_mutex_is_locked, pound_mutex_lock, pound_mutex_t,
    pound_mutex_timedlock, pound_mutex_trylock, pound_mutex_unlock,
};
use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

/// The blocking, NUMA-aware mutex without data: 32 bytes, without allocation.
///
/// Waiters spin briefly and then sleep. Newcomers may overtake the queue until its head has waited
/// for long; then the lock goes to the head.
pub struct RawMutex(UnsafeCell<pound_mutex_t>);

/// A `T` protected by a [`RawMutex`]. [`lock_api::Mutex`] has the methods.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Releases a [`Mutex`] when it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A guard of a [`Mutex`] for a part of its data.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

// SAFETY: the C mutex serves any number of threads, and has no state that belongs to one of them.
unsafe impl Sync for RawMutex {}
// SAFETY: as above. Only its waiters are pointed to, and a moved mutex has none: waiting borrows
// it.
unsafe impl Send for RawMutex {}

// SAFETY: pound_mutex_t provides mutual exclusion with acquire and release ordering. Any thread may
// unlock it, so guards may be sent. A held mutex may be moved or dropped: its word is the only
// state, since a holder has no node and without borrows there are no waiters.
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const)] // required by lock_api: every use creates a mutex
    const INIT: RawMutex = RawMutex(UnsafeCell::new(POUND_MUTEX_INIT));
    type Guard = GuardSend;

    #[inline]
    fn lock(&self) -> GuardSend {
        // SAFETY: INIT is a valid mutex, and the borrow fixes its address during the call.
        unsafe { pound_mutex_lock(self.0.get()) }
        GuardSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardSend> {
        // SAFETY: as in lock.
        unsafe { pound_mutex_trylock(self.0.get()) }.then(GuardSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardSend) {
        // SAFETY: as in lock; the guard proves that the mutex is held.
        unsafe { pound_mutex_unlock(self.0.get()) }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // SAFETY: as in lock.
        unsafe { pound_mutex_is_locked(self.0.get()) }
    }
}

// SAFETY: a timed lock that succeeds is equivalent to lock; one that times out leaves the mutex
// unlocked by this thread.
unsafe impl RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<GuardSend> {
        let Some(deadline) = monotonic_in(timeout) else {
            return Some(lock_api::RawMutex::lock(self));
        };
        // SAFETY: as in lock; the deadline is a valid timespec.
        let error =
            unsafe { pound_mutex_timedlock(self.0.get(), libc::CLOCK_MONOTONIC, &deadline) };
        (error == 0).then(GuardSend::new)
    }

    fn try_lock_until(&self, deadline: Instant) -> Option<GuardSend> {
        self.try_lock_for(until(deadline))
    }
}
