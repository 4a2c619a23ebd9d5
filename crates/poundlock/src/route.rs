//! The route of this process's locks, from the C library.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A closed tour over the CPUs that the process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The CPUs, in order.
    pub cpus: Vec<u32>,
    /// The file that it was read from; None if it is derived from the topology.
    pub file: Option<&'static Path>,
}

/// Returns the route in use. An invalid saved route is reported on stderr, once.
pub fn route() -> Route {
    // SAFETY: with size 0 nothing is written.
    let count = unsafe { poundlock_sys::pound_route(std::ptr::null_mut(), 0) };
    let mut cpus = vec![0; count];
    // SAFETY: the array has `count` elements.
    unsafe { poundlock_sys::pound_route(cpus.as_mut_ptr(), count) };
    // SAFETY: the function has no preconditions.
    let file = unsafe { poundlock_sys::pound_route_file() };
    let path = |text: &'static CStr| Path::new(OsStr::from_bytes(text.to_bytes()));
    // SAFETY: a path that is not null is a C string that is never freed.
    Route { cpus, file: (!file.is_null()).then(|| path(unsafe { CStr::from_ptr(file) })) }
}
