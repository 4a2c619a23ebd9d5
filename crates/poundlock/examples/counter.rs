//! Threads that count under a `poundlock::Mutex`, the default lock.

use poundlock::Mutex;
use std::thread;

static COUNT: Mutex<u64> = Mutex::new(0);

fn main() {
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    *COUNT.lock() += 1;
                }
            });
        }
    });
    println!("{}", COUNT.lock());
    assert_eq!(*COUNT.lock(), 80_000);
}
