// SPDX-License-Identifier: MIT OR Apache-2.0
//! Coroutine switching on stacks that the caller owns.
//!
//! Promises: the state of a suspended coroutine is its stack from the returned stack pointer up,
//! and nothing else. The explorer can therefore hash, copy and restore a thread. Libraries for
//! coroutines hide the stack pointer.

use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(target_arch = "x86_64"))]
compile_error!("poundlock-check switches stacks on x86-64 only");

/// The engine's stack pointer while a coroutine runs; 0 while none does.
pub static ENGINE: AtomicUsize = AtomicUsize::new(0);

/// Defines the function `$name`: saves the callee-saved registers on the stack, executes the
/// instructions, and restores the registers from the stack that is then in use.
macro_rules! saving_registers {
    ($name:literal, [$($instruction:expr),*], $($symbol:ident = $path:path),*) => {
        std::arch::global_asm!(
            concat!(".global ", $name),
            concat!($name, ":"),
            "push rbp",
            "push rbx",
            "push r12",
            "push r13",
            "push r14",
            "push r15",
            $($instruction,)*
            "pop r15",
            "pop r14",
            "pop r13",
            "pop r12",
            "pop rbx",
            "pop rbp",
            "ret",
            $($symbol = sym $path),*
        );
    };
}
pub(crate) use saving_registers;

saving_registers!(
    "poundlock_check_enter",
    ["mov [rip + {engine}], rsp", "mov rsp, rdi"],
    engine = ENGINE
);
saving_registers!(
    "poundlock_check_leave",
    ["mov [rdi], rsp", "mov rsp, [rip + {engine}]", "mov qword ptr [rip + {engine}], 0"],
    engine = ENGINE
);

unsafe extern "C" {
    fn poundlock_check_enter(to: usize);
    pub fn poundlock_check_leave(from: *mut usize);
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

/// Whether a coroutine runs.
pub fn is_inside() -> bool {
    ENGINE.load(Ordering::Relaxed) != 0
}

/// Resumes the coroutine that is suspended at `to`, and returns when it is suspended again.
///
/// # Safety
/// No coroutine runs. `to` is the stack pointer of a suspended one.
pub unsafe fn enter(to: usize) {
    // SAFETY: as the caller promises.
    unsafe { poundlock_check_enter(to) }
}

/// Suspends the running coroutine, and stores its stack pointer in `*from`.
///
/// # Safety
/// A coroutine runs.
pub unsafe fn leave(from: *mut usize) {
    // SAFETY: as the caller promises.
    unsafe { poundlock_check_leave(from) }
}
