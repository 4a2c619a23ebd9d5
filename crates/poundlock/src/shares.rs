//! Shares of a lock's time, for the locks and policies that keep them: `cfl_spin`, `cfl_mutex`; `policy=fair`, `policy=group`.

use poundlock_sys::{pound_thread_leave_tenant, pound_thread_tenant, pound_thread_weight};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

/// The calling thread's weight from now on, 1024 being that of nice 0; `None`: that of its nice value, read again.
pub fn set_thread_weight(weight: Option<NonZeroU32>) {
    // SAFETY: it takes any number.
    unsafe { pound_thread_weight(weight.map_or(0, NonZeroU32::get)) }
}

/// Makes its thread one of a tenant's until it is dropped; then the thread is of its cgroup again.
#[must_use = "the thread leaves the tenant when this is dropped"]
#[derive(Debug)]
pub struct Tenant {
    /// It is about the thread that made it.
    thread: PhantomData<*const ()>,
}

/// The process has had as many tenants and cgroups as there can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyTenants;

impl fmt::Display for TooManyTenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there are too many tenants and cgroups")
    }
}

impl std::error::Error for TooManyTenants {}

impl Tenant {
    /// Makes the calling thread one of tenant `id`'s, whose weight is `weight` from now on.
    ///
    /// ```
    /// let tenant = poundlock::Tenant::join(7, std::num::NonZeroU32::new(2048).unwrap())?;
    /// drop(tenant);
    /// # Ok::<(), poundlock::TooManyTenants>(())
    /// ```
    pub fn join(id: u64, weight: NonZeroU32) -> Result<Tenant, TooManyTenants> {
        // SAFETY: it takes any numbers.
        let error = unsafe { pound_thread_tenant(id, weight.get()) };
        if error == 0 { Ok(Tenant { thread: PhantomData }) } else { Err(TooManyTenants) }
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        // SAFETY: it takes nothing.
        unsafe { pound_thread_leave_tenant() }
    }
}
