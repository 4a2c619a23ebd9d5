//! `pound_mutex_t` behind `lock_api`.

use crate::{monotonic_in, until};
use lock_api::{GuardSend, RawMutexTimed};
use poundlock_sys::{
    POUND_MUTEX_INIT, pound_mutex_is_locked, pound_mutex_lock, pound_mutex_t, pound_mutex_timedlock,
    pound_mutex_trylock, pound_mutex_unlock,
};
use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

/// The blocking, NUMA-aware mutex without its data: 32 bytes, never allocates.
///
/// Waiters spin for a short while and then sleep. Newcomers may pass them until the head of the queue has waited long;
/// the head then comes next.
pub struct RawMutex(UnsafeCell<pound_mutex_t>);

/// Protects a `T`. See [`RawMutex`] for the lock and [`lock_api::Mutex`] for the methods.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Holds a [`Mutex`] until it is dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// Holds a [`Mutex`] and gives access to a part of its data.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

// SAFETY: the C mutex is made to be used by many threads at once, and holds nothing that belongs to one of them.
unsafe impl Sync for RawMutex {}
// SAFETY: as above. Its pointers lead to waiters, and a mutex that is moved has none: waiting borrows it.
unsafe impl Send for RawMutex {}

// SAFETY: pound_mutex_t excludes: between a lock and its unlock no other lock or trylock succeeds, and unlock releases
// what lock acquires. Any thread may unlock, so guards may be sent. A held mutex may be moved or dropped: its word says
// that it is held and nothing points to it, since its holder keeps nothing and it has no waiters while nobody borrows it.
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const)] // lock_api asks for it: every use makes a mutex of its own
    const INIT: RawMutex = RawMutex(UnsafeCell::new(POUND_MUTEX_INIT));
    type Guard = GuardSend;

    #[inline]
    fn lock(&self) -> GuardSend {
        // SAFETY: INIT made it a valid mutex, and the borrow keeps it where it is while anybody waits.
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
        // SAFETY: as in lock; the guard's state shows that the mutex is held.
        unsafe { pound_mutex_unlock(self.0.get()) }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // SAFETY: as in lock.
        unsafe { pound_mutex_is_locked(self.0.get()) }
    }
}

// SAFETY: a timed lock that succeeds has locked, with the orders of lock, and one that gives up has not.
unsafe impl RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<GuardSend> {
        let Some(deadline) = monotonic_in(timeout) else {
            return Some(lock_api::RawMutex::lock(self));
        };
        // SAFETY: as in lock; the deadline is a valid timespec.
        let error = unsafe { pound_mutex_timedlock(self.0.get(), libc::CLOCK_MONOTONIC, &deadline) };
        (error == 0).then(GuardSend::new)
    }

    fn try_lock_until(&self, deadline: Instant) -> Option<GuardSend> {
        self.try_lock_for(until(deadline))
    }
}
