//! Two tenants share a lock's time by their weights, 3 to 1, under `cfl_mutex`.

use poundlock::{AnyLock, Tenant};
use std::num::NonZeroU32;
use std::thread;
use std::time::{Duration, Instant};

const WEIGHTS: [u32; 2] = [3072, 1024];

fn main() {
    let held = AnyLock::new("cfl_mutex", [Duration::ZERO; 2]).expect("a lock of that name");
    let end = Instant::now() + Duration::from_millis(500);
    thread::scope(|scope| {
        for tenant in [0, 1, 0, 1] {
            let held = &held;
            scope.spawn(move || {
                let weight = NonZeroU32::new(WEIGHTS[tenant]).expect("not 0");
                let _membership =
                    Tenant::join(tenant as u64, weight).expect("room for two tenants");
                while Instant::now() < end {
                    let mut held = held.lock();
                    let since = Instant::now();
                    while since.elapsed() < Duration::from_micros(10) {}
                    held[tenant] += since.elapsed();
                }
            });
        }
    });
    let held = held.into_inner();
    let total = (held[0] + held[1]).as_secs_f64();
    for (tenant, time) in held.iter().enumerate() {
        println!(
            "tenant {tenant}, weight {}: {:.0} %",
            WEIGHTS[tenant],
            100.0 * time.as_secs_f64() / total
        );
    }
    assert!(held.iter().all(|time| !time.is_zero()));
}
