// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of the simulated process. It is at the same address in every run, since locks may
//! hash addresses; so simulations in one process take turns.

use crate::error::{SimError, error};
use std::sync::{Mutex, MutexGuard, PoisonError};

const BASE: usize = 0x2000_0000_0000;
/// Reserved address space; untouched pages cost nothing.
const BYTES: usize = 1 << 30;
/// Bytes of a simulated thread's stack.
pub(crate) const STACK: usize = 64 << 10;

static TURN: Mutex<()> = Mutex::new(());

pub(crate) struct Arena {
    bytes: usize,
    used: usize,
    _turn: MutexGuard<'static, ()>,
}

impl Arena {
    /// Maps the memory, zeroed. Waits for the end of another simulation in this process.
    pub fn map() -> Result<Arena, SimError> {
        // A panic of another simulation left no state: the memory is mapped again.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a new mapping that replaces none.
        let got = unsafe {
            libc::mmap(
                BASE as *mut _,
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE
                    | libc::MAP_ANONYMOUS
                    | libc::MAP_NORESERVE
                    | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        if got as usize != BASE {
            return error(format!(
                "cannot map the simulated memory at {BASE:#x}: {}",
                std::io::Error::last_os_error()
            ));
        }
        Ok(Arena { bytes: BYTES, used: 0, _turn: turn })
    }

    pub fn base(&self) -> usize {
        BASE
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Allocates zeroed bytes.
    pub fn allocate(&mut self, bytes: usize, align: usize) -> usize {
        let at = self.used.next_multiple_of(align);
        self.used = at + bytes;
        assert!(self.used <= self.bytes, "the simulated memory is full");
        BASE + at
    }

    /// Reads the object of `size` bytes at `address`; of size 0, returns 0.
    pub fn read(&self, address: usize, size: u32) -> u64 {
        // SAFETY: simulated code accesses valid objects, in this memory or static, one thread at a
        // time.
        unsafe {
            match size {
                0 => 0,
                1 => (address as *const u8).read().into(),
                4 => (address as *const u32).read().into(),
                _ => (address as *const u64).read(),
            }
        }
    }

    /// Writes the object of `size` bytes at `address`.
    pub fn write(&mut self, address: usize, size: u32, value: u64) {
        // SAFETY: as in `read`.
        unsafe {
            match size {
                1 => (address as *mut u8).write(value as u8),
                4 => (address as *mut u32).write(value as u32),
                _ => (address as *mut u64).write(value),
            }
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned, and the coroutines whose stacks were there have ended.
        unsafe { libc::munmap(BASE as *mut _, BYTES) };
    }
}
