//! `poundlock topo`: the topology of the machine.

use crate::failure::Failure;
use crate::output::{self, Page};
use crate::plot::boxes::{self, Block};
use crate::provenance::Provenance;
use clap::Args;
use poundlock_topology::cpus;
use poundlock_topology::machine::{Cpu, Kind, Machine, SYSFS};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct TopoArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write a drawing of the machine to FILE as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Read the machine from a copy of its /sys
    #[arg(long, value_name = "FOLDER")]
    pub sysfs: Option<PathBuf>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    provenance: Provenance,
    present: &'a str,
    cpus: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    cpu: usize,
    usable: bool,
    socket: usize,
    die: usize,
    numa_node: usize,
    l3: usize,
    core: usize,
}

/// A group of CPUs that share a core, a cache, a die, a NUMA node or a socket.
struct Group {
    /// The names of all that exactly these CPUs share.
    name: String,
    cpus: Vec<usize>,
    /// Empty for a core.
    parts: Vec<Group>,
}

/// Prints the machine, and draws it if asked to.
pub fn topo(args: &TopoArgs) -> Result<ExitCode, Failure> {
    let page = Page::beside([&args.svg])?;
    let root = args.sysfs.as_deref().unwrap_or(Path::new(SYSFS));
    let machine = Machine::read(root).map_err(Failure::ours)?;
    // All CPUs of another machine count as usable.
    let usable: Vec<usize> = if args.sysfs.is_some() {
        machine.cpus.iter().map(|cpu| cpu.number).collect()
    } else {
        cpus::usable()
    };
    let provenance = Provenance::new(poundlock::C_COMPILER.to_owned());
    if let Some(file) = &args.svg {
        let title = if args.sysfs.is_some() {
            root.display().to_string()
        } else {
            provenance.machine_line()
        };
        let svg =
            boxes::svg(&title, &summary(&machine, &usable), &blocks(&groups(&machine), &usable));
        output::write(file, svg.map_err(output::undrawable)?)?;
    }
    if args.json {
        let entries = machine.cpus.iter().map(|cpu| entry(cpu, &usable)).collect();
        let document = Document {
            schema: "poundlock.topo/1",
            provenance,
            present: &machine.present,
            cpus: entries,
        };
        page.show(output::json(&document)?.trim_end())?;
    } else {
        page.show(summary(&machine, &usable) + "\n" + text(&groups(&machine), 0).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn entry(cpu: &Cpu, usable: &[usize]) -> Entry {
    let group = |kind| cpu.groups[kind as usize];
    Entry {
        cpu: cpu.number,
        usable: usable.binary_search(&cpu.number).is_ok(),
        socket: group(Kind::Package),
        die: group(Kind::Die),
        numa_node: group(Kind::Node),
        l3: group(Kind::L3),
        core: group(Kind::Core),
    }
}

/// The number of groups of each kind.
fn summary(machine: &Machine, usable: &[usize]) -> String {
    let count = |number: usize, (one, several): (&str, &str)| {
        format!("{number} {}", if number == 1 { one } else { several })
    };
    let kinds: Vec<String> =
        Kind::ALL.iter().map(|&kind| count(machine.groups(kind).len(), kind.names())).collect();
    let number = machine.cpus.len();
    let free = machine.cpus.iter().filter(|cpu| usable.binary_search(&cpu.number).is_ok()).count();
    let part =
        if free < number { format!(", {free} usable by this process") } else { String::new() };
    format!("{}, {}{part}", kinds.join(", "), count(number, ("CPU", "CPUs")))
}

fn groups(machine: &Machine) -> Vec<Group> {
    parts(&machine.cpus.iter().collect::<Vec<_>>(), &Kind::ALL)
}

/// Groups the CPUs by `kinds`, the largest first.
fn parts(cpus: &[&Cpu], kinds: &[Kind]) -> Vec<Group> {
    let Some((&kind, smaller)) = kinds.split_first() else {
        return Vec::new();
    };
    let mut numbers: Vec<usize> = cpus.iter().map(|cpu| cpu.groups[kind as usize]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let part = |number: usize| {
        let members: Vec<&Cpu> =
            cpus.iter().copied().filter(|cpu| cpu.groups[kind as usize] == number).collect();
        let mut parts = parts(&members, smaller);
        let mut name = format!("{} {number}", kind.names().0);
        // A group with a single part merges with it, unless the part is a core.
        if parts.len() == 1 && smaller.len() > 1 {
            let only = parts.remove(0);
            name = format!("{name}, {}", only.name);
            parts = only.parts;
        }
        Group { name, cpus: members.iter().map(|cpu| cpu.number).collect(), parts }
    };
    numbers.into_iter().map(part).collect()
}

/// One line per group. The innermost groups list their cores, such as `0+4 1+5`.
fn text(groups: &[Group], depth: usize) -> String {
    let mut lines = String::new();
    for group in groups {
        let cores = group.parts.iter().all(|part| part.parts.is_empty());
        let cores = if cores {
            format!(":  {}", group.parts.iter().map(core).collect::<Vec<_>>().join(" "))
        } else {
            String::new()
        };
        writeln!(lines, "{:depth$}{}{cores}", "", group.name, depth = 2 * depth)
            .expect("writing to a string succeeds");
        if cores.is_empty() {
            lines += &text(&group.parts, depth + 1);
        }
    }
    lines
}

fn core(core: &Group) -> String {
    core.cpus.iter().map(usize::to_string).collect::<Vec<_>>().join("+")
}

/// The groups as boxes. Cores of which this process may use no CPU are disabled.
fn blocks(groups: &[Group], usable: &[usize]) -> Vec<Block> {
    let block = |group: &Group| Block {
        name: if group.parts.is_empty() { core(group) } else { group.name.clone() },
        disabled: !group.cpus.iter().any(|cpu| usable.binary_search(cpu).is_ok()),
        parts: blocks(&group.parts, usable),
    };
    groups.iter().map(block).collect()
}
