//! Beyond parking_lot's own tests: that changes of a mode are atomic; fair releases; and FairMutex.

use parking_lot::{
    FairMutex, FairMutexGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_micros(50);

/// Runs `change`, which must raise the number by one, in threads, beside writers that raise it, and
/// readers that see no half of a change.
fn counted(change: impl Fn(&RwLock<(u32, u32)>) -> bool + Sync) {
    const ROUNDS: u32 = 2000;
    let (lock, done) = (RwLock::new((0, 0)), AtomicBool::new(false));
    let raised = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let numbers = lock.read();
                assert_eq!(numbers.0, numbers.1);
            }
        });
        let workers: Vec<_> = (0..4)
            .map(|thread| {
                let (lock, change) = (&lock, &change);
                scope.spawn(move || {
                    (0..ROUNDS)
                        .filter(|_| {
                            if thread % 2 == 0 {
                                return change(lock);
                            }
                            let mut numbers = lock.write();
                            numbers.0 += 1;
                            numbers.1 += 1;
                            true
                        })
                        .count()
                })
            })
            .collect();
        let raised: usize = workers.into_iter().map(|worker| worker.join().expect("it ends")).sum();
        done.store(true, Ordering::Relaxed);
        reader.join().expect("it sees whole changes");
        raised
    });
    assert!(lock.try_write().is_some(), "all have left");
    let numbers = lock.into_inner();
    assert_eq!((numbers.0 as usize, numbers.1 as usize), (raised, raised), "a change was lost");
}

/// Raises the number that was read before the upgrade.
fn raise(before: u32, numbers: &mut (u32, u32)) {
    assert_eq!(numbers.0, before, "a writer entered during the upgrade");
    *numbers = (before + 1, before + 1);
}

#[test]
fn an_upgrade_lets_no_writer_in_between() {
    counted(|lock| {
        let read = lock.upgradable_read();
        let before = read.0;
        raise(before, &mut RwLockUpgradableReadGuard::upgrade(read));
        true
    });
}

#[test]
fn an_upgrade_that_fails_is_still_a_reader() {
    counted(|lock| {
        let Some(read) = lock.try_upgradable_read_for(SHORT) else { return false };
        let before = read.0;
        let read = match RwLockUpgradableReadGuard::try_upgrade(read) {
            Ok(mut numbers) => {
                raise(before, &mut numbers);
                return true;
            }
            Err(read) => read,
        };
        assert_eq!(read.0, before, "a writer entered during the attempt");
        match RwLockUpgradableReadGuard::try_upgrade_for(read, SHORT) {
            Ok(mut numbers) => {
                raise(before, &mut numbers);
                true
            }
            Err(read) => {
                assert_eq!(read.0, before, "a writer entered during the timed attempt");
                false
            }
        }
    });
}

#[test]
fn a_downgrade_lets_no_writer_in_between() {
    counted(|lock| {
        let Some(mut numbers) = lock.try_write_for(SHORT) else { return false };
        let before = numbers.0;
        raise(before, &mut numbers);
        let read = RwLockWriteGuard::downgrade(numbers);
        assert_eq!(*read, (before + 1, before + 1));
        true
    });
    counted(|lock| {
        let read = RwLockWriteGuard::downgrade_to_upgradable(lock.write());
        let before = read.0;
        assert!(!lock.is_locked_exclusive());
        let mut numbers = RwLockUpgradableReadGuard::upgrade(read);
        raise(before, &mut numbers);
        let read = RwLockUpgradableReadGuard::downgrade(RwLockWriteGuard::downgrade_to_upgradable(
            numbers,
        ));
        assert_eq!(*read, (before + 1, before + 1));
        true
    });
}

#[test]
fn an_upgradable_reader_is_beside_readers_only() {
    let lock = RwLock::new(());
    let upgradable = lock.upgradable_read();
    assert!(lock.try_read().is_some() && lock.try_read_recursive().is_some());
    assert!(lock.try_upgradable_read().is_none() && lock.try_write().is_none());
    assert!(lock.try_upgradable_read_for(SHORT).is_none() && lock.try_write_for(SHORT).is_none());
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    let reader = lock.read();
    let upgradable = RwLockUpgradableReadGuard::try_upgrade(upgradable).expect_err("it is read");
    drop(reader);
    let writer = RwLockUpgradableReadGuard::upgrade(upgradable);
    assert!(lock.try_read().is_none() && lock.is_locked_exclusive());
    drop(writer);
    assert!(!lock.is_locked() && lock.try_write().is_some());
}

#[test]
fn a_fair_mutex_excludes_and_keeps_deadlines() {
    let mutex = FairMutex::new((0, 0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let mut numbers = mutex.lock();
                    let before = numbers.0;
                    raise(before, &mut numbers);
                    FairMutexGuard::bump(&mut numbers);
                    assert_eq!(numbers.0, numbers.1);
                }
            });
        }
    });
    let held = mutex.lock();
    assert_eq!(*held, (4000, 4000));
    assert!(mutex.try_lock().is_none() && mutex.try_lock_for(SHORT).is_none());
    assert!(mutex.is_locked());
    FairMutexGuard::unlock_fair(held);
    assert!(!mutex.is_locked());
}

/// Whether the thread, a folder below /proc, sleeps.
fn sleeps(thread: &std::path::Path) -> bool {
    let stat = std::fs::read_to_string(thread.join("stat")).expect("the thread has not ended");
    stat.rsplit_once(") ").expect("the name is in parentheses").1.starts_with('S')
}

/// Calls `wait` in another thread, and `release` when that sleeps.
fn while_it_waits(wait: impl FnOnce() + Send, release: impl FnOnce()) {
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        scope.spawn(move || {
            let own = std::fs::read_link("/proc/thread-self").expect("Linux has it");
            tell.send(std::path::Path::new("/proc").join(own)).expect("it is received");
            wait();
        });
        let waiter = told.recv().expect("it is sent");
        // It sleeps nowhere else.
        while !sleeps(&waiter) {
            thread::yield_now();
        }
        release();
    });
}

#[test]
fn a_fair_release_serves_the_waiter() {
    let mutex = Mutex::new(0);
    for round in 0..50 {
        let mut held = mutex.lock();
        while_it_waits(
            || *mutex.lock() += 1,
            || {
                if round % 2 == 0 {
                    MutexGuard::bump(&mut held);
                    assert_eq!(*held, round + 1, "the waiter was overtaken");
                    drop(held);
                } else {
                    MutexGuard::unlock_fair(held);
                    assert_eq!(*mutex.lock(), round + 1, "the waiter was overtaken");
                }
            },
        );
    }
}

#[test]
fn a_fair_release_of_a_reader_serves_the_writer() {
    let lock = RwLock::new(0);
    for round in 0..50 {
        let mut held = lock.read();
        while_it_waits(
            || *lock.write() += 1,
            || {
                if round % 2 == 0 {
                    RwLockReadGuard::bump(&mut held);
                    assert_eq!(*held, round + 1, "the writer was overtaken");
                    drop(held);
                } else {
                    RwLockReadGuard::unlock_fair(held);
                    assert_eq!(*lock.read(), round + 1, "the writer was overtaken");
                }
            },
        );
    }
}

#[test]
fn a_fair_release_of_a_writer_serves_the_waiter() {
    let lock = RwLock::new(0);
    let read = AtomicBool::new(false);
    for _ in 0..50 {
        read.store(false, Ordering::Relaxed);
        let held = lock.write();
        while_it_waits(
            || {
                let _reader = lock.read();
                read.store(true, Ordering::Relaxed);
            },
            || {
                RwLockWriteGuard::unlock_fair(held);
                let _writer = lock.write();
                assert!(read.load(Ordering::Relaxed), "the reader was overtaken");
            },
        );
        let mut held = lock.write();
        let before = *held;
        while_it_waits(
            || *lock.write() += 1,
            || {
                RwLockWriteGuard::bump(&mut held);
                assert_eq!(*held, before + 1, "the writer was overtaken");
                drop(held);
            },
        );
    }
}

#[test]
fn sizes_are_as_documented() {
    assert_eq!(std::mem::size_of::<parking_lot::RawMutex>(), 32);
    assert_eq!(std::mem::size_of::<parking_lot::RawRwLock>(), 88);
}
