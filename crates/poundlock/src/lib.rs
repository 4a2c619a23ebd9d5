//! Scalable, fair locks for machines with many cores.
//!
//! - [`Mutex`]: a blocking, NUMA-aware mutex (ShflLock, SOSP'19) behind the interface of
//!   [`lock_api`] 0.4, const-constructible. [`ReentrantMutex`]: the same for holders that acquire
//!   it again.
//! - [`AnyLock`]: a lock chosen by name at run time, for comparisons and for configurable programs.
//! - [`RwLock`]: a readers-writer lock: ShflLock's, or another one by name ([`rw_lock_by_name`]).
//! - [`Condvar`]: a condition variable for all of them. [`Once`]: initialisation that runs once.
//!   [`Semaphore`]: a counting semaphore.
//! - [`Policy`]: an order of waiters of the program's own, for an [`AnyLock`].
//! - [`SetName`]: names of locks in statistics.
//! - [`locks()`], [`rw_locks()`]: the list of locks with their properties.
//! - [`route()`]: the order of CPUs along which some locks hand over.
//!
//! Locks are not poisoned when a holder panics. Except for [`ReentrantMutex`], they are not
//! recursive. As soon as a thread has
//! acquired a lock, it may release and free it: the previous holder no longer accesses it.
//!
//! ```
//! static COUNT: poundlock::Mutex<u64> = poundlock::Mutex::new(0);
//!
//! *COUNT.lock() += 1;
//! assert_eq!(*COUNT.lock(), 1);
//! ```
//!
//! # Features
//!
//! | feature | effect |
//! |---|---|
//! | `debug` | the use of locks is checked: relocks, opposite orders, forgotten guards (below) |
//! | `send_guard` | guards are `Send`; every lock may be released by another thread |
//! | `arc_lock` | guards that own an `Arc` of their lock |
//! | `owning_ref` | guards can be used with the crate `owning_ref` |
//! | `serde` | locks can be serialised and deserialised |
//! | `lock_api_05` | the module `v0_5`: the same locks behind `lock_api` 0.5, with its `arc_lock` |
//! | `mcs`, `cna`, ... | the lock of that name in `core/locks.def`; all are on by default |
//!
//! Without default features, only `shfl_mutex` and `shfl_rw` are built, which [`Mutex`] and
//! [`RwLock`] are.
//!
//! With `debug`, each error is reported on stderr, with the stacks of all sites. The environment
//! variable `POUNDLOCK_DEBUG` selects checks; `0` turns them off. `docs/debugging.md` lists them.
//! Every lock and unlock then takes some microseconds.
//!
//! Rust 1.75 suffices, except for `lock_api_05`.

mod any;
mod checks;
mod condvar;
mod info;
mod mutex;
mod name;
mod once;
mod policy;
mod route;
mod rwlock;
mod semaphore;
mod shares;
mod thread_id;
#[cfg(feature = "lock_api_05")]
pub mod v0_5;

pub use lock_api;

pub use any::{AnyLock, AnyLockGuard, SpecError, check_spec};
pub use condvar::{Condvar, WaitGuard, WaitTimeoutResult};
pub use info::{LockInfo, Setting, locks, rw_locks};
pub use mutex::{
    MappedMutexGuard, MappedReentrantMutexGuard, Mutex, MutexGuard, RawMutex, ReentrantMutex,
    ReentrantMutexGuard,
};
pub use name::{SetName, TooManyNames};
pub use once::{Once, OnceState};
pub use policy::{Policy, PolicyError, register_policy, unregister_policy};
pub use route::{Route, route};

pub use semaphore::{Semaphore, SemaphoreOverflow};
pub use shares::{Tenant, TooManyTenants, set_thread_weight};

pub use rwlock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard,
    RwLockWriteGuard, check_rw_spec, read_again, rw_lock_by_name,
};

pub use thread_id::RawThreadId;

pub use poundlock_sys::C_COMPILER;

use std::time::{Duration, Instant};

#[cfg(not(feature = "send_guard"))]
type GuardMarker = lock_api::GuardNoSend;
#[cfg(feature = "send_guard")]
type GuardMarker = lock_api::GuardSend;

/// Ends the process when it is dropped: for code that must not unwind, which forgets it at its end.
#[doc(hidden)]
pub struct AbortOnUnwinding;

impl Drop for AbortOnUnwinding {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// An absolute time on CLOCK_MONOTONIC, the clock of [`Instant`], or None if it overflows the
/// clock.
fn monotonic_in(duration: Duration) -> Option<libc::timespec> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    assert_eq!(failed, 0, "CLOCK_MONOTONIC always exists");
    let nanoseconds = now.tv_nsec + libc::c_long::from(duration.subsec_nanos());
    let seconds = libc::time_t::try_from(duration.as_secs()).ok()?.checked_add(now.tv_sec)?;
    Some(libc::timespec {
        tv_sec: seconds.checked_add(nanoseconds / NANOSECONDS)?,
        tv_nsec: nanoseconds % NANOSECONDS,
    })
}

const NANOSECONDS: libc::c_long = 1_000_000_000;

/// The time until `deadline`; zero if it has passed.
fn until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_has_valid_nanoseconds_and_does_not_overflow() {
        let deadline =
            monotonic_in(Duration::new(1, 999_999_999)).expect("two seconds from now can be said");
        assert!((0..NANOSECONDS).contains(&deadline.tv_nsec));
        let now = monotonic_in(Duration::ZERO).expect("now can be said");
        assert!((1..=3).contains(&(deadline.tv_sec - now.tv_sec)));
        assert!(monotonic_in(Duration::MAX).is_none());
    }
}
