//! Raw bindings of `lib/poundlock.h`, which has the contract of each function. The crate contains
//! the C library. Most Rust programs want the safe `poundlock` crate instead.
#![allow(non_camel_case_types)]

use libc::{c_char, c_int, c_uint, c_void, clockid_t, size_t, timespec};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The compiler of the C library in this crate.
pub const C_COMPILER: &str = env!("POUNDLOCK_SYS_COMPILER");

/// The blocking, NUMA-aware mutex. All-zero bytes are an unlocked mutex.
#[repr(C)]
pub struct pound_mutex_t {
    pound_tail: *mut c_void,
    pound_heir: *mut c_void,
    /// For the embedder's use: never accessed by the lock.
    pub embedder: u32,
    pound_state: u32,
    pound_generation: u32,
}

/// An unlocked mutex.
pub const POUND_MUTEX_INIT: pound_mutex_t = pound_mutex_t {
    pound_tail: std::ptr::null_mut(),
    pound_heir: std::ptr::null_mut(),
    embedder: 0,
    pound_state: 0,
    pound_generation: 0,
};

/// A lock chosen by name with [`pound_lock_init`]. All-zero bytes are an unlocked lock of the
/// default kind.
#[repr(C)]
pub struct pound_lock_t {
    pound_bytes: [u64; 4],
    pound_ops: *const c_void,
}

/// An unlocked lock of the default kind.
pub const POUND_LOCK_INIT: pound_lock_t =
    pound_lock_t { pound_bytes: [0; 4], pound_ops: std::ptr::null() };

/// A readers-writer lock chosen by name. All-zero bytes are an unlocked lock of the default kind.
#[repr(C)]
pub struct pound_rwlock_t {
    pound_bytes: [u64; 6],
    pound_ops: *const c_void,
}

/// An unlocked lock of the default kind.
pub const POUND_RWLOCK_INIT: pound_rwlock_t =
    pound_rwlock_t { pound_bytes: [0; 6], pound_ops: std::ptr::null() };

/// A condition variable. All-zero bytes are one without waiters.
#[repr(C)]
pub struct pound_cond_t {
    pound_last: *mut c_void,
    pound_list: u32,
    pound_generation: u32,
}

/// A condition variable without waiters.
pub const POUND_COND_INIT: pound_cond_t =
    pound_cond_t { pound_last: std::ptr::null_mut(), pound_list: 0, pound_generation: 0 };

/// How to acquire and release a lock of the program's own.
#[repr(C)]
pub struct pound_lockable {
    /// Acquires the lock.
    pub lock: Option<unsafe extern "C" fn(lock: *mut c_void)>,
    /// Releases the lock.
    pub unlock: Option<unsafe extern "C" fn(lock: *mut c_void)>,
}

/// Initialisation that runs once. All-zero bytes: it has not run.
#[repr(C)]
pub struct pound_once_t {
    /// 0: no function runs; [`POUND_ONCE_DONE`]: one has returned; another value: one runs. A load
    /// that acquires DONE sees what the function wrote.
    pub pound_state: u32,
}

/// A once that has not run.
pub const POUND_ONCE_INIT: pound_once_t = pound_once_t { pound_state: 0 };

/// A counting semaphore. All-zero bytes are one of value 0.
#[repr(C)]
pub struct pound_sem_t {
    /// The value, at most [`POUND_SEM_MAX`], in a semaphore that no thread uses yet.
    pub pound_state: u32,
    pound_waiters: u32,
}

/// A semaphore of value 0.
pub const POUND_SEM_INIT: pound_sem_t = pound_sem_t { pound_state: 0, pound_waiters: 0 };

/// A flag of the checks: the thread reads.
pub const POUND_WATCH_READ: c_uint = 1 << 3;
/// A flag of the checks: the thread may already read.
pub const POUND_WATCH_AGAIN: c_uint = 1 << 16;

/// The highest value of a semaphore.
pub const POUND_SEM_MAX: u32 = 0x7fff_ffff;

/// The properties of a lock. The keys are valid until the calling thread's next query; the other
/// strings are never freed.
#[repr(C)]
pub struct pound_lock_info {
    /// The name.
    pub name: *const c_char,
    /// The default way of waiting: spin, yield or park.
    pub wait: *const c_char,
    /// The guarantee about the order of waiters.
    pub promise: *const c_char,
    /// The paper that describes the lock.
    pub paper: *const c_char,
    /// The settings of the lock, comma-separated.
    pub keys: *const c_char,
    /// Whether the lock is allocated behind a pointer, since it does not fit into a
    /// `pthread_mutex_t`.
    pub boxed: bool,
    /// The size of a lock, including its allocation.
    pub bytes_per_lock: size_t,
    /// Additional memory per waiter.
    pub bytes_per_waiter: size_t,
    /// Additional memory while the lock is held.
    pub bytes_per_holder: size_t,
    /// Atomic read-modify-writes per uncontended acquisition and release; NaN if not counted. Of a
    /// readers-writer lock: as a writer.
    pub atomics_alone: f64,
    /// The same for four threads that contend permanently, as a mean. Of a readers-writer lock:
    /// with every second acquisition as a writer.
    pub atomics_contended: f64,
    /// Of a readers-writer lock: per uncontended acquisition as a reader. NaN for other locks.
    pub atomics_reading: f64,
}

/// A setting of a lock. The strings are never freed.
#[repr(C)]
pub struct pound_setting {
    /// The key.
    pub key: *const c_char,
    /// The names of the values, from 0 on, space-separated; empty for numbers.
    pub choices: *const c_char,
    /// The default.
    pub by_default: u32,
    /// The lowest value.
    pub least: u32,
    /// The highest value.
    pub most: u32,
}

/// A custom policy for the order of waiters.
#[repr(C)]
pub struct pound_policy {
    /// Returns the note of an arriving waiter.
    pub note: Option<unsafe extern "C" fn(context: *mut c_void, lock: *const c_void) -> u32>,
    /// Returns the rank of a waiter, given the notes of the shuffler and the waiter.
    pub rank: Option<unsafe extern "C" fn(context: *mut c_void, shuffler: u32, waiter: u32) -> u32>,
    /// The first argument of both.
    pub context: *mut c_void,
}

// build.rs asserts that these structures are laid out as the C compiler lays them out, and takes
// the states and memory orders of the fast paths from poundlock.h.
include!(concat!(env!("OUT_DIR"), "/layout.rs"));

extern "C" {
    /// The contended path of [`pound_mutex_trylock`], which last saw the state `seen`.
    pub fn pound_mutex_trylock_slow(mutex: *mut pound_mutex_t, seen: u32) -> bool;
    /// The contended path of [`pound_mutex_lock`].
    pub fn pound_mutex_lock_slow(mutex: *mut pound_mutex_t);
    /// The contended path of [`pound_mutex_unlock`].
    pub fn pound_mutex_unlock_slow(mutex: *mut pound_mutex_t);
    /// Releases the mutex, and leaves it to the first waiter if there is one.
    pub fn pound_mutex_unlock_fair(mutex: *mut pound_mutex_t);
    /// Acquires the mutex, or returns ETIMEDOUT at an absolute deadline on a clock.
    pub fn pound_mutex_timedlock(
        mutex: *mut pound_mutex_t,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> c_int;

    /// Initialises an unlocked lock from NAME[,KEY=VALUE...]. Returns 0, or EINVAL with a one-line
    /// error.
    pub fn pound_lock_init(
        lock: *mut pound_lock_t,
        spec: *const c_char,
        error: *mut c_char,
        size: size_t,
    ) -> c_int;
    /// Returns what [`pound_lock_init`] would return, and changes no setting.
    pub fn pound_lock_check(spec: *const c_char, error: *mut c_char, size: size_t) -> c_int;
    /// Frees the resources of an unused lock.
    pub fn pound_lock_destroy(lock: *mut pound_lock_t);
    /// Acquires the lock.
    pub fn pound_lock_lock(lock: *mut pound_lock_t);
    /// Acquires the lock if it is free.
    pub fn pound_lock_trylock(lock: *mut pound_lock_t) -> bool;
    /// Acquires the lock, or returns ETIMEDOUT at an absolute deadline on a clock.
    pub fn pound_lock_timedlock(
        lock: *mut pound_lock_t,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> c_int;
    /// Releases the lock.
    pub fn pound_lock_unlock(lock: *mut pound_lock_t);
    /// Releases the lock, and leaves it to the first waiter if it is shfl_mutex.
    pub fn pound_lock_unlock_fair(lock: *mut pound_lock_t);

    /// Releases the lock, waits until a signal or an absolute deadline (null: none) on a clock, and
    /// acquires the lock again. Returns 0, ETIMEDOUT, or EBUSY, with the lock still held, if
    /// another thread waits with another lock.
    pub fn pound_cond_wait_only(
        cond: *mut pound_cond_t,
        lock: *mut c_void,
        r#type: *const pound_lockable,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> c_int;
    /// [`pound_cond_signal`], not inlined.
    pub fn pound_cond_signal_slow(cond: *mut pound_cond_t) -> bool;
    /// [`pound_cond_broadcast`], not inlined.
    pub fn pound_cond_broadcast_slow(cond: *mut pound_cond_t) -> size_t;

    /// Returns true if the caller must initialise and then call [`pound_once_end`]; waits while
    /// another thread does. Returns false if the once is completed.
    pub fn pound_once_begin_slow(once: *mut pound_once_t) -> bool;
    /// Ends what [`pound_once_begin_slow`] began: completed, or else as if it had not begun.
    pub fn pound_once_end(once: *mut pound_once_t, completed: bool);

    /// Decreases the semaphore's value by 1, waiting while it is 0.
    pub fn pound_sem_wait(sem: *mut pound_sem_t);
    /// Decreases the value by 1 if it is not 0.
    pub fn pound_sem_trywait(sem: *mut pound_sem_t) -> bool;
    /// Decreases the value by 1, or returns ETIMEDOUT at an absolute deadline on a clock.
    pub fn pound_sem_timedwait(
        sem: *mut pound_sem_t,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> c_int;
    /// Increases the value by `count`. Returns 0, or EOVERFLOW if it would exceed
    /// [`POUND_SEM_MAX`].
    pub fn pound_sem_post(sem: *mut pound_sem_t, count: u32) -> c_int;
    /// The value at this moment.
    pub fn pound_sem_value(sem: *const pound_sem_t) -> u32;

    /// Sets the calling thread's weight. 0: that of its nice value.
    pub fn pound_thread_weight(weight: u32);
    /// Makes the calling thread a member of a tenant. Returns 0, EINVAL or ENOSPC.
    pub fn pound_thread_tenant(id: u64, weight: u32) -> c_int;
    /// Returns the calling thread to its cgroup.
    pub fn pound_thread_leave_tenant();
    /// The calling thread's group, for [`pound_thread_return`].
    pub fn pound_thread_group() -> u32;
    /// Puts the calling thread back into a group that [`pound_thread_group`] returned.
    pub fn pound_thread_return(group: u32);
    /// Names the lock at this address. Returns 0 or ENOSPC.
    pub fn pound_set_name(lock: *const c_void, name: *const c_char) -> c_int;

    /// The checks of `POUNDLOCK_DEBUG`, which change no lock: before the thread waits for it.
    pub fn pound_debug_wait(lock: *const c_void, flags: c_uint);
    /// The thread has acquired the lock.
    pub fn pound_debug_locked(lock: *const c_void, flags: c_uint);
    /// Before the thread releases the lock.
    pub fn pound_debug_unlock(lock: *const c_void, flags: c_uint);
    /// A new lock begins at this address.
    pub fn pound_debug_create(lock: *const c_void, flags: c_uint);
    /// Before the lock is destroyed.
    pub fn pound_debug_destroy(lock: *const c_void);

    /// Registers the policy of `policy=NAME`. Returns 0, EBUSY, EINVAL or ENOSPC.
    pub fn pound_policy_register(name: *const c_char, policy: *const pound_policy) -> c_int;
    /// Removes a policy. Returns 0, EBUSY or ENOENT.
    pub fn pound_policy_unregister(name: *const c_char) -> c_int;

    /// The index-th lock, or null past the last. Valid until the calling thread's next query.
    pub fn pound_lock_info(index: size_t) -> *const pound_lock_info;

    /// Initialises an unlocked readers-writer lock from NAME[,KEY=VALUE...]. Returns 0, or EINVAL
    /// with a one-line error.
    pub fn pound_rwlock_init(
        lock: *mut pound_rwlock_t,
        spec: *const c_char,
        error: *mut c_char,
        size: size_t,
    ) -> c_int;
    /// Returns what [`pound_rwlock_init`] would return, and changes no setting.
    pub fn pound_rwlock_check(spec: *const c_char, error: *mut c_char, size: size_t) -> c_int;
    /// Acquires the lock as a reader, or returns ETIMEDOUT at an absolute deadline on a clock.
    pub fn pound_rwlock_timedrdlock(
        lock: *mut pound_rwlock_t,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> c_int;
    /// Acquires the lock as a reader that may already be one. Returns 0, or EAGAIN with too many
    /// readers.
    pub fn pound_rwlock_rdlock_again(lock: *mut pound_rwlock_t) -> c_int;
    /// Acquires the lock as a reader that may already be one, if it need not wait.
    pub fn pound_rwlock_tryrdlock_again(lock: *mut pound_rwlock_t) -> bool;
    /// As [`pound_rwlock_timedrdlock`], for a reader that may already be one.
    pub fn pound_rwlock_timedrdlock_again(
        lock: *mut pound_rwlock_t,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> c_int;
    /// Releases a read lock. The last reader leaves the lock to the first waiter.
    pub fn pound_rwlock_rdunlock_fair(lock: *mut pound_rwlock_t);
    /// Acquires the lock as the writer, or returns ETIMEDOUT at an absolute deadline on a clock.
    pub fn pound_rwlock_timedwrlock(
        lock: *mut pound_rwlock_t,
        clock: clockid_t,
        deadline: *const timespec,
    ) -> c_int;
    /// Releases the write lock, and leaves the lock to the first waiter.
    pub fn pound_rwlock_wrunlock_fair(lock: *mut pound_rwlock_t);
    /// The index-th readers-writer lock, or null past the last. Valid until the calling thread's
    /// next query.
    pub fn pound_rwlock_info(index: size_t) -> *const pound_lock_info;
    /// The index-th setting, except `wait`, of the lock of that name, or null past the last. Valid
    /// until the calling thread's next query.
    pub fn pound_lock_setting(lock: *const c_char, index: size_t) -> *const pound_setting;

    /// Starts counting events.
    pub fn pound_events_start();
    /// The name of the index-th event, or null past the last.
    pub fn pound_event_name(index: size_t) -> *const c_char;
    /// The meaning of the index-th event.
    pub fn pound_event_meaning(index: size_t) -> *const c_char;
    /// The count of the index-th event.
    pub fn pound_event_count(index: size_t) -> u64;

    /// The locality domain of the calling thread's CPU.
    pub fn pound_domain() -> c_uint;
    /// Writes up to `size` CPUs of the route, in order, and returns the length of the route.
    pub fn pound_route(cpus: *mut c_uint, size: size_t) -> size_t;
    /// The file that the route was read from, or null. Never freed.
    pub fn pound_route_file() -> *const c_char;
}

/// The word of the mutex, accessed as in the inline functions of the header.
///
/// # Safety
/// `mutex` points to a valid mutex for the lifetime of the result.
#[inline]
unsafe fn state<'a>(mutex: *mut pound_mutex_t) -> &'a AtomicU32 {
    // SAFETY: the caller guarantees the pointer; all accesses to the word, in C and here, are
    // atomic.
    unsafe { AtomicU32::from_ptr(std::ptr::addr_of_mut!((*mutex).pound_state)) }
}

/// FREE -> LOCKED. The error is another state.
///
/// # Safety
/// `mutex` points to a valid mutex.
#[inline]
unsafe fn take_free(mutex: *mut pound_mutex_t) -> Result<u32, u32> {
    // SAFETY: as the caller promises.
    unsafe { state(mutex) }.compare_exchange(FREE, LOCKED, TAKE_ORDER, Ordering::Relaxed)
}

/// LOCKED -> FREE. The error is another state: there are waiters.
///
/// # Safety
/// `mutex` points to a valid mutex that is held by this program.
#[inline]
unsafe fn release_alone(mutex: *mut pound_mutex_t) -> Result<u32, u32> {
    // SAFETY: as the caller promises.
    unsafe { state(mutex) }.compare_exchange(LOCKED, FREE, RELEASE_ORDER, Ordering::Relaxed)
}

/// Acquires the mutex if it is free, without waiting. Returns whether it did.
///
/// # Safety
/// `mutex` points to a valid mutex.
#[inline]
pub unsafe fn pound_mutex_trylock(mutex: *mut pound_mutex_t) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        match take_free(mutex) {
            Ok(_) => true,
            Err(seen) => pound_mutex_trylock_slow(mutex, seen),
        }
    }
}

/// Whether the mutex is held at this moment.
///
/// # Safety
/// `mutex` points to a valid mutex.
#[inline]
pub unsafe fn pound_mutex_is_locked(mutex: *mut pound_mutex_t) -> bool {
    // SAFETY: as the caller promises. Relaxed: the result may be stale immediately and orders
    // nothing.
    unsafe { state(mutex) }.load(Ordering::Relaxed) & LOCKED != 0
}

/// Acquires the mutex, waiting if it is held. Not recursive.
///
/// # Safety
/// `mutex` points to a valid mutex that does not move while a thread holds it or waits for it.
#[inline]
pub unsafe fn pound_mutex_lock(mutex: *mut pound_mutex_t) {
    // SAFETY: as the caller promises.
    unsafe {
        if take_free(mutex).is_err() {
            pound_mutex_lock_slow(mutex);
        }
    }
}

/// Releases the mutex.
///
/// # Safety
/// `mutex` points to a valid mutex that is held by this program.
#[inline]
pub unsafe fn pound_mutex_unlock(mutex: *mut pound_mutex_t) {
    // SAFETY: as the caller promises.
    unsafe {
        if release_alone(mutex).is_err() {
            pound_mutex_unlock_slow(mutex);
        }
    }
}

/// The library's functions, which the inline ones call where they do not suffice.
mod library {
    use super::{c_int, c_void, pound_rwlock_t};

    extern "C" {
        /// Not null: readers-writer locks are observed, and no inline function changes them.
        pub static mut any_observer: *mut c_void;
        pub fn pound_rwlock_rdlock(lock: *mut pound_rwlock_t) -> c_int;
        pub fn pound_rwlock_tryrdlock(lock: *mut pound_rwlock_t) -> bool;
        pub fn pound_rwlock_rdunlock(lock: *mut pound_rwlock_t);
        pub fn pound_rwlock_wrlock(lock: *mut pound_rwlock_t);
        pub fn pound_rwlock_trywrlock(lock: *mut pound_rwlock_t) -> bool;
        pub fn pound_rwlock_wrunlock(lock: *mut pound_rwlock_t);
    }
}

/// The word of a readers-writer lock of the default kind that is not observed. None for others.
///
/// # Safety
/// `lock` points to a valid lock for the lifetime of the result.
#[inline]
unsafe fn plain_word<'a>(lock: *mut pound_rwlock_t) -> Option<&'a AtomicU32> {
    // SAFETY: the caller guarantees the pointer; all accesses to these, in C and here, are atomic.
    // Relaxed: both are set before threads use the lock.
    unsafe {
        let ops = std::ptr::addr_of_mut!((*lock).pound_ops).cast::<*mut c_void>();
        let ops = AtomicPtr::from_ptr(ops).load(Ordering::Relaxed);
        let observer = std::ptr::addr_of_mut!(library::any_observer);
        let observer = AtomicPtr::from_ptr(observer).load(Ordering::Relaxed);
        // One branch.
        let plain = ops as usize | observer as usize == 0;
        plain.then(|| AtomicU32::from_ptr(lock.cast::<u8>().add(RW_WORD).cast()))
    }
}

/// Enters a readers-writer lock as a reader, in one attempt.
///
/// # Safety
/// `lock` points to a valid lock.
#[inline]
unsafe fn enter_reader(lock: *mut pound_rwlock_t) -> bool {
    // SAFETY: as the caller promises.
    unsafe { plain_word(lock) }.is_some_and(|word| {
        let seen = word.load(Ordering::Relaxed);
        let entered = seen.wrapping_add(RW_READER);
        seen & (RW_WRITER | RW_CLOSED | RW_FULL) == 0
            && word.compare_exchange(seen, entered, Ordering::Acquire, Ordering::Relaxed).is_ok()
    })
}

/// Enters a readers-writer lock as the writer, if it is free and has no waiters.
///
/// # Safety
/// `lock` points to a valid lock.
#[inline]
unsafe fn enter_writer(lock: *mut pound_rwlock_t) -> bool {
    // SAFETY: as the caller promises.
    unsafe { plain_word(lock) }.is_some_and(|word| {
        word.compare_exchange(0, RW_WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok()
    })
}

/// Acquires the lock as a reader. Returns 0, or EAGAIN with too many readers.
///
/// # Safety
/// `lock` points to a valid lock that does not move while a thread holds it or waits for it.
#[inline]
pub unsafe fn pound_rwlock_rdlock(lock: *mut pound_rwlock_t) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { if enter_reader(lock) { 0 } else { library::pound_rwlock_rdlock(lock) } }
}

/// Acquires the lock as a reader if it need not wait.
///
/// # Safety
/// `lock` points to a valid lock.
#[inline]
pub unsafe fn pound_rwlock_tryrdlock(lock: *mut pound_rwlock_t) -> bool {
    // SAFETY: as the caller promises.
    unsafe { enter_reader(lock) || library::pound_rwlock_tryrdlock(lock) }
}

/// Releases the lock as a reader.
///
/// # Safety
/// `lock` points to a valid lock that has a reader.
#[inline]
pub unsafe fn pound_rwlock_rdunlock(lock: *mut pound_rwlock_t) {
    // SAFETY: as the caller promises.
    unsafe {
        let left = plain_word(lock).is_some_and(|word| {
            let seen = word.load(Ordering::Relaxed);
            // The last reader wakes a waiter that sleeps.
            let left = seen.wrapping_sub(RW_READER);
            seen & RW_PARKED == 0
                && word.compare_exchange(seen, left, Ordering::Release, Ordering::Relaxed).is_ok()
        });
        if !left {
            library::pound_rwlock_rdunlock(lock);
        }
    }
}

/// Acquires the lock as the writer.
///
/// # Safety
/// `lock` points to a valid lock that does not move while a thread holds it or waits for it.
#[inline]
pub unsafe fn pound_rwlock_wrlock(lock: *mut pound_rwlock_t) {
    // SAFETY: as the caller promises.
    unsafe {
        if !enter_writer(lock) {
            library::pound_rwlock_wrlock(lock);
        }
    }
}

/// Acquires the lock as the writer if it need not wait.
///
/// # Safety
/// `lock` points to a valid lock.
#[inline]
pub unsafe fn pound_rwlock_trywrlock(lock: *mut pound_rwlock_t) -> bool {
    // SAFETY: as the caller promises.
    unsafe { enter_writer(lock) || library::pound_rwlock_trywrlock(lock) }
}

/// Releases the lock as the writer.
///
/// # Safety
/// `lock` points to a valid lock that the writer holds.
#[inline]
pub unsafe fn pound_rwlock_wrunlock(lock: *mut pound_rwlock_t) {
    // SAFETY: as the caller promises.
    unsafe {
        let left = plain_word(lock).is_some_and(|word| {
            word.compare_exchange(RW_WRITER, 0, Ordering::Release, Ordering::Relaxed).is_ok()
        });
        if !left {
            library::pound_rwlock_wrunlock(lock);
        }
    }
}

/// Whether there is nobody to wake, nor a leaving waiter that may access `cond` again.
///
/// # Safety
/// `cond` points to a valid condition variable.
#[inline]
unsafe fn cond_idle(cond: *mut pound_cond_t) -> bool {
    // SAFETY: as the caller promises; all accesses to both words, in C and here, are atomic.
    unsafe {
        let last = AtomicPtr::from_ptr(std::ptr::addr_of_mut!((*cond).pound_last));
        let list = AtomicU32::from_ptr(std::ptr::addr_of_mut!((*cond).pound_list));
        last.load(COND_ORDER).is_null() && list.load(COND_ORDER) == 0
    }
}

/// Wakes the thread that has waited longest. Returns whether there was one.
///
/// # Safety
/// `cond` points to a valid condition variable.
#[inline]
pub unsafe fn pound_cond_signal(cond: *mut pound_cond_t) -> bool {
    // SAFETY: as the caller promises.
    unsafe { !cond_idle(cond) && pound_cond_signal_slow(cond) }
}

/// Wakes all threads that wait. Returns their number.
///
/// # Safety
/// `cond` points to a valid condition variable.
#[inline]
pub unsafe fn pound_cond_broadcast(cond: *mut pound_cond_t) -> size_t {
    // SAFETY: as the caller promises.
    unsafe { if cond_idle(cond) { 0 } else { pound_cond_broadcast_slow(cond) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" {
        fn poundlock_sys_trylock(mutex: *mut pound_mutex_t) -> bool;
        fn poundlock_sys_lock(mutex: *mut pound_mutex_t);
        fn poundlock_sys_unlock(mutex: *mut pound_mutex_t);
        fn poundlock_sys_cond_idle(cond: *mut pound_cond_t) -> bool;
    }

    #[test]
    fn a_condition_variable_is_idle_as_in_the_header() {
        let mut waiter = 0u64;
        for last in [std::ptr::null_mut(), std::ptr::addr_of_mut!(waiter).cast()] {
            for list in [0, 1] {
                let mut cond =
                    pound_cond_t { pound_last: last, pound_list: list, pound_generation: 0 };
                // SAFETY: the words are only read.
                let (ours, header) =
                    unsafe { (cond_idle(&mut cond), poundlock_sys_cond_idle(&mut cond)) };
                assert_eq!(ours, header, "{last:?} {list}");
                assert_eq!(ours, last.is_null() && list == 0);
            }
        }
    }

    const PARKED: u32 = 2;
    const CLOSED: u32 = 8;

    /// A mutex without waiters, with a state and the fork generation of its last use.
    fn mutex(state: u32, generation: u32) -> pound_mutex_t {
        pound_mutex_t {
            pound_state: state,
            pound_generation: generation,
            embedder: 7,
            ..POUND_MUTEX_INIT
        }
    }

    fn parts(mutex: &pound_mutex_t) -> (bool, bool, [u32; 3]) {
        let numbers = [mutex.embedder, mutex.pound_state, mutex.pound_generation];
        (mutex.pound_tail.is_null(), mutex.pound_heir.is_null(), numbers)
    }

    /// Runs the function of the header and that of this crate on equal mutexes, and asserts equal
    /// results and states.
    fn both<R: PartialEq + std::fmt::Debug>(
        begin: (u32, u32),
        header: unsafe extern "C" fn(*mut pound_mutex_t) -> R,
        ours: unsafe fn(*mut pound_mutex_t) -> R,
    ) -> (R, u32) {
        let (mut one, mut other) = (mutex(begin.0, begin.1), mutex(begin.0, begin.1));
        // SAFETY: both are valid, and no other thread can access them.
        let (expected, result) = unsafe { (header(&mut one), ours(&mut other)) };
        assert_eq!((&expected, parts(&one)), (&result, parts(&other)), "from {begin:?}");
        (result, other.pound_state)
    }

    /// The generation of another process, whose waiters fork did not copy.
    const PARENT: u32 = 98;

    #[test]
    fn inline_functions_match_the_header() {
        let trylock = |state, generation| {
            both((state, generation), poundlock_sys_trylock, pound_mutex_trylock)
        };
        assert_eq!(trylock(0, 0), (true, LOCKED));
        assert_eq!(trylock(0, PARENT), (true, LOCKED));
        assert_eq!(trylock(CLOSED, 0), (false, CLOSED), "closed for the first waiter");
        assert_eq!(
            trylock(CLOSED, PARENT),
            (true, LOCKED),
            "closed for a waiter of another process"
        );
        for state in [LOCKED, LOCKED | PARKED, LOCKED | CLOSED] {
            assert_eq!(trylock(state, 0), (false, state));
            assert_eq!(trylock(state, PARENT), (false, state));
        }
        for begin in [(0, 0), (0, PARENT), (CLOSED, PARENT)] {
            assert_eq!(both(begin, poundlock_sys_lock, pound_mutex_lock), ((), LOCKED));
        }
        for generation in [0, PARENT] {
            let unlock =
                |state| both((state, generation), poundlock_sys_unlock, pound_mutex_unlock);
            assert_eq!(unlock(LOCKED), ((), 0));
            assert_eq!(unlock(LOCKED | PARKED), ((), 0));
            assert_eq!(unlock(LOCKED | CLOSED), ((), CLOSED));
        }
    }

    /// The result of `change`, and the bytes, of a readers-writer lock that begins with `word`.
    fn changed<R>(word: u32, change: unsafe fn(*mut pound_rwlock_t) -> R) -> (R, [u64; 6]) {
        let mut lock = POUND_RWLOCK_INIT;
        // SAFETY: the lock is valid, and no other thread can access it.
        unsafe {
            plain_word(&mut lock).expect("not observed").store(word, Ordering::Relaxed);
            (change(&mut lock), lock.pound_bytes)
        }
    }

    /// Asserts that the inline function and the library's have the same effect.
    macro_rules! same {
        ($function:ident, $words:expr) => {
            for word in $words {
                // SAFETY: changed() passes a valid lock.
                let library = changed(word, |lock| unsafe { library::$function(lock) });
                // SAFETY: as above.
                let inline = changed(word, |lock| unsafe { $function(lock) });
                assert_eq!(inline, library, concat!(stringify!($function), " from {:#x}"), word);
            }
        };
    }

    /// Every combination of flags with no, one and two readers, and with the most and all but one.
    fn words() -> impl Iterator<Item = u32> {
        let readers = [0, RW_READER, 2 * RW_READER, RW_FULL - RW_READER, RW_FULL];
        readers.into_iter().flat_map(|readers| {
            [0, RW_CLOSED, RW_PARKED, RW_CLOSED | RW_PARKED].map(|flags| readers | flags)
        })
    }

    #[test]
    fn inline_functions_of_the_readers_writer_lock_match_the_library() {
        let writer =
            [0, RW_CLOSED, RW_PARKED, RW_CLOSED | RW_PARKED].map(|flags| RW_WRITER | flags);
        same!(pound_rwlock_tryrdlock, words().chain(writer));
        same!(pound_rwlock_trywrlock, words().chain(writer));
        same!(pound_rwlock_rdunlock, words().filter(|word| *word >= RW_READER));
        same!(pound_rwlock_wrunlock, writer);
        // Those at which nobody waits, or is refused.
        let open = |word: &u32| word & (RW_CLOSED | RW_FULL) == 0;
        same!(pound_rwlock_rdlock, words().filter(open));
        same!(pound_rwlock_wrlock, [0, RW_PARKED]);
    }

    #[test]
    fn only_an_open_lock_is_entered_inline() {
        for (word, changes) in [(0, true), (RW_CLOSED, false), (RW_WRITER, false)] {
            let mut lock = POUND_RWLOCK_INIT;
            // SAFETY: the lock is valid, and no other thread can access it.
            unsafe {
                plain_word(&mut lock).expect("not observed").store(word, Ordering::Relaxed);
                assert_eq!(enter_writer(&mut lock), changes, "{word:#x}");
                plain_word(&mut lock).expect("not observed").store(word, Ordering::Relaxed);
                assert_eq!(enter_reader(&mut lock), changes, "{word:#x}");
            }
        }
    }

    #[test]
    fn a_lock_of_another_kind_is_not_changed_inline() {
        let (mut lock, mut error) = (POUND_RWLOCK_INIT, [0; 200]);
        // SAFETY: all pointers are valid, and no other thread can access the lock.
        unsafe {
            let spec = b"shfl_rw,patience=5\0".as_ptr().cast();
            assert_eq!(pound_rwlock_init(&mut lock, spec, error.as_mut_ptr(), error.len()), 0);
            assert!(plain_word(&mut lock).is_none());
        }
    }

    /// In a child, since an observer is one of the whole process.
    #[test]
    fn an_observed_lock_is_not_changed_inline() {
        let mut lock = POUND_RWLOCK_INIT;
        let mut status = -1;
        // SAFETY: the child calls only what is safe after fork. Nothing uses the observer.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                library::any_observer = std::ptr::addr_of_mut!(lock).cast();
                libc::_exit(c_int::from(plain_word(&mut lock).is_some()));
            }
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
        }
        assert_eq!(status, 0, "exit status");
    }
}
