//! Initialisation that runs once: the once of `poundlock.h`, with poisoning.

use poundlock_sys as sys;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Runs a closure once, on the first call; other callers wait until it has returned. 8 bytes.
///
/// If the closure panics, the `Once` is poisoned, as in std. The closure must not call the same
/// `Once`: it would wait for itself. A child that is forked while the closure runs starts again.
///
/// ```
/// static START: poundlock::Once = poundlock::Once::new();
///
/// START.call_once(|| println!("printed once"));
/// START.call_once(|| unreachable!());
/// ```
pub struct Once {
    /// The word of a `pound_once_t`.
    state: AtomicU32,
    /// Whether the last closure panicked. Written only between the begin and the end of a call,
    /// which are an acquire and a release.
    poisoned: AtomicBool,
}

/// The word of a [`Once`] of which no call is in progress or has completed.
const NEW: u32 = sys::POUND_ONCE_INIT.pound_state;

/// The state of a [`Once`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceState {
    /// No closure has run.
    New,
    /// A closure has panicked.
    Poisoned,
    /// A call is in progress: its closure runs, or is about to, or has just panicked.
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

/// A call between its begin and its end. It is dropped also if the closure panics.
struct Run<'a> {
    once: &'a Once,
    completed: bool,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !self.completed {
            self.once.poisoned.store(true, Ordering::Relaxed);
        }
        // SAFETY: this thread began, and ends once. The last access.
        unsafe { sys::pound_once_end(self.once.raw(), self.completed) }
    }
}

impl Once {
    /// Creates a `Once` whose closure has not run.
    pub const fn new() -> Once {
        Once { state: AtomicU32::new(NEW), poisoned: AtomicBool::new(false) }
    }

    /// The state at this moment.
    pub fn state(&self) -> OnceState {
        match self.state.load(Ordering::Acquire) {
            NEW => self.before(),
            sys::POUND_ONCE_DONE => OnceState::Done,
            _ => OnceState::InProgress,
        }
    }

    /// Calls `closure` if no call has returned yet. Returns after one has.
    ///
    /// # Panics
    /// If an earlier closure panicked.
    #[inline]
    pub fn call_once<F: FnOnce()>(&self, closure: F) {
        if self.state.load(Ordering::Acquire) != sys::POUND_ONCE_DONE {
            let mut closure = Some(closure);
            self.call(false, &mut |_| closure.take().expect("it is called once")());
        }
    }

    /// As [`Once::call_once`], also after an earlier closure panicked; then `closure` is called
    /// with [`OnceState::Poisoned`], otherwise with [`OnceState::New`].
    #[inline]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, closure: F) {
        if self.state.load(Ordering::Acquire) != sys::POUND_ONCE_DONE {
            let mut closure = Some(closure);
            self.call(true, &mut |state| closure.take().expect("it is called once")(state));
        }
    }

    #[cold]
    fn call(&self, force: bool, closure: &mut dyn FnMut(OnceState)) {
        // SAFETY: the once is valid while it is borrowed; `Run` ends what begins here.
        if !unsafe { sys::pound_once_begin_slow(self.raw()) } {
            return;
        }
        let mut run = Run { once: self, completed: false };
        let before = self.before();
        assert!(force || !before.poisoned(), "Once instance has previously been poisoned");
        closure(before);
        run.completed = true;
    }

    /// The state before a call, while no closure runs.
    fn before(&self) -> OnceState {
        // Relaxed: read after an acquire of the word that the end of the last call released.
        if self.poisoned.load(Ordering::Relaxed) { OnceState::Poisoned } else { OnceState::New }
    }

    fn raw(&self) -> *mut sys::pound_once_t {
        self.state.as_ptr().cast()
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
