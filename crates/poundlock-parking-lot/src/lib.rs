//! The interface of parking_lot 0.12 over Poundlock's locks.
//!
//! Programs get it by `[patch.crates-io]`, without a change of their code. The readme lists the
//! differences; parking_lot's documentation describes the methods.

mod condvar;
mod fair_mutex;
mod mutex;
mod rwlock;

#[cfg(not(feature = "send_guard"))]
type GuardMarker = lock_api::GuardNoSend;
#[cfg(feature = "send_guard")]
type GuardMarker = lock_api::GuardSend;

pub use condvar::Condvar;
pub use fair_mutex::{
    FairMutex, FairMutexGuard, MappedFairMutexGuard, RawFairMutex, const_fair_mutex,
};
pub use lock_api;
#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
pub use mutex::{
    MappedMutexGuard, MappedReentrantMutexGuard, Mutex, MutexGuard, RawMutex, ReentrantMutex,
    ReentrantMutexGuard, const_mutex, const_reentrant_mutex,
};
pub use poundlock::{Once, OnceState, RawThreadId, WaitTimeoutResult};
pub use rwlock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard, const_rwlock,
};
