//! Figures: functions of a workload and its counts, such as throughput and fairness.

use crate::counts::{Counts, ThreadCounts};
use crate::metrics::{evenness, fairness_factor, jain, variation};
use crate::workload::Workload;

/// A figure: its name in JSON, its meaning, and its computation.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// In a few words, with the unit.
    pub meaning: &'static str,
    /// None if nothing was counted, or there is nothing to compare.
    pub of: fn(&Workload, &Counts) -> Option<f64>,
}

/// Every figure.
pub const FIGURES: [Figure; 15] = [
    Figure {
        name: "per_second",
        meaning: "acquisitions per second by all threads",
        of: per_second,
    },
    Figure {
        name: "per_cpu_second",
        meaning: "acquisitions by all threads per second of their CPU time",
        of: |_, counts| {
            let seconds = counts.cpu_ns as f64 / 1e9;
            (seconds > 0.0).then(|| acquisitions(counts).iter().sum::<f64>() / seconds)
        },
    },
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
        meaning: "Jain's index of each thread's hold time over its entitlement by weight",
        of: |workload, counts| jain(&holds_by_weight(workload, counts)),
    },
    Figure {
        name: "class_evenness",
        meaning: "hold time over entitlement: the smallest of the classes over the largest",
        of: class_evenness,
    },
    Figure {
        name: "handovers",
        meaning: "fraction of acquisitions whose previous holder was another thread",
        of: |_, counts| per_acquisition(counts, |thread| thread.handovers),
    },
    Figure {
        name: "handovers_remote",
        meaning: "fraction of acquisitions whose previous holder was in another domain",
        of: |_, counts| per_acquisition(counts, |thread| thread.handovers_remote),
    },
    Figure {
        name: "wakes_in_section",
        meaning: "wake-ups on the critical path per acquisition (the library's event wake_in_cs)",
        of: wakes_in_section,
    },
    Figure {
        name: "waiters",
        meaning: "average number of threads that wait for the lock",
        of: waiters,
    },
    Figure {
        name: "wait_ns",
        meaning: "average time from the request of the lock to its acquisition",
        of: |_, counts| mean(counts, |thread| thread.wait_ns, |thread| thread.timed),
    },
    Figure {
        name: "longest_wait_ns",
        meaning: "the longest of these waits",
        of: |_, counts| {
            counts.threads.iter().map(|thread| thread.longest_wait_ns as f64).reduce(f64::max)
        },
    },
    Figure {
        name: "hold_ns",
        meaning: "average time from acquisition to release",
        of: |_, counts| mean(counts, |thread| thread.hold_ns, |thread| thread.timed),
    },
    Figure {
        name: "handover_ns",
        meaning: "average time from a release to the acquisition by a waiting thread",
        of: |_, counts| mean(counts, |thread| thread.handover_ns, |thread| thread.timed_handovers),
    },
];

/// The share of each class in the hold time.
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

/// The hold time of each thread: its timed acquisitions stand for all.
fn holds(counts: &Counts) -> Vec<f64> {
    let hold = |thread: &ThreadCounts| {
        let timed = thread.timed as f64;
        if timed > 0.0 { thread.hold_ns as f64 / timed * thread.acquisitions as f64 } else { 0.0 }
    };
    counts.threads.iter().map(hold).collect()
}

/// The hold time of each thread over its entitlement.
fn holds_by_weight(workload: &Workload, counts: &Counts) -> Vec<f64> {
    holds(counts)
        .into_iter()
        .zip(entitlements(workload, counts))
        .map(|(hold, entitled)| hold / entitled)
        .collect()
}

/// The entitlement of each thread: its weight, or its part by weight of its tenant's weight.
fn entitlements(workload: &Workload, counts: &Counts) -> Vec<f64> {
    let mut weights = vec![0.0; workload.classes.len()];
    for thread in &counts.threads {
        weights[thread.class] += workload.classes[thread.class].weight();
    }
    let entitled = |thread: &ThreadCounts| {
        let class = &workload.classes[thread.class];
        class.tenant.map_or(class.weight(), |tenant| {
            f64::from(tenant) * class.weight() / weights[thread.class]
        })
    };
    counts.threads.iter().map(entitled).collect()
}

fn class_evenness(workload: &Workload, counts: &Counts) -> Option<f64> {
    let mut sums = vec![(0.0, 0u32); workload.classes.len()];
    for (thread, hold) in counts.threads.iter().zip(holds_by_weight(workload, counts)) {
        let (sum, threads) = &mut sums[thread.class];
        *sum += hold;
        *threads += 1;
    }
    let means: Vec<f64> = sums
        .iter()
        .filter(|(_, threads)| *threads > 0)
        .map(|(sum, threads)| sum / f64::from(*threads))
        .collect();
    (means.len() > 1).then(|| evenness(&means)).flatten()
}

fn wakes_in_section(_: &Workload, counts: &Counts) -> Option<f64> {
    let wakes = *counts.events.as_ref()?.get("wake_in_cs")?;
    ratio(wakes, counts.threads.iter().map(|thread| thread.acquisitions).sum())
}

/// By Little's law: a thread that waits for a fraction of the time counts as that fraction.
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

fn mean(
    counts: &Counts,
    sum: fn(&ThreadCounts) -> u64,
    number: fn(&ThreadCounts) -> u64,
) -> Option<f64> {
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

    /// The first thread holds the lock 30 times for 10 ns, the second 10 times for 90 ns; every
    /// second time is timed.
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
        Counts {
            elapsed_ns: 2_000,
            cpu_ns: 5_000,
            threads: vec![first, second],
            events,
            sleeps: 0,
            preemptions: 0,
        }
    }

    #[track_caller]
    fn near(name: &str, workload: &Workload, counts: &Counts, expected: f64) {
        let figure = FIGURES.iter().find(|figure| figure.name == name).expect("there is one");
        let found = (figure.of)(workload, counts);
        assert!(
            found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-9),
            "{name}: {found:?}, not {expected}"
        );
    }

    #[test]
    fn figures_match_their_definitions() {
        for (name, expected) in [
            ("per_second", 2e7),
            ("per_cpu_second", 8e6),
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
    fn a_weight_determines_the_entitlement() {
        // Nice 5 has about a third of nice 0's weight.
        near("class_evenness", &two_classes(5), &counts(), 3.0 / 1.25f64.powi(5));
    }

    #[test]
    fn a_tenant_is_entitled_to_its_weight_whatever_its_threads() {
        let mut workload = two_classes(0);
        workload.classes.iter_mut().for_each(|class| class.tenant = Some(1024));
        let mut counts = counts();
        // Two threads share the first tenant's time and entitlement; it has a third of the other
        // tenant's time.
        let half = ThreadCounts { acquisitions: 15, ..counts.threads[0].clone() };
        counts.threads.splice(..1, [half.clone(), half]);
        near("class_evenness", &workload, &counts, 1.0 / 3.0);
        near("jain_hold", &workload, &counts, 25.0 / (3.0 * 11.0));
    }

    #[test]
    fn uncounted_quantities_have_no_figures() {
        let mut nothing = counts();
        nothing.events = None;
        (nothing.elapsed_ns, nothing.cpu_ns) = (0, 0);
        nothing.threads.iter_mut().for_each(|thread| *thread = ThreadCounts::default());
        for figure in FIGURES.iter().filter(|figure| figure.name != "longest_wait_ns") {
            assert_eq!((figure.of)(&two_classes(0), &nothing), None, "{}", figure.name);
        }
    }
}
