// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the engine by small threads, without locks.

use super::spins::{rounds, rules, sharing, whole};
use super::system::Queue;
use super::*;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const MACHINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/graviton3.toml");

fn with_threads(bodies: Vec<fn(usize)>) -> Result<(), SimError> {
    let machine = Machine::read(Path::new(MACHINE)).expect("a machine");
    let mut made = Box::new(Engine::new(machine, Arena::map()?, 1, 0, false));
    let word = made.allocate(64, 64, 0);
    made.call(word, 64, "the word".to_owned());
    for (cpu, body) in bodies.into_iter().enumerate() {
        made.spawn(cpu, 1024, 64, move || body(word));
    }
    made.run(NEVER, 1000)
}

/// Waits as the macro w_wait_acquire() of world.h.
fn await_value(word: usize, value: u64, how: u32) {
    // SAFETY: only threads of the engine call this.
    let sim = || unsafe { engine() };
    if sim().load(word, 4) != value {
        sim().wait_begin(how, 0);
        while sim().wait_again(NEVER) && sim().load(word, 4) != value {}
        sim().wait_end(false);
    }
}

/// The engine.
fn sim<'a>() -> &'a mut Engine {
    // SAFETY: as above.
    unsafe { engine() }
}

#[test]
fn a_deadlock_report_lists_the_waiting_threads() {
    let bodies: Vec<fn(usize)> =
        vec![|word| await_value(word, 2, rules().how_spin), |word| sim().store(word, 4, 1)];
    let message = with_threads(bodies).expect_err("no thread writes 2").to_string();
    assert!(message.starts_with("deadlock"), "{message}");
    assert!(
        message
            .contains("thread 0 on CPU 0 spins on the word+0x0 (= 1): thread 1 wrote there last"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 2, "the other thread has ended: {message}");
}

#[test]
fn a_lost_wake_up_is_a_deadlock() {
    // The waker finds no sleeper, since the other thread sleeps only later.
    let bodies: Vec<fn(usize)> = vec![
        |word| {
            sim().pass(5_000.0);
            sim().park(word, 0, NEVER);
        },
        |word| sim().unpark(word, false),
    ];
    let message = with_threads(bodies).expect_err("no thread wakes it").to_string();
    assert!(
        message.contains(
            "thread 0 on CPU 0 sleeps on the word+0x0 (= 0): no thread has written there"
        ),
        "{message}"
    );
}

#[test]
fn failed_polite_spins_shorten_the_next_and_successful_ones_lengthen_it() {
    let bodies: Vec<fn(usize)> = vec![|word| {
        // The length of a bounded spin on a word that no thread writes.
        let spin = || {
            let began = sim().now;
            await_value(word, 2, rules().how_polite);
            sim().now - began
        };
        let (first, second) = (spin(), spin());
        assert!(second < first && first < 2 * whole(), "{first}, then {second}");
        let last = (3..rules().spins_whole).fold(second, |_, _| spin());
        assert!(last < first / 8, "{first}, at last {last}");
        assert!(spin() > first * 3 / 4, "one of SPINS_WHOLE is whole");
        for successes in [1, rules().spin_parts] {
            for _ in 0..successes {
                sim().wait_begin(rules().how_polite, 0);
                sim().wait_end(false);
            }
            let again = spin();
            assert!(again > first * 3 / 8, "{again} after {successes} successes");
        }
    }];
    with_threads(bodies).expect("all threads end");
}

#[test]
fn a_thread_starts_with_the_history_of_another() {
    fn spin(word: usize) -> u64 {
        let began = sim().now;
        await_value(word, 2, rules().how_polite);
        sim().now - began
    }
    let bodies: Vec<fn(usize)> = vec![
        |word| {
            for _ in 0..rules().spin_parts {
                spin(word);
            }
            sim().store(word + 4, 4, 1);
        },
        |word| {
            await_value(word + 4, 1, rules().how_spin);
            assert!(spin(word) < whole() / 8, "its first spin is short");
        },
    ];
    with_threads(bodies).expect("all threads end");
}

#[test]
fn an_ordered_wait_on_an_own_cpu_lasts_longer() {
    let bodies: Vec<fn(usize)> = vec![|word| {
        let spin = || {
            let began = sim().now;
            await_value(word, 2, rules().how_ordered);
            sim().now - began
        };
        let rounds = rounds(rules().how_ordered, sim().machine.cpus.len());
        let long = Time::from(rounds) * whole();
        let first = spin();
        assert!(rounds > 1 && (long..2 * long).contains(&first), "{first} for {rounds} rounds");
        // Another thread waits on the CPU.
        let seat = sim().seats;
        sim().store(seat, 4, 99);
        for _ in 0..2 {
            let shared = spin();
            assert!(shared < 2 * whole(), "{shared} on a shared CPU");
        }
        sim().advance(sharing());
        let last = spin();
        assert!(last >= long, "{last} after the other thread has gone");
    }];
    with_threads(bodies).expect("the thread ends");
}

#[test]
fn a_thread_that_moves_leaves_its_seat() {
    let bodies: Vec<fn(usize)> = vec![|word| {
        await_value(word, 2, rules().how_ordered);
        assert_eq!(sim().load(sim().seats, 4), 1);
        sim().me().cpu = 1;
        await_value(word, 2, rules().how_ordered);
        assert_eq!((sim().load(sim().seats, 4), sim().load(sim().seats + SEAT, 4)), (0, 1));
        assert_eq!(sim().me().sharing_until, 0, "the new CPU was nobody's");
        sim().me().cpu = 0;
    }];
    with_threads(bodies).expect("the thread ends");
}

#[test]
fn a_yielding_wait_sleeps() {
    let bodies: Vec<fn(usize)> = vec![|word| await_value(word, 1, rules().how_yield), |word| {
        sim().pass(400_000.0);
        assert!((1..=4).contains(&sim().threads[0].sleeps), "{} sleeps", sim().threads[0].sleeps);
        sim().store(word, 4, 1);
    }];
    with_threads(bodies).expect("both threads end");
}

#[test]
fn a_livelock_is_reported() {
    let bodies: Vec<fn(usize)> = vec![|word| await_value(word, 2, rules().how_yield), |word| {
        await_value(word, 2, rules().how_yield)
    }];
    let message = with_threads(bodies).expect_err("no thread writes 2").to_string();
    assert!(message.starts_with("livelock"), "{message}");
}

#[test]
fn waking_all_wakes_only_current_sleepers() {
    // Woken threads sleep again until the store, which comes after the wake-up of all.
    fn sleeper(word: usize) {
        while sim().load(word, 4) == 0 {
            sim().park(word, 0, NEVER);
        }
    }
    let bodies: Vec<fn(usize)> = vec![sleeper, sleeper, sleeper, sleeper, sleeper, |word| {
        sim().pass(50_000.0);
        sim().unpark(word, true);
        sim().store(word, 4, 1);
        sim().unpark(word, true);
    }];
    with_threads(bodies).expect("all threads end");
}

#[test]
fn a_deadline_wakes_a_sleeper() {
    let bodies: Vec<fn(usize)> = vec![|word| {
        sim().park(word, 0, ns(20_000.0));
        assert!(sim().now >= ns(20_000.0), "it is {}", sim().now);
    }];
    with_threads(bodies).expect("its deadline wakes it");
}

#[test]
fn a_futex_reads_the_word_again_before_it_sleeps() {
    let bodies: Vec<fn(usize)> = vec![|word| sim().park(word, 0, NEVER), |word| {
        sim().store(word, 4, 1);
        sim().unpark(word, false);
    }];
    with_threads(bodies).expect("the store is seen, or the wake-up comes");
}

#[test]
fn a_busy_waiting_thread_observes_every_store() {
    let bodies: Vec<fn(usize)> = vec![
        |word| {
            (0..1000).for_each(|turn| {
                await_value(word, 2 * turn, rules().how_spin);
                sim().store(word, 4, 2 * turn + 1);
            })
        },
        |word| {
            (0..1000).for_each(|turn| {
                await_value(word, 2 * turn + 1, rules().how_spin);
                sim().store(word, 4, 2 * turn + 2);
            })
        },
    ];
    with_threads(bodies).expect("both threads end");
}

#[test]
fn interrupts_during_a_busy_wait_do_not_delay_what_follows() {
    static STORED: AtomicU64 = AtomicU64::new(0);
    let bodies: Vec<fn(usize)> = vec![
        |word| {
            await_value(word, 2, rules().how_spin);
            sim().pass(1.0);
            let late = sim().now - STORED.load(Ordering::Relaxed);
            assert!(late < sim().machine.interrupt / 2, "{late} after the store");
        },
        |word| {
            sim().pass(50.0 * sim().machine.interrupt_every as f64 / ns(1.0) as f64);
            sim().store(word, 4, 2);
            STORED.store(sim().now, Ordering::Relaxed);
        },
    ];
    with_threads(bodies).expect("both threads end");
}

#[test]
fn only_a_thread_that_its_cpu_is_not_about_to_run_may_be_pulled() {
    let queue = |running, ready: &[ThreadId]| {
        Queue { running, ready: ready.to_vec(), ..Queue::default() }.is_overloaded()
    };
    assert!(!queue(None, &[]) && !queue(Some(0), &[]));
    assert!(!queue(None, &[0]), "it was woken on an idle CPU");
    assert!(queue(Some(0), &[1]) && queue(None, &[0, 1]));
}
