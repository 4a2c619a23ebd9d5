//! A pair that a writer changes and readers always find whole, under a readers-writer lock.

use poundlock::RwLock;
use std::thread;

static PAIR: RwLock<(u32, u32)> = RwLock::new((0, 0));

fn main() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    let pair = PAIR.read();
                    assert_eq!(pair.0, pair.1);
                }
            });
        }
        for _ in 0..10_000 {
            let mut pair = PAIR.write();
            pair.0 += 1;
            pair.1 += 1;
        }
    });
    println!("{:?}", *PAIR.read());
}
