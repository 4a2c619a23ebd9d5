// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines: read from `machines/*.toml`, or derived from a table of latencies.

mod file;
mod groups;
mod matrix;
mod model;
mod parts;

pub use model::Machine;
pub use parts::Cpu;
pub(crate) use parts::MOST_CORES;

use crate::error::{SimError, error};
use file::File;
use matrix::parse_matrix;
use poundlock_topology::{MOST_CPUS, input};
use std::fmt;
use std::path::Path;

/// The machine whose figures complete those of a table.
const USUAL: &str = include_str!("../../../../machines/e5-2699v3.toml");

impl Machine {
    /// Reads a machine's file. A matrix is looked for in the same folder.
    pub fn read(path: &Path) -> Result<Machine, SimError> {
        let named = |wrong: &dyn fmt::Display| SimError(format!("'{}': {wrong}", path.display()));
        let text = input::text(path).map_err(|wrong| named(&wrong))?;
        let beside = path.parent().unwrap_or(Path::new("."));
        let matrix = |name: &str| {
            input::text(&beside.join(name)).map_err(|wrong| format!("'{name}': {wrong}"))
        };
        Machine::from_toml(&text, matrix).map_err(|wrong| named(&wrong))
    }

    /// Makes a machine from a file's text; `matrix` reads the table that the file names.
    pub fn from_toml(
        text: &str,
        matrix: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Machine, SimError> {
        let file = File::parse(text)?;
        file.check()?;
        let (cpus, cores) = file.topology.lay_out();
        let count = cpus.len();
        let published = match &file.latency.matrix {
            Some(name) => {
                let table =
                    matrix(name).map_err(|wrong| SimError(format!("latency.matrix: {wrong}")))?;
                parse_matrix(&table, count)
                    .map_err(|wrong| SimError(format!("latency.matrix: '{name}': {wrong}")))?
            }
            None => file.latency.classes(&file.topology, &cpus)?,
        };
        Ok(file.build(cpus, cores, published))
    }

    /// Makes a machine from a table of latencies between CPUs. The topology is derived from the
    /// table; all other figures are those of e5-2699v3.
    pub fn from_table(name: &str, table: &str) -> Result<Machine, SimError> {
        let count =
            table.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count();
        if count < 2 {
            return error("a machine needs the latencies between at least two CPUs");
        }
        if count > MOST_CPUS {
            return error(format!("has {count} CPUs; the model has room for {MOST_CPUS}"));
        }
        let published = parse_matrix(table, count).map_err(SimError)?;
        let (cpus, cores) = groups::lay_out(&published, count)?;
        let usual = File::parse(USUAL)?;
        let packages = cores.iter().map(|core| core.package).max().map_or(0, |last| last + 1);
        let mut machine = usual.build(cpus, cores, published);
        machine.name = name.to_owned();
        let (cores, domains) = (machine.cores.len(), machine.domains);
        machine.about = format!(
            "{name}: {count} CPUs; by their latencies {cores} cores, {domains} last-level caches, {packages} sockets"
        );
        // A table includes the effect of the home. The last-level cache is nearer than the cores
        // that share it.
        machine.home = [0; 3];
        let neighbours =
            (0..machine.domains).map(|domain| machine.near(machine.first_core(domain)));
        machine.shared_cache =
            neighbours.map(|near| near / 2).min().unwrap_or(machine.shared_cache);
        machine.calibrate();
        Ok(machine)
    }

    /// Replaces the latencies between the CPUs by a table of the same size.
    pub fn with_matrix(mut self, table: &str) -> Result<Machine, SimError> {
        self.published = parse_matrix(table, self.cpus.len()).map_err(SimError)?;
        self.home = [0; 3];
        self.calibrate();
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_node_without_memory_have_theirs_at_the_next_one() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
        let read = |name: &str| {
            let text = std::fs::read_to_string(folder.join(name)).expect("a file");
            Machine::from_toml(&text, |_| Err("no other file".to_owned()))
                .expect("a machine")
                .memory_nodes
        };
        assert_eq!(read("2990wx.toml"), [0, 2, 2, 0]);
        assert_eq!(read("e5-2699v3.toml"), [0, 1]);
    }
}
