// SPDX-License-Identifier: MIT OR Apache-2.0
//! parking_lot's `RawMutex` for the benchmark's C++ driver, which gives it memory of
//! `bench_parking_lot_size` bytes.

use parking_lot::RawMutex;
use parking_lot::lock_api::{GuardNoSend, RawMutex as _};

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static bench_parking_lot_size: usize = size_of::<RawMutex>();

/// Makes the memory at `mutex` an unlocked mutex.
///
/// # Safety `mutex` points to writable memory of `bench_parking_lot_size` bytes that no other
/// thread uses yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_parking_lot_init(mutex: *mut RawMutex) {
    // SAFETY: the caller's promise.
    unsafe { mutex.write(RawMutex::INIT) };
}

/// Locks `mutex`.
///
/// # Safety
/// `bench_parking_lot_init` made `mutex`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_parking_lot_lock(mutex: *const RawMutex) {
    // SAFETY: the caller's promise.
    unsafe { (*mutex).lock() };
}

/// Unlocks `mutex`.
///
/// # Safety
/// The caller holds `mutex`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_parking_lot_unlock(mutex: *const RawMutex) {
    // SAFETY: the caller's promise.
    unsafe { (*mutex).unlock(GuardNoSend::new()) };
}
