//! Every lock on the simulated machine: mutual exclusion, progress and determinism.

use poundlock_sim::{Locality, Machine, Point, lock_names, simulate};
use poundlock_workload::{Class, Counts, CpuMax, Placement, Section, Unit, Work, Workload};
use std::path::Path;

fn machine(name: &str) -> Machine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    Machine::read(&folder.join(format!("{name}.toml"))).expect("a machine")
}

fn workload(section: Section, readers: bool, placement: Placement) -> Workload {
    Workload {
        name: "test".to_owned(),
        source: "test".to_owned(),
        section,
        classes: vec![Class::default()],
        readers,
        placement,
        threads_per_cpu: vec![],
        timed: 1,
        seed: 3,
    }
}

fn point(lock: &str, threads: usize, workload: Workload) -> Point {
    Point {
        machine: machine("i9-12900k"),
        workload,
        lock: lock.to_owned(),
        threads,
        warmup: 0.000_02,
        measured: 0.000_2,
        most: None,
        seed: 1,
        step: 1.0,
        locality: Locality::L3,
        trace: false,
    }
}

fn acquisitions(counts: &Counts) -> u64 {
    counts.threads.iter().map(|thread| thread.acquisitions).sum()
}

const MAP: Section = Section::Map { keys: 64, writes: 5_000 };

/// simulate() itself checks mutual exclusion.
#[test]
fn every_lock_excludes_in_every_way_of_waiting() {
    for readers in [false, true] {
        for lock in lock_names(readers) {
            for wait in ["spin", "yield", "park"] {
                let spec = format!("{lock},wait={wait}");
                for (threads, placement) in
                    [(1, Placement::FirstFill), (7, Placement::RoundRobin), (16, Placement::Free)]
                {
                    let outcome =
                        simulate(&point(&spec, threads, workload(MAP, readers, placement)));
                    let outcome = outcome
                        .unwrap_or_else(|wrong| panic!("{spec}, {threads} threads: {wrong}"));
                    assert!(
                        acquisitions(&outcome.counts) > 10,
                        "{spec}, {threads} threads: {:?}",
                        outcome.counts
                    );
                }
            }
        }
    }
}

#[test]
fn locks_make_progress_on_too_few_cpus() {
    for lock in lock_names(false) {
        for wait in ["yield", "park"] {
            let spec = format!("{lock},wait={wait}");
            let mut point = point(
                &spec,
                60,
                workload(Section::Words { words: 4 }, false, Placement::FirstFill),
            );
            point.measured = 0.004;
            let outcome = simulate(&point).unwrap_or_else(|wrong| panic!("{spec}: {wrong}"));
            assert!(acquisitions(&outcome.counts) > 50, "{spec}: {:?}", outcome.counts);
        }
    }
}

/// A queue in order whose waiters sleep does not recover: each wake-up delays all waiters behind
/// it, which then sleep too.
#[test]
fn queues_do_not_convoy_while_each_thread_has_a_cpu() {
    for (lock, threads) in [("mcs", 72), ("clh", 36), ("cna", 72), ("shfl_spin", 36)] {
        let done = |spec: &str| {
            let map = Section::Map { keys: 1024, writes: 2000 };
            let mut point = point(spec, threads, workload(map, false, Placement::Free));
            point.machine = machine("e5-2699v3");
            (point.warmup, point.measured) = (0.001, 0.002);
            acquisitions(&simulate(&point).unwrap_or_else(|wrong| panic!("{spec}: {wrong}")).counts)
        };
        let (own, spinning) = (done(lock), done(&format!("{lock},wait=spin")));
        assert!(10 * own >= 9 * spinning, "{lock}, {threads} threads: {own} and {spinning}");
    }
}

/// A spinner of `adaptive` that gives up leaves its node behind the first spinner, which may watch
/// the word while others give up many times.
#[test]
fn a_thread_has_as_many_nodes_as_it_needs() {
    for seed in 1..=12 {
        let map = Section::Map { keys: 1024, writes: 2000 };
        let mut point = point("adaptive", 4, workload(map, false, Placement::Free));
        (point.machine, point.seed) = (machine("2990wx"), seed);
        (point.warmup, point.measured) = (0.006, 0.02);
        simulate(&point).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

/// Threads that mostly compute: their acquisitions are proportional to their CPU time.
#[test]
fn a_control_group_gets_exactly_its_quota() {
    let done = |cpu_max: Option<CpuMax>, placement| {
        let mut workload = workload(Section::None, false, placement);
        let outside = Work { length: 200_000, unit: Unit::Steps, spread: 0.2 };
        workload.classes = vec![
            Class { outside, cpu_max, ..Class::default() },
            Class { outside, ..Class::default() },
        ];
        let mut point = point("shfl_mutex", 12, workload);
        (point.warmup, point.measured) = (0.1, 0.2);
        let counts = simulate(&point).expect("it runs").counts;
        let of = |class: usize| {
            let threads = counts.threads.iter().filter(|thread| thread.class == class);
            threads.map(|thread| thread.acquisitions).sum::<u64>() as f64
        };
        ([of(0), of(1)], counts.threads.iter().map(|thread| thread.longest_wait_ns).max())
    };
    for placement in [Placement::FirstFill, Placement::Free] {
        let ([limited, other], _) = done(None, placement);
        // Six computing threads use six CPUs; the quota of each period of 20 ms limits them to
        // `cpus`.
        for (quota, cpus) in [(60_000, 3.0), (10_000, 0.5), (1_000_000, 6.0)] {
            let ([got, others], _) = done(Some(CpuMax { quota, period: 20_000 }), placement);
            let share = got / limited;
            assert!((share - cpus / 6.0).abs() < 0.05, "{quota} us, {placement:?}: {share}");
            assert!(
                others >= 0.97 * other,
                "a class without a limit is affected: {others} of {other}"
            );
        }
    }
}

#[test]
fn waiters_of_a_throttled_holder_wait_for_its_next_period() {
    let longest = |cpu_max| {
        let mut workload = workload(Section::Words { words: 4 }, false, Placement::FirstFill);
        workload.classes[0].inside = Work { length: 10_000, unit: Unit::Nanoseconds, spread: 0.0 };
        workload.classes[0].cpu_max = cpu_max;
        let mut point = point("mcs,wait=spin", 4, workload);
        point.measured = 0.1;
        simulate(&point)
            .expect("it runs")
            .counts
            .threads
            .iter()
            .map(|thread| thread.longest_wait_ns)
            .max()
    };
    let (free, limited) = (longest(None), longest(Some(CpuMax { quota: 10_000, period: 50_000 })));
    assert!(free < Some(20_000_000) && limited > Some(30_000_000), "{free:?} and {limited:?} ns");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for lock in ["mcs,wait=spin", "shfl_mutex", "ron", "cfl_spin", "ttas"] {
        let work = Work { length: 300, unit: Unit::Nanoseconds, spread: 0.2 };
        let mut workload = workload(MAP, false, Placement::Free);
        workload.classes[0].outside = work;
        let mut point = point(lock, 20, workload);
        let run = |point: &Point| format!("{:?}", simulate(point).expect("it runs"));
        let first = run(&point);
        assert_eq!(first, run(&point), "{lock}");
        point.seed = 2;
        assert_ne!(first, run(&point), "{lock}");
    }
}

#[test]
fn errors_in_a_specification_are_one_line() {
    for (lock, words) in [
        ("mcz", "there is no lock 'mcz'"),
        ("mcs,wait=sit", "wait is spin, yield or park"),
        ("mcs,batch=3", "mcs has no setting 'batch'"),
        ("cna,threshold=0", "threshold is not from 1"),
        ("cna,threshold", "'threshold' is not KEY=VALUE"),
        ("shfl_rw", "needs no readers-writer lock"),
    ] {
        let wrong = simulate(&point(lock, 2, workload(MAP, false, Placement::Free)))
            .expect_err(lock)
            .to_string();
        assert!(wrong.contains(words) && wrong.lines().count() == 1, "{lock}: {wrong}");
    }
}

#[test]
fn fifo_locks_are_even_and_a_machine_of_1024_cpus_runs() {
    for (lock, even) in
        [("mcs,wait=spin", 0.01), ("ticket,wait=spin", 0.01), ("clh,wait=spin", 0.01)]
    {
        let mut point = point(lock, 16, workload(MAP, false, Placement::RoundRobin));
        point.measured = 0.002;
        let counts = simulate(&point).expect("it runs").counts;
        let shares: Vec<f64> =
            counts.threads.iter().map(|thread| thread.acquisitions as f64).collect();
        let factor = poundlock_workload::metrics::fairness_factor(&shares).expect("some");
        assert!((factor - 0.5).abs() < even, "{lock}: {factor}");
    }
    let mut large = point("mcs,wait=spin", 1024, workload(MAP, false, Placement::RoundRobin));
    large.machine = machine("synthetic-1024");
    large.measured = 0.003;
    assert!(acquisitions(&simulate(&large).expect("it runs").counts) > 1024);
}

#[test]
fn a_timeline_has_one_holder_at_a_time() {
    let mut point = point("shfl_mutex", 12, workload(MAP, false, Placement::Free));
    point.trace = true;
    let timeline = simulate(&point).expect("it runs").timeline();
    let mut holds: Vec<_> = timeline.iter().filter(|event| event.name == "holds").collect();
    assert!(holds.len() > 50);
    holds.sort_by(|a, b| a.ts.total_cmp(&b.ts));
    for pair in holds.windows(2) {
        assert!(pair[0].ts + pair[0].dur.expect("a span") <= pair[1].ts, "{pair:?}");
    }
    assert!(timeline.iter().any(|event| event.name == "waits"));
}
