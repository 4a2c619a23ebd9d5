// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface between the checker and the clients' C code: the Rust side of world/check/engine.h
//! and world/check/client.h. Change both sides together.

use std::ffi::{CStr, c_char, c_void};

/// The most threads of a client.
pub const MAX_THREADS: usize = 8;
/// Stands for no thread: the client's setup.
pub const NO_THREAD: u8 = u8::MAX;

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[allow(dead_code, reason = "the values come from C")]
pub enum Kind {
    Load,
    Store,
    Exchange,
    CompareExchange,
    FetchAdd,
    FetchOr,
    FetchAnd,
    Fence,
    Wait,
    Park,
    Unpark,
    UnparkAll,
    Choose,
    Expired,
    Move,
    Fork,
    Create,
    Created,
}

/// A memory order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[allow(dead_code, reason = "the values come from C")]
pub enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl Order {
    pub fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::SeqCst)
    }

    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }
}

/// A place in the C source that performs an operation.
#[repr(C)]
pub struct Site {
    pub file: *const c_char,
    pub operation: *const c_char,
    pub object: *const c_char,
    pub line: i32,
    pub kind: Kind,
    pub order: Order,
    pub size: u32,
}

impl Site {
    /// The bits of a value of the operation.
    pub fn mask(&self) -> u64 {
        if self.size == 0 { u64::MAX } else { u64::MAX >> (64 - 8 * self.size.min(8)) }
    }
}

/// The words that a call and the called function's prologue leave on the stack. The caller's frame
/// ends directly above them.
#[repr(C)]
pub struct Caller {
    pub frame: *const c_void,
    pub pc: *const c_void,
}

/// The reply to a wait: a value to test (`more` is 1), or the value that ends the wait (0).
#[repr(C)]
pub struct Wait {
    pub value: u64,
    pub more: u64,
}

/// `struct check_engine`.
#[repr(C)]
pub struct Engine {
    pub operate: extern "C" fn(*const Site, *mut c_void, u64, u64) -> u64,
    pub wait: extern "C" fn(*const Site, *mut c_void, bool, *const c_void, bool) -> Wait,
    pub plain: extern "C" fn(*const c_void, usize, bool, *const Caller),
    pub event: extern "C" fn(u32),
    pub yield_: extern "C" fn(),
    pub this: extern "C" fn() -> u32,
    pub returned: extern "C" fn(*const c_void),
    pub ended: extern "C" fn(*const c_void, usize),
    pub renewed: extern "C" fn(),
    pub fail: extern "C" fn(*const c_char, i32, *const c_char),
    pub outcome: extern "C" fn(u32, u64),
    pub node: extern "C" fn(u32) -> *mut c_void,
    pub generation: extern "C" fn() -> u32,
    pub busy_nodes: extern "C" fn() -> u32,
    pub cpu: extern "C" fn() -> u32,
    pub domain_of: extern "C" fn(u32) -> u32,
    pub cpu_count: extern "C" fn() -> u32,
    pub queue: extern "C" fn(*const c_void),
    pub mixed: extern "C" fn(*const c_void, usize),
    pub hint: extern "C" fn(*const c_void),
    pub acquires: extern "C" fn(),
    pub acquired: extern "C" fn(bool),
    pub arrival: extern "C" fn(u32) -> u64,
}

/// `struct check_client`.
#[repr(C)]
pub struct Client {
    pub name: *const c_char,
    pub shared: usize,
    pub ghost: usize,
    pub threads: u32,
    pub flags: u32,
    pub bound: u32,
    pub spurious: u32,
    pub domains: u32,
    pub cpus: u32,
    pub moves: u32,
    pub bypass: u32,
    pub since: u32,
    pub walks: u32,
    pub setup: Option<extern "C" fn()>,
    pub thread: extern "C" fn(u32),
    pub finish: Option<extern "C" fn()>,
    pub invariant: Option<extern "C" fn()>,
    pub demands: *const c_char,
    pub allowed: *const c_char,
    pub forbidden: *const c_char,
    pub fails: *const c_char,
    pub promised: *const c_char,
    pub promised_fails: *const c_char,
}

/// Flag of a client: the bypasses of each waiter are bounded.
pub const CLIENT_ORDER: u32 = 1;
/// Flag of a client: it is explored a second time, with promises.
pub const CLIENT_PROMISES: u32 = 4;

/// Flag of a client: it is explored completely even if that takes minutes.
pub const CLIENT_COMPLETE: u32 = 8;

/// Flag of a client: its threads sleep by the specification of sleeping.
pub const CLIENT_COMPOSED: u32 = 16;

/// The text at `text`, or "" for NULL.
pub fn text(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "";
    }
    // SAFETY: the texts are literals of clients, whose libraries stay loaded.
    unsafe { CStr::from_ptr(text) }.to_str().expect("texts of clients are ASCII")
}

/// The words of the text at `text`.
pub fn words(text: *const c_char) -> Vec<&'static str> {
    self::text(text).split_whitespace().collect()
}
