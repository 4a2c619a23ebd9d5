//! Names of locks in statistics.

use crate::{AnyLock, Mutex, ReentrantMutex, RwLock};
use poundlock_sys::pound_set_name;
use std::ffi::{CString, c_void};
use std::fmt;

/// Names a lock in lock statistics: `poundlock stat`, `top` and `profile`.
///
/// The name belongs to the lock's address. Name a [`Mutex`], [`RwLock`] or [`ReentrantMutex`] where
/// it stays: in a static, a `Box` or an `Arc`. If its memory may become another lock's, remove the
/// name before. An [`AnyLock`] may move, and its name ends with it.
///
/// ```
/// use poundlock::SetName;
///
/// static CACHE: poundlock::Mutex<u64> = poundlock::Mutex::new(0);
///
/// CACHE.set_name("cache")?;
/// # Ok::<(), poundlock::TooManyNames>(())
/// ```
pub trait SetName {
    /// Names the lock: the first 31 bytes of `name`, up to a NUL, with `?` for control characters.
    /// An empty string removes the name.
    ///
    /// Fails if there is no room; 1,000 locks have room at least.
    fn set_name(&self, name: &str) -> Result<(), TooManyNames>;
}

/// There is no room for the name of another lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyNames;

impl fmt::Display for TooManyNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many locks have names")
    }
}

impl std::error::Error for TooManyNames {}

fn set_name<R>(lock: *const R, name: &str) -> Result<(), TooManyNames> {
    let text = name.split('\0').next().unwrap_or_default();
    let text = CString::new(text).expect("it has no NUL");
    // SAFETY: the address is only a key, and the name is a C string.
    match unsafe { pound_set_name(lock.cast::<c_void>(), text.as_ptr()) } {
        0 => Ok(()),
        _ => Err(TooManyNames),
    }
}

macro_rules! impl_set_name {
    ($($lock:ident),*) => {$(
        impl<T: ?Sized> SetName for $lock<T> {
            fn set_name(&self, name: &str) -> Result<(), TooManyNames> {
                // SAFETY: only its address is used.
                set_name(unsafe { self.raw() }, name)
            }
        }
    )*};
}

impl_set_name!(Mutex, ReentrantMutex, RwLock);

#[cfg(feature = "lock_api_05")]
mod v0_5 {
    use super::{SetName, TooManyNames, set_name};
    use crate::v0_5::{Mutex, ReentrantMutex, RwLock};

    impl_set_name!(Mutex, ReentrantMutex, RwLock);
}

impl<T: ?Sized> SetName for AnyLock<T> {
    fn set_name(&self, name: &str) -> Result<(), TooManyNames> {
        set_name(self.raw(), name)
    }
}
