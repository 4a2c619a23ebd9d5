//! `pound_rwlock_t` behind `lock_api`.

use crate::any::with_spec;
use crate::checks::{self, ALONE, READ, READ_AGAIN};
use crate::{GuardMarker, SpecError, monotonic_in, until};
use poundlock_sys::{
    POUND_RWLOCK_INIT, pound_rwlock_check, pound_rwlock_init, pound_rwlock_rdlock,
    pound_rwlock_rdlock_again, pound_rwlock_rdunlock, pound_rwlock_rdunlock_fair, pound_rwlock_t,
    pound_rwlock_timedrdlock, pound_rwlock_timedrdlock_again, pound_rwlock_timedwrlock,
    pound_rwlock_tryrdlock, pound_rwlock_tryrdlock_again, pound_rwlock_trywrlock,
    pound_rwlock_wrlock, pound_rwlock_wrunlock, pound_rwlock_wrunlock_fair,
};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// The readers-writer lock without data: 56 bytes, without allocation. The default, `INIT`, is
/// ShflLock's.
///
/// Newcomers may overtake waiters until the head of the queue closes the lock. `unlock_fair` and
/// `bump` of a guard leave the lock to the first waiter at once. A thread that holds
/// a read lock must not call `read` again: a writer may wait between the two. Use
/// [`lock_api::RwLock::read_recursive`] or [`read_again`] instead.
pub struct RawRwLock(UnsafeCell<pound_rwlock_t>);

/// A `T` protected by a [`RawRwLock`]. [`lock_api::RwLock`] has the methods.
///
/// With 2^27 readers, `read` panics and `try_read` fails, as in std. Forgotten guards count.
///
/// ```
/// static NUMBERS: poundlock::RwLock<Vec<u64>> = poundlock::RwLock::new(Vec::new());
///
/// NUMBERS.write().push(1);
/// assert_eq!(*NUMBERS.read(), [1]);
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Shared access to the data of an [`RwLock`] until it is dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Exclusive access to the data of an [`RwLock`] until it is dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// A read guard of an [`RwLock`] for a part of its data.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// A write guard of an [`RwLock`] for a part of its data.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// Creates an unlocked lock from `spec`, NAME\[,KEY=VALUE...\]; [`crate::rw_locks()`] lists the
/// names.
///
/// The settings are the lock's own; keys that the spec does not name have their defaults.
///
/// ```
/// let lock = poundlock::rw_lock_by_name("shfl_rw,wait=yield", 1)?;
/// *lock.write() += 1;
/// assert_eq!(*lock.read(), 2);
/// # Ok::<(), poundlock::SpecError>(())
/// ```
pub fn rw_lock_by_name<T>(spec: &str, data: T) -> Result<RwLock<T>, SpecError> {
    Ok(RwLock::from_raw(raw_by_name(spec)?, data))
}

/// Returns a second read guard without blocking, even if writers wait.
///
/// [`RwLock::read`] by a thread that already holds a read guard may deadlock with a waiting writer.
/// The existing guard proves that the lock is read, so this function may overtake writers.
///
/// ```
/// let lock = poundlock::RwLock::new(1);
/// let outer = lock.read();
/// let inner = poundlock::read_again(&outer);
/// drop(outer);
/// assert_eq!(*inner, 1);
/// ```
pub fn read_again<'a, T: ?Sized>(guard: &RwLockReadGuard<'a, T>) -> RwLockReadGuard<'a, T> {
    let lock = RwLockReadGuard::rwlock(guard);
    // SAFETY: the raw lock gains one reader, which the new guard releases.
    unsafe {
        lock.raw().acquire_shared_again();
        lock.make_read_guard_unchecked()
    }
}

/// Returns whether the lock was acquired. Panics if there are too many readers.
#[inline]
fn entered(error: c_int) -> bool {
    assert_ne!(error, libc::EAGAIN, "too many readers of an RwLock");
    error == 0
}

/// Checks that `spec` names a readers-writer lock and settings that it has. Changes no setting.
pub fn check_rw_spec(spec: &str) -> Result<(), SpecError> {
    // SAFETY: with_spec() passes a C string and a buffer with its size.
    with_spec(spec, |spec, line, size| unsafe { pound_rwlock_check(spec, line, size) })
}

pub(crate) fn raw_by_name(spec: &str) -> Result<RawRwLock, SpecError> {
    let mut lock = MaybeUninit::<pound_rwlock_t>::uninit();
    // SAFETY: the lock and the buffer of with_spec() are writable.
    with_spec(spec, |spec, line, size| unsafe {
        pound_rwlock_init(lock.as_mut_ptr(), spec, line, size)
    })?;
    // SAFETY: pound_rwlock_init succeeded. An unlocked lock may be moved.
    Ok(RawRwLock(UnsafeCell::new(unsafe { lock.assume_init() })))
}

// SAFETY: the C lock serves any number of threads.
unsafe impl Sync for RawRwLock {}
// SAFETY: as above. A lock that is moved has no waiters: waiting borrows it.
unsafe impl Send for RawRwLock {}

impl RawRwLock {
    #[allow(clippy::declare_interior_mutable_const)] // every use creates a lock
    pub(crate) const UNLOCKED: RawRwLock = RawRwLock(UnsafeCell::new(POUND_RWLOCK_INIT));

    #[inline]
    pub(crate) fn acquire_shared(&self) {
        checks::waits(self.0.get(), READ);
        // SAFETY: UNLOCKED or pound_rwlock_init made the lock valid, and the borrow fixes its
        // address during the call.
        let acquired = entered(unsafe { pound_rwlock_rdlock(self.0.get()) });
        checks::tried(self.0.get(), READ, acquired);
    }

    #[inline]
    pub(crate) fn try_acquire_shared(&self) -> bool {
        // SAFETY: as in acquire_shared.
        let acquired = unsafe { pound_rwlock_tryrdlock(self.0.get()) };
        checks::tried(self.0.get(), READ, acquired)
    }

    pub(crate) fn try_acquire_shared_for(&self, timeout: Duration) -> bool {
        let Some(deadline) = monotonic_in(timeout) else {
            self.acquire_shared();
            return true;
        };
        // SAFETY: as in acquire_shared; the deadline is a valid timespec.
        let acquired = entered(unsafe {
            pound_rwlock_timedrdlock(self.0.get(), libc::CLOCK_MONOTONIC, &deadline)
        });
        checks::tried(self.0.get(), READ, acquired)
    }

    /// As acquire_shared, for a thread that may already be a reader.
    #[inline]
    pub(crate) fn acquire_shared_again(&self) {
        checks::waits(self.0.get(), READ_AGAIN);
        // SAFETY: as in acquire_shared.
        let acquired = entered(unsafe { pound_rwlock_rdlock_again(self.0.get()) });
        checks::tried(self.0.get(), READ_AGAIN, acquired);
    }

    #[inline]
    pub(crate) fn try_acquire_shared_again(&self) -> bool {
        // SAFETY: as in acquire_shared.
        let acquired = unsafe { pound_rwlock_tryrdlock_again(self.0.get()) };
        checks::tried(self.0.get(), READ_AGAIN, acquired)
    }

    pub(crate) fn try_acquire_shared_again_for(&self, timeout: Duration) -> bool {
        let Some(deadline) = monotonic_in(timeout) else {
            self.acquire_shared_again();
            return true;
        };
        // SAFETY: as in acquire_shared; the deadline is a valid timespec.
        let acquired = entered(unsafe {
            pound_rwlock_timedrdlock_again(self.0.get(), libc::CLOCK_MONOTONIC, &deadline)
        });
        checks::tried(self.0.get(), READ_AGAIN, acquired)
    }

    /// # Safety
    /// The lock has a reader, which no longer uses it.
    #[inline]
    pub(crate) unsafe fn release_shared(&self) {
        checks::releases(self.0.get(), READ);
        // SAFETY: as in acquire_shared; as the caller promises.
        unsafe { pound_rwlock_rdunlock(self.0.get()) }
    }

    /// # Safety
    /// As of release_shared.
    pub(crate) unsafe fn release_shared_fairly(&self) {
        checks::releases(self.0.get(), READ);
        // SAFETY: as in acquire_shared; as the caller promises.
        unsafe { pound_rwlock_rdunlock_fair(self.0.get()) }
    }

    #[inline]
    pub(crate) fn acquire_exclusive(&self) {
        checks::waits(self.0.get(), ALONE);
        // SAFETY: as in acquire_shared.
        unsafe { pound_rwlock_wrlock(self.0.get()) }
        checks::tried(self.0.get(), ALONE, true);
    }

    #[inline]
    pub(crate) fn try_acquire_exclusive(&self) -> bool {
        // SAFETY: as in acquire_shared.
        let acquired = unsafe { pound_rwlock_trywrlock(self.0.get()) };
        checks::tried(self.0.get(), ALONE, acquired)
    }

    pub(crate) fn try_acquire_exclusive_for(&self, timeout: Duration) -> bool {
        let Some(deadline) = monotonic_in(timeout) else {
            self.acquire_exclusive();
            return true;
        };
        // SAFETY: as in acquire_shared; the deadline is a valid timespec.
        let error =
            unsafe { pound_rwlock_timedwrlock(self.0.get(), libc::CLOCK_MONOTONIC, &deadline) };
        checks::tried(self.0.get(), ALONE, error == 0)
    }

    /// # Safety
    /// The lock has a writer, which no longer uses it.
    #[inline]
    pub(crate) unsafe fn release_exclusive(&self) {
        checks::releases(self.0.get(), ALONE);
        // SAFETY: as in acquire_shared; as the caller promises.
        unsafe { pound_rwlock_wrunlock(self.0.get()) }
    }

    /// # Safety
    /// As of release_exclusive.
    pub(crate) unsafe fn release_exclusive_fairly(&self) {
        checks::releases(self.0.get(), ALONE);
        // SAFETY: as in acquire_shared; as the caller promises.
        unsafe { pound_rwlock_wrunlock_fair(self.0.get()) }
    }

    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        let free = self.try_acquire_exclusive();
        if free {
            // SAFETY: this thread has just become the writer.
            unsafe { self.release_exclusive() }
        }
        !free
    }

    #[inline]
    pub(crate) fn is_held_exclusive(&self) -> bool {
        // Also beside a writer that waits.
        let no_writer = self.try_acquire_shared_again();
        if no_writer {
            // SAFETY: this thread has just become a reader.
            unsafe { self.release_shared() }
        }
        !no_writer
    }
}

#[cfg(feature = "debug")]
impl Drop for RawRwLock {
    fn drop(&mut self) {
        checks::drops(self.0.get());
    }
}

// SAFETY: pound_rwlock_t admits one writer or any number of readers, with acquire and release
// ordering. Any thread may release for another, so guards may be sent.
unsafe impl lock_api::RawRwLock for RawRwLock {
    // Required by lock_api: every use creates a lock.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawRwLock = RawRwLock::UNLOCKED;
    type GuardMarker = GuardMarker;

    #[inline]
    fn lock_shared(&self) {
        self.acquire_shared();
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        self.try_acquire_shared()
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.release_shared() }
    }

    #[inline]
    fn lock_exclusive(&self) {
        self.acquire_exclusive();
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        self.try_acquire_exclusive()
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.release_exclusive() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.is_held()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.is_held_exclusive()
    }
}

// SAFETY: as RawRwLock: a fair release unlocks as well.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.release_shared_fairly() }
    }

    unsafe fn unlock_exclusive_fair(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.release_exclusive_fairly() }
    }
}

// SAFETY: a timed method that succeeds is equivalent to the untimed one; one that times out
// acquires nothing.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.try_acquire_shared_for(timeout)
    }

    fn try_lock_shared_until(&self, deadline: Instant) -> bool {
        self.try_acquire_shared_for(until(deadline))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        self.try_acquire_exclusive_for(timeout)
    }

    fn try_lock_exclusive_until(&self, deadline: Instant) -> bool {
        self.try_acquire_exclusive_for(until(deadline))
    }
}

// SAFETY: these readers enter beside other readers only, and do not wait for waiting writers.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    #[inline]
    fn lock_shared_recursive(&self) {
        self.acquire_shared_again();
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        self.try_acquire_shared_again()
    }
}

// SAFETY: as above, and as for RawRwLockTimed.
unsafe impl lock_api::RawRwLockRecursiveTimed for RawRwLock {
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        self.try_acquire_shared_again_for(timeout)
    }

    fn try_lock_shared_recursive_until(&self, deadline: Instant) -> bool {
        self.try_acquire_shared_again_for(until(deadline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rw_locks;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn readers_are_together_and_writers_alone() {
        for spec in rw_locks().map(|info| info.name) {
            let lock = rw_lock_by_name(spec, (0, 0)).expect(spec);
            let (one, other) = (lock.read(), lock.try_read().expect("a reader is inside"));
            assert!(
                lock.try_write().is_none()
                    && lock.try_write_for(Duration::from_millis(1)).is_none()
            );
            drop((one, other));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..500 {
                            let mut both = lock.write();
                            both.0 += 1;
                            both.1 += 1;
                            drop(both);
                            let both = lock.read();
                            assert_eq!(both.0, both.1);
                        }
                    });
                }
            });
            assert_eq!(
                *lock.try_read_for(Duration::from_secs(3600)).expect("it is free"),
                (2000, 2000)
            );
        }
    }

    #[test]
    fn a_fair_release_unlocks() {
        for spec in rw_locks().map(|info| info.name) {
            let lock = rw_lock_by_name(spec, 0).expect(spec);
            for _ in 0..2 {
                RwLockReadGuard::unlock_fair(lock.read());
                RwLockWriteGuard::unlock_fair(lock.try_write().expect("it has no reader"));
            }
            let mut writer = lock.write();
            RwLockWriteGuard::bump(&mut writer);
            assert!(lock.try_read().is_none());
        }
    }

    #[test]
    fn a_reader_reads_again_while_a_writer_waits() {
        for spec in rw_locks().map(|info| info.name) {
            let lock = rw_lock_by_name(spec, 0).expect(spec);
            drop(lock.read()); // BRAVO lets the next readers in without the lock under it
            let outer = lock.read();
            std::thread::scope(|scope| {
                scope.spawn(|| *lock.write() += 1);
                while lock.try_read().is_some() {
                    std::thread::yield_now();
                }
                assert!(lock.is_locked() && !lock.is_locked_exclusive(), "{spec}: it only waits");
                let inner = read_again(&outer);
                let recursive = lock.read_recursive();
                let timed = lock.try_read_recursive_for(Duration::ZERO);
                assert_eq!((*inner, *recursive, timed.as_deref()), (0, 0, Some(&0)));
                // By another thread, which borrows the guard.
                let other = std::thread::scope(|scope| scope.spawn(|| *read_again(&outer)).join());
                assert_eq!(other.expect("it does not panic"), 0);
                drop(outer);
                assert!(
                    lock.try_read_for(Duration::from_millis(1)).is_none(),
                    "{spec}: a newcomer passed the writer"
                );
            });
            assert_eq!(*lock.read(), 1);
        }
    }

    fn panics<T>(read: impl FnOnce() -> T) -> bool {
        catch_unwind(AssertUnwindSafe(|| std::mem::forget(read()))).is_err()
    }

    #[test]
    fn one_reader_too_many_is_refused() {
        let lock = rw_lock_by_name("shfl_rw", 1).expect("it is there");
        let reader = lock.read();
        // Guards that are forgotten, without their making.
        // SAFETY: the raw lock is only entered.
        let entered = (1u32..1 << 28)
            .take_while(|_| unsafe { pound_rwlock_rdlock(lock.raw().0.get()) } == 0)
            .count();
        assert_eq!(entered, (1 << 27) - 1);
        assert!(lock.try_write().is_none(), "a writer beside readers");
        assert!(lock.try_read().is_none());
        assert!(panics(|| lock.read()));
        assert!(panics(|| lock.try_read_for(Duration::from_secs(3600))));
        assert!(panics(|| read_again(&reader)));
        drop(reader);
        assert!(lock.try_read().is_some());
    }

    #[test]
    fn a_reused_slot_forgets_leaked_guards() {
        for spec in rw_locks().map(|info| info.name) {
            let mut slot = rw_lock_by_name(spec, 0).expect(spec);
            for _ in 0..10 {
                drop(slot.read()); // BRAVO lets the next readers in without the lock under it
                std::mem::forget(slot.read());
                assert!(slot.try_write().is_none(), "{spec}: it is read");
                slot = rw_lock_by_name(spec, 0).expect(spec);
                assert!(
                    slot.try_write().is_some(),
                    "{spec}: another lock's reader keeps a writer out"
                );
            }
        }
    }

    #[test]
    fn a_wrong_spec_is_named() {
        assert_eq!(
            check_rw_spec("shfl_mutex").map_err(|error| error.to_string()),
            Err("there is no readers-writer lock 'shfl_mutex'".to_owned())
        );
    }
}
