// SPDX-License-Identifier: MIT OR Apache-2.0
//! Coroutine switching on stacks that the caller owns.
//!
//! Promises: the state of a suspended coroutine is its stack from the returned stack pointer up,
//! and nothing else. The explorer can therefore hash, copy and restore a thread. Libraries for
//! coroutines hide the stack pointer.

use std::arch::global_asm;

#[cfg(not(target_arch = "x86_64"))]
compile_error!("poundlock-check switches stacks on x86-64 only");

// Saves the callee-saved registers on the old stack and restores them from the new one.
global_asm!(
    ".global poundlock_check_switch",
    "poundlock_check_switch:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi], rsp",
    "mov rsp, rsi",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
);

unsafe extern "C" {
    fn poundlock_check_switch(from: *mut usize, to: usize);
}

/// The number of registers that a switch saves on the stack, below the return address.
const SAVED: usize = 6;

/// Prepares the stack that ends at `top` so that the first switch to it calls `entry`, which must
/// not return. Returns the stack pointer.
///
/// # Safety
/// The memory below `top` is writable and has no other use; `top` is a multiple of 16.
pub unsafe fn prepare(top: usize, entry: extern "C" fn() -> !) -> usize {
    // At a function's entry the stack pointer is 8 off a multiple of 16, as after a call: one word
    // at the top stays unused.
    let start = top - (SAVED + 2) * size_of::<usize>();
    let words = start as *mut usize;
    // SAFETY: the words are below `top`.
    unsafe {
        for i in 0..SAVED {
            words.add(i).write(0);
        }
        words.add(SAVED).write(entry as usize);
        words.add(SAVED + 1).write(0);
    }
    start
}

/// Suspends the running coroutine, stores its stack pointer in `*from`, and resumes the one
/// suspended at `to`.
///
/// # Safety
/// `to` is the stack pointer of a suspended coroutine.
pub unsafe fn switch(from: *mut usize, to: usize) {
    // SAFETY: as the caller promises.
    unsafe { poundlock_check_switch(from, to) }
}
