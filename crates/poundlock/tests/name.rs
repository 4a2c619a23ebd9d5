//! Names of locks: every type of lock has one, and there is room for 1,000.

use poundlock::{AnyLock, Mutex, ReentrantMutex, RwLock, SetName, TooManyNames};

/// One test, since the room is the process's.
#[test]
fn every_lock_has_a_name_and_the_room_is_bounded() {
    let (mutex, rw_lock) = (Mutex::new(()), RwLock::new(()));
    let (reentrant, any) = (ReentrantMutex::new(()), AnyLock::from(()));
    let locks: [&dyn SetName; 4] = [&mutex, &rw_lock, &reentrant, &any];
    for name in ["cache", "", "a\0b", "\0", "a name that is longer than its room: it is cut"] {
        for lock in locks {
            assert_eq!(lock.set_name(name), Ok(()), "{name:?}");
        }
    }
    let many: Vec<Mutex<()>> = (0..10_000).map(|_| Mutex::new(())).collect();
    let refused = many.iter().position(|lock| lock.set_name("session") == Err(TooManyNames));
    assert!(refused.is_some_and(|index| index >= 1_000 - locks.len()), "{refused:?}");
    for lock in &many {
        assert_eq!(lock.set_name(""), Ok(()));
    }
    assert_eq!(many[9_999].set_name("session"), Ok(()));
    assert_eq!(many[9_999].set_name(""), Ok(()));
}
