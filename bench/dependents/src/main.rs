// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that use a crate, for a time: `bench-dependents CRATE THREADS SECONDS`. Prints JSON with
//! the operations per second. `bench-dependents CRATE --operations N` does N operations in one
//! thread, for a tool that counts instructions.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One operation of one thread.
type Operation = Box<dyn FnMut() + Send>;

/// Makes the operation of each thread, by its number.
type Workload = Box<dyn Fn(usize) -> Operation>;

/// Looks up one of four labelled counters, and increments it.
fn prometheus() -> Workload {
    let options = prometheus::Opts::new("requests", "of the benchmark");
    let counters = prometheus::IntCounterVec::new(options, &["method"]).expect("valid names");
    Box::new(move |thread| {
        let (counters, mut turn) = (counters.clone(), thread);
        Box::new(move || {
            turn += 1;
            let method = ["GET", "PUT", "POST", "DELETE"][turn % 4];
            counters.with_label_values(&[method]).inc();
        })
    })
}

struct Connections;

impl r2d2::ManageConnection for Connections {
    type Connection = u64;
    type Error = std::fmt::Error;

    fn connect(&self) -> Result<u64, Self::Error> {
        Ok(0)
    }

    fn is_valid(&self, _: &mut u64) -> Result<(), Self::Error> {
        Ok(())
    }

    fn has_broken(&self, _: &mut u64) -> bool {
        false
    }
}

/// Takes one of two connections out of a pool, and returns it.
fn r2d2() -> Workload {
    let builder = r2d2::Pool::builder().max_size(2).test_on_check_out(false);
    let pool = builder.build(Connections).expect("no connection fails");
    Box::new(move |_| {
        let pool = pool.clone();
        Box::new(move || *pool.get().expect("one is returned soon") += 1)
    })
}

/// Interns one of 64 strings that no other thread holds, and drops it.
fn string_cache() -> Workload {
    Box::new(|thread| {
        let names: Vec<String> = (0..64).map(|i| format!("element-{thread}-{i}")).collect();
        let mut turn = 0;
        Box::new(move || {
            turn += 1;
            black_box(string_cache::DefaultAtom::from(names[turn % 64].as_str()));
        })
    })
}

/// Looks up one of 2,000 keys in a cache of 1,000, and inserts it if it is not there.
fn moka() -> Workload {
    let cache = moka::sync::Cache::new(1000);
    Box::new(move |thread| {
        let (cache, mut state) = (cache.clone(), thread as u64 + 1);
        Box::new(move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let key = (state >> 33) % 2000;
            black_box(cache.get_with(key, || key));
        })
    })
}

fn workload(name: &str) -> Option<Workload> {
    Some(match name {
        "prometheus" => prometheus(),
        "r2d2" => r2d2(),
        "string_cache" => string_cache(),
        "moka" => moka(),
        _ => return None,
    })
}

/// Operations between two looks at the clock's flag.
const BATCH: u64 = 16;

/// The operations per second of @threads threads together.
fn rate(workload: &Workload, threads: usize, duration: Duration) -> f64 {
    let (start, stop) = (Barrier::new(threads + 1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let mut operation = workload(thread);
                let (start, stop) = (&start, &stop);
                scope.spawn(move || {
                    let mut count = 0;
                    start.wait();
                    while !stop.load(Ordering::Relaxed) {
                        (0..BATCH).for_each(|_| operation());
                        count += BATCH;
                    }
                    count
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        std::thread::sleep(duration);
        stop.store(true, Ordering::Relaxed);
        let count: u64 = workers.into_iter().map(|worker| worker.join().expect("no panic")).sum();
        count as f64 / began.elapsed().as_secs_f64()
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, threads, seconds] = arguments.as_slice() else {
        panic!("bench-dependents CRATE THREADS SECONDS, or CRATE --operations N");
    };
    let workload = workload(name).expect("prometheus, r2d2, string_cache or moka");
    if threads == "--operations" {
        let (operations, mut operation) = (seconds.parse().expect("a number"), workload(0));
        return (0..operations).for_each(|_: u64| operation());
    }
    let threads = threads.parse().expect("a number of threads");
    let duration = Duration::from_secs_f64(seconds.parse().expect("a number of seconds"));
    println!("{{\"per_second\": {:.0}}}", rate(&workload, threads, duration));
}
