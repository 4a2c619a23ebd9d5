//! The groups of CPUs that share a socket, die, NUMA node, cache or core, from sysfs.
//!
//! Nothing is derived from CPU numbers: sockets are often interleaved, and CPUs may be missing.

use crate::{Error, cpus, input};
use serde::Serialize;
use std::path::Path;

/// The sysfs of the running machine.
pub const SYSFS: &str = "/sys";

/// A resource that CPUs can share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A socket.
    Package,
    /// A die of a package.
    Die,
    /// A NUMA node.
    Node,
    /// A last-level cache.
    L3,
    /// A core, whose CPUs are SMT siblings.
    Core,
}

impl Kind {
    /// All kinds, the largest first.
    pub const ALL: [Kind; 5] = [Kind::Package, Kind::Die, Kind::Node, Kind::L3, Kind::Core];

    /// The kind's name in singular and plural.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Kind::Package => ("socket", "sockets"),
            Kind::Die => ("die", "dies"),
            Kind::Node => ("NUMA node", "NUMA nodes"),
            Kind::L3 => ("L3 group", "L3 groups"),
            Kind::Core => ("core", "cores"),
        }
    }
}

/// A CPU and its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The kernel's number of the CPU.
    pub number: usize,
    /// The index of the CPU's group in [`Machine::groups`], by kind.
    pub groups: [usize; Kind::ALL.len()],
}

/// The CPUs that are online, and their groups.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The CPUs in ascending order of their numbers.
    pub cpus: Vec<Cpu>,
    /// The kernel's list of the CPUs that are present.
    pub present: String,
    /// By kind: the CPUs of each group, ordered by the first CPU.
    groups: [Vec<Vec<usize>>; Kind::ALL.len()],
}

impl Machine {
    /// Reads the machine's topology from the sysfs at `root`, usually [`SYSFS`].
    ///
    /// # Errors
    ///
    /// If the list of online CPUs cannot be read, is invalid, or is empty.
    pub fn read(root: &Path) -> Result<Machine, Error> {
        let folder = root.join("devices/system/cpu");
        let file = folder.join("online");
        let online = input::text(&file).map_err(|error| {
            Error::new(format!("cannot read '{}': {}", file.display(), error.kind()))
        })?;
        let online = cpus::parse(&online)?;
        if online.is_empty() {
            return Err(Error::new(format!("'{}' has no CPU", file.display())));
        }
        let present = line(&folder.join("present")).unwrap_or_else(|| cpus::format(&online));
        let groups = Kind::ALL.map(|kind| groups(root, kind, &online));
        let place = |number: usize, kind: usize| {
            groups[kind]
                .iter()
                .position(|group| group.contains(&number))
                .expect("each CPU is in a group")
        };
        let cpus = online
            .iter()
            .map(|&number| Cpu { number, groups: std::array::from_fn(|kind| place(number, kind)) });
        Ok(Machine { cpus: cpus.collect(), present, groups })
    }

    /// The CPUs of each group of `kind`.
    pub fn groups(&self, kind: Kind) -> &[Vec<usize>] {
        &self.groups[kind as usize]
    }

    /// The smallest kind of group that contains both CPUs, if any.
    pub fn shared(&self, a: usize, b: usize) -> Option<Kind> {
        let find = |number| self.cpus.iter().find(|cpu| cpu.number == number);
        let (a, b) = (find(a)?, find(b)?);
        Kind::ALL.into_iter().rev().find(|&kind| a.groups[kind as usize] == b.groups[kind as usize])
    }
}

/// The groups of `kind` among the CPUs `online`. CPUs without an entry in sysfs form one group; for
/// cores and caches, each of them is a group of its own.
fn groups(root: &Path, kind: Kind, online: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = match kind {
        Kind::Node => nodes(root),
        _ => Vec::new(),
    };
    let mut rest = Vec::new();
    for &cpu in online {
        if groups.iter().any(|group| group.contains(&cpu)) {
            continue;
        }
        match (list_of(root, kind, cpu), kind) {
            (Some(group), _) if group.contains(&cpu) => groups.push(group),
            (_, Kind::Core | Kind::L3) => groups.push(vec![cpu]),
            _ => rest.push(cpu),
        }
    }
    groups.push(rest);
    let mut seen = vec![false; crate::MOST_CPUS];
    for group in &mut groups {
        group.retain(|&cpu| {
            online.binary_search(&cpu).is_ok() && !std::mem::replace(&mut seen[cpu], true)
        });
    }
    groups.retain(|group| !group.is_empty());
    groups.sort_by_key(|group| group[0]);
    groups
}

fn nodes(root: &Path) -> Vec<Vec<usize>> {
    let entries =
        std::fs::read_dir(root.join("devices/system/node")).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok())
    });
    folders.filter_map(|folder| list(&folder.join("cpulist"))).collect()
}

/// The CPUs in the group of `kind` of `cpu`. Some files have another name in older kernels.
fn list_of(root: &Path, kind: Kind, cpu: usize) -> Option<Vec<usize>> {
    let folder = root.join(format!("devices/system/cpu/cpu{cpu}"));
    let either = |newer, older| {
        let topology = folder.join("topology");
        list(&topology.join(newer)).or_else(|| list(&topology.join(older)))
    };
    match kind {
        Kind::Package => either("package_cpus_list", "core_siblings_list"),
        Kind::Die => either("die_cpus_list", "core_siblings_list"),
        Kind::Core => either("core_cpus_list", "thread_siblings_list"),
        Kind::L3 => last_level_cache(&folder.join("cache")),
        Kind::Node => None,
    }
}

fn last_level_cache(folder: &Path) -> Option<Vec<usize>> {
    let levels = (0..16).map_while(|index| {
        let cache = folder.join(format!("index{index}"));
        let level: u32 = line(&cache.join("level"))?.parse().ok()?;
        Some((level, cache))
    });
    let (_, cache) = levels.max_by_key(|(level, _)| *level)?;
    list(&cache.join("shared_cpu_list"))
}

fn line(file: &Path) -> Option<String> {
    Some(input::text(file).ok()?.trim().to_owned())
}

fn list(file: &Path) -> Option<Vec<usize>> {
    cpus::parse(&line(file)?).ok().filter(|cpus| !cpus.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn put(root: &Path, file: &str, text: &str) {
        let path = root.join("devices/system").join(file);
        fs::create_dir_all(path.parent().expect("it has one")).expect("folders");
        fs::write(path, format!("{text}\n")).expect("a file");
    }

    /// Two interleaved sockets with L3 groups of one core with two threads each. CPUs 3 and 7, one
    /// such core, are missing.
    fn interleaved(root: &Path) {
        put(root, "cpu/online", "0-2,4-6");
        put(root, "cpu/present", "0-7");
        put(root, "node/node0/cpulist", "0,2,4,6");
        put(root, "node/node1/cpulist", "");
        put(root, "node/node3/cpulist", "1,5");
        for cpu in [0, 1, 2, 4, 5, 6] {
            let socket = if cpu % 2 == 0 { "0,2,4,6" } else { "1,5" };
            let core = format!("{},{}", cpu % 4, cpu % 4 + 4);
            put(root, &format!("cpu/cpu{cpu}/topology/package_cpus_list"), socket);
            put(root, &format!("cpu/cpu{cpu}/topology/core_siblings_list"), socket);
            put(root, &format!("cpu/cpu{cpu}/topology/thread_siblings_list"), &core);
            put(root, &format!("cpu/cpu{cpu}/cache/index0/level"), "3");
            put(root, &format!("cpu/cpu{cpu}/cache/index0/shared_cpu_list"), &core);
            put(root, &format!("cpu/cpu{cpu}/cache/index1/level"), "2");
            put(root, &format!("cpu/cpu{cpu}/cache/index1/shared_cpu_list"), "0-7");
        }
    }

    #[test]
    fn groups_come_from_sysfs() {
        let root = tempfile::tempdir().expect("a folder");
        interleaved(root.path());
        let machine = Machine::read(root.path()).expect("a machine");
        assert_eq!(machine.present, "0-7");
        for kind in [Kind::Package, Kind::Die, Kind::Node] {
            assert_eq!(machine.groups(kind), [vec![0, 2, 4, 6], vec![1, 5]], "{kind:?}");
        }
        for kind in [Kind::L3, Kind::Core] {
            assert_eq!(machine.groups(kind), [vec![0, 4], vec![1, 5], vec![2, 6]], "{kind:?}");
        }
        assert_eq!(machine.shared(0, 4), Some(Kind::Core));
        assert_eq!(machine.shared(0, 2), Some(Kind::Node));
        assert_eq!(machine.shared(0, 1), None);
        assert_eq!(machine.shared(0, 3), None);
    }

    /// Without entries in sysfs, all CPUs are in one socket, and share neither cores nor caches.
    #[test]
    fn a_machine_with_little_information() {
        let root = tempfile::tempdir().expect("a folder");
        put(root.path(), "cpu/online", "1-2");
        put(root.path(), "cpu/cpu1/topology/core_cpus_list", "nonsense");
        put(root.path(), "cpu/cpu2/topology/core_cpus_list", "7");
        let machine = Machine::read(root.path()).expect("a machine");
        assert_eq!(machine.groups(Kind::Package), [[1, 2]]);
        assert_eq!(machine.groups(Kind::Node), [[1, 2]]);
        assert_eq!(machine.groups(Kind::Core), [[1], [2]]);
        assert_eq!(machine.present, "1-2");
    }

    #[test]
    fn a_missing_machine_is_an_error_that_names_the_file() {
        let root = tempfile::tempdir().expect("a folder");
        let error = Machine::read(root.path()).expect_err("nothing there").to_string();
        assert!(error.contains("devices/system/cpu/online"), "{error}");
        put(root.path(), "cpu/online", "many");
        assert!(Machine::read(root.path()).expect_err("nonsense").to_string().contains("'many"));
        put(root.path(), "cpu/online", "");
        assert!(Machine::read(root.path()).expect_err("no CPU").to_string().contains("no CPU"));
    }
}
