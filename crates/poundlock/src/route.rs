//! The route that this process's locks use, from the C library.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A closed tour over the CPUs that the process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The CPUs, in order.
    pub cpus: Vec<u32>,
    /// The file that it was read from; none if it follows from the topology.
    pub file: Option<&'static Path>,
}

/// The route in use. What is wrong with a saved one is said on stderr, once.
pub fn route() -> Route {
    // SAFETY: nothing is written where there is no room.
    let count = unsafe { poundlock_sys::pound_route(std::ptr::null_mut(), 0) };
    let mut cpus = vec![0; count];
    // SAFETY: there is room for so many.
    unsafe { poundlock_sys::pound_route(cpus.as_mut_ptr(), count) };
    // SAFETY: it may be asked at any time.
    let file = unsafe { poundlock_sys::pound_route_file() };
    let path = |text: &'static CStr| Path::new(OsStr::from_bytes(text.to_bytes()));
    // SAFETY: a path that is not null is a C string for good.
    Route { cpus, file: (!file.is_null()).then(|| path(unsafe { CStr::from_ptr(file) })) }
}
