// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places: the information for locks about the places of their threads (`w_domain`,
//! `w_domain_at`, `w_domain_parent`, `w_route_position`).

use crate::machine::Machine;

/// The machine's topology as the locks see it.
#[derive(Default)]
pub(crate) struct Places {
    /// By CPU: its locality domain.
    domains: Vec<usize>,
    /// By domain: its socket.
    sockets: Vec<usize>,
    socket_count: usize,
    /// By CPU: its position on the route.
    route: Vec<usize>,
    /// By position on the route: the domain of its CPU.
    domains_on_route: Vec<usize>,
}

impl Places {
    /// Places of `machine`; by CPU, `domains` has its locality domain and `route` its position on
    /// the route.
    pub fn new(machine: &Machine, domains: Vec<usize>, route: Vec<usize>) -> Places {
        let count = domains.iter().max().map_or(0, |last| last + 1);
        let socket = |domain| {
            let inside = domains.iter().position(|other| *other == domain);
            inside.map_or(0, |cpu| machine.cpus[cpu].package)
        };
        let sockets = (0..count).map(socket).collect();
        let socket_count =
            machine.cpus.iter().map(|cpu| cpu.package).max().map_or(1, |last| last + 1);
        let mut domains_on_route = vec![0; route.len()];
        for (position, domain) in route.iter().zip(&domains) {
            domains_on_route[*position] = *domain;
        }
        Places { domains, sockets, socket_count, route, domains_on_route }
    }

    pub fn domain(&self, cpu: usize) -> usize {
        self.domains[cpu]
    }

    pub fn domain_count(&self) -> usize {
        self.sockets.len().max(1)
    }

    /// The number of sockets, or 0 if they are not a level above the domains.
    pub fn parent_count(&self) -> usize {
        let sockets = self.socket_count;
        if sockets > 1 && sockets < self.domain_count() { sockets } else { 0 }
    }

    /// The socket of a domain.
    pub fn parent(&self, domain: usize) -> usize {
        self.sockets.get(domain).copied().unwrap_or(0)
    }

    pub fn route_position(&self, cpu: usize) -> usize {
        self.route[cpu]
    }

    /// The domain of the CPU at a position of the route.
    pub fn domain_at(&self, position: usize) -> usize {
        self.domains_on_route[position]
    }
}
