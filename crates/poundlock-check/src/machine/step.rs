// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of steps of an execution.

/// The message of an access that begins its location's lifetime.
pub const FIRST_MESSAGE: u16 = u16::MAX;

/// One possible result of a thread's pending operation.
#[derive(Clone, Copy, Debug)]
pub struct Alternative {
    pub message: u16,
    pub action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The operation completes.
    Proceed,
    /// A wait reads a message that does not end it, before one that does.
    Skip,
    /// A wait ends unsuccessfully.
    GiveUp,
    Sleep,
    /// A park returns spuriously.
    SpuriousWake,
    /// A sleeper's deadline passes.
    TimeOut,
    Choose(u32),
    Wake(u8),
    /// The thread promises the store of this number, among those that it can promise.
    Promise(u8),
    /// The thread performs the store that it has promised.
    Keep,
}

/// A thread, and the index of one of its alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub thread: u8,
    pub alternative: u8,
}
