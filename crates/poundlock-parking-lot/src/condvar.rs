//! `poundlock::Condvar` with the signatures of parking_lot.

use crate::MutexGuard;
use poundlock::WaitTimeoutResult;
use std::fmt;
use std::time::{Duration, Instant};

/// As `poundlock::Condvar`: notifications return how many waiters they reached, and no wait ends
/// without a reason.
#[derive(Default)]
pub struct Condvar(poundlock::Condvar);

impl Condvar {
    /// Creates a condition variable without waiters.
    #[inline]
    pub const fn new() -> Condvar {
        Condvar(poundlock::Condvar::new())
    }

    /// Notifies the first waiter. Returns whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    /// Notifies all waiters. Returns their number.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.0.notify_all()
    }

    /// Releases the mutex, waits for a notification, and acquires the mutex again.
    ///
    /// # Panics
    /// If other threads wait with another mutex.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.0.wait(guard);
    }

    /// As [`Condvar::wait`], but also ends at `deadline`.
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.0.wait_until(guard, deadline)
    }

    /// As [`Condvar::wait`], but also ends after `timeout`.
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.0.wait_for(guard, timeout)
    }

    /// Waits while `condition` holds.
    pub fn wait_while<T, F>(&self, guard: &mut MutexGuard<'_, T>, condition: F)
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        self.0.wait_while(guard, condition);
    }

    /// Waits while `condition` holds, until `deadline`. As in parking_lot, `condition` is not
    /// checked again after a time-out.
    pub fn wait_while_until<T, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: F,
        deadline: Instant,
    ) -> WaitTimeoutResult
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        let mut result = WaitTimeoutResult::new(false);
        while !result.timed_out() && condition(guard) {
            result = self.wait_until(guard, deadline);
        }
        result
    }

    /// Waits while `condition` holds, for up to `timeout`; as [`Condvar::wait_while_until`].
    pub fn wait_while_for<T: ?Sized, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Duration,
    ) -> WaitTimeoutResult
    where
        F: FnMut(&mut T) -> bool,
    {
        match Instant::now().checked_add(timeout) {
            Some(deadline) => self.wait_while_until(guard, condition, deadline),
            None => {
                self.wait_while(guard, condition);
                WaitTimeoutResult::new(false)
            }
        }
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
