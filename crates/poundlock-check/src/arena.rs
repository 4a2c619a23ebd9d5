// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a client and its threads, at the same address in each run, so that runs are
//! reproducible.

use std::io;

use anyhow::{Context, Result};

use crate::abi::MAX_THREADS;

const BASE: usize = 0x1000_0000_0000;
/// The objects that the client's threads share.
pub const SHARED: usize = BASE;
const SHARED_SIZE: usize = 0x8000;
/// The client's records about its threads. Accesses to it are not checked for races.
pub const GHOST: usize = BASE + SHARED_SIZE;
const GHOST_SIZE: usize = 0x8000;
/// The pools of waiters' nodes, by thread.
pub const NODES: usize = BASE + SHARED_SIZE + GHOST_SIZE;
/// The number of nodes of a thread.
pub const NODES_EACH: usize = 5;
/// The size of a node in bytes.
pub const NODE_SIZE: usize = 64;
const STACKS: usize = NODES + 0x1000;
const STACK_SIZE: usize = 0x8000;
const END: usize = STACKS + MAX_THREADS * STACK_SIZE;
/// The number of aligned 4-byte words, the possible addresses of atomic objects.
pub const GRANULES: usize = (END - BASE) / 4;

/// Maps the memory.
pub fn map() -> Result<()> {
    // SAFETY: a new mapping that replaces none.
    let got = unsafe {
        libc::mmap(
            BASE as *mut _,
            END - BASE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
            -1,
            0,
        )
    };
    if got as usize == BASE {
        return Ok(());
    }
    Err(io::Error::last_os_error())
        .with_context(|| format!("cannot map {} bytes at {BASE:#x}", END - BASE))
}

/// Whether the `size` bytes at `address` are in this memory.
pub fn holds(address: usize, size: usize) -> bool {
    (BASE..END).contains(&address) && size <= END - address
}

/// Whether `address` is in the client's records.
pub fn is_ghost(address: usize) -> bool {
    (GHOST..GHOST + GHOST_SIZE).contains(&address)
}

/// The number of the 4-byte word at `address`, which is in this memory.
pub fn granule(address: usize) -> usize {
    (address - BASE) / 4
}

/// The lowest address of the thread's stack.
pub fn stack_base(thread: usize) -> usize {
    STACKS + thread * STACK_SIZE
}

/// The end of the thread's stack.
pub fn stack_top(thread: usize) -> usize {
    stack_base(thread) + STACK_SIZE
}

/// The thread whose stack contains `address`.
pub fn stack_owner(address: usize) -> Option<usize> {
    (STACKS..END).contains(&address).then(|| (address - STACKS) / STACK_SIZE)
}

/// The address of a node of the thread.
pub fn node(thread: usize, index: usize) -> usize {
    NODES + (thread * NODES_EACH + index) * NODE_SIZE
}

/// The address, and those at the same place in the nodes and stacks of all threads.
pub fn alike(address: usize) -> Vec<usize> {
    if let Some(owner) = stack_owner(address) {
        let place = address - stack_base(owner);
        return (0..MAX_THREADS).map(|thread| stack_base(thread) + place).collect();
    }
    if (NODES..STACKS).contains(&address) {
        let place = (address - NODES) % NODE_SIZE;
        let nodes = MAX_THREADS * NODES_EACH;
        return (0..nodes).map(|number| NODES + number * NODE_SIZE + place).collect();
    }
    vec![address]
}

/// The `size` bytes at `address`.
///
/// # Safety
/// They are in the mapped memory, and no code writes them while the slice is used.
pub unsafe fn bytes<'a>(address: usize, size: usize) -> &'a [u8] {
    debug_assert!(holds(address, size));
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(address as *const u8, size) }
}

/// A readable name for `address`.
pub fn name(address: usize) -> String {
    match address {
        0 => "NULL".into(),
        _ if !holds(address, 1) => format!("{address:#x}"),
        _ if address < GHOST => offset("shared", address - SHARED),
        _ if address < NODES => offset("ghost", address - GHOST),
        _ if address < STACKS => {
            let index = (address - NODES) / NODE_SIZE;
            let node = format!("T{}.node{}", index / NODES_EACH, index % NODES_EACH);
            offset(&node, (address - NODES) % NODE_SIZE)
        }
        _ => {
            let thread = (address - STACKS) / STACK_SIZE;
            format!("T{thread}.stack-{:#x}", stack_top(thread) - address)
        }
    }
}

fn offset(object: &str, offset: usize) -> String {
    if offset == 0 { object.into() } else { format!("{object}+{offset}") }
}

/// A readable form of a value: addresses by name.
pub fn value(value: u64) -> String {
    if holds(value as usize, 1) { format!("&{}", name(value as usize)) } else { format!("{value}") }
}

/// Reads the object of `size` bytes, 1, 2, 4 or 8, at `address`, which is in this memory.
pub fn load(address: usize, size: usize) -> u64 {
    // SAFETY: the memory is mapped and belongs to the running coroutine or the engine, which are
    // one thread.
    unsafe {
        match size {
            1 => (address as *const u8).read() as u64,
            2 => (address as *const u16).read() as u64,
            4 => (address as *const u32).read() as u64,
            _ => (address as *const u64).read(),
        }
    }
}

/// Writes the object of `size` bytes, 1, 2, 4 or 8, at `address`, which is in this memory.
pub fn store(address: usize, size: usize, value: u64) {
    // SAFETY: as in `load`.
    unsafe {
        match size {
            1 => (address as *mut u8).write(value as u8),
            2 => (address as *mut u16).write(value as u16),
            4 => (address as *mut u32).write(value as u32),
            _ => (address as *mut u64).write(value),
        }
    }
}
