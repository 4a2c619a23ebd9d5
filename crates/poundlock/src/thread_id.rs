//! The identity of a thread, for mutexes that know their holder.

use std::num::NonZeroUsize;

/// Identifies the calling thread by the address of a thread-local byte.
pub struct RawThreadId;

impl RawThreadId {
    pub(crate) fn current() -> NonZeroUsize {
        thread_local!(static BYTE: u8 = const { 0 });
        BYTE.with(|byte| NonZeroUsize::new(byte as *const u8 as usize))
            .expect("the address of a reference is not null")
    }
}

// SAFETY: no two threads that exist at the same time share a thread-local byte.
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: RawThreadId = RawThreadId;

    fn nonzero_thread_id(&self) -> NonZeroUsize {
        RawThreadId::current()
    }
}
