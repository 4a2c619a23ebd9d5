//! Initialisation that runs once.

use crate::futex;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs a closure once, on the first call; other callers wait until it has returned. 4 bytes.
///
/// If the closure panics, the `Once` is poisoned, as in std. The closure must not call the same
/// `Once`: it would wait for itself.
///
/// ```
/// static START: poundlock::Once = poundlock::Once::new();
///
/// START.call_once(|| println!("printed once"));
/// START.call_once(|| unreachable!());
/// ```
pub struct Once {
    /// ```text
    /// NEW or POISONED ──first caller──▶ RUNNING ──closure returned──▶ DONE
    ///                                   RUNNING ──waiter──▶ AWAITED ──closure returned──▶ DONE
    ///                        RUNNING or AWAITED ──closure panicked──▶ POISONED
    /// ```
    state: AtomicU32,
}

const NEW: u32 = 0;
const POISONED: u32 = 1;
const RUNNING: u32 = 2;
/// RUNNING, and threads sleep on the state.
const AWAITED: u32 = 3;
const DONE: u32 = 4;

/// The state of a [`Once`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceState {
    /// No closure has run.
    New,
    /// A closure has panicked.
    Poisoned,
    /// A closure is running.
    InProgress,
    /// A closure has returned.
    Done,
}

impl OnceState {
    /// Whether a closure has panicked, and none has returned since.
    pub fn poisoned(self) -> bool {
        self == OnceState::Poisoned
    }

    /// Whether a closure has returned.
    pub fn done(self) -> bool {
        self == OnceState::Done
    }
}

/// Ends a run, also by a panic of the closure.
struct Run<'a> {
    state: &'a AtomicU32,
    result: u32,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let word: *const AtomicU32 = self.state;
        // Release: publishes what the closure wrote, to acquire loads of the state.
        if self.state.swap(self.result, Ordering::Release) == AWAITED {
            futex::wake(word, i32::MAX);
        }
    }
}

impl Once {
    /// Creates a `Once` whose closure has not run.
    pub const fn new() -> Once {
        Once { state: AtomicU32::new(NEW) }
    }

    /// The state at this moment.
    pub fn state(&self) -> OnceState {
        match self.state.load(Ordering::Acquire) {
            NEW => OnceState::New,
            POISONED => OnceState::Poisoned,
            DONE => OnceState::Done,
            _ => OnceState::InProgress,
        }
    }

    /// Calls `closure` if no call has returned yet. Returns after one has.
    ///
    /// # Panics
    /// If an earlier closure panicked.
    #[inline]
    pub fn call_once<F: FnOnce()>(&self, closure: F) {
        if self.state.load(Ordering::Acquire) != DONE {
            let mut closure = Some(closure);
            self.call(false, &mut |_| closure.take().expect("it is called once")());
        }
    }

    /// As [`Once::call_once`], also after an earlier closure panicked; then `closure` is called
    /// with [`OnceState::Poisoned`], otherwise with [`OnceState::New`].
    #[inline]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, closure: F) {
        if self.state.load(Ordering::Acquire) != DONE {
            let mut closure = Some(closure);
            self.call(true, &mut |state| closure.take().expect("it is called once")(state));
        }
    }

    #[cold]
    fn call(&self, force: bool, closure: &mut dyn FnMut(OnceState)) {
        loop {
            // Acquire, here and below: what the last closure wrote.
            let seen = self.state.load(Ordering::Acquire);
            match seen {
                DONE => return,
                POISONED if !force => panic!("Once instance has previously been poisoned"),
                NEW | POISONED => {
                    if self.step(seen, RUNNING) {
                        let mut run = Run { state: &self.state, result: POISONED };
                        closure(if seen == NEW { OnceState::New } else { OnceState::Poisoned });
                        run.result = DONE;
                        return;
                    }
                }
                RUNNING => _ = self.step(RUNNING, AWAITED),
                _ => _ = futex::sleep(&self.state, AWAITED, None),
            }
        }
    }

    fn step(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

impl Default for Once {
    fn default() -> Once {
        Once::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("state", &self.state()).finish()
    }
}
