//! `Semaphore`: values, overflow, deadlines, and the order that a release makes.

use poundlock::{Semaphore, SemaphoreOverflow};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn values() {
    static TWO: Semaphore = Semaphore::new(2);
    assert_eq!(std::mem::size_of::<Semaphore>(), 8);
    TWO.acquire();
    assert!(TWO.try_acquire());
    assert!(!TWO.try_acquire());
    assert_eq!(TWO.release(3), Ok(()));
    assert_eq!(TWO.value(), 3);
    assert_eq!(format!("{TWO:?}"), "Semaphore { value: 3 }");
}

#[test]
fn an_overflow_changes_nothing() {
    let semaphore = Semaphore::new(Semaphore::MAX - 1);
    assert_eq!(semaphore.release(2), Err(SemaphoreOverflow));
    assert_eq!(semaphore.release(u32::MAX), Err(SemaphoreOverflow));
    assert_eq!(semaphore.release(1), Ok(()));
    assert_eq!(semaphore.value(), Semaphore::MAX);
}

#[test]
#[should_panic(expected = "exceeds Semaphore::MAX")]
fn a_value_that_is_too_high_is_refused() {
    let _ = Semaphore::new(Semaphore::MAX + 1);
}

#[test]
fn deadlines_pass() {
    let semaphore = Semaphore::new(1);
    let start = Instant::now();
    assert!(semaphore.try_acquire_until(start), "it does not have to wait");
    assert!(!semaphore.try_acquire_until(start));
    assert!(!semaphore.try_acquire_for(Duration::from_millis(5)));
    assert!(start.elapsed() >= Duration::from_millis(5));
    thread::scope(|scope| {
        scope.spawn(|| semaphore.release(2));
        assert!(semaphore.try_acquire_for(Duration::MAX));
        assert!(semaphore.try_acquire_for(Duration::from_secs(3600)));
    });
}

/// Of value 1 it is a lock: no update of the counter is lost.
#[test]
fn one_at_a_time() {
    let (semaphore, count) = (Semaphore::new(1), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    semaphore.acquire();
                    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    semaphore.release(1).expect("it was acquired before");
                }
            });
        }
    });
    assert_eq!(count.into_inner(), 8000);
    assert_eq!(semaphore.value(), 1);
}
