//! The points and the locks to simulate.

use crate::commands::sim::args::RegretArgs;
use crate::commands::sim::data::{self, MACHINES};
use crate::commands::sim::job::{self, Job, MachineFiles};
use crate::commands::sim::plan::Parts;
use crate::failure::Failure;
use crate::spec::{self, Choice, Family};
use crate::threads::Threads;
use poundlock_bench::Workload;
use poundlock_sim::{Locality, Machine};

/// A load: a workload of a paper, and its step as fitted to the paper's figures (`bench/figures`).
const LOADS: [(&str, f64); 5] = [
    ("cna-map", 1.0),
    ("cna-map-work", 1.0),
    ("shfl-hash-1", 4.0),
    ("ron-10us", 0.3),
    ("ron-empty", 0.3),
];

/// The rivals of the default lock, each with its default wait.
const RIVALS: [&str; 14] = [
    "mcs",
    "clh",
    "cna",
    "c_bo_mcs",
    "hmcs",
    "cst",
    "malthusian",
    "mutexee",
    "reciprocating",
    "adaptive",
    "hapax",
    "shfl_spin",
    "ron_ticket",
    "ttas",
];
/// Further rivals while threads are at most CPUs. With more, waiters that spin take the holder's
/// CPU.
const SPINNING: [&str; 5] = [
    "mcs,wait=spin",
    "cna,wait=spin",
    "c_bo_mcs,wait=spin",
    "shfl_spin,wait=spin",
    "ron_ticket,wait=spin",
];

/// The part of `--quick`.
const QUICK_MACHINES: [&str; 4] = ["2990wx", "e5-2699v3", "e7-8890v4", "epyc-7742-2s"];
const QUICK_RIVALS: [&str; 5] = ["mcs", "cna", "adaptive", "ron_ticket", "ttas"];
const QUICK_SPINNING: [&str; 3] = ["mcs,wait=spin", "cna,wait=spin", "ron_ticket,wait=spin"];

/// A machine that is too large to be simulated often.
const LARGEST: &str = "synthetic-1024";
/// No point has more threads by default: a simulation of more takes minutes.
const MOST_THREADS: usize = 512;
const FIRST_SEED: u64 = 1;
/// Nanoseconds of warm-up at least.
const WARMUP: u64 = 500_000;

/// A machine with a load and a number of threads.
pub struct Point {
    pub machine: String,
    pub workload: Workload,
    pub threads: usize,
    pub locks: Vec<String>,
    /// By seed and lock.
    pub jobs: Vec<Job>,
}

/// The points, checked.
pub struct Plan {
    pub lock: String,
    pub rivals: Vec<String>,
    pub points: Vec<Point>,
}

/// A load of the points.
struct Load {
    workload: Workload,
    step: f64,
}

impl Plan {
    pub fn make(args: &RegretArgs) -> Result<Plan, Failure> {
        let (lock, rivals) = locks(args)?;
        let loads = loads(args)?;
        let mut points = vec![];
        for name in machines(args)? {
            let file = MACHINES.find(&name)?;
            let machine = job::machine(&file, None).map_err(Failure::ours)?;
            for load in &loads {
                for threads in threads(args, &load.workload, machine.cpus.len())? {
                    let mut locks = vec![lock.clone()];
                    let spins = |rival: &&String| threads > machine.cpus.len() && spins(rival);
                    locks.extend(rivals.iter().filter(|rival| !spins(rival)).cloned());
                    let base = base(&file.display().to_string(), &machine, load, threads);
                    points.push(Point {
                        machine: stem(&name),
                        workload: load.workload.clone(),
                        threads,
                        jobs: jobs(&base, &locks, args.seeds),
                        locks,
                    });
                }
            }
        }
        Ok(Plan { lock, rivals, points })
    }
}

fn spins(lock: &str) -> bool {
    lock.contains("wait=spin")
}

/// The name of a machine's file.
fn stem(name: &str) -> String {
    let path = std::path::Path::new(name);
    path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// The lock, and the rivals without it.
fn locks(args: &RegretArgs) -> Result<(String, Vec<String>), Failure> {
    let family = Family::simulated(false);
    let usual = || {
        let (waiting, spinning) = if args.quick {
            (&QUICK_RIVALS[..], &QUICK_SPINNING[..])
        } else {
            (&RIVALS[..], &SPINNING[..])
        };
        waiting.iter().chain(spinning).map(|name| (*name).to_owned()).collect()
    };
    let asked = if args.rivals.is_empty() { usual() } else { args.rivals.clone() };
    let names = |lists: &[String]| -> Result<Vec<String>, Failure> {
        Ok(spec::parse_lists_of(lists, &family)?.iter().map(Choice::to_string).collect())
    };
    let [lock] = &names(std::slice::from_ref(&args.lock))?[..] else {
        return Err(Failure::ours(format!("--lock: '{}' names several locks", args.lock)));
    };
    let rivals = names(&asked)?.into_iter().filter(|rival| rival != lock).collect();
    Ok((lock.clone(), rivals))
}

fn machines(args: &RegretArgs) -> Result<Vec<String>, Failure> {
    if !args.machines.is_empty() {
        return Ok(args.machines.clone());
    }
    if args.quick {
        return Ok(QUICK_MACHINES.map(str::to_owned).to_vec());
    }
    Ok(MACHINES.names()?.into_iter().filter(|name| name != LARGEST).collect())
}

fn loads(args: &RegretArgs) -> Result<Vec<Load>, Failure> {
    let step = |name: &str| LOADS.iter().find(|load| load.0 == name).map_or(1.0, |load| load.1);
    let names: Vec<&str> = if args.workloads.is_empty() {
        LOADS.iter().map(|load| load.0).collect()
    } else {
        args.workloads.iter().map(String::as_str).collect()
    };
    let load = |name: &str| {
        let workload = args.placement.apply(data::workload(name)?);
        workload.check().map_err(Failure::ours)?;
        if workload.readers {
            return Err(Failure::ours(format!("workload '{name}' is for readers-writer locks")));
        }
        Ok(Load { workload, step: step(name) })
    };
    names.into_iter().map(load).collect()
}

fn threads(args: &RegretArgs, load: &Workload, cpus: usize) -> Result<Vec<usize>, Failure> {
    if args.threads.is_some() {
        let threads = Threads::given_or_meant(args.threads.as_ref(), load, cpus)?;
        return Ok(threads.unwrap_or_default());
    }
    let all = if args.quick {
        vec![cpus, 4 * cpus]
    } else {
        vec![4, cpus / 2, cpus, 4 * cpus, 16 * cpus]
    };
    let mut some: Vec<usize> =
        all.into_iter().filter(|threads| *threads <= MOST_THREADS.max(cpus)).collect();
    some.sort_unstable();
    some.dedup();
    Ok(some)
}

fn base(file: &str, machine: &Machine, load: &Load, threads: usize) -> Job {
    let Parts { warmup, measured, most } = Parts::of(WARMUP, None, machine, threads);
    Job {
        machine: MachineFiles { machine: file.into(), matrix: None },
        workload: load.workload.clone(),
        lock: String::new(),
        threads,
        warmup,
        measured,
        most,
        seed: FIRST_SEED,
        step: load.step,
        locality: Locality::L3,
        trace: false,
    }
}

fn jobs(base: &Job, locks: &[String], seeds: u32) -> Vec<Job> {
    let seeds = (0..u64::from(seeds)).map(|seed| FIRST_SEED + seed);
    let job = |seed| locks.iter().map(move |lock| Job { lock: lock.clone(), seed, ..base.clone() });
    seeds.flat_map(job).collect()
}

#[cfg(test)]
mod tests {
    use super::LOADS;
    use std::path::Path;

    #[test]
    fn the_steps_of_loads_are_those_of_the_figures() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/figures");
        let mut compared = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let figure: toml::Table = text.parse().unwrap();
            let load = LOADS.iter().find(|load| figure["workload"].as_str() == Some(load.0));
            let step = figure.get("step").and_then(toml::Value::as_float);
            if let (Some((name, expected)), Some(step)) = (load, step) {
                assert_eq!(step, *expected, "{name} in {}", figure["name"]);
                compared += 1;
            }
        }
        assert_ne!(compared, 0);
    }
}
