// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of a machine (`machines/*.toml`): its keys, their ranges, and the [`Machine`] they
//! describe.
//!
//! The parser requires a source for every figure. It reports an error in one line with the key.

use super::model::{Machine, domain_cores};
use super::parts::{Core, Cpu, MOST_CORES, MOST_DOMAINS};
use crate::error::{SimError, error};
use crate::time::ns;
use serde::Deserialize;

/// A figure with its source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    value: f64,
    /// Its publication or measurement, or "estimate: why".
    source: String,
}

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    name: String,
    about: String,
    pub(super) topology: TopologyFile,
    pub(super) latency: LatencyFile,
    core: CoreFile,
    system: SystemFile,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TopologyFile {
    source: String,
    /// Sockets.
    packages: usize,
    /// NUMA nodes of a package.
    nodes: usize,
    /// Last-level caches of a node.
    domains: usize,
    /// The cores of a last-level cache, by kind.
    cores: Vec<CoresFile>,
    /// How the operating system numbers hardware threads.
    numbering: Numbering,
    /// By pair of packages: the number of links between them; 1 by default.
    #[serde(default)]
    hops: Vec<Vec<usize>>,
    /// Cores that are faster than the others of their kind.
    #[serde(default)]
    favoured: Vec<FavouredFile>,
    /// The nodes with memory; all of them by default.
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
    /// Hardware threads per core.
    threads: usize,
    speed: Figure,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FavouredFile {
    /// The NUMA nodes of these cores.
    nodes: Vec<usize>,
    speed: Figure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Numbering {
    /// The threads of a core have consecutive numbers.
    Adjacent,
    /// The first threads of all cores come before all second ones.
    Last,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LatencyFile {
    /// The file of a table of latencies between CPUs, instead of `sibling` to `hops`.
    pub(super) matrix: Option<String>,
    sibling: Option<Figure>,
    domain: Option<Figure>,
    node: Option<Figure>,
    package: Option<Figure>,
    /// By the number of links between the packages, from 1.
    #[serde(default)]
    hops: Vec<Figure>,
    /// Additional latency of a transfer between domains if 1 or 2 of the nodes are not the line's
    /// home.
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

/// Formats a parse error as one line that names the key.
fn one_line(text: &str, wrong: &toml::de::Error) -> String {
    let what = wrong.message().lines().collect::<Vec<_>>().join(" ");
    let Some(span) = wrong.span() else { return what };
    let start = span.start.min(text.len());
    let line = text[..start].matches('\n').count();
    let key = text
        .lines()
        .nth(line)
        .and_then(|line| line.split('=').next())
        .map(str::trim)
        .unwrap_or_default();
    format!("line {}: {key}: {what}", line + 1)
}

impl File {
    pub fn parse(text: &str) -> Result<File, SimError> {
        toml::from_str(text).map_err(|wrong| SimError(one_line(text, &wrong)))
    }

    pub fn check(&self) -> Result<(), SimError> {
        self.topology.check()?;
        for (key, figure, least, most) in self.figures() {
            if figure.source.trim().is_empty() {
                return error(format!(
                    "{key}.source: no source; name it, or write an estimate and why"
                ));
            }
            if !(least..=most).contains(&figure.value) {
                return error(format!(
                    "{key}.value: {} is not from {least} to {most}",
                    figure.value
                ));
            }
        }
        Ok(())
    }

    /// Every figure: its key and its range.
    fn figures(&self) -> Vec<(String, &Figure, f64, f64)> {
        let (l, c, s) = (&self.latency, &self.core, &self.system);
        const LONG: f64 = 100_000.0;
        let mut all: Vec<(String, &Figure, f64, f64)> = vec![];
        let options = [
            ("sibling", &l.sibling),
            ("domain", &l.domain),
            ("node", &l.node),
            ("package", &l.package),
        ];
        for (key, figure) in options {
            all.extend(figure.as_ref().map(|figure| (format!("latency.{key}"), figure, 0.1, LONG)));
        }
        all.extend(
            l.hops
                .iter()
                .enumerate()
                .map(|(i, figure)| (format!("latency.hops[{i}]"), figure, 0.1, LONG)),
        );
        all.extend(
            l.home
                .iter()
                .enumerate()
                .map(|(i, figure)| (format!("latency.home[{i}]"), figure, 0.0, LONG)),
        );
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

    /// The machine; `published` has the latencies between its CPUs.
    pub fn build(self, cpus: Vec<Cpu>, cores: Vec<Core>, published: Vec<f32>) -> Machine {
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
            return error(
                "topology.memory.source: no source; name it, or write an estimate and why",
            );
        }
        if let Some(node) = self.nodes.iter().find(|node| **node >= nodes) {
            return error(format!("topology.memory.nodes: there is no node {node}"));
        }
        if !self.nodes.contains(&0) {
            return error(
                "topology.memory.nodes: node 0 is missing, where locks and their data are",
            );
        }
        Ok(())
    }
}

impl TopologyFile {
    fn check(&self) -> Result<(), SimError> {
        if self.source.trim().is_empty() {
            return error("topology.source: no source; name it, or write an estimate and why");
        }
        let sizes = [("packages", self.packages), ("nodes", self.nodes), ("domains", self.domains)];
        for (key, size) in sizes {
            if !(1..=MOST_CORES).contains(&size) {
                return error(format!("topology.{key}: {size} is not from 1 to {MOST_CORES}"));
            }
        }
        if self.cores.is_empty() {
            return error("topology.cores: no cores");
        }
        for (i, cores) in self.cores.iter().enumerate() {
            if !(1..=MOST_CORES).contains(&cores.count) {
                return error(format!(
                    "topology.cores[{i}].count: {} is not from 1 to {MOST_CORES}",
                    cores.count
                ));
            }
            if !(1..=8).contains(&cores.threads) {
                return error(format!(
                    "topology.cores[{i}].threads: {} is not from 1 to 8",
                    cores.threads
                ));
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
            && (self.hops.len() != self.packages
                || self.hops.iter().any(|row| row.len() != self.packages))
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

    /// By node: where its threads' pages are, which is the node itself or the next one that has
    /// memory.
    fn memory_nodes(&self, nodes: usize) -> Vec<usize> {
        let has =
            |node: &usize| self.memory.as_ref().is_none_or(|memory| memory.nodes.contains(node));
        let next = |node: usize| {
            (node..node + nodes).map(|other| other % nodes).find(has).expect("node 0 has memory")
        };
        (0..nodes).map(next).collect()
    }

    /// The CPUs by number, and the cores.
    pub fn lay_out(&self) -> (Vec<Cpu>, Vec<Core>) {
        let (mut cores, mut threads) = (vec![], vec![]);
        for domain in 0..self.packages * self.nodes * self.domains {
            let node = domain / self.domains;
            for kind in &self.cores {
                for _ in 0..kind.count {
                    let favoured =
                        self.favoured.iter().find(|favoured| favoured.nodes.contains(&node));
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
    /// The table of latencies between CPUs that the classes describe.
    pub fn classes(&self, topology: &TopologyFile, cpus: &[Cpu]) -> Result<Vec<f32>, SimError> {
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
