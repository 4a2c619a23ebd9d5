// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain accesses, and the ends of objects' lifetimes.

use std::ffi::c_void;

use super::{Machine, describe};
use crate::arena;
use crate::fault::Fault;
use crate::memory::Access;

impl Machine {
    /// A plain access by the running thread to its own stack below the frame of the function at
    /// `pc`: an error.
    pub(super) fn report_dead_frame(&mut self, address: usize, pc: *const c_void) {
        let (thread, name) = (self.running, arena::name(address));
        let report = || {
            format!(
                "{}: T{thread} plain access to {name} ({})",
                Fault::Dead,
                describe::line_of_call(pc)
            )
        };
        self.fault.get_or_insert_with(report);
    }

    /// A plain access by the running thread. `pc` is where the access returns to, or NULL at the
    /// end of the object's lifetime.
    pub(super) fn plain_access(
        &mut self,
        address: usize,
        size: usize,
        write: bool,
        pc: *const c_void,
    ) {
        if self.direct || self.fault.is_some() {
            return;
        }
        if arena::is_ghost(address) {
            self.effect.visible = true;
            return;
        }
        let thread = self.running;
        self.wrote_shared |= write && !self.is_owner(thread, address);
        let result = if !arena::holds(address, size) {
            if write { Err(Fault::Limit("a write outside of the client's memory")) } else { Ok(()) }
        } else if self.now.is_gone(thread, address) {
            Err(Fault::Dead)
        } else {
            self.plain_pieces(address, address + size, write)
        };
        if let Err(fault) = result {
            let what = if write { "plain write to" } else { "plain read of" };
            let place = if pc.is_null() {
                "the end of its lifetime".into()
            } else {
                describe::line_of_call(pc)
            };
            self.fault =
                Some(format!("{fault}: T{thread} {what} {} ({place})", arena::name(address)));
        }
    }

    /// Performs a plain access in pieces within aligned words, as objects are.
    fn plain_pieces(&mut self, start: usize, end: usize, write: bool) -> Result<(), Fault> {
        let mut from = start;
        while from < end {
            let to = end.min((from / 8 + 1) * 8);
            self.plain_piece(from, to, write)?;
            from = to;
        }
        Ok(())
    }

    fn plain_piece(&mut self, start: usize, end: usize, write: bool) -> Result<(), Fault> {
        let thread = self.running;
        let owner = self.is_owner(thread, start);
        let memory = &mut self.now.memory;
        let mut covered = 0;
        for location in self.places.near(start, end) {
            let (address, size) = self.places.extent(location);
            if address >= end || address + size <= start {
                continue;
            }
            let dead = memory.is_dead(location);
            if !memory.is_begun(location) && !(dead && (!owner || write)) {
                continue;
            }
            if dead && owner && (start, end) != (address, address + size) {
                continue; // the frame's memory is used for another object now
            }
            if !dead && !self.places.is_traced(location) {
                self.needs.trace(address, &mut self.fault);
            }
            if write && self.places.mixed(start, end - start).is_some_and(|all| all.1 > end - start)
            {
                return Err(Fault::Limit("a plain write of a part of an object of mixed sizes"));
            }
            memory.plain_on_atomic(thread, location, write, owner)?;
            covered += size;
            if write {
                self.written.push(location);
            }
        }
        if covered < end - start {
            memory.plain(start, end, owner)?;
        }
        memory.check_access(
            thread,
            start..end,
            if write { Access::PlainWrite } else { Access::PlainRead },
            true,
        )
    }

    /// Checks that all accesses by other threads to the running thread's stack from `start` to
    /// `end` happen before the thread reuses that memory.
    pub(super) fn check_frames(&mut self, start: usize, end: usize) {
        for location in 0..self.places.count() {
            let (address, _) = self.places.extent(location);
            let accessed = (start..end).contains(&address) && self.now.memory.is_begun(location);
            if accessed && !self.places.is_traced(location) {
                self.needs.trace(address, &mut self.fault);
            }
        }
        if let Err(race) =
            self.now.memory.check_access(self.running, start..end, Access::PlainWrite, false)
        {
            let what =
                format!("{race}: T{} end of lifetime of an object on its stack", self.running);
            self.fault.get_or_insert(what);
        }
    }

    /// Ends the lifetime of all objects from `start` to `end`.
    pub(super) fn end_lifetime(&mut self, start: usize, end: usize) {
        for location in 0..self.places.count() {
            let (address, _) = self.places.extent(location);
            if (start..end).contains(&address) {
                self.now.memory.kill(location);
            }
        }
        self.now.memory.kill_plain(start, end);
    }
}
