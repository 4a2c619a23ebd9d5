// SPDX-License-Identifier: MIT OR Apache-2.0
//! Crashes of a client's threads, which become faults of the client.

use std::ffi::c_void;
use std::ptr;

use crate::{context, machine};

/// The size of the signal handler's stack.
const STACK_SIZE: usize = 1 << 16;

/// Installs the handler.
pub fn catch() {
    let stack = vec![0u8; STACK_SIZE].leak();
    let alternative =
        libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    // SAFETY: the stack stays allocated, and the handler has the type that SA_SIGINFO asks for.
    unsafe {
        libc::sigaltstack(&alternative, ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = crashed as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

/// Abandons the crashed coroutine. An instruction of that coroutine raised the signal, so no data
/// of the engine is inconsistent.
extern "C" fn crashed(signal: i32, info: *mut libc::siginfo_t, _: *mut c_void) {
    if !context::is_inside() {
        // SAFETY: the default action ends the process, as for any other program.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    }
    let machine = machine::current();
    // SAFETY: the kernel passes a valid siginfo.
    let address = unsafe { (*info).si_addr() } as usize;
    machine.report_crash(signal, address);
    machine.stop();
}
