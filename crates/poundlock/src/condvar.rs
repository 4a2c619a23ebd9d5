//! A condition variable: a queue of waiters, each of which sleeps on a word of its own.
//!
//! ```text
//! WAITING ──notify──▶ NOTIFIED ──the turn is passed on──▶ TURN
//!     WAITING ──deadline──▶ removed
//! ```
//!
//! `notify_all` wakes the first waiter only. Each waiter that has acquired the lock again wakes the
//! next, so that the others do not compete for the lock that one of them holds.

use crate::{AbortOnUnwinding, AnyLockGuard, Mutex, futex, monotonic_in, until};
use std::cell::Cell;
use std::fmt;
use std::ops::DerefMut;
use std::ptr::{addr_of, null};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Lets threads sleep until another thread has changed the data of a lock. Waiters are notified in
/// the order of arrival.
///
/// It waits with the guard of a [`Mutex`], an [`crate::AnyLock`], the writer of an
/// [`crate::RwLock`], or any other mutex or readers-writer lock of `lock_api`. All threads that
/// wait at the same time must use the same lock.
///
/// A wait ends by a notification or at its deadline, never without a reason. The condition must be
/// checked all the same: another thread may have acquired the lock after the notification. There
/// is no poisoning. After `fork`, the child must not use a condition variable that had waiters.
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
    queue: Mutex<Queue>,
    /// Whether the queue has waiters, to notify nobody without locking it. A notifier must not miss
    /// a waiter that released the lock before the notifier acquired it; that lock orders the two.
    waiters: AtomicBool,
}

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
        /// The address of the lock.
        fn lock(&self) -> *const ();
        /// # Safety
        /// The data is not accessed until [`Relock::acquire`].
        unsafe fn release(&mut self);
        /// # Safety
        /// [`Relock::release`] was called, once.
        unsafe fn acquire(&mut self);
    }
}

/// A thread that waits, on its stack.
struct Waiter {
    state: AtomicU32,
    /// In the queue, its neighbours, accessed under the queue's lock. In the chain of a
    /// `notify_all`, `next` is the one that the waiter wakes.
    previous: Cell<*const Waiter>,
    next: Cell<*const Waiter>,
}

/// In the queue.
const WAITING: u32 = 0;
/// Removed from the queue by a notification; must not return before its turn.
const NOTIFIED: u32 = 1;
/// May acquire the lock again. From here on, only the waiter's own thread accesses the waiter.
const TURN: u32 = 2;

struct Queue {
    head: *const Waiter,
    tail: *const Waiter,
    /// The address of the lock that all waiters use.
    lock: *const (),
}

// SAFETY: the pointers are dereferenced only under the queue's lock, and the waiters do not leave
// before they are removed.
unsafe impl Send for Queue {}

impl Waiter {
    fn new() -> Waiter {
        Waiter {
            state: AtomicU32::new(WAITING),
            previous: Cell::new(null()),
            next: Cell::new(null()),
        }
    }

    /// Sleeps until this waiter's turn. Returns false if the deadline passes first.
    fn sleep(&self, deadline: Option<&libc::timespec>) -> bool {
        loop {
            // Acquire: pairs with the release in `wake`; `next` of a notified waiter.
            let seen = self.state.load(Ordering::Acquire);
            if seen == TURN {
                return true;
            }
            if !futex::sleep(&self.state, seen, deadline) {
                return self.state.load(Ordering::Acquire) == TURN;
            }
        }
    }
}

/// Gives its turn to a notified waiter, if there is one.
///
/// # Safety
/// `waiter` is null, or notified and without its turn.
unsafe fn wake(waiter: *const Waiter) {
    if waiter.is_null() {
        return;
    }
    // SAFETY: the waiter does not return before the store.
    let state = unsafe { addr_of!((*waiter).state) };
    // SAFETY: as above. Release: the waiter reads `next`.
    unsafe { (*state).store(TURN, Ordering::Release) };
    futex::wake(state, 1);
}

impl Queue {
    /// Appends a waiter. Returns false if the others wait with another lock.
    fn push(&mut self, waiter: &Waiter, lock: *const ()) -> bool {
        if self.head.is_null() {
            self.lock = lock;
            self.head = waiter;
        } else if self.lock != lock {
            return false;
        } else {
            waiter.previous.set(self.tail);
            // SAFETY: the tail is in the queue, whose lock the caller holds.
            unsafe { (*self.tail).next.set(waiter) };
        }
        self.tail = waiter;
        true
    }

    /// Removes a waiter that is not notified. Returns whether it was one.
    fn remove(&mut self, waiter: &Waiter) -> bool {
        // Relaxed: written under the queue's lock, except for TURN, which is as good as NOTIFIED.
        if waiter.state.load(Ordering::Relaxed) != WAITING {
            return false;
        }
        let (previous, next) = (waiter.previous.get(), waiter.next.get());
        // SAFETY: the neighbours are null or in the queue, whose lock the caller holds.
        match unsafe { previous.as_ref() } {
            None => self.head = next,
            Some(previous) => previous.next.set(next),
        }
        // SAFETY: as above.
        match unsafe { next.as_ref() } {
            None => self.tail = previous,
            Some(next) => next.previous.set(previous),
        }
        true
    }

    /// Removes and notifies up to `count` waiters. Returns the first, which leads to the others,
    /// and their number.
    fn notify(&mut self, count: usize) -> (*const Waiter, usize) {
        let (first, mut last, mut notified) = (self.head, null::<Waiter>(), 0);
        while notified < count && !self.head.is_null() {
            // SAFETY: the head is in the queue, whose lock the caller holds.
            let waiter = unsafe { &*self.head };
            // Relaxed: the waiter looks at it under the queue's lock, and sleeps until its turn.
            waiter.state.store(NOTIFIED, Ordering::Relaxed);
            last = self.head;
            self.head = waiter.next.get();
            notified += 1;
        }
        // SAFETY: as above; the last one notified does not return before its turn.
        if let Some(last) = unsafe { last.as_ref() } {
            last.next.set(null());
        }
        // SAFETY: the new head is null or in the queue.
        match unsafe { self.head.as_ref() } {
            None => self.tail = null(),
            Some(head) => head.previous.set(null()),
        }
        (first, notified)
    }
}

impl Condvar {
    /// Creates a condition variable without waiters.
    pub const fn new() -> Condvar {
        let queue = Queue { head: null(), tail: null(), lock: null() };
        Condvar { queue: Mutex::new(queue), waiters: AtomicBool::new(false) }
    }

    /// Notifies the first waiter. Returns whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.notify(1) != 0
    }

    /// Notifies all waiters. Returns their number.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.notify(usize::MAX)
    }

    #[inline]
    fn notify(&self, count: usize) -> usize {
        // Relaxed: see the field.
        if self.waiters.load(Ordering::Relaxed) { self.notify_waiters(count) } else { 0 }
    }

    #[cold]
    fn notify_waiters(&self, count: usize) -> usize {
        let (first, notified) = self.change(|queue| queue.notify(count));
        // SAFETY: only this thread and the waiters before it in the chain give out turns.
        unsafe { wake(first) };
        notified
    }

    /// Changes the queue under its lock, and the hint with it.
    fn change<R>(&self, change: impl FnOnce(&mut Queue) -> R) -> R {
        let mut queue = self.queue.lock();
        let result = change(&mut queue);
        self.waiters.store(!queue.head.is_null(), Ordering::Relaxed);
        result
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
        let waiter = Waiter::new();
        let queued = self.change(|queue| queue.push(&waiter, guard.lock()));
        assert!(queued, "attempted to use a condition variable with more than one mutex");
        // A lock that panicked from here on would leave the waiter in the queue, or the guard
        // without the lock.
        let no_unwinding = AbortOnUnwinding;
        // SAFETY: the guard is borrowed mutably until the lock is acquired again.
        unsafe { guard.release() };
        let timed_out = !waiter.sleep(deadline) && self.change(|queue| queue.remove(&waiter));
        if !timed_out {
            // Already woken, unless it was notified at its deadline.
            waiter.sleep(None);
        }
        // SAFETY: it was released above.
        unsafe { guard.acquire() };
        std::mem::forget(no_unwinding);
        if !timed_out {
            // After the acquisition: an earlier one could only wait for this thread.
            // SAFETY: the next in the chain is notified, and only this thread gives it its turn.
            unsafe { wake(waiter.next.get()) };
        }
        WaitTimeoutResult(timed_out)
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

    unsafe fn release(&mut self) {
        // SAFETY: the guard holds the lock, and the caller does not use the data.
        unsafe { lock_api::MutexGuard::mutex(self).raw().unlock() }
    }

    unsafe fn acquire(&mut self) {
        // SAFETY: the guard holds the lock from here on.
        unsafe { lock_api::MutexGuard::mutex(self).raw() }.lock();
    }
}

impl<R: lock_api::RawRwLock, T: ?Sized> sealed::Relock for lock_api::RwLockWriteGuard<'_, R, T> {
    fn lock(&self) -> *const () {
        // SAFETY: only its address is used.
        let raw: *const R = unsafe { lock_api::RwLockWriteGuard::rwlock(self).raw() };
        raw.cast()
    }

    unsafe fn release(&mut self) {
        // SAFETY: the guard is the writer, and the caller does not use the data.
        unsafe { lock_api::RwLockWriteGuard::rwlock(self).raw().unlock_exclusive() }
    }

    unsafe fn acquire(&mut self) {
        // SAFETY: the guard is the writer from here on.
        unsafe { lock_api::RwLockWriteGuard::rwlock(self).raw() }.lock_exclusive();
    }
}

impl<T: ?Sized> sealed::Relock for AnyLockGuard<'_, T> {
    fn lock(&self) -> *const () {
        self.raw().cast()
    }

    unsafe fn release(&mut self) {
        // SAFETY: the guard holds the lock, and the caller does not use the data.
        unsafe { poundlock_sys::pound_lock_unlock(self.raw()) }
    }

    unsafe fn acquire(&mut self) {
        // SAFETY: the guard borrows a valid lock, and holds it from here on.
        unsafe { poundlock_sys::pound_lock_lock(self.raw()) }
    }
}
