//! Placement of threads on CPUs.

use crate::error::{BenchError, error};
use poundlock_topology::machine::{self, Kind, Machine};
use poundlock_workload::Placement;
use std::collections::BTreeMap;
use std::path::Path;

/// A usable CPU and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cpu {
    number: usize,
    socket: usize,
    /// Its index among the core's hardware threads.
    sibling: usize,
}

/// The CPUs in the order of placement; empty if threads are not bound.
pub(crate) fn order(placement: Placement) -> Result<Vec<usize>, BenchError> {
    if placement == Placement::Free {
        return Ok(Vec::new());
    }
    let machine =
        Machine::read(Path::new("/sys")).map_err(|wrong| BenchError(wrong.to_string()))?;
    Ok(arrange(placement, places(&machine, &usable()?)))
}

fn arrange(placement: Placement, mut cpus: Vec<Cpu>) -> Vec<usize> {
    // All first hardware threads of a socket precede the second ones.
    cpus.sort_by_key(|cpu| (cpu.socket, cpu.sibling, cpu.number));
    if placement == Placement::RoundRobin {
        let mut turns = BTreeMap::new();
        let mut dealt: Vec<(usize, Cpu)> =
            cpus.into_iter().map(|cpu| (next(&mut turns, cpu.socket), cpu)).collect();
        dealt.sort_by_key(|(turn, cpu)| (*turn, cpu.socket));
        cpus = dealt.into_iter().map(|(_, cpu)| cpu).collect();
    }
    cpus.into_iter().map(|cpu| cpu.number).collect()
}

/// Counts the earlier calls with `key`.
fn next<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) -> usize {
    let count = counts.entry(key).or_insert(0);
    *count += 1;
    *count - 1
}

/// The places of the usable CPUs of the machine.
fn places(machine: &Machine, usable: &[usize]) -> Vec<Cpu> {
    let mut cores = BTreeMap::new();
    let usable = machine.cpus.iter().filter(|cpu| usable.contains(&cpu.number));
    let place = |cpu: &machine::Cpu| Cpu {
        number: cpu.number,
        socket: cpu.groups[Kind::Package as usize],
        sibling: next(&mut cores, cpu.groups[Kind::Core as usize]),
    };
    usable.map(place).collect()
}

/// The CPUs that the calling thread may use, in ascending order.
fn usable() -> Result<Vec<usize>, BenchError> {
    // SAFETY: a cpu_set_t may be all zero, and the call writes to it alone.
    let (failed, set) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set), set)
    };
    if failed != 0 {
        return error(format!("cannot read the usable CPUs: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: the numbers are within the set.
    Ok((0..libc::CPU_SETSIZE as usize)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect())
}

/// Binds the calling thread to `cpu`.
pub(crate) fn bind(cpu: usize) -> Result<(), BenchError> {
    // SAFETY: the set is zeroed and the CPU's number came from such a set; the call reads it alone.
    let failed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if failed == 0 {
        Ok(())
    } else {
        error(format!("cannot bind a thread to CPU {cpu}: {}", std::io::Error::last_os_error()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Two sockets of two cores of two hardware threads, numbered as in Linux: first threads, then
    /// second ones.
    fn machine() -> Vec<Cpu> {
        let place = |number: usize| Cpu { number, socket: number / 2 % 2, sibling: number / 4 };
        (0..8).map(place).collect()
    }

    #[test]
    fn first_fill_fills_a_socket_and_its_cores_before_their_siblings() {
        assert_eq!(arrange(Placement::FirstFill, machine()), [0, 1, 4, 5, 2, 3, 6, 7]);
    }

    #[test]
    fn round_robin_alternates_between_sockets() {
        assert_eq!(arrange(Placement::RoundRobin, machine()), [0, 2, 1, 3, 4, 6, 5, 7]);
        let uneven: Vec<Cpu> =
            machine().into_iter().filter(|cpu| ![2, 3, 6].contains(&cpu.number)).collect();
        assert_eq!(
            arrange(Placement::RoundRobin, uneven),
            [0, 7, 1, 4, 5],
            "sockets with a free CPU"
        );
    }

    #[test]
    fn places_come_from_sysfs() {
        let root = std::env::temp_dir().join(format!("poundlock-bench-{}", std::process::id()));
        let cpus = root.join("devices/system/cpu");
        for (cpu, socket, core) in
            [(0, "0,2-3", "0,2"), (1, "1", "1"), (2, "0,2-3", "0,2"), (3, "0,2-3", "3")]
        {
            let topology = cpus.join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).expect("a directory");
            fs::write(topology.join("package_cpus_list"), format!("{socket}\n")).expect("a file");
            fs::write(topology.join("core_cpus_list"), format!("{core}\n")).expect("a file");
        }
        fs::write(cpus.join("online"), "0-3\n").expect("a file");
        let machine = Machine::read(&root).expect("a machine");
        fs::remove_dir_all(&root).expect("it is ours");
        let place = |number, socket, sibling| Cpu { number, socket, sibling };
        let all = [place(0, 0, 0), place(1, 1, 0), place(2, 0, 1), place(3, 0, 0)];
        assert_eq!(places(&machine, &[0, 1, 2, 3]), all);
        assert_eq!(
            places(&machine, &[1, 2]),
            [place(1, 1, 0), place(2, 0, 0)],
            "the core's first thread is not usable"
        );
    }

    #[test]
    fn this_machine_has_cpus() {
        assert_eq!(order(Placement::Free), Ok(vec![]));
        let order = order(Placement::FirstFill).expect("an order");
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(Ok(sorted), usable());
        bind(order[0]).expect("the first CPU is usable");
    }
}
