//! Weights and tenants, for locks and policies that share out hold time: `cfl_spin`, `cfl_mutex`,
//! `policy=fair`, `policy=group`.

use poundlock_sys::{
    pound_thread_group, pound_thread_return, pound_thread_tenant, pound_thread_weight,
};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

/// Sets the calling thread's weight; 1024 corresponds to nice 0. None: the weight of its current
/// nice value.
pub fn set_thread_weight(weight: Option<NonZeroU32>) {
    // SAFETY: any weight is valid.
    unsafe { pound_thread_weight(weight.map_or(0, NonZeroU32::get)) }
}

/// Membership of the calling thread in a tenant. When it is dropped, the thread returns to the
/// tenant that it was in before, or to its cgroup. Nested ones are dropped in reverse order.
#[must_use = "the thread leaves the tenant when this is dropped"]
#[derive(Debug)]
pub struct Tenant {
    /// Not `Send`: the membership belongs to the thread that joined.
    thread: PhantomData<*const ()>,
    outer: u32,
}

/// The process has reached the maximum number of tenants and cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyTenants;

impl fmt::Display for TooManyTenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many tenants and cgroups")
    }
}

impl std::error::Error for TooManyTenants {}

impl Tenant {
    /// Makes the calling thread a member of tenant `id`, and sets the tenant's weight.
    ///
    /// ```
    /// let tenant = poundlock::Tenant::join(7, std::num::NonZeroU32::new(2048).unwrap())?;
    /// drop(tenant);
    /// # Ok::<(), poundlock::TooManyTenants>(())
    /// ```
    pub fn join(id: u64, weight: NonZeroU32) -> Result<Tenant, TooManyTenants> {
        // SAFETY: the function has no preconditions.
        let joined = Tenant { thread: PhantomData, outer: unsafe { pound_thread_group() } };
        // SAFETY: any id and weight are valid.
        let error = unsafe { pound_thread_tenant(id, weight.get()) };
        if error == 0 { Ok(joined) } else { Err(TooManyTenants) }
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        // SAFETY: the thread was in this group.
        unsafe { pound_thread_return(self.outer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> u32 {
        // SAFETY: the function has no preconditions.
        unsafe { pound_thread_group() }
    }

    #[test]
    fn an_inner_tenant_returns_the_thread_to_the_outer_one() {
        let weight = NonZeroU32::MIN;
        let cgroup = group();
        let outer = Tenant::join(1, weight).expect("there is room");
        let first = group();
        let inner = Tenant::join(2, weight).expect("there is room");
        assert_ne!(group(), first);
        drop(inner);
        assert_eq!(group(), first);
        // A thread that cannot join stays where it is.
        assert_eq!((3..100).find_map(|id| Tenant::join(id, weight).err()), Some(TooManyTenants));
        assert_eq!(group(), first);
        drop(outer);
        assert_eq!(group(), cgroup);
    }
}
