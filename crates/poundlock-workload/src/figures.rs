//! The figures that a run comes to.

use crate::counts::{Counts, ThreadCounts};
use crate::metrics::{evenness, fairness_factor, jain, variation};
use crate::workload::Workload;

/// A figure: its name in JSON, what it means, and how it is got from what the threads counted.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// In a few words, with the unit.
    pub meaning: &'static str,
    /// None where it has no sense: nothing was counted, or there is nothing to compare.
    pub of: fn(&Workload, &Counts) -> Option<f64>,
}

/// Every figure.
pub const FIGURES: [Figure; 14] = [
    Figure { name: "per_second", meaning: "acquisitions per second by all threads", of: per_second },
    Figure {
        name: "fairness_factor",
        meaning: "share of the better half of the threads in the acquisitions; 0.5 is even, 1 is starvation",
        of: |_, counts| fairness_factor(&acquisitions(counts)),
    },
    Figure {
        name: "jain",
        meaning: "Jain's index of the acquisitions by thread; 1 is even, 1 / threads is one thread with all",
        of: |_, counts| jain(&acquisitions(counts)),
    },
    Figure {
        name: "variation",
        meaning: "coefficient of variation of the acquisitions by thread; 0 is even",
        of: |_, counts| variation(&acquisitions(counts)),
    },
    Figure {
        name: "jain_hold",
        meaning: "Jain's index of the time that each thread held the lock, over what its weight entitles it to",
        of: |workload, counts| jain(&holds_by_weight(workload, counts)),
    },
    Figure {
        name: "class_evenness",
        meaning: "hold time over entitlement of the class that has least, in parts of that of the class that has most",
        of: class_evenness,
    },
    Figure {
        name: "handovers",
        meaning: "acquisitions after another thread's, of all",
        of: |_, counts| per_acquisition(counts, |thread| thread.handovers),
    },
    Figure {
        name: "handovers_remote",
        meaning: "acquisitions after a thread's in another domain, of all",
        of: |_, counts| per_acquisition(counts, |thread| thread.handovers_remote),
    },
    Figure {
        name: "wakes_in_section",
        meaning: "wake-ups on the critical path per acquisition (the library's event wake_in_cs)",
        of: wakes_in_section,
    },
    Figure { name: "waiters", meaning: "threads between asking for the lock and having it, on average", of: waiters },
    Figure {
        name: "wait_ns",
        meaning: "from asking for the lock to having it, on average",
        of: |_, counts| mean(counts, |thread| thread.wait_ns, |thread| thread.timed),
    },
    Figure {
        name: "longest_wait_ns",
        meaning: "the longest of these",
        of: |_, counts| counts.threads.iter().map(|thread| thread.longest_wait_ns as f64).reduce(f64::max),
    },
    Figure {
        name: "hold_ns",
        meaning: "from having the lock to releasing it, on average",
        of: |_, counts| mean(counts, |thread| thread.hold_ns, |thread| thread.timed),
    },
    Figure {
        name: "handover_ns",
        meaning: "from a holder's release to a waiting thread's having it, on average",
        of: |_, counts| mean(counts, |thread| thread.handover_ns, |thread| thread.timed_handovers),
    },
];

/// The share of each class in the time that the lock was held.
pub fn class_shares(workload: &Workload, counts: &Counts) -> Vec<f64> {
    let mut shares = vec![0.0; workload.classes.len()];
    for (thread, hold) in counts.threads.iter().zip(holds(counts)) {
        shares[thread.class] += hold;
    }
    let total: f64 = shares.iter().sum();
    shares.iter().map(|share| if total > 0.0 { share / total } else { 0.0 }).collect()
}

fn per_second(_: &Workload, counts: &Counts) -> Option<f64> {
    let seconds = counts.elapsed_ns as f64 / 1e9;
    (seconds > 0.0).then(|| acquisitions(counts).iter().sum::<f64>() / seconds)
}

fn acquisitions(counts: &Counts) -> Vec<f64> {
    counts.threads.iter().map(|thread| thread.acquisitions as f64).collect()
}

/// How long each thread held the lock: what was timed stands for all of its acquisitions.
fn holds(counts: &Counts) -> Vec<f64> {
    let hold = |thread: &ThreadCounts| {
        let timed = thread.timed as f64;
        if timed > 0.0 { thread.hold_ns as f64 / timed * thread.acquisitions as f64 } else { 0.0 }
    };
    counts.threads.iter().map(hold).collect()
}

/// How long each thread held the lock, in parts of what it is entitled to.
fn holds_by_weight(workload: &Workload, counts: &Counts) -> Vec<f64> {
    holds(counts).into_iter().zip(entitlements(workload, counts)).map(|(hold, due)| hold / due).collect()
}

/// What is due to each thread, in parts of anything: its weight, or its part, by weight, of its tenant's.
fn entitlements(workload: &Workload, counts: &Counts) -> Vec<f64> {
    let mut weights = vec![0.0; workload.classes.len()];
    for thread in &counts.threads {
        weights[thread.class] += workload.classes[thread.class].weight();
    }
    let due = |thread: &ThreadCounts| {
        let class = &workload.classes[thread.class];
        class.tenant.map_or(class.weight(), |tenant| f64::from(tenant) * class.weight() / weights[thread.class])
    };
    counts.threads.iter().map(due).collect()
}

fn class_evenness(workload: &Workload, counts: &Counts) -> Option<f64> {
    let mut sums = vec![(0.0, 0u32); workload.classes.len()];
    for (thread, hold) in counts.threads.iter().zip(holds_by_weight(workload, counts)) {
        let (sum, threads) = &mut sums[thread.class];
        *sum += hold;
        *threads += 1;
    }
    let means: Vec<f64> =
        sums.iter().filter(|(_, threads)| *threads > 0).map(|(sum, threads)| sum / f64::from(*threads)).collect();
    (means.len() > 1).then(|| evenness(&means)).flatten()
}

fn wakes_in_section(_: &Workload, counts: &Counts) -> Option<f64> {
    let wakes = *counts.events.as_ref()?.get("wake_in_cs")?;
    ratio(wakes, counts.threads.iter().map(|thread| thread.acquisitions).sum())
}

/// By Little's law: who waits for a part of the time counts for that part.
fn waiters(_: &Workload, counts: &Counts) -> Option<f64> {
    let waited = |thread: &ThreadCounts| {
        let timed = thread.timed as f64;
        if timed > 0.0 { thread.wait_ns as f64 / timed * thread.acquisitions as f64 } else { 0.0 }
    };
    let elapsed = counts.elapsed_ns as f64;
    (elapsed > 0.0).then(|| counts.threads.iter().map(waited).sum::<f64>() / elapsed)
}

fn per_acquisition(counts: &Counts, of: fn(&ThreadCounts) -> u64) -> Option<f64> {
    mean(counts, of, |thread| thread.acquisitions)
}

fn mean(counts: &Counts, sum: fn(&ThreadCounts) -> u64, number: fn(&ThreadCounts) -> u64) -> Option<f64> {
    ratio(counts.threads.iter().map(sum).sum(), counts.threads.iter().map(number).sum())
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Class, Placement, Section};
    use std::collections::BTreeMap;

    fn two_classes(nice: i32) -> Workload {
        Workload {
            name: String::new(),
            source: String::new(),
            section: Section::None,
            classes: vec![Class { nice, ..Class::default() }, Class::default()],
            readers: false,
            placement: Placement::Free,
            threads_per_cpu: vec![],
            timed: 2,
            seed: 1,
        }
    }

    /// The first thread holds it 30 times for 10 ns, the second 10 times for 90 ns; every second one was timed.
    fn counts() -> Counts {
        let first = ThreadCounts {
            acquisitions: 30,
            handovers: 10,
            handovers_remote: 6,
            timed: 15,
            wait_ns: 300,
            longest_wait_ns: 100,
            hold_ns: 150,
            ..ThreadCounts::default()
        };
        let second = ThreadCounts {
            class: 1,
            acquisitions: 10,
            handovers: 10,
            handovers_remote: 4,
            timed: 5,
            wait_ns: 700,
            longest_wait_ns: 200,
            hold_ns: 450,
            timed_handovers: 4,
            handover_ns: 80,
            ..ThreadCounts::default()
        };
        let events = Some(BTreeMap::from([("wake_in_cs".to_owned(), 8)]));
        Counts { elapsed_ns: 2_000, threads: vec![first, second], events, sleeps: 0, preemptions: 0 }
    }

    #[track_caller]
    fn near(name: &str, workload: &Workload, counts: &Counts, expected: f64) {
        let figure = FIGURES.iter().find(|figure| figure.name == name).expect("there is one");
        let found = (figure.of)(workload, counts);
        assert!(found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-9), "{name}: {found:?}, not {expected}");
    }

    #[test]
    fn figures_are_what_their_meanings_say() {
        for (name, expected) in [
            ("per_second", 2e7),
            ("fairness_factor", 0.75),
            ("jain", 0.8),
            ("variation", 0.5),
            ("jain_hold", 0.8),
            ("class_evenness", 1.0 / 3.0),
            ("handovers", 0.5),
            ("handovers_remote", 0.25),
            ("wakes_in_section", 0.2),
            ("waiters", 1.0),
            ("wait_ns", 50.0),
            ("longest_wait_ns", 200.0),
            ("hold_ns", 30.0),
            ("handover_ns", 20.0),
        ] {
            near(name, &two_classes(0), &counts(), expected);
        }
        assert_eq!(class_shares(&two_classes(0), &counts()), [0.25, 0.75]);
    }

    #[test]
    fn a_weight_says_what_is_even() {
        // Nice 5 has about a third of nice 0's weight.
        near("class_evenness", &two_classes(5), &counts(), 3.0 / 1.25f64.powi(5));
    }

    #[test]
    fn a_tenant_is_due_its_weight_whatever_its_threads() {
        let mut workload = two_classes(0);
        workload.classes.iter_mut().for_each(|class| class.tenant = Some(1024));
        let mut counts = counts();
        // The first tenant's time, a third of the other's, by two threads: each is due half.
        let half = ThreadCounts { acquisitions: 15, ..counts.threads[0].clone() };
        counts.threads.splice(..1, [half.clone(), half]);
        near("class_evenness", &workload, &counts, 1.0 / 3.0);
        near("jain_hold", &workload, &counts, 25.0 / (3.0 * 11.0));
    }

    #[test]
    fn what_was_not_counted_has_no_figures() {
        let mut nothing = counts();
        nothing.events = None;
        nothing.elapsed_ns = 0;
        nothing.threads.iter_mut().for_each(|thread| *thread = ThreadCounts::default());
        for figure in FIGURES.iter().filter(|figure| figure.name != "longest_wait_ns") {
            assert_eq!((figure.of)(&two_classes(0), &nothing), None, "{}", figure.name);
        }
    }
}
