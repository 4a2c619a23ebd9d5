//! The loads and the locks to choose from.

use crate::commands::sim::args::AdviseArgs;
use crate::commands::sim::data;
use crate::failure::Failure;
use crate::spec::{self, Choice, Family};
use crate::threads;
use poundlock_bench::Workload;
use poundlock_sim::LockSpec;
use std::collections::BTreeSet;

/// Locks that are always simulated, for comparison. The points have ratios to the first one.
pub const REFERENCES: [&str; 2] = ["mcs", "ttas"];

/// The standard loads.
const USUAL: [(&str, Threads); 4] = [
    ("cna-map", Threads::One),
    ("cna-map", Threads::Cpus),
    ("cna-map-work", Threads::Cpus),
    ("cna-map", Threads::TwiceAsMany),
];

/// Further loads if a readers-writer lock is a candidate: 1 % writes, where such locks should pay
/// off.
const READING: [(&str, Threads); 3] = [
    ("shfl-hash-rw-1", Threads::One),
    ("shfl-hash-rw-1", Threads::Cpus),
    ("shfl-hash-rw-1", Threads::TwiceAsMany),
];

/// A number of threads relative to the machine.
#[derive(Clone, Copy)]
enum Threads {
    One,
    Cpus,
    TwiceAsMany,
}

impl Threads {
    const ALL: [Threads; 3] = [Threads::One, Threads::Cpus, Threads::TwiceAsMany];

    fn of(self, cpus: usize) -> usize {
        match self {
            Threads::One => 1,
            Threads::Cpus => cpus,
            Threads::TwiceAsMany => 2 * cpus,
        }
    }
}

/// The locks of the lists, of both families; None without lists.
pub fn asked(lists: &[String]) -> Result<Option<Vec<String>>, Failure> {
    if lists.is_empty() {
        return Ok(None);
    }
    let choices = spec::parse_lists_of(lists, &Family::simulated_all())?;
    Ok(Some(choices.iter().map(Choice::to_string).collect()))
}

/// Every lock, with its default wait and with wait=spin.
pub fn all(reading: bool) -> Vec<String> {
    let families: &[bool] = if reading { &[false, true] } else { &[false] };
    let names = families.iter().flat_map(|readers| poundlock_sim::lock_names(*readers));
    names.flat_map(|name| [name.to_owned(), format!("{name},wait=spin")]).collect()
}

/// Whether a checked lock is a readers-writer lock.
pub fn reads(lock: &str) -> bool {
    LockSpec::parse(lock).is_ok_and(|lock| lock.has_readers())
}

/// The loads: the standard ones, or those of the options.
pub fn loads(
    args: &AdviseArgs,
    cpus: usize,
    reading: bool,
) -> Result<Vec<(Workload, usize)>, Failure> {
    let usual: Vec<_> = USUAL.iter().chain(READING.iter().filter(|_| reading)).collect();
    if args.workloads.is_empty() && args.threads.is_none() {
        let load =
            |(name, threads): &&(&str, Threads)| Ok((data::workload(name)?, threads.of(cpus)));
        return usual.iter().map(load).collect();
    }
    let mut names: Vec<&str> = args.workloads.iter().map(String::as_str).collect();
    if let Some(twice) =
        names.iter().enumerate().find(|(index, name)| names[..*index].contains(name))
    {
        return Err(Failure::ours(format!("workload '{}' is named twice", twice.1)));
    }
    if names.is_empty() {
        names = usual.iter().map(|(name, _)| *name).collect();
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(*name));
    }
    let mut loads = vec![];
    for name in names {
        let workload = data::workload(name)?;
        workload.check().map_err(Failure::ours)?;
        let threads = threads::Threads::given_or_meant(args.threads.as_ref(), &workload, cpus)?;
        let threads =
            threads.unwrap_or_else(|| Threads::ALL.map(|threads| threads.of(cpus)).to_vec());
        loads.extend(threads.iter().map(|threads| (workload.clone(), *threads)));
    }
    Ok(loads)
}

/// The workload for each family of locks that can run it, with the locks. Under mutual-exclusion
/// locks the readers of a workload exclude each other.
pub fn families(workload: &Workload, candidates: &[String]) -> Vec<(Workload, Vec<String>)> {
    let mut plain: Vec<String> = REFERENCES.map(str::to_owned).to_vec();
    plain.extend(
        candidates
            .iter()
            .filter(|lock| !reads(lock) && !REFERENCES.contains(&lock.as_str()))
            .cloned(),
    );
    let mut families = vec![(Workload { readers: false, ..workload.clone() }, plain)];
    if workload.readers {
        let readers = candidates.iter().filter(|lock| reads(lock)).cloned().collect();
        families.push((workload.clone(), readers));
    }
    families.retain(|(_, locks)| !locks.is_empty());
    families
}
