//! A counting semaphore.

use crate::{monotonic_in, until};
use poundlock_sys as sys;
use std::cell::UnsafeCell;
use std::fmt;
use std::time::{Duration, Instant};

/// Counts a resource: acquiring takes one and waits while there is none, releasing gives some
/// back. 8 bytes.
///
/// Waiters are not served in order. A signal handler may call [`Semaphore::release`]. What a thread
/// did before it released is visible to the thread that it lets in.
///
/// ```
/// use poundlock::Semaphore;
///
/// static CONNECTIONS: Semaphore = Semaphore::new(4);
///
/// CONNECTIONS.acquire();
/// assert_eq!(CONNECTIONS.value(), 3);
/// CONNECTIONS.release(1).expect("it was acquired before");
/// ```
pub struct Semaphore {
    raw: UnsafeCell<sys::pound_sem_t>,
}

// SAFETY: all functions of the C library may be called by any thread.
unsafe impl Send for Semaphore {}
// SAFETY: as above, at the same time.
unsafe impl Sync for Semaphore {}

/// A release would have raised the value above [`Semaphore::MAX`], and did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreOverflow;

impl fmt::Display for SemaphoreOverflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the semaphore's value would be too high")
    }
}

impl std::error::Error for SemaphoreOverflow {}

impl Semaphore {
    /// The highest value.
    pub const MAX: u32 = sys::POUND_SEM_MAX;

    /// Creates a semaphore.
    ///
    /// # Panics
    /// If `value` exceeds [`Semaphore::MAX`].
    pub const fn new(value: u32) -> Semaphore {
        assert!(value <= Semaphore::MAX, "the value exceeds Semaphore::MAX");
        let mut raw = sys::POUND_SEM_INIT;
        raw.pound_state = value;
        Semaphore { raw: UnsafeCell::new(raw) }
    }

    /// Takes one, waiting while there is none.
    #[inline]
    pub fn acquire(&self) {
        // SAFETY: the semaphore is valid while it is borrowed.
        unsafe { sys::pound_sem_wait(self.raw.get()) }
    }

    /// Takes one if there is one. Returns whether it did.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        // SAFETY: as above.
        unsafe { sys::pound_sem_trywait(self.raw.get()) }
    }

    /// As [`Semaphore::acquire`], for up to `timeout`. Returns false if it passed first.
    pub fn try_acquire_for(&self, timeout: Duration) -> bool {
        let Some(deadline) = monotonic_in(timeout) else {
            self.acquire();
            return true;
        };
        // SAFETY: as above; the deadline is valid.
        unsafe { sys::pound_sem_timedwait(self.raw.get(), libc::CLOCK_MONOTONIC, &deadline) == 0 }
    }

    /// As [`Semaphore::acquire`], until `deadline`. Returns false if it passed first.
    pub fn try_acquire_until(&self, deadline: Instant) -> bool {
        self.try_acquire_for(until(deadline))
    }

    /// Adds `count`, and wakes as many waiters.
    ///
    /// # Errors
    /// If the value would exceed [`Semaphore::MAX`].
    #[inline]
    pub fn release(&self, count: u32) -> Result<(), SemaphoreOverflow> {
        // SAFETY: the semaphore is valid until it has been released.
        match unsafe { sys::pound_sem_post(self.raw.get(), count) } {
            0 => Ok(()),
            _ => Err(SemaphoreOverflow),
        }
    }

    /// How many there are at this moment.
    #[inline]
    pub fn value(&self) -> u32 {
        // SAFETY: as above.
        unsafe { sys::pound_sem_value(self.raw.get()) }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("value", &self.value()).finish()
    }
}
