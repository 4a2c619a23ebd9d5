//! Every workload under every lock: the threads' counts are consistent, independently of speed.

use poundlock_bench::{
    Class, Counts, Job, Limit, NATIVE, Placement, Section, Unit, Work, Workload, metrics, run,
};
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

/// Serialises the runs: the library counts events of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn workload(section: Section) -> Workload {
    let class =
        Class { outside: Work { length: 50, unit: Unit::Steps, spread: 0.5 }, ..Class::default() };
    Workload {
        name: "test".to_owned(),
        source: "none".to_owned(),
        section,
        classes: vec![class],
        readers: false,
        placement: Placement::Free,
        threads_per_cpu: vec![],
        timed: 3,
        seed: 1,
    }
}

fn sections() -> [Section; 4] {
    [
        Section::None,
        Section::Words { words: 100 },
        Section::Map { keys: 256, writes: 5_000 },
        Section::Hash { keys: 256, buckets: 16, writes: 5_000 },
    ]
}

/// All locks, and the mutex of the C library.
fn locks() -> Vec<String> {
    let listed = (0..).map_while(|index| {
        // SAFETY: any index is valid; the result is null, or valid until this thread's next call
        let info = unsafe { poundlock_sys::pound_lock_info(index).as_ref() }?;
        // SAFETY: a name is a literal of the C library.
        Some(unsafe { CStr::from_ptr(info.name) }.to_str().expect("UTF-8").to_owned())
    });
    listed.chain([NATIVE.to_owned()]).collect()
}

fn counted(job: &Job) -> Counts {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let counts = run(job).unwrap_or_else(|wrong| panic!("{}: {wrong}", job.lock));
    consistent(job, &counts);
    counts
}

/// Checks the invariants of every run.
#[track_caller]
fn consistent(job: &Job, counts: &Counts) {
    let all: Vec<f64> = counts.threads.iter().map(|thread| thread.acquisitions as f64).collect();
    let total: u64 = counts.threads.iter().map(|thread| thread.acquisitions).sum();
    assert_eq!(counts.threads.len(), job.threads);
    if let Limit::Acquisitions(limit) = job.limit {
        assert_eq!(total, limit, "{}", job.lock);
    }
    for thread in &counts.threads {
        assert!(
            thread.handovers_remote <= thread.handovers && thread.handovers <= thread.acquisitions,
            "{thread:?}"
        );
        assert!(
            thread.timed_handovers <= thread.handovers && thread.timed_handovers <= thread.timed,
            "{thread:?}"
        );
        assert!(
            thread.timed <= thread.acquisitions.div_ceil(job.workload.timed.into()),
            "{thread:?}"
        );
        assert!(thread.longest_wait_ns <= thread.wait_ns, "{thread:?}");
        assert!(thread.wait_ns <= thread.longest_wait_ns * thread.timed, "{thread:?}");
    }
    // The first acquisition is no hand-over.
    let handovers: u64 = counts.threads.iter().map(|thread| thread.handovers).sum();
    assert!(handovers < total || total == 0, "the first acquisition was counted as a hand-over");
    assert!(
        metrics::jain(&all)
            .is_none_or(|jain| (1.0 / job.threads as f64 - 1e-9..=1.0).contains(&jain)),
        "{all:?}"
    );
    assert!(
        metrics::fairness_factor(&all).is_none_or(|factor| (0.5..=1.0).contains(&factor)),
        "{all:?}"
    );
    assert_eq!(counts.events.is_none(), job.lock == NATIVE);
}

#[test]
fn every_workload_counts_correctly_under_every_lock() {
    for lock in locks() {
        for section in sections() {
            let job = Job {
                workload: workload(section),
                lock: lock.clone(),
                threads: 4,
                limit: Limit::Acquisitions(20_000),
            };
            counted(&job);
        }
    }
}

#[test]
fn readers_and_writers_count_correctly_under_every_readers_writer_lock() {
    for lock in poundlock_bench::rwlocks().chain([NATIVE]) {
        for section in &sections()[2..] {
            let workload = Workload { readers: true, ..workload(*section) };
            counted(&Job {
                workload,
                lock: lock.to_owned(),
                threads: 4,
                limit: Limit::Acquisitions(20_000),
            });
        }
    }
}

#[test]
fn one_thread_has_all_acquisitions_and_no_handover() {
    for lock in ["shfl_mutex", "mcs", NATIVE] {
        let job = Job {
            workload: workload(Section::Words { words: 4 }),
            lock: lock.to_owned(),
            threads: 1,
            limit: Limit::Acquisitions(1_000),
        };
        let thread = counted(&job).threads.remove(0);
        assert_eq!((thread.acquisitions, thread.handovers, thread.timed_handovers), (1_000, 0, 0));
        assert_eq!(thread.timed, 334, "the first and every third after it");
    }
}

#[test]
fn no_acquisitions_are_none() {
    let job = Job {
        workload: workload(Section::None),
        lock: "ttas".to_owned(),
        threads: 3,
        limit: Limit::Acquisitions(0),
    };
    assert!(
        counted(&job).threads.iter().all(|thread| thread.acquisitions == 0 && thread.timed == 0)
    );
}

#[test]
fn time_ends_a_run_and_the_warm_up_does_not_count() {
    let limit = Limit::Seconds { warmup: 0.02, measured: 0.03 };
    for lock in ["shfl_mutex", NATIVE] {
        let job =
            Job { workload: workload(sections()[2]), lock: lock.to_owned(), threads: 3, limit };
        assert!(counted(&job).elapsed_ns >= 30_000_000);
    }
}

#[test]
fn holders_hold_for_the_time_of_their_class() {
    let class = |length| Class {
        inside: Work { length, unit: Unit::Nanoseconds, spread: 0.0 },
        ..Class::default()
    };
    let mut workload = workload(Section::None);
    workload.classes = vec![class(20_000), class(200_000)];
    workload.timed = 1;
    let job =
        Job { workload, lock: "ticket".to_owned(), threads: 2, limit: Limit::Acquisitions(100) };
    for thread in counted(&job).threads {
        let least = job.workload.classes[thread.class].inside.length;
        assert!(thread.hold_ns >= least * thread.timed, "{thread:?}");
        assert_eq!(thread.timed, thread.acquisitions);
    }
}

#[test]
fn threads_are_bound_by_the_placement() {
    for placement in [Placement::FirstFill, Placement::RoundRobin] {
        let mut workload = workload(Section::None);
        workload.placement = placement;
        let job =
            Job { workload, lock: "mcs".to_owned(), threads: 5, limit: Limit::Acquisitions(500) };
        let cpus: Vec<usize> =
            counted(&job).threads.iter().map(|thread| thread.cpu.expect("bound")).collect();
        let different = cpus.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!(
            different,
            std::thread::available_parallelism().expect("known").get().min(5),
            "{cpus:?}"
        );
    }
}

#[test]
fn invalid_runs_are_one_line() {
    let job = |lock: &str, threads| Job {
        workload: workload(Section::None),
        lock: lock.to_owned(),
        threads,
        limit: Limit::Acquisitions(1),
    };
    for (job, words) in [(job("nosuch", 1), "'nosuch'"), (job("mcs", 0), "thread")] {
        let message = run(&job).expect_err("it cannot be run").to_string();
        assert!(message.contains(words) && message.lines().count() == 1, "{message}");
    }
}
