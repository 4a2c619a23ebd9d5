// SPDX-License-Identifier: MIT OR Apache-2.0
//! The placement of threads, and the topology that the locks see.

use crate::machine::{Cpu, Machine};
use poundlock_workload::Placement;
use std::collections::BTreeMap;

/// The locks' locality domains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Locality {
    /// Those of a last-level cache, as in libpoundlock.
    #[default]
    L3,
    /// Those of a NUMA node.
    Node,
    /// Those of a socket.
    Package,
    /// Consecutive CPU numbers, as many as a NUMA node has, whatever their nodes: the rule of LiTL.
    Numbers,
}

/// By CPU: its locality domain.
pub(crate) fn localities(machine: &Machine, locality: Locality) -> Vec<usize> {
    let in_a_row = (machine.cpus.len() / machine.nodes).max(1);
    let of = |(number, cpu): (usize, &Cpu)| match locality {
        Locality::L3 => cpu.domain,
        Locality::Node => cpu.node,
        Locality::Package => cpu.package,
        Locality::Numbers => number / in_a_row,
    };
    machine.cpus.iter().enumerate().map(of).collect()
}

/// By CPU: its position on a route that follows the topology: siblings, last-level caches, nodes,
/// sockets.
pub(crate) fn route(machine: &Machine) -> Vec<usize> {
    let mut tour: Vec<usize> = (0..machine.cpus.len()).collect();
    tour.sort_by_key(|cpu| (machine.cpus[*cpu].core, machine.cpus[*cpu].sibling));
    let mut places = vec![0; tour.len()];
    for (place, cpu) in tour.into_iter().enumerate() {
        places[cpu] = place;
    }
    places
}

/// The CPUs in the order in which threads are placed on them.
pub(crate) fn order(machine: &Machine, placement: Placement) -> Vec<usize> {
    let mut order: Vec<usize> = (0..machine.cpus.len()).collect();
    match placement {
        // All cores of a socket, then their siblings, then the next socket.
        Placement::FirstFill => order.sort_by_key(|cpu| {
            let place = machine.cpus[*cpu];
            (place.package, place.sibling, place.core)
        }),
        // One CPU per node in turn, as a system that balances load does.
        Placement::RoundRobin | Placement::Free => {
            let mut turns = BTreeMap::new();
            order.sort_by_key(|cpu| (machine.cpus[*cpu].sibling, machine.cpus[*cpu].core));
            let mut dealt: Vec<_> = order
                .iter()
                .map(|cpu| {
                    let place = machine.cpus[*cpu];
                    let turn = turns.entry((place.sibling, place.domain)).or_insert(0);
                    *turn += 1;
                    (place.sibling, *turn, place.domain % stride(machine), place.domain, *cpu)
                })
                .collect();
            dealt.sort_unstable();
            order = dealt.into_iter().map(|(.., cpu)| cpu).collect();
        }
    }
    order
}

/// The number of domains per socket: the first domains of all sockets come before the second ones.
fn stride(machine: &Machine) -> usize {
    let packages = machine.cpus.iter().map(|cpu| cpu.package).max().map_or(1, |last| last + 1);
    machine.domains / packages
}
