//! `lib/poundlock.h` for Rust, by hand: the header says what each function promises. The crate brings the C library
//! with it, compiled for user space. Rust programs want the `poundlock` crate instead.
#![allow(non_camel_case_types)]

use libc::{c_char, c_int, c_uint, c_void, clockid_t, size_t, timespec};
use std::sync::atomic::{AtomicU32, Ordering};

/// The C compiler that compiled the locks of this crate.
pub const C_COMPILER: &str = env!("POUNDLOCK_SYS_COMPILER");

/// The blocking, NUMA-aware mutex. All bytes zero is an unlocked one.
#[repr(C)]
pub struct pound_mutex_t {
    pound_tail: *mut c_void,
    pound_heir: *mut c_void,
    /// The embedder's: never touched by the lock.
    pub embedder: u32,
    pound_state: u32,
    pound_generation: u32,
    pound_spinner: u32,
}

/// An unlocked mutex.
pub const POUND_MUTEX_INIT: pound_mutex_t = pound_mutex_t {
    pound_tail: std::ptr::null_mut(),
    pound_heir: std::ptr::null_mut(),
    embedder: 0,
    pound_state: 0,
    pound_generation: 0,
    pound_spinner: 0,
};

/// Any lock by name. To be initialised by [`pound_lock_init`].
#[repr(C)]
pub struct pound_lock_t {
    pound_bytes: [u64; 4],
    pound_ops: *const c_void,
}

/// Any readers-writer lock by name, or the default. All bytes zero is an unlocked one of the default.
#[repr(C)]
pub struct pound_rwlock_t {
    pound_bytes: [u64; 6],
    pound_ops: *const c_void,
}

/// An unlocked lock of the default.
pub const POUND_RWLOCK_INIT: pound_rwlock_t = pound_rwlock_t { pound_bytes: [0; 6], pound_ops: std::ptr::null() };

/// What is known of a lock. The keys are the calling thread's until it asks for another lock; the other strings stay.
#[repr(C)]
pub struct pound_lock_info {
    /// Its name.
    pub name: *const c_char,
    /// The default way of waiting: spin, yield or park.
    pub wait: *const c_char,
    /// What it promises about the order of waiters.
    pub promise: *const c_char,
    /// The paper that it is from.
    pub paper: *const c_char,
    /// The settings that it takes, comma-separated.
    pub keys: *const c_char,
    /// Whether the lock lies in a box behind a pointer, since it is too large for a `pthread_mutex_t`.
    pub boxed: bool,
    /// The bytes that a lock takes, its box included.
    pub bytes_per_lock: size_t,
    /// The bytes that each waiter adds.
    pub bytes_per_waiter: size_t,
    /// The bytes that a holder keeps.
    pub bytes_per_holder: size_t,
    /// Atomic read-modify-writes of an acquisition and release, as counted; NaN where that was not done.
    /// Of a readers-writer lock: as a writer.
    pub atomics_alone: f64,
    /// The same as the mean of four threads that all want the lock all the time; of a readers-writer lock, and write
    /// every other time.
    pub atomics_contended: f64,
    /// Of a readers-writer lock: alone, as a reader. Else NaN.
    pub atomics_reading: f64,
}

/// A policy of the program's own for the order of waiters.
#[repr(C)]
pub struct pound_policy {
    /// What is to be known of a waiter.
    pub note: Option<unsafe extern "C" fn(context: *mut c_void, lock: *const c_void) -> u32>,
    /// Where a waiter goes, as the shuffler sees it.
    pub rank: Option<unsafe extern "C" fn(context: *mut c_void, shuffler: u32, waiter: u32) -> u32>,
    /// What both are given.
    pub context: *mut c_void,
}

// build.rs asserts that these structures are laid out as the C compiler lays them out.
include!(concat!(env!("OUT_DIR"), "/layout.rs"));

unsafe extern "C" {
    /// The contended part of [`pound_mutex_trylock`], which last saw the state `seen`.
    pub fn pound_mutex_trylock_slow(mutex: *mut pound_mutex_t, seen: u32) -> bool;
    /// The contended part of [`pound_mutex_lock`].
    pub fn pound_mutex_lock_slow(mutex: *mut pound_mutex_t);
    /// The contended part of [`pound_mutex_unlock`].
    pub fn pound_mutex_unlock_slow(mutex: *mut pound_mutex_t);
    /// Takes the mutex; gives up at an absolute deadline on a clock.
    pub fn pound_mutex_timedlock(mutex: *mut pound_mutex_t, clock: clockid_t, deadline: *const timespec) -> c_int;

    /// Makes an unlocked lock as NAME[,KEY=VALUE...] says, or returns EINVAL with one line of text.
    pub fn pound_lock_init(lock: *mut pound_lock_t, spec: *const c_char, error: *mut c_char, size: size_t) -> c_int;
    /// Returns what [`pound_lock_init`] would, and sets nothing.
    pub fn pound_lock_check(spec: *const c_char, error: *mut c_char, size: size_t) -> c_int;
    /// Gives back what a lock that nobody uses has outside its own memory.
    pub fn pound_lock_destroy(lock: *mut pound_lock_t);
    /// Takes the lock.
    pub fn pound_lock_lock(lock: *mut pound_lock_t);
    /// Takes the lock if it is free.
    pub fn pound_lock_trylock(lock: *mut pound_lock_t) -> bool;
    /// Takes the lock; gives up at an absolute deadline on a clock.
    pub fn pound_lock_timedlock(lock: *mut pound_lock_t, clock: clockid_t, deadline: *const timespec) -> c_int;
    /// Releases the lock.
    pub fn pound_lock_unlock(lock: *mut pound_lock_t);

    /// The calling thread's weight from now on; 0: that of its nice value.
    pub fn pound_thread_weight(weight: u32);
    /// Makes the calling thread one of a tenant's; 0, EINVAL or ENOSPC.
    pub fn pound_thread_tenant(id: u64, weight: u32) -> c_int;
    /// Returns the calling thread to its cgroup.
    pub fn pound_thread_leave_tenant();
    /// Makes `policy=own` mean this policy, for good; 0 or EBUSY.
    pub fn pound_policy_use(policy: *const pound_policy) -> c_int;

    /// The index-th lock, or null past the last. Valid until the calling thread asks again.
    pub fn pound_lock_info(index: size_t) -> *const pound_lock_info;

    /// Makes an unlocked readers-writer lock as NAME[,KEY=VALUE...] says, or returns EINVAL with one line of text.
    pub fn pound_rwlock_init(lock: *mut pound_rwlock_t, spec: *const c_char, error: *mut c_char, size: size_t)
    -> c_int;
    /// Returns what [`pound_rwlock_init`] would, and sets nothing.
    pub fn pound_rwlock_check(spec: *const c_char, error: *mut c_char, size: size_t) -> c_int;
    /// Enters as a reader; 0, or EAGAIN if there are too many.
    pub fn pound_rwlock_rdlock(lock: *mut pound_rwlock_t) -> c_int;
    /// Enters as a reader if that needs no waiting.
    pub fn pound_rwlock_tryrdlock(lock: *mut pound_rwlock_t) -> bool;
    /// Enters as a reader; gives up at an absolute deadline on a clock.
    pub fn pound_rwlock_timedrdlock(lock: *mut pound_rwlock_t, clock: clockid_t, deadline: *const timespec) -> c_int;
    /// Enters as a reader that may be one already; 0, or EAGAIN if there are too many.
    pub fn pound_rwlock_rdlock_again(lock: *mut pound_rwlock_t) -> c_int;
    /// Enters as a reader that may be one already, if that needs no waiting.
    pub fn pound_rwlock_tryrdlock_again(lock: *mut pound_rwlock_t) -> bool;
    /// Leaves as a reader.
    pub fn pound_rwlock_rdunlock(lock: *mut pound_rwlock_t);
    /// Enters as the writer.
    pub fn pound_rwlock_wrlock(lock: *mut pound_rwlock_t);
    /// Enters as the writer if that needs no waiting.
    pub fn pound_rwlock_trywrlock(lock: *mut pound_rwlock_t) -> bool;
    /// Enters as the writer; gives up at an absolute deadline on a clock.
    pub fn pound_rwlock_timedwrlock(lock: *mut pound_rwlock_t, clock: clockid_t, deadline: *const timespec) -> c_int;
    /// Leaves as the writer.
    pub fn pound_rwlock_wrunlock(lock: *mut pound_rwlock_t);
    /// The index-th readers-writer lock, or null past the last. Valid until the calling thread asks again.
    pub fn pound_rwlock_info(index: size_t) -> *const pound_lock_info;

    /// Starts counting events.
    pub fn pound_events_start();
    /// The name of the index-th event, or null past the last.
    pub fn pound_event_name(index: size_t) -> *const c_char;
    /// What the index-th event means.
    pub fn pound_event_meaning(index: size_t) -> *const c_char;
    /// How often the index-th event has happened.
    pub fn pound_event_count(index: size_t) -> u64;

    /// The locality domain that the calling thread runs in.
    pub fn pound_domain() -> c_uint;
    /// Writes up to so many of the route's CPUs, in order, and returns how many there are.
    pub fn pound_route(cpus: *mut c_uint, size: size_t) -> size_t;
    /// The file that the route was read from, or null. It stays as it is.
    pub fn pound_route_file() -> *const c_char;
}

/// The state of a mutex that is held and has nothing to do on release; its one bit is set in every state with a holder.
const LOCKED: u32 = 1;

/// The mutex's word, which the header's inline functions access in the same ways.
///
/// # Safety
/// `mutex` points to a valid mutex for the lifetime of the result.
#[inline]
unsafe fn state<'a>(mutex: *mut pound_mutex_t) -> &'a AtomicU32 {
    // SAFETY: the caller vouches for the pointer; all accesses to the word, in C and here, are atomic.
    unsafe { AtomicU32::from_ptr(&raw mut (*mutex).pound_state) }
}

/// Takes the mutex if it is free. Returns whether it did. Never waits.
///
/// # Safety
/// `mutex` points to a valid mutex.
#[inline]
pub unsafe fn pound_mutex_trylock(mutex: *mut pound_mutex_t) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        match state(mutex).compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => true,
            Err(seen) => pound_mutex_trylock_slow(mutex, seen),
        }
    }
}

/// Whether somebody holds the mutex, at the moment of asking.
///
/// # Safety
/// `mutex` points to a valid mutex.
#[inline]
pub unsafe fn pound_mutex_is_locked(mutex: *mut pound_mutex_t) -> bool {
    // SAFETY: as the caller promises. Relaxed: the answer may be stale at once and orders nothing.
    unsafe { state(mutex) }.load(Ordering::Relaxed) & LOCKED != 0
}

/// Takes the mutex, waiting for it if need be. Not recursive.
///
/// # Safety
/// `mutex` points to a valid mutex that does not move while anybody holds or awaits it.
#[inline]
pub unsafe fn pound_mutex_lock(mutex: *mut pound_mutex_t) {
    // SAFETY: as the caller promises.
    unsafe {
        if state(mutex).compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            pound_mutex_lock_slow(mutex);
        }
    }
}

/// Releases the mutex.
///
/// # Safety
/// `mutex` points to a valid mutex that the caller's program holds.
#[inline]
pub unsafe fn pound_mutex_unlock(mutex: *mut pound_mutex_t) {
    // SAFETY: as the caller promises.
    unsafe {
        if state(mutex).compare_exchange(LOCKED, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            pound_mutex_unlock_slow(mutex);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn poundlock_sys_trylock(mutex: *mut pound_mutex_t) -> bool;
        fn poundlock_sys_lock(mutex: *mut pound_mutex_t);
        fn poundlock_sys_unlock(mutex: *mut pound_mutex_t);
    }

    const PARKED: u32 = 2;
    const CLOSED: u32 = 8;

    /// All that a mutex without waiters is, by its state and the fork generation that it was last used in.
    fn mutex(state: u32, generation: u32) -> pound_mutex_t {
        pound_mutex_t { pound_state: state, pound_generation: generation, embedder: 7, ..POUND_MUTEX_INIT }
    }

    fn parts(mutex: &pound_mutex_t) -> (bool, bool, [u32; 4]) {
        let numbers = [mutex.embedder, mutex.pound_state, mutex.pound_generation, mutex.pound_spinner];
        (mutex.pound_tail.is_null(), mutex.pound_heir.is_null(), numbers)
    }

    /// What a function returns for a mutex, and leaves there; the header's and ours must be the same.
    fn both<R: PartialEq + std::fmt::Debug>(
        begin: (u32, u32),
        header: unsafe extern "C" fn(*mut pound_mutex_t) -> R,
        ours: unsafe fn(*mut pound_mutex_t) -> R,
    ) -> (R, u32) {
        let (mut one, mut other) = (mutex(begin.0, begin.1), mutex(begin.0, begin.1));
        // SAFETY: both are valid, and nobody else has them.
        let (expected, result) = unsafe { (header(&mut one), ours(&mut other)) };
        assert_eq!((&expected, parts(&one)), (&result, parts(&other)), "from {begin:?}");
        (result, other.pound_state)
    }

    /// The generation of another process: what a lock has whose waiters a fork did not copy.
    const PARENT: u32 = 98;

    #[test]
    fn inline_functions_do_what_the_headers_do() {
        let trylock = |state, generation| both((state, generation), poundlock_sys_trylock, pound_mutex_trylock);
        assert_eq!(trylock(0, 0), (true, LOCKED));
        assert_eq!(trylock(0, PARENT), (true, LOCKED));
        assert_eq!(trylock(CLOSED, 0), (false, CLOSED), "it is the first waiter's");
        assert_eq!(trylock(CLOSED, PARENT), (true, LOCKED), "closed for a waiter that is not in this process");
        for state in [LOCKED, LOCKED | PARKED, LOCKED | CLOSED] {
            assert_eq!(trylock(state, 0), (false, state));
            assert_eq!(trylock(state, PARENT), (false, state));
        }
        for begin in [(0, 0), (0, PARENT), (CLOSED, PARENT)] {
            assert_eq!(both(begin, poundlock_sys_lock, pound_mutex_lock), ((), LOCKED));
        }
        for generation in [0, PARENT] {
            let unlock = |state| both((state, generation), poundlock_sys_unlock, pound_mutex_unlock);
            assert_eq!(unlock(LOCKED), ((), 0));
            assert_eq!(unlock(LOCKED | PARKED), ((), 0));
            assert_eq!(unlock(LOCKED | CLOSED), ((), CLOSED));
        }
    }
}
