//! `by_name [LOCK]`: the same count under a lock that the user names, as in `by_name mcs`.

use poundlock::AnyLock;
use std::{env, process, thread};

fn main() {
    let name = env::args().nth(1).unwrap_or_else(|| "cna".to_owned());
    let count = AnyLock::new(&name, 0u64).unwrap_or_else(|wrong| {
        eprintln!("by_name: {wrong}");
        process::exit(2);
    });
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    *count.lock() += 1;
                }
            });
        }
    });
    let count = count.into_inner();
    println!("{name}: {count}");
    assert_eq!(count, 80_000);
}
