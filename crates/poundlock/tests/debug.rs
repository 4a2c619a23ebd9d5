//! The feature `debug`: each error is reported, and correct code is not.

use poundlock::{AnyLock, Condvar, Mutex, ReentrantMutex, RwLock, SetName, read_again};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

/// The environment variable with the case that a child runs.
const CASE: &str = "POUNDLOCK_TEST_CASE";

/// The first line of a report, and the code that is reported.
const ERRORS: [(&str, fn()); 9] = [
    ("locks are locked in opposite orders", mutexes_in_both_orders),
    ("locks are locked in opposite orders", readers_and_any_locks_in_both_orders),
    ("a thread locks a lock that it holds", relock),
    ("a thread locks a lock that it holds", read_twice),
    ("a thread unlocks a lock that another one holds", unlock_by_a_stranger),
    ("a thread unlocks a lock that no thread holds", unlock_of_a_free_lock),
    ("a lock is destroyed while it is held", drop_of_a_held_lock),
    ("a thread ends while it holds a lock", guard_forgotten_by_a_thread),
    ("the process ends while a thread holds a lock", held_until_exit),
];

fn mutexes_in_both_orders() {
    let (accounts, log) = (Mutex::new(()), Mutex::new(()));
    for lock in [&accounts, &log] {
        lock.set_name("named").expect("there is room");
    }
    drop((accounts.lock(), log.lock()));
    drop((log.lock(), accounts.lock()));
}

fn readers_and_any_locks_in_both_orders() {
    let (table, log) = (RwLock::new(()), AnyLock::from(()));
    table.set_name("named").expect("there is room");
    drop((table.read(), log.lock()));
    drop((log.lock(), table.write()));
}

fn relock() {
    let lock = AnyLock::from(());
    lock.set_name("named").expect("there is room");
    let _guard = lock.lock();
    drop(lock.lock());
}

fn read_twice() {
    let lock = RwLock::new(());
    lock.set_name("named").expect("there is room");
    let _guard = lock.read();
    drop(lock.read());
}

fn unlock_by_a_stranger() {
    let lock = Mutex::new(());
    lock.set_name("named").expect("there is room");
    std::mem::forget(lock.lock());
    std::thread::scope(|scope| {
        // SAFETY: the guard was forgotten.
        scope.spawn(|| unsafe { lock.force_unlock() });
    });
}

fn unlock_of_a_free_lock() {
    let lock = Mutex::new(());
    lock.set_name("named").expect("there is room");
    // SAFETY: none; the process is aborted before.
    unsafe { lock.force_unlock() }
}

fn drop_of_a_held_lock() {
    let lock = Box::new(RwLock::new(()));
    lock.set_name("named").expect("there is room");
    std::mem::forget(lock.write());
}

fn guard_forgotten_by_a_thread() {
    let lock = Mutex::new(());
    lock.set_name("named").expect("there is room");
    std::thread::scope(|scope| {
        // Unlike the end of the scope, join() waits for the destructors of the thread's data.
        let thread = scope.spawn(|| std::mem::forget(lock.lock()));
        thread.join().expect("it does not panic");
    });
}

fn held_until_exit() {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.set_name("named").expect("there is room");
    let (locked, until_locked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _guard = LOCK.lock();
        locked.send(()).expect("the other end waits");
        std::thread::sleep(Duration::MAX);
    });
    until_locked.recv().expect("the thread locks it");
}

fn correct() {
    let (outer, inner) = (Mutex::new(0), RwLock::new(0));
    for _ in 0..2 {
        let (_outer, first) = (outer.lock(), inner.read());
        drop(read_again(&first));
        drop(inner.read_recursive());
        assert!(inner.try_write().is_none() && outer.try_lock().is_none());
    }
    {
        // A trylock cannot deadlock.
        let _inner = inner.write();
        drop(outer.try_lock());
        drop(outer.try_lock_for(Duration::from_secs(3600)));
    }
    let reentrant = ReentrantMutex::new(());
    drop((reentrant.lock(), reentrant.lock()));

    let ready = Arc::new((AnyLock::from(false), Condvar::new()));
    let other = Arc::clone(&ready);
    let thread = std::thread::spawn(move || {
        *other.0.lock() = true;
        other.1.notify_one();
    });
    ready.1.wait_while(&mut ready.0.lock(), |ready| !*ready);
    thread.join().expect("it does not panic");
    // In turn at one address: no order of the locks before.
    for round in 0..4 {
        let pair = Box::new([Mutex::new(()), Mutex::new(())]);
        drop((pair[round % 2].lock(), pair[1 - round % 2].lock()));
    }
}

/// Runs nothing but in a child.
#[test]
fn case() {
    match std::env::var(CASE).as_deref() {
        Ok("correct") => correct(),
        Ok(number) => ERRORS[number.parse::<usize>().expect("a number")].1(),
        Err(_) => (),
    }
}

fn run(case: &str, setting: &str) -> (Output, String) {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "case", "--nocapture"])
        .env("POUNDLOCK_DEBUG", setting)
        .env(CASE, case)
        .output()
        .expect("a child");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, text)
}

#[test]
fn each_error_is_reported() {
    for (number, (line, _)) in ERRORS.iter().enumerate() {
        let (output, text) = run(&number.to_string(), "abort,held");
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "case {number}: {text}");
        assert!(text.contains(line) && text.contains("named, 0x"), "case {number}: {text}");
    }
}

#[test]
fn correct_code_is_not_reported() {
    let (output, text) = run("correct", "1,held,leak");
    assert!(output.status.success() && !text.contains("poundlock:"), "{text}");
}
