//! The program's own orders of waiters: `policy=NAME` in a spec.

use crate::AbortOnUnwinding;
use poundlock_sys::{pound_policy, pound_policy_register, pound_policy_unregister};
use std::ffi::{CString, c_int, c_void};
use std::fmt;
use std::mem::forget;

/// An order of the waiters of `shfl_mutex` and `shfl_spin`, for locks whose spec has `policy=NAME`.
///
/// No order breaks mutual exclusion, loses a waiter, or lets one be bypassed more often than twice
/// the setting `batch`. A panic in a function ends the process.
///
/// ```
/// use poundlock::{AnyLock, Policy, register_policy, unregister_policy};
/// use std::cell::Cell;
///
/// thread_local!(static URGENCY: Cell<u32> = const { Cell::new(1) });
///
/// /// Waiters of smaller urgency values come first.
/// struct ByUrgency;
///
/// // SAFETY: the functions only read and compute.
/// unsafe impl Policy for ByUrgency {
///     fn note(&self, _lock: *const ()) -> u32 {
///         URGENCY.get()
///     }
///
///     fn rank(&self, _shuffler: u32, waiter: u32) -> Option<u32> {
///         Some(waiter)
///     }
/// }
///
/// register_policy("by_urgency", &ByUrgency)?;
/// let lock = AnyLock::new("shfl,policy=by_urgency", 0)?;
/// *lock.lock() += 1;
/// drop(lock);
/// unregister_policy("by_urgency")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Safety
///
/// Both functions run in the middle of a lock's operations. They must not use this crate, wait,
/// fork, or take a lock that a holder of the ordered lock may wait for. They should return soon: a
/// call delays the next holder.
pub unsafe trait Policy: Sync + 'static {
    /// Returns the calling thread's note, before it is queued. Called once per wait. `lock`
    /// identifies the lock.
    fn note(&self, lock: *const ()) -> u32;

    /// Returns the rank of a waiter, by its note and that of a waiter before it, the shuffler:
    /// smaller ranks come first, equal ones in order of arrival. `None`, and `u32::MAX`, leave the
    /// waiter in its place. While waiters that rank before the shuffler's own rank come forward,
    /// others stay. So do always those behind it whose rank is also their own, as in an order that
    /// ignores the shuffler. Waiters of different locks call it at the same time.
    fn rank(&self, shuffler: u32, waiter: u32) -> Option<u32>;
}

/// Why a policy cannot be registered or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// A lock has the policy, or another thread registers it.
    Busy,
    /// The name belongs to a policy of the library, is empty, longer than 31 bytes, or contains a
    /// comma, a space, `=` or NUL.
    InvalidName,
    /// The process has used 32 other names.
    TooManyNames,
    /// There is no policy of this name.
    NotRegistered,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PolicyError::Busy => "the policy is in use",
            PolicyError::InvalidName => "not a valid name for a policy",
            PolicyError::TooManyNames => "too many names of policies",
            PolicyError::NotRegistered => "there is no policy of this name",
        })
    }
}

impl std::error::Error for PolicyError {}

/// Registers `policy` for locks with `policy=NAME`, or replaces the one of that name.
pub fn register_policy<P: Policy>(name: &str, policy: &'static P) -> Result<(), PolicyError> {
    let name = c_name(name)?;
    let context: *const P = policy;
    let policy = pound_policy {
        note: Some(note::<P>),
        rank: Some(rank::<P>),
        context: context.cast_mut().cast::<c_void>(),
    };
    // SAFETY: the library copies both. The functions only share what `context` points to, which is
    // `Sync` and lives as long as the process; their own promise is Policy's.
    result_of(unsafe { pound_policy_register(name.as_ptr(), &policy) })
}

/// Removes the policy, whose functions are not called any more.
pub fn unregister_policy(name: &str) -> Result<(), PolicyError> {
    let name = c_name(name)?;
    // SAFETY: the name is a C string.
    result_of(unsafe { pound_policy_unregister(name.as_ptr()) })
}

fn c_name(name: &str) -> Result<CString, PolicyError> {
    CString::new(name).map_err(|_| PolicyError::InvalidName)
}

fn result_of(error: c_int) -> Result<(), PolicyError> {
    match error {
        0 => Ok(()),
        libc::EBUSY => Err(PolicyError::Busy),
        libc::ENOSPC => Err(PolicyError::TooManyNames),
        libc::ENOENT => Err(PolicyError::NotRegistered),
        _ => Err(PolicyError::InvalidName),
    }
}

/// # Safety
///
/// `context` is the `&'static P` of [`register_policy`].
unsafe extern "C" fn note<P: Policy>(context: *mut c_void, lock: *const c_void) -> u32 {
    let no_unwinding = AbortOnUnwinding;
    // SAFETY: the caller's promise.
    let note = unsafe { &*context.cast_const().cast::<P>() }.note(lock.cast());
    forget(no_unwinding);
    note
}

/// # Safety
///
/// As for [`note`].
unsafe extern "C" fn rank<P: Policy>(context: *mut c_void, shuffler: u32, waiter: u32) -> u32 {
    let no_unwinding = AbortOnUnwinding;
    // SAFETY: as in note.
    let rank = unsafe { &*context.cast_const().cast::<P>() }.rank(shuffler, waiter);
    forget(no_unwinding);
    rank.unwrap_or(u32::MAX)
}
