//! Every lock, through both interfaces: mutual exclusion, deadlines, and errors in specs.

use poundlock::{AnyLock, Mutex, locks, rw_locks};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u64 = 4;
const ROUNDS: u64 = 5_000;

/// Two counters that only mutual exclusion keeps equal.
#[derive(Default)]
struct Torn(AtomicU64, AtomicU64);

impl Torn {
    fn step(&self, round: u64) {
        let (first, second) = (self.0.load(Ordering::Relaxed), self.1.load(Ordering::Relaxed));
        assert_eq!(first, second, "two threads inside at once");
        self.0.store(first + 1, Ordering::Relaxed);
        if round % 256 == 0 {
            thread::yield_now();
        }
        self.1.store(second + 1, Ordering::Relaxed);
    }
}

fn in_threads(work: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..ROUNDS).for_each(&work));
        }
    });
}

#[test]
fn mutex_excludes() {
    let mutex = Mutex::new(Torn::default());
    in_threads(|round| mutex.lock().step(round));
    assert_eq!(mutex.into_inner().1.into_inner(), THREADS * ROUNDS);
}

#[test]
fn default_any_lock_excludes() {
    let lock = AnyLock::<Torn>::default();
    in_threads(|round| lock.lock().step(round));
    assert_eq!(lock.into_inner().1.into_inner(), THREADS * ROUNDS);
}

#[test]
fn every_lock_excludes() {
    for info in locks() {
        let lock = AnyLock::new(info.name, Torn::default()).expect("a listed lock can be made");
        in_threads(|round| lock.lock().step(round));
        assert_eq!(lock.into_inner().1.into_inner(), THREADS * ROUNDS, "{}", info.name);
    }
}

#[test]
fn every_lock_excludes_with_deadlines() {
    for info in locks() {
        let lock = AnyLock::new(info.name, Torn::default()).expect("a listed lock can be made");
        let taken = AtomicU64::new(0);
        in_threads(|round| {
            if let Some(inside) = lock.try_lock_for(Duration::from_micros(50)) {
                inside.step(round);
                taken.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(lock.try_lock().is_some(), "{}: free after all threads released it", info.name);
        assert_eq!(lock.into_inner().1.into_inner(), taken.into_inner(), "{}", info.name);
    }
}

#[test]
fn mutex_deadlines() {
    static MUTEX: Mutex<u32> = Mutex::new(7);
    let held = MUTEX.lock();
    let start = Instant::now();
    assert!(MUTEX.try_lock().is_none());
    assert!(MUTEX.try_lock_until(start + Duration::from_millis(20)).is_none());
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert!(MUTEX.try_lock_until(start).is_none(), "a deadline that has passed");
    drop(held);
    assert_eq!(
        MUTEX.try_lock_for(Duration::ZERO).as_deref(),
        Some(&7),
        "a free lock is acquired at any deadline"
    );
    assert!(MUTEX.try_lock_for(Duration::MAX).is_some());
}

#[test]
fn every_lock_keeps_deadlines() {
    for info in locks() {
        let lock = AnyLock::new(info.name, ()).expect("a listed lock can be made");
        let held = lock.lock();
        let start = Instant::now();
        assert!(lock.try_lock().is_none(), "{}", info.name);
        assert!(lock.try_lock_for(Duration::from_millis(5)).is_none(), "{}", info.name);
        assert!(start.elapsed() >= Duration::from_millis(5), "{}", info.name);
        drop(held);
        assert!(lock.try_lock_for(Duration::MAX).is_some(), "{}", info.name);
    }
}

#[cfg(feature = "send_guard")]
#[test]
fn guards_can_be_sent() {
    let mutex = Mutex::new(1);
    let guard = mutex.lock();
    thread::scope(|scope| scope.spawn(move || drop(guard)).join())
        .expect("the other thread unlocks");
    assert!(mutex.try_lock().is_some());
    for info in locks() {
        let lock = AnyLock::new(info.name, 1).expect("a listed lock can be made");
        let guard = lock.lock();
        thread::scope(|scope| scope.spawn(move || drop(guard)).join())
            .expect("the other thread unlocks");
        assert!(lock.try_lock().is_some(), "{}", info.name);
    }
}

#[test]
fn a_lock_whose_guard_was_forgotten_can_be_dropped() {
    for info in locks() {
        // The node pool of a thread is small: leaked nodes would exhaust it.
        for _ in 0..1000 {
            let lock = AnyLock::new(info.name, 1).expect("a listed lock can be made");
            std::mem::forget(lock.lock());
            let moved = lock;
            assert!(moved.try_lock().is_none(), "{}: still held", info.name);
        }
    }
}

#[test]
fn a_mutex_reports_whether_it_is_locked() {
    let mutex = Mutex::new(());
    assert!(!mutex.is_locked());
    let held = mutex.lock();
    assert!(mutex.is_locked());
    drop(held);
    assert!(!mutex.is_locked());
}

#[test]
fn a_mutex_takes_32_bytes() {
    assert_eq!(std::mem::size_of::<Mutex<()>>(), 32);
}

#[test]
fn every_lock_describes_itself() {
    let names: Vec<_> = locks().map(|info| info.name).collect();
    assert!(names.contains(&"shfl_mutex"), "shfl_mutex is not among {names:?}");
    for info in locks() {
        assert!(["spin", "yield", "park"].contains(&info.wait), "{info:?}");
        assert!(!info.promise.is_empty() && !info.paper.is_empty(), "{info:?}");
        assert!((1..=32).contains(&info.bytes_per_lock) || info.boxed, "{info:?}");
        assert!(info.atomics_alone >= 1.0 && info.atomics_contended >= 1.0, "{info:?}");
        assert!(info.atomics_reading.is_nan(), "{info:?}");
    }
    for info in rw_locks() {
        assert!(["spin", "yield", "park"].contains(&info.wait), "{info:?}");
        assert!(!info.promise.is_empty() && !info.paper.is_empty(), "{info:?}");
        assert!((1..=48).contains(&info.bytes_per_lock) && !info.boxed, "{info:?}");
        assert!(
            info.atomics_alone >= 1.0
                && info.atomics_contended >= 1.0
                && info.atomics_reading >= 1.0,
            "{info:?}"
        );
    }
}

#[test]
fn a_wrong_spec_is_named_in_one_line() {
    for (spec, wrong) in [
        ("mutexx", "mutexx"),
        ("shfl_mutex,colour=red", "colour"),
        ("shfl_mutex,wait=never", "never"),
        ("", ""),
        ("a\0b", "NUL"),
    ] {
        let error = AnyLock::new(spec, ())
            .err()
            .unwrap_or_else(|| panic!("{spec:?} was taken"))
            .to_string();
        assert!(error.contains(wrong), "{spec:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{spec:?}: {error}");
    }
}

#[cfg(not(feature = "mcs"))]
#[test]
fn a_lock_that_is_not_built_is_named() {
    assert!(!locks().any(|info| info.name == "mcs"));
    let error = AnyLock::new("mcs,wait=spin", ()).err().expect("it is not built");
    assert_eq!(error.to_string(), "this build has no mcs");
}
