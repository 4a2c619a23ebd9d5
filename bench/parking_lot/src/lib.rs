// SPDX-License-Identifier: MIT OR Apache-2.0
//! parking_lot's `Mutex` and `Condvar` for the benchmark's C++ driver, which gives them memory of
//! `bench_parking_lot_size` and `bench_parking_lot_cond_size` bytes.

use parking_lot::lock_api::GuardNoSend;
use parking_lot::{Condvar, Mutex};

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static bench_parking_lot_size: usize = size_of::<Mutex<()>>();

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static bench_parking_lot_cond_size: usize = size_of::<Condvar>();

/// Makes the memory at `mutex` an unlocked mutex.
///
/// # Safety
/// `mutex` points to writable memory of `bench_parking_lot_size` bytes that no other thread uses
/// yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_parking_lot_init(mutex: *mut Mutex<()>) {
    // SAFETY: the caller's promise.
    unsafe { mutex.write(Mutex::new(())) };
}

/// Locks `mutex`.
///
/// # Safety
/// `bench_parking_lot_init` made `mutex`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_parking_lot_lock(mutex: *const Mutex<()>) {
    // SAFETY: the caller's promise.
    std::mem::forget(unsafe { (*mutex).lock() });
}

/// Unlocks `mutex`.
///
/// # Safety
/// The caller holds `mutex`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_parking_lot_unlock(mutex: *const Mutex<()>) {
    // SAFETY: the caller's promise.
    unsafe { (*mutex).force_unlock(GuardNoSend::new()) };
}

/// Makes the memory at `cond` a condition variable without waiters.
///
/// # Safety
/// `cond` points to writable memory of `bench_parking_lot_cond_size` bytes that no other thread
/// uses yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_parking_lot_cond_init(cond: *mut Condvar) {
    // SAFETY: the caller's promise.
    unsafe { cond.write(Condvar::new()) };
}

/// Unlocks `mutex`, waits for a signal, and locks it again.
///
/// # Safety
/// The functions above made both, and the caller holds `mutex`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_parking_lot_wait(cond: *const Condvar, mutex: *const Mutex<()>) {
    // SAFETY: the caller's promise.
    let mut guard = unsafe { (*mutex).make_guard_unchecked(GuardNoSend::new()) };
    // SAFETY: the caller's promise.
    unsafe { (*cond).wait(&mut guard) };
    std::mem::forget(guard);
}

/// Wakes a waiter.
///
/// # Safety
/// `bench_parking_lot_cond_init` made `cond`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_parking_lot_signal(cond: *const Condvar) {
    // SAFETY: the caller's promise.
    unsafe { (*cond).notify_one() };
}
