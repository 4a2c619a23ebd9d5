//! `Once` and `ReentrantMutex`.

use poundlock::{Once, OnceState, ReentrantMutex};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

#[test]
fn a_closure_runs_once_and_all_callers_see_its_writes() {
    for _ in 0..200 {
        let (once, runs) = (Once::new(), AtomicU32::new(0));
        assert_eq!(once.state(), OnceState::New);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    once.call_once(|| {
                        thread::yield_now();
                        runs.store(runs.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    });
                    assert_eq!(runs.load(Ordering::Relaxed), 1);
                });
            }
        });
        assert!(once.state().done());
    }
}

#[test]
fn a_panic_poisons_until_a_closure_returns() {
    let once = Once::new();
    let call = |closure: fn()| catch_unwind(AssertUnwindSafe(|| once.call_once(closure)));
    assert!(call(|| panic!("on purpose")).is_err());
    assert!(once.state().poisoned());
    assert!(call(|| ()).is_err(), "poisoned");
    once.call_once_force(|state| assert_eq!(state, OnceState::Poisoned));
    assert!(once.state().done());
    assert!(call(|| panic!("it is not called")).is_ok());
}

#[test]
fn waiters_of_a_closure_that_panics_are_woken() {
    let (once, entered, seen_entered) =
        (Once::new(), AtomicBool::new(false), AtomicBool::new(false));
    let until = |flag: &AtomicBool| {
        while !flag.load(Ordering::Acquire) {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            once.call_once(|| {
                entered.store(true, Ordering::Release);
                until(&seen_entered);
                // Until the other thread waits, or nearly.
                (0..100).for_each(|_| thread::yield_now());
                panic!("on purpose");
            });
        });
        until(&entered);
        let state = once.state();
        seen_entered.store(true, Ordering::Release);
        assert_eq!(state, OnceState::InProgress);
        let mut seen = None;
        once.call_once_force(|state| seen = Some(state));
        assert_eq!(seen, Some(OnceState::Poisoned));
        assert!(first.join().is_err());
    });
}

#[test]
fn a_reentrant_mutex_excludes_other_threads_only() {
    let mutex = ReentrantMutex::new(Cell::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let outer = mutex.lock();
                    let before = outer.get();
                    let inner = mutex.try_lock().expect("this thread holds it");
                    inner.set(before + 1);
                    drop(outer);
                    assert_eq!(inner.get(), before + 1);
                }
            });
        }
    });
    let held = mutex.lock();
    assert_eq!(held.get(), 4000);
    thread::scope(|scope| {
        let other = scope.spawn(|| mutex.try_lock().is_none());
        assert!(other.join().expect("it ends"), "another thread holds it");
    });
}
