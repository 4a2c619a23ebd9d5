//! `RwLock`: `poundlock::RawRwLock` with a gate, a mutex that writers and upgradable readers hold
//! while they are inside or wait for the lock.
//!
//! | acquisition | gate | lock |
//! |---|---|---|
//! | reader | | shared |
//! | upgradable reader | held | shared |
//! | writer | held | exclusive |
//!
//! The holder of the gate may release the lock and acquire it in another mode: no writer can enter
//! in between. This makes upgrades and downgrades atomic.

use crate::GuardMarker;
use lock_api::{
    RawMutex as _, RawMutexFair as _, RawMutexTimed as _, RawRwLock as _, RawRwLockFair as _,
    RawRwLockRecursive as _, RawRwLockTimed as _, RawRwLockUpgrade as _,
};
use poundlock::AbortOnUnwinding;
use std::time::{Duration, Instant};

/// A readers-writer lock with upgradable readers, without data: 88 bytes.
pub struct RawRwLock {
    gate: poundlock::RawMutex,
    lock: poundlock::RawRwLock,
}

/// A `T` protected by a [`RawRwLock`].
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Shared access to the data of an [`RwLock`] until it is dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Exclusive access to the data of an [`RwLock`] until it is dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// A read guard of an [`RwLock`] for a part of its data.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// A write guard of an [`RwLock`] for a part of its data.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;
/// Shared access that can become exclusive without a writer in between.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// Creates an unlocked lock in a constant.
pub const fn const_rwlock<T>(data: T) -> RwLock<T> {
    RwLock::new(data)
}

/// The deadline of a timed acquisition; None if it is too far away to be represented.
fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

impl RawRwLock {
    /// As the holder of the gate: enters as a reader. Writers cannot delay it.
    fn enter_shared(&self) {
        // With too many readers this panics, and the caller's guard would release a lock that it
        // does not hold.
        let no_unwinding = AbortOnUnwinding;
        self.lock.lock_shared_recursive();
        std::mem::forget(no_unwinding);
    }

    /// Passes the gate and then `enter`. If `enter` fails, leaves the gate again.
    fn behind_gate(&self, passed: bool, enter: impl FnOnce() -> bool) -> bool {
        // A panic in `enter` must leave the gate, too.
        let gate = passed.then(|| Gate(&self.gate));
        let entered = passed && enter();
        if entered {
            std::mem::forget(gate);
        }
        entered
    }
}

/// Leaves the gate when it is dropped.
struct Gate<'a>(&'a poundlock::RawMutex);

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        // SAFETY: whoever creates a Gate holds the mutex.
        unsafe { self.0.unlock() }
    }
}

// SAFETY: as poundlock::RawRwLock, whose guards may be sent; so may the gate's.
unsafe impl lock_api::RawRwLock for RawRwLock {
    // Required by lock_api: every use creates a lock.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawRwLock =
        RawRwLock { gate: poundlock::RawMutex::INIT, lock: poundlock::RawRwLock::INIT };
    type GuardMarker = GuardMarker;

    #[inline]
    fn lock_shared(&self) {
        self.lock.lock_shared();
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        self.lock.try_lock_shared()
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.lock.unlock_shared() }
    }

    #[inline]
    fn lock_exclusive(&self) {
        self.gate.lock();
        self.lock.lock_exclusive();
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        self.behind_gate(self.gate.try_lock(), || self.lock.try_lock_exclusive())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller is the writer, which holds both.
        unsafe {
            self.lock.unlock_exclusive();
            self.gate.unlock();
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.lock.is_locked_exclusive()
    }
}

// SAFETY: as RawRwLock: a fair release unlocks as well.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    #[inline]
    unsafe fn unlock_shared_fair(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.lock.unlock_shared_fair() }
    }

    /// Readers wait for the lock and writers for the gate: both are left to their first waiter.
    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        // SAFETY: the caller is the writer, which holds both.
        unsafe {
            self.lock.unlock_exclusive_fair();
            self.gate.unlock_fair();
        }
    }
}

// SAFETY: the gate keeps writers out between the two modes.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self) {
        // SAFETY: the caller is the writer, which holds both.
        unsafe {
            self.lock.unlock_exclusive();
            self.enter_shared();
            self.gate.unlock();
        }
    }
}

// SAFETY: a timed method that succeeds is equivalent to the untimed one; one that times out
// acquires nothing.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.lock.try_lock_shared_for(timeout)
    }

    fn try_lock_shared_until(&self, deadline: Instant) -> bool {
        self.lock.try_lock_shared_until(deadline)
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        match deadline(timeout) {
            Some(deadline) => self.try_lock_exclusive_until(deadline),
            None => {
                self.lock_exclusive();
                true
            }
        }
    }

    fn try_lock_exclusive_until(&self, deadline: Instant) -> bool {
        self.behind_gate(self.gate.try_lock_until(deadline), || {
            self.lock.try_lock_exclusive_until(deadline)
        })
    }
}

// SAFETY: as poundlock::RawRwLock.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    #[inline]
    fn lock_shared_recursive(&self) {
        self.lock.lock_shared_recursive();
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        self.lock.try_lock_shared_recursive()
    }
}

// SAFETY: as poundlock::RawRwLock.
unsafe impl lock_api::RawRwLockRecursiveTimed for RawRwLock {
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        self.lock.try_lock_shared_recursive_for(timeout)
    }

    fn try_lock_shared_recursive_until(&self, deadline: Instant) -> bool {
        self.lock.try_lock_shared_recursive_until(deadline)
    }
}

// SAFETY: the gate admits one upgradable reader and no writer beside it, also while it changes the
// mode.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    fn lock_upgradable(&self) {
        self.gate.lock();
        self.behind_gate(true, || {
            self.lock.lock_shared();
            true
        });
    }

    fn try_lock_upgradable(&self) -> bool {
        self.behind_gate(self.gate.try_lock(), || self.lock.try_lock_shared())
    }

    unsafe fn unlock_upgradable(&self) {
        // SAFETY: the caller is the upgradable reader, which holds both.
        unsafe {
            self.lock.unlock_shared();
            self.gate.unlock();
        }
    }

    unsafe fn upgrade(&self) {
        // SAFETY: the caller is a reader.
        unsafe { self.lock.unlock_shared() }
        self.lock.lock_exclusive();
    }

    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: the caller is a reader.
        unsafe { self.lock.unlock_shared() }
        let upgraded = self.lock.try_lock_exclusive();
        if !upgraded {
            self.enter_shared();
        }
        upgraded
    }
}

// SAFETY: as RawRwLockUpgrade: a fair release unlocks as well.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self) {
        // SAFETY: the caller is the upgradable reader, which holds both.
        unsafe {
            self.lock.unlock_shared_fair();
            self.gate.unlock_fair();
        }
    }
}

// SAFETY: as RawRwLockDowngrade and RawRwLockUpgrade.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self) {
        // SAFETY: the caller is the upgradable reader, which holds the gate.
        unsafe { self.gate.unlock() }
    }

    unsafe fn downgrade_to_upgradable(&self) {
        // SAFETY: the caller is the writer.
        unsafe { self.lock.unlock_exclusive() }
        self.enter_shared();
    }
}

// SAFETY: as RawRwLockTimed and RawRwLockUpgrade.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        match deadline(timeout) {
            Some(deadline) => self.try_lock_upgradable_until(deadline),
            None => {
                self.lock_upgradable();
                true
            }
        }
    }

    fn try_lock_upgradable_until(&self, deadline: Instant) -> bool {
        self.behind_gate(self.gate.try_lock_until(deadline), || {
            self.lock.try_lock_shared_until(deadline)
        })
    }

    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        match deadline(timeout) {
            // SAFETY: as the caller promises.
            Some(deadline) => unsafe { self.try_upgrade_until(deadline) },
            None => {
                // SAFETY: as the caller promises.
                unsafe { self.upgrade() }
                true
            }
        }
    }

    unsafe fn try_upgrade_until(&self, deadline: Instant) -> bool {
        // SAFETY: the caller is a reader.
        unsafe { self.lock.unlock_shared() }
        let upgraded = self.lock.try_lock_exclusive_until(deadline);
        if !upgraded {
            self.enter_shared();
        }
        upgraded
    }
}
