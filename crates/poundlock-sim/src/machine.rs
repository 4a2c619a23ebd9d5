// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines: what `machines/*.toml` say, checked, and what the model reads off them.
//!
//! A file names its source with every figure, and the parser insists on it. What is wrong with a file is told in one
//! line that names the key.

use crate::memory::{MOST_CORES, MOST_DOMAINS};
use crate::table;
use poundlock_topology::{MOST_CPUS, input};
use serde::Deserialize;
use std::fmt;
use std::path::Path;

/// What a table of latencies does not say.
const USUAL: &str = include_str!("../../../machines/e5-2699v3.toml");

/// Simulated time, in picoseconds.
pub type Time = u64;

/// Nanoseconds as [`Time`].
pub(crate) fn ns(nanoseconds: f64) -> Time {
    (nanoseconds * 1000.0).round() as Time
}

/// What is wrong with a machine's file, or with a simulation. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimError(pub String);

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SimError {}

pub(crate) fn error<T>(message: impl fmt::Display) -> Result<T, SimError> {
    Err(SimError(message.to_string()))
}

/// A figure with its source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    value: f64,
    /// Where it is from, or "estimate: why".
    source: String,
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    about: String,
    topology: TopologyFile,
    latency: LatencyFile,
    core: CoreFile,
    system: SystemFile,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopologyFile {
    source: String,
    /// Sockets.
    packages: usize,
    /// NUMA nodes of a package.
    nodes: usize,
    /// Last-level caches of a node.
    domains: usize,
    /// The cores at a last-level cache.
    cores: Vec<CoresFile>,
    /// How the system numbers a core's hardware threads.
    numbering: Numbering,
    /// Links to cross between two packages; 1 between any two unless given.
    #[serde(default)]
    hops: Vec<Vec<usize>>,
    /// Cores that run faster than the others of their kind.
    #[serde(default)]
    favoured: Vec<FavouredFile>,
    /// Which nodes have memory, if not all of them do.
    memory: Option<MemoryFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryFile {
    nodes: Vec<usize>,
    source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CoresFile {
    count: usize,
    /// Hardware threads of each.
    threads: usize,
    speed: Figure,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FavouredFile {
    /// NUMA nodes whose cores are meant.
    nodes: Vec<usize>,
    speed: Figure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Numbering {
    /// A core's threads have neighbouring numbers.
    Adjacent,
    /// First all cores' first threads, then all second ones.
    Last,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LatencyFile {
    /// A table of latencies between CPUs, in place of `sibling` to `hops`.
    matrix: Option<String>,
    sibling: Option<Figure>,
    domain: Option<Figure>,
    node: Option<Figure>,
    package: Option<Figure>,
    /// By the number of links between the packages, from 1 on.
    #[serde(default)]
    hops: Vec<Figure>,
    /// What a transfer between domains takes more if 1, or 2, of the two nodes are not the line's home.
    #[serde(default)]
    home: Vec<Figure>,
    shared_cache: Figure,
    clean: Figure,
    memory_local: Figure,
    memory_remote: Figure,
    travel: Figure,
    upgrade: Figure,
    sharer: Figure,
    serve_shared: Figure,
    serve_remote: Figure,
    directory: Figure,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CoreFile {
    cycle: Figure,
    hit: Figure,
    store: Figure,
    atomic: Figure,
    pause: Figure,
    store_buffer: Figure,
    stream: Figure,
    sibling_computes: Figure,
    sibling_spins: Figure,
    noise: Figure,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SystemFile {
    clock: Figure,
    syscall: Figure,
    switch: Figure,
    wake: Figure,
    waking: Figure,
    futex: Figure,
    slice: Figure,
    period: Figure,
    interrupt_every: Figure,
    interrupt: Figure,
}

/// What a CPU is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its core.
    pub core: usize,
    /// Which of its core's hardware threads it is.
    pub sibling: usize,
    /// Its last-level cache.
    pub domain: usize,
    /// Its NUMA node.
    pub node: usize,
    /// Its socket.
    pub package: usize,
}

/// What the model needs to know of a core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core {
    pub domain: usize,
    pub node: usize,
    pub package: usize,
    pub speed: f64,
}

/// A machine, with its figures as times.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// By the system's number.
    pub cpus: Vec<Cpu>,
    pub(crate) cores: Vec<Core>,
    pub(crate) domains: usize,
    pub(crate) nodes: usize,
    /// By node, the node where its threads' memory is.
    pub(crate) memory_nodes: Vec<usize>,
    /// By domain, its first core and how many it has.
    domain_cores: Vec<(usize, usize)>,
    /// Of a modified line from core to core; in a core, between siblings.
    transfer: Vec<u32>,
    /// More, by how many of the two nodes are not the home; not inside a domain.
    home: [Time; 3],
    pub(crate) shared_cache: Time,
    pub(crate) clean: f64,
    pub(crate) memory_local: Time,
    pub(crate) memory_remote: Time,
    pub(crate) travel: f64,
    pub(crate) upgrade: f64,
    pub(crate) sharer: Time,
    pub(crate) serve_shared: Time,
    pub(crate) serve_remote: Time,
    pub(crate) directory: Time,
    /// In nanoseconds.
    pub(crate) cycle: f64,
    pub(crate) hit: Time,
    pub(crate) store: Time,
    pub(crate) atomic: Time,
    pub(crate) pause: Time,
    pub(crate) store_buffer: usize,
    pub(crate) stream: u32,
    pub(crate) sibling_computes: f64,
    pub(crate) sibling_spins: f64,
    pub(crate) noise: f64,
    pub(crate) clock: Time,
    pub(crate) syscall: Time,
    pub(crate) switch: Time,
    pub(crate) wake: Time,
    pub(crate) waking: Time,
    pub(crate) futex: Time,
    pub(crate) slice: Time,
    pub(crate) period: Time,
    pub(crate) interrupt_every: Time,
    pub(crate) interrupt: Time,
    /// The latencies that the file has or its classes make, by CPU, in nanoseconds: what a ping-pong should find.
    published: Vec<f32>,
}

impl Machine {
    /// Reads a machine's file; a matrix is looked for beside it.
    pub fn read(path: &Path) -> Result<Machine, SimError> {
        let named = |wrong: &dyn fmt::Display| SimError(format!("'{}': {wrong}", path.display()));
        let text = input::text(path).map_err(|wrong| named(&wrong))?;
        let beside = path.parent().unwrap_or(Path::new("."));
        let matrix = |name: &str| input::text(&beside.join(name)).map_err(|wrong| format!("'{name}': {wrong}"));
        Machine::from_toml(&text, matrix).map_err(|wrong| named(&wrong))
    }

    /// Makes a machine of a file's text; `matrix` reads the table that the file names.
    pub fn from_toml(text: &str, matrix: impl FnOnce(&str) -> Result<String, String>) -> Result<Machine, SimError> {
        let file: File = toml::from_str(text).map_err(|wrong| SimError(one_line(text, &wrong)))?;
        file.check()?;
        let (cpus, cores) = file.topology.lay_out();
        let count = cpus.len();
        let published = match &file.latency.matrix {
            Some(name) => {
                let table = matrix(name).map_err(|wrong| SimError(format!("latency.matrix: {wrong}")))?;
                parse_matrix(&table, count).map_err(|wrong| SimError(format!("latency.matrix: '{name}': {wrong}")))?
            }
            None => file.latency.classes(&file.topology, &cpus)?,
        };
        Ok(file.build(cpus, cores, published))
    }

    /// The machine that a table of latencies between CPUs makes: who is how near whom is read off it, and everything else is
    /// that of a machine that is usual, as its file says.
    pub fn from_table(name: &str, table: &str) -> Result<Machine, SimError> {
        let count = table.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count();
        if count < 2 {
            return error("a machine needs the latencies between at least two CPUs");
        }
        if count > MOST_CPUS {
            return error(format!("has {count} CPUs; the model has room for {MOST_CPUS}"));
        }
        let published = parse_matrix(table, count).map_err(SimError)?;
        let (cpus, cores) = table::lay_out(&published, count)?;
        let usual: File = toml::from_str(USUAL).map_err(|wrong| SimError(one_line(USUAL, &wrong)))?;
        let packages = cores.iter().map(|core| core.package).max().map_or(0, |last| last + 1);
        let mut machine = usual.build(cpus, cores, published);
        machine.name = name.to_owned();
        let (cores, domains) = (machine.cores.len(), machine.domains);
        machine.about = format!(
            "{name}: {count} CPUs, by their latencies of {cores} cores at {domains} caches, which are {packages} sockets or the like"
        );
        // A table has its homes in it, and the last-level cache is nearer than the cores that share it.
        machine.home = [0; 3];
        let neighbours = (0..machine.domains).map(|domain| machine.near(machine.first_core(domain)));
        machine.shared_cache = neighbours.map(|near| near / 2).min().unwrap_or(machine.shared_cache);
        machine.calibrate();
        Ok(machine)
    }

    /// The same machine with other latencies between its CPUs: a table of as many rows and columns.
    pub fn with_matrix(mut self, table: &str) -> Result<Machine, SimError> {
        self.published = parse_matrix(table, self.cpus.len()).map_err(SimError)?;
        self.home = [0; 3];
        self.calibrate();
        Ok(self)
    }

    /// The one-way latency between two CPUs that the machine's file has, in nanoseconds.
    pub fn published(&self, from: usize, to: usize) -> f64 {
        self.published[from * self.cpus.len() + to].into()
    }

    /// The time in which the system lets every thread of a CPU run once, in seconds.
    pub fn period(&self) -> f64 {
        self.period as f64 / 1e12
    }

    /// How long a modified line takes from `owner` to `to`, its home being the node `home`.
    pub(crate) fn transfer(&self, to: usize, owner: usize, home: usize) -> Time {
        let base = Time::from(self.transfer[to * self.cores.len() + owner]);
        let (a, b) = (self.cores[to], self.cores[owner]);
        if a.domain == b.domain {
            return base;
        }
        base + self.home[away(a.node, b.node, home)]
    }

    /// How long a thread's write takes to be seen by its sibling.
    pub(crate) fn sibling(&self, core: u16) -> Time {
        Time::from(self.transfer[usize::from(core) * (self.cores.len() + 1)])
    }

    /// The first core of a domain.
    pub(crate) fn first_core(&self, domain: usize) -> usize {
        self.domain_cores[domain].0
    }

    /// How long a line takes to the core from a neighbour in its domain.
    pub(crate) fn near(&self, core: usize) -> Time {
        let (first, count) = self.domain_cores[self.cores[core].domain];
        if count == 1 {
            return self.shared_cache;
        }
        let neighbour = if core == first { first + 1 } else { first };
        Time::from(self.transfer[core * self.cores.len() + neighbour])
    }

    /// A ping-pong's figure is a transfer and the read-modify-write that ends it: the model's transfers are without.
    fn calibrate(&mut self) {
        let (cpus, cores) = (self.cpus.len(), self.cores.len());
        let mut sum = vec![0f64; cores * cores];
        let mut pairs = vec![0u32; cores * cores];
        for a in 0..cpus {
            for b in (0..cpus).filter(|b| *b != a) {
                let figure = f64::from(self.published[a * cpus + b]);
                let (ca, cb) = (self.cpus[a], self.cpus[b]);
                sum[ca.core * cores + cb.core] += figure;
                pairs[ca.core * cores + cb.core] += 1;
            }
        }
        let atomic = self.atomic as f64 / 1000.0;
        let at = |(i, (sum, pairs)): (usize, (&f64, &u32))| {
            if *pairs == 0 {
                return 0;
            }
            let (a, b) = (self.cores[i / cores], self.cores[i % cores]);
            let mean = sum / f64::from(*pairs);
            let atomic = atomic * (1.0 / a.speed + 1.0 / b.speed) / 2.0;
            if i / cores == i % cores {
                // Siblings have the line all the time, and try again every `sibling + atomic`: they meet half-way.
                return ns((2.0 * mean - atomic).max(0.0)) as u32;
            }
            // A table was measured, and the classes are given, with the line at home with one of the two.
            let home = if a.domain == b.domain { 0 } else { self.home[away(a.node, b.node, a.node)] };
            ns((mean - atomic).max(1.0)).saturating_sub(home) as u32
        };
        self.transfer = sum.iter().zip(&pairs).enumerate().map(at).collect();
    }
}

/// Cores are numbered domain by domain.
fn domain_cores(cores: &[Core]) -> Vec<(usize, usize)> {
    let mut domains: Vec<(usize, usize)> = vec![];
    for (number, core) in cores.iter().enumerate() {
        if core.domain == domains.len() {
            domains.push((number, 0));
        }
        domains[core.domain].1 += 1;
    }
    domains
}

/// How many of the two nodes are not the home.
fn away(a: usize, b: usize, home: usize) -> usize {
    usize::from(a != home) + usize::from(b != home && b != a)
}

fn one_line(text: &str, wrong: &toml::de::Error) -> String {
    let what = wrong.message().lines().collect::<Vec<_>>().join(" ");
    let Some(span) = wrong.span() else { return what };
    let start = span.start.min(text.len());
    let line = text[..start].matches('\n').count();
    let key = text.lines().nth(line).and_then(|line| line.split('=').next()).map(str::trim).unwrap_or_default();
    format!("line {}: {key}: {what}", line + 1)
}

impl File {
    fn check(&self) -> Result<(), SimError> {
        self.topology.check()?;
        for (key, figure, least, most) in self.figures() {
            if figure.source.trim().is_empty() {
                return error(format!("{key}.source: no source; say where it is from, or estimate and why"));
            }
            if !(least..=most).contains(&figure.value) {
                return error(format!("{key}.value: {} is not from {least} to {most}", figure.value));
            }
        }
        Ok(())
    }

    /// Every figure, its key and its range.
    fn figures(&self) -> Vec<(String, &Figure, f64, f64)> {
        let (l, c, s) = (&self.latency, &self.core, &self.system);
        const LONG: f64 = 100_000.0;
        let mut all: Vec<(String, &Figure, f64, f64)> = vec![];
        let options = [("sibling", &l.sibling), ("domain", &l.domain), ("node", &l.node), ("package", &l.package)];
        for (key, figure) in options {
            all.extend(figure.as_ref().map(|figure| (format!("latency.{key}"), figure, 0.1, LONG)));
        }
        all.extend(l.hops.iter().enumerate().map(|(i, figure)| (format!("latency.hops[{i}]"), figure, 0.1, LONG)));
        all.extend(l.home.iter().enumerate().map(|(i, figure)| (format!("latency.home[{i}]"), figure, 0.0, LONG)));
        for (i, cores) in self.topology.cores.iter().enumerate() {
            all.push((format!("topology.cores[{i}].speed"), &cores.speed, 0.01, 100.0));
        }
        for (i, favoured) in self.topology.favoured.iter().enumerate() {
            all.push((format!("topology.favoured[{i}].speed"), &favoured.speed, 0.01, 100.0));
        }
        for (key, figure, least, most) in [
            ("latency.shared_cache", &l.shared_cache, 0.1, LONG),
            ("latency.clean", &l.clean, 0.01, 10.0),
            ("latency.memory_local", &l.memory_local, 0.1, LONG),
            ("latency.memory_remote", &l.memory_remote, 0.1, LONG),
            ("latency.travel", &l.travel, 0.0, 0.9),
            ("latency.upgrade", &l.upgrade, 0.01, 10.0),
            ("latency.sharer", &l.sharer, 0.0, LONG),
            ("latency.serve_shared", &l.serve_shared, 0.0, LONG),
            ("latency.serve_remote", &l.serve_remote, 0.0, LONG),
            ("latency.directory", &l.directory, 0.0, LONG),
            ("core.cycle", &c.cycle, 0.01, 100.0),
            ("core.hit", &c.hit, 0.01, LONG),
            ("core.store", &c.store, 0.01, LONG),
            ("core.atomic", &c.atomic, 0.01, LONG),
            ("core.pause", &c.pause, 0.1, LONG),
            ("core.store_buffer", &c.store_buffer, 1.0, 1024.0),
            ("core.stream", &c.stream, 0.0, 64.0),
            ("core.sibling_computes", &c.sibling_computes, 1.0, 10.0),
            ("core.sibling_spins", &c.sibling_spins, 1.0, 10.0),
            ("core.noise", &c.noise, 0.0, 0.9),
            ("system.clock", &s.clock, 0.0, LONG),
            ("system.syscall", &s.syscall, 0.0, LONG),
            ("system.switch", &s.switch, 0.0, 1e9),
            ("system.wake", &s.wake, 0.0, 1e9),
            ("system.waking", &s.waking, 0.0, 1e9),
            ("system.futex", &s.futex, 0.0, 1e9),
            ("system.slice", &s.slice, 1.0, 1e10),
            ("system.period", &s.period, 1.0, 1e10),
            ("system.interrupt_every", &s.interrupt_every, 0.0, 1e12),
            ("system.interrupt", &s.interrupt, 0.0, 1e9),
        ] {
            all.push((key.to_owned(), figure, least, most));
        }
        all
    }

    fn build(self, cpus: Vec<Cpu>, cores: Vec<Core>, published: Vec<f32>) -> Machine {
        let (l, c, s) = (&self.latency, &self.core, &self.system);
        let home = |i: usize| l.home.get(i).map_or(0, |figure| ns(figure.value));
        let nodes = cores.iter().map(|core| core.node).max().map_or(0, |last| last + 1);
        let mut machine = Machine {
            name: self.name,
            about: self.about,
            domains: cores.iter().map(|core| core.domain).max().map_or(0, |last| last + 1),
            nodes,
            memory_nodes: self.topology.memory_nodes(nodes),
            domain_cores: domain_cores(&cores),
            cpus,
            cores,
            transfer: vec![],
            home: [0, home(0), home(1)],
            shared_cache: ns(l.shared_cache.value),
            clean: l.clean.value,
            memory_local: ns(l.memory_local.value),
            memory_remote: ns(l.memory_remote.value),
            travel: l.travel.value,
            upgrade: l.upgrade.value,
            sharer: ns(l.sharer.value),
            serve_shared: ns(l.serve_shared.value),
            serve_remote: ns(l.serve_remote.value),
            directory: ns(l.directory.value),
            cycle: c.cycle.value,
            hit: ns(c.hit.value),
            store: ns(c.store.value),
            atomic: ns(c.atomic.value),
            pause: ns(c.pause.value),
            store_buffer: c.store_buffer.value as usize,
            stream: c.stream.value as u32,
            sibling_computes: c.sibling_computes.value,
            sibling_spins: c.sibling_spins.value,
            noise: c.noise.value,
            clock: ns(s.clock.value),
            syscall: ns(s.syscall.value),
            switch: ns(s.switch.value),
            wake: ns(s.wake.value),
            waking: ns(s.waking.value),
            futex: ns(s.futex.value),
            slice: ns(s.slice.value),
            period: ns(s.period.value),
            interrupt_every: ns(s.interrupt_every.value),
            interrupt: ns(s.interrupt.value),
            published,
        };
        machine.calibrate();
        machine
    }
}

impl MemoryFile {
    fn check(&self, nodes: usize) -> Result<(), SimError> {
        if self.source.trim().is_empty() {
            return error("topology.memory.source: no source; say where it is from, or estimate and why");
        }
        if let Some(node) = self.nodes.iter().find(|node| **node >= nodes) {
            return error(format!("topology.memory.nodes: there is no node {node}"));
        }
        if !self.nodes.contains(&0) {
            return error("topology.memory.nodes: node 0 is not among them, where locks and their data are");
        }
        Ok(())
    }
}

impl TopologyFile {
    fn check(&self) -> Result<(), SimError> {
        if self.source.trim().is_empty() {
            return error("topology.source: no source; say where it is from, or estimate and why");
        }
        let sizes = [("packages", self.packages), ("nodes", self.nodes), ("domains", self.domains)];
        for (key, size) in sizes {
            if !(1..=MOST_CORES).contains(&size) {
                return error(format!("topology.{key}: {size} is not from 1 to {MOST_CORES}"));
            }
        }
        if self.cores.is_empty() {
            return error("topology.cores: there are none");
        }
        for (i, cores) in self.cores.iter().enumerate() {
            if !(1..=MOST_CORES).contains(&cores.count) {
                return error(format!("topology.cores[{i}].count: {} is not from 1 to {MOST_CORES}", cores.count));
            }
            if !(1..=8).contains(&cores.threads) {
                return error(format!("topology.cores[{i}].threads: {} is not from 1 to 8", cores.threads));
            }
        }
        let domains = self.packages * self.nodes * self.domains;
        let cores = domains * self.cores.iter().map(|cores| cores.count).sum::<usize>();
        if domains > MOST_DOMAINS || cores > MOST_CORES {
            return error(format!(
                "topology: {cores} cores at {domains} last-level caches; the model has room for {MOST_CORES} and {MOST_DOMAINS}"
            ));
        }
        if !self.hops.is_empty()
            && (self.hops.len() != self.packages || self.hops.iter().any(|row| row.len() != self.packages))
        {
            return error(format!("topology.hops: not a table of {0} rows of {0}", self.packages));
        }
        let nodes = self.packages * self.nodes;
        for (i, favoured) in self.favoured.iter().enumerate() {
            if let Some(node) = favoured.nodes.iter().find(|node| **node >= nodes) {
                return error(format!("topology.favoured[{i}].nodes: there is no node {node}"));
            }
        }
        self.memory.as_ref().map_or(Ok(()), |memory| memory.check(nodes))
    }

    /// By node of so many, where its threads' pages are: there, or else at the next node that has memory.
    fn memory_nodes(&self, nodes: usize) -> Vec<usize> {
        let has = |node: &usize| self.memory.as_ref().is_none_or(|memory| memory.nodes.contains(node));
        let next = |node: usize| (node..node + nodes).map(|other| other % nodes).find(has).expect("node 0 has memory");
        (0..nodes).map(next).collect()
    }

    /// The CPUs by number, and the cores.
    fn lay_out(&self) -> (Vec<Cpu>, Vec<Core>) {
        let (mut cores, mut threads) = (vec![], vec![]);
        for domain in 0..self.packages * self.nodes * self.domains {
            let node = domain / self.domains;
            for kind in &self.cores {
                for _ in 0..kind.count {
                    let favoured = self.favoured.iter().find(|favoured| favoured.nodes.contains(&node));
                    let speed = favoured.map_or(kind.speed.value, |favoured| favoured.speed.value);
                    cores.push(Core { domain, node, package: node / self.nodes, speed });
                    threads.push(kind.threads);
                }
            }
        }
        let mut cpus: Vec<Cpu> = vec![];
        for (number, core) in cores.iter().enumerate() {
            for sibling in 0..threads[number] {
                let Core { domain, node, package, .. } = *core;
                cpus.push(Cpu { core: number, sibling, domain, node, package });
            }
        }
        if self.numbering == Numbering::Last {
            cpus.sort_by_key(|cpu| (cpu.sibling, cpu.core));
        }
        (cpus, cores)
    }

    fn distance(&self, a: usize, b: usize) -> usize {
        if self.hops.is_empty() { usize::from(a != b) } else { self.hops[a][b] }
    }
}

impl LatencyFile {
    /// The table that the classes make.
    fn classes(&self, topology: &TopologyFile, cpus: &[Cpu]) -> Result<Vec<f32>, SimError> {
        let given = |figure: &Option<Figure>, key: &str| match figure {
            Some(figure) => Ok(figure.value),
            None => error(format!("latency.{key}: missing, and there is no latency.matrix")),
        };
        let mut table = vec![0f32; cpus.len() * cpus.len()];
        for (i, a) in cpus.iter().enumerate() {
            for (j, b) in cpus.iter().enumerate().filter(|(j, _)| *j != i) {
                let figure = if a.core == b.core {
                    given(&self.sibling, "sibling")?
                } else if a.domain == b.domain {
                    given(&self.domain, "domain")?
                } else if a.node == b.node {
                    given(&self.node, "node")?
                } else if a.package == b.package {
                    given(&self.package, "package")?
                } else {
                    let hops = topology.distance(a.package, b.package);
                    match hops.checked_sub(1).and_then(|at| self.hops.get(at)) {
                        Some(figure) => figure.value,
                        None => return error(format!("latency.hops: none for {hops} links")),
                    }
                };
                table[i * cpus.len() + j] = figure as f32;
            }
        }
        Ok(table)
    }
}

/// A table of `count` rows and columns in either of its triangles, comma-separated.
fn parse_matrix(text: &str, count: usize) -> Result<Vec<f32>, String> {
    let mut table = vec![f32::NAN; count * count];
    let rows: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect();
    if rows.len() != count {
        return Err(format!("{} rows for {count} CPUs", rows.len()));
    }
    for (i, row) in rows.iter().enumerate() {
        for (j, field) in row.split(',').enumerate().filter(|(j, field)| *j != i && !field.trim().is_empty()) {
            let value: f32 = field.trim().parse().map_err(|_| format!("row {}: '{field}' is not a number", i + 1))?;
            if j >= count || !(0.01..1e6).contains(&value) {
                return Err(format!("row {}, column {}: {value} is not a latency in ns", i + 1, j + 1));
            }
            table[i * count + j] = value;
        }
    }
    for i in 0..count {
        for j in 0..i {
            let (lower, upper) = (table[i * count + j], table[j * count + i]);
            let value = if lower.is_nan() { upper } else { lower };
            if value.is_nan() {
                return Err(format!("no latency between CPUs {j} and {i}"));
            }
            table[i * count + j] = value;
            table[j * count + i] = value;
        }
        table[i * count + i] = 0.0;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_node_without_memory_have_theirs_at_the_next_one() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
        let read = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).expect("a file");
            Machine::from_toml(&text, |_| Err("no other file".to_owned())).expect("a machine").memory_nodes
        };
        assert_eq!(read("2990wx.toml"), [0, 2, 2, 0]);
        assert_eq!(read("e5-2699v3.toml"), [0, 1]);
    }
}
