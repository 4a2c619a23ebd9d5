// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests: the operations that the client's code asks for, before they are performed.

use super::state::Request;
use super::{Machine, describe};
use crate::abi::{Kind, Order, Site};
use crate::arena;
use crate::fault::Fault;

const NO_OBJECT: &str = "not an atomic object of the client";

impl Machine {
    /// Whether an atomic object of that size, or a part of one, can be at `address`.
    fn may_be_atomic(&self, address: usize, size: usize) -> bool {
        let is_part = || matches!(size, 1 | 2) && self.places.mixed(address, size).is_some();
        (matches!(size, 4 | 8) || is_part())
            && address.is_multiple_of(size)
            && arena::holds(address, size)
    }

    /// Makes `request`, at `site`, the pending operation of the running thread.
    pub(super) fn request(&mut self, site: &Site, request: Request) {
        self.now.threads[self.running].request = request;
        let size = site.size as usize;
        if size != 0 && !self.may_be_atomic(request.address, size) {
            self.report(self.running, NO_OBJECT);
        }
        let relaxed_load = site.kind == Kind::Load && site.order == Order::Relaxed;
        if self.hints.contains(&request.address) && !relaxed_load {
            self.report(self.running, "a hint is only loaded and stored, relaxed");
        }
    }

    /// Whether the result of the operation is known without a choice: the operation is no step.
    pub(super) fn known_result(&self, site: &Site, address: usize) -> Option<u64> {
        let expired = self.now.threads[self.running].expired;
        match site.kind {
            Kind::Expired if address == 0 || expired => Some((address != 0) as u64),
            Kind::Move if self.now.moves == 0 => Some(0),
            Kind::Store if site.order == Order::Relaxed && self.hints.contains(&address) => Some(0),
            _ => None,
        }
    }

    /// Performs an operation outside of threads, on the newest messages.
    pub(super) fn operate_directly(
        &mut self,
        site: &Site,
        address: usize,
        operand: u64,
        expected: u64,
    ) -> u64 {
        if site.size == 0 {
            return 0;
        }
        let size = site.size as usize;
        if !self.may_be_atomic(address, size) {
            self.fault.get_or_insert(format!(
                "{NO_OBJECT}: {} ({})",
                self.phase,
                describe::line_of(site)
            ));
            return 0;
        }
        let request = Request { site, address, operand, expected, brief: false, deadline: 0 };
        let location = self.places.span(address, size, &self.needs).location;
        if self.now.memory.is_dead(location) {
            self.fault.get_or_insert(format!(
                "{}: {} ({})",
                Fault::Dead,
                self.phase,
                describe::line_of(site)
            ));
        }
        let old = arena::load(address, size);
        if let Some(new) = request.new_value(site, old) {
            arena::store(address, size, new);
        }
        old
    }
}
