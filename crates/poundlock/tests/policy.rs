//! Policies of the program: which lock uses which, errors, and when they can be replaced.

use poundlock::{AnyLock, Policy, PolicyError, register_policy, unregister_policy};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Counts the waiters that it was asked to order.
struct Counting(AtomicU32);

// SAFETY: the functions only count.
unsafe impl Policy for Counting {
    fn note(&self, _lock: *const ()) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    fn rank(&self, _shuffler: u32, waiter: u32) -> Option<u32> {
        (waiter % 2 == 0).then_some(waiter)
    }
}

/// Waits once for the held lock of `spec`, until a deadline that has passed.
fn wait_for(lock: &AnyLock<()>) {
    let _held = lock.lock();
    thread::scope(|scope| {
        scope.spawn(|| assert!(lock.try_lock_for(Duration::ZERO).is_none()));
    });
}

#[test]
fn each_lock_has_its_own() {
    static FIRST: Counting = Counting(AtomicU32::new(0));
    static SECOND: Counting = Counting(AtomicU32::new(0));
    let counts = || [&FIRST, &SECOND].map(|policy| policy.0.load(Ordering::Relaxed));
    assert_eq!(register_policy("first", &FIRST), Ok(()));
    assert_eq!(register_policy("second", &SECOND), Ok(()));
    let first = AnyLock::new("shfl,policy=first", ()).expect("the policy is registered");
    let second = AnyLock::new("shfl,policy=second", ()).expect("the policy is registered");
    wait_for(&first);
    assert_eq!(counts(), [1, 0]);
    wait_for(&second);
    assert_eq!(counts(), [1, 1]);
    assert_eq!(register_policy("first", &SECOND), Err(PolicyError::Busy));
    assert_eq!(unregister_policy("first"), Err(PolicyError::Busy));
    drop(first);
    assert_eq!(register_policy("first", &SECOND), Ok(()));
    wait_for(&AnyLock::new("shfl,policy=first", ()).expect("the policy is registered"));
    assert_eq!(counts(), [1, 2]);
    assert_eq!(unregister_policy("first"), Ok(()));
    assert_eq!(unregister_policy("first"), Err(PolicyError::NotRegistered));
    assert!(AnyLock::new("shfl,policy=first", ()).is_err());
}

#[test]
fn names_are_checked() {
    static POLICY: Counting = Counting(AtomicU32::new(0));
    for name in ["", "numa", "a,b", "a=b", "a b", "a\0b"] {
        assert_eq!(register_policy(name, &POLICY), Err(PolicyError::InvalidName), "{name:?}");
    }
    assert_eq!(unregister_policy("unknown"), Err(PolicyError::NotRegistered));
}

#[test]
fn waiters_in_any_order_get_the_lock() {
    static POLICY: Counting = Counting(AtomicU32::new(0));
    assert_eq!(register_policy("odd", &POLICY), Ok(()));
    let lock = AnyLock::new("shfl,policy=odd", 0).expect("the policy is registered");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..2_000).for_each(|_| *lock.lock() += 1));
        }
    });
    assert_eq!(lock.into_inner(), 8_000);
    assert_eq!(unregister_policy("odd"), Ok(()));
}
