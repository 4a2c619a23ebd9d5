//! Condition variables: what notifications return, their order, deadlines, and every kind of lock.

use poundlock::{AnyLock, Condvar, Mutex, RwLock, locks};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any wait takes that does not hang.
const LONG: Duration = Duration::from_secs(3600);

#[test]
fn without_waiters_nobody_is_notified() {
    let changed = Condvar::new();
    assert!(!changed.notify_one());
    assert_eq!(changed.notify_all(), 0);
    let mutex = Mutex::new(());
    assert!(changed.wait_for(&mut mutex.lock(), Duration::from_millis(1)).timed_out());
    assert!(!changed.notify_one(), "the waiter has left at its deadline");
}

/// Starts `count` threads that wait one after the other, each until it is notified, and calls
/// `notify` when all wait. The result is the order in which they acquired the lock again.
fn order_of(count: usize, notify: impl FnOnce(&Condvar)) -> Vec<usize> {
    let (woken, changed) = (Mutex::new((0, Vec::new())), Condvar::new());
    thread::scope(|scope| {
        for number in 0..count {
            let (woken, changed) = (&woken, &changed);
            scope.spawn(move || {
                let mut guard = woken.lock();
                guard.0 += 1;
                // Half of them with a deadline, which must make no difference.
                if number % 2 == 0 {
                    changed.wait(&mut guard);
                } else {
                    assert!(!changed.wait_for(&mut guard, LONG).timed_out());
                }
                guard.1.push(number);
            });
            // The lock is free again only when the thread waits.
            while woken.lock().0 <= number {
                thread::yield_now();
            }
        }
        notify(&changed);
    });
    woken.into_inner().1
}

#[test]
fn waiters_are_notified_in_the_order_of_arrival() {
    let order = order_of(6, |changed| {
        assert_eq!(changed.notify_all(), 6);
        assert_eq!(changed.notify_all(), 0);
    });
    assert_eq!(order, [0, 1, 2, 3, 4, 5], "each wakes the next");
    let mut order = order_of(4, |changed| {
        for _ in 0..4 {
            assert!(changed.notify_one());
        }
        assert!(!changed.notify_one());
    });
    order.sort_unstable(); // they compete for the lock
    assert_eq!(order, [0, 1, 2, 3]);
}

#[test]
fn deadlines_pass() {
    let (mutex, changed) = (Mutex::new(7), Condvar::new());
    let mut guard = mutex.lock();
    let start = Instant::now();
    assert!(changed.wait_until(&mut guard, start + Duration::from_millis(20)).timed_out());
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert!(changed.wait_until(&mut guard, start).timed_out());
    assert!(changed.wait_while_for(&mut guard, |n| *n == 7, Duration::from_millis(5)).timed_out());
    assert!(!changed.wait_while_until(&mut guard, |n| *n == 8, start).timed_out());
    assert!(mutex.is_locked());
}

#[test]
fn two_mutexes_at_once_are_refused() {
    let (one, other, changed) = (Mutex::new(false), Mutex::new(()), Condvar::new());
    let refused = thread::scope(|scope| {
        let mut waits = one.lock();
        let second = scope.spawn(|| {
            // Acquired when the first thread waits.
            let mut done = one.lock();
            let refused = catch_unwind(AssertUnwindSafe(|| changed.wait(&mut other.lock())));
            *done = true;
            changed.notify_one();
            refused
        });
        changed.wait_while(&mut waits, |done| !*done);
        drop(waits);
        second.join().expect("the panic was caught")
    });
    assert!(refused.is_err());
    assert!(!other.is_locked(), "the panic dropped the guard");
    assert!(changed.wait_for(&mut other.lock(), Duration::ZERO).timed_out(), "the first has left");
}

/// Every notification that found a waiter ends exactly one wait without a time-out.
#[test]
fn deadlines_and_notifications_are_counted_alike() {
    let (mutex, changed) = (Mutex::new(()), Condvar::new());
    let (waiting, notified) = (AtomicUsize::new(4), AtomicUsize::new(0));
    let found = thread::scope(|scope| {
        for thread in 0..4 {
            let (mutex, changed, waiting, notified) = (&mutex, &changed, &waiting, &notified);
            scope.spawn(move || {
                for round in 0..2000 {
                    let timeout = Duration::from_micros((round * 7 + thread * 13) % 60);
                    if !changed.wait_for(&mut mutex.lock(), timeout).timed_out() {
                        notified.fetch_add(1, Ordering::Relaxed);
                    }
                }
                waiting.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let mut found = 0;
        for round in 0.. {
            if waiting.load(Ordering::Relaxed) == 0 {
                break;
            }
            found += if round % 3 == 0 {
                changed.notify_all()
            } else {
                usize::from(changed.notify_one())
            };
        }
        found
    });
    assert_eq!(found, notified.into_inner());
}

/// A queue of two places between two producers and three consumers. A lost notification hangs.
#[test]
fn a_bounded_queue_delivers_everything_once() {
    const EACH: u64 = 3000;
    let (queue, not_full, not_empty) = (Mutex::new(Vec::new()), Condvar::new(), Condvar::new());
    let sum = thread::scope(|scope| {
        for producer in 0..2 {
            let (queue, not_full, not_empty) = (&queue, &not_full, &not_empty);
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut queue = queue.lock();
                    not_full.wait_while(&mut queue, |queue| queue.len() == 2);
                    queue.push(producer * EACH + number);
                    drop(queue);
                    not_empty.notify_one();
                }
            });
        }
        let consumers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut sum = 0;
                    for _ in 0..2 * EACH / 3 {
                        let mut queue = queue.lock();
                        not_empty.wait_while(&mut queue, |queue| queue.is_empty());
                        sum += queue.pop().expect("it is not empty");
                        drop(queue);
                        not_full.notify_all();
                    }
                    sum
                })
            })
            .collect();
        consumers.into_iter().map(|consumer| consumer.join().expect("it ends")).sum::<u64>()
    });
    assert_eq!(sum, (0..2 * EACH).sum());
    assert!(queue.into_inner().is_empty());
}

/// Lets a thread wait with each guard until the other one has changed the data.
macro_rules! ping_pong {
    ($lock:expr, $acquire:ident) => {{
        let (lock, changed) = ($lock, Condvar::new());
        thread::scope(|scope| {
            let turns = |mine: u32| {
                for _ in 0..100 {
                    let mut turn = lock.$acquire();
                    changed.wait_while(&mut turn, |turn| *turn % 2 != mine);
                    *turn += 1;
                    changed.notify_one();
                }
            };
            scope.spawn(move || turns(0));
            turns(1);
        });
        assert_eq!(lock.into_inner(), 200);
    }};
}

#[test]
fn every_kind_of_lock_can_be_waited_with() {
    ping_pong!(Mutex::new(0), lock);
    ping_pong!(RwLock::new(0), write);
    for info in locks() {
        ping_pong!(AnyLock::new(info.name, 0).expect("a listed lock can be made"), lock);
    }
}

#[cfg(feature = "lock_api_05")]
#[test]
fn guards_of_lock_api_05_can_be_waited_with() {
    ping_pong!(poundlock::v0_5::Mutex::new(0), lock);
    ping_pong!(poundlock::v0_5::RwLock::new(0), write);
}
