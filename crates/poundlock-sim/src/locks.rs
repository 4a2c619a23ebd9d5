// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks of `core/locks.def`, compiled for the simulator: looked up by name and configured by
//! specification.

use crate::abi::{self, Ops, Setting};
use crate::error::{SimError, error};
use std::ffi::{CStr, c_char};

/// A lock and its settings, parsed from a specification: `mcs`, `cna,threshold=1024,wait=spin`.
#[derive(Clone, Debug)]
pub struct LockSpec {
    index: usize,
    wait: usize,
    /// Fields of its policy: offset and value.
    values: Vec<(usize, u32)>,
}

const WAYS: [&str; 3] = ["spin", "yield", "park"];

fn table() -> &'static [abi::Lock] {
    let first = &raw const abi::sim_locks;
    // SAFETY: the table ends with an entry without a name, and is never written.
    unsafe {
        let count = (0..).take_while(|i| !(*first.add(*i)).name.is_null()).count();
        std::slice::from_raw_parts(first, count)
    }
}

// SAFETY: the table and what it points to are constants, except for the policies, which only the
// simulation that has the arena writes, one at a time.
unsafe impl Sync for abi::Lock {}

fn text(string: *const c_char) -> &'static str {
    // SAFETY: a C literal in ASCII.
    unsafe { CStr::from_ptr(string) }.to_str().unwrap_or_default()
}

/// The names of all mutual exclusion locks, or of all readers-writer locks.
pub fn names(readers: bool) -> Vec<&'static str> {
    let is =
        |lock: &&abi::Lock| lock.alias.is_null() && lock.ops[0].lock_shared.is_some() == readers;
    table().iter().filter(is).map(|lock| text(lock.name)).collect()
}

/// The names of the events of `core/events.def`, in order.
pub fn event_names() -> Vec<&'static str> {
    let first = &raw const abi::sim_event_names;
    // SAFETY: the list ends with a null.
    (0..).map(|i| unsafe { *first.add(i) }).take_while(|name| !name.is_null()).map(text).collect()
}

fn settings(lock: &abi::Lock) -> Vec<&'static Setting> {
    // SAFETY: the list ends with an entry without a name.
    (0..)
        .map(|i| unsafe { &*lock.settings.add(i) })
        .take_while(|setting| !setting.name.is_null())
        .collect()
}

impl LockSpec {
    /// Parses a specification.
    pub fn parse(spec: &str) -> Result<LockSpec, SimError> {
        let mut parts = spec.split(',');
        let name = parts.next().unwrap_or_default();
        let find = |name: &str| table().iter().position(|lock| text(lock.name) == name);
        let Some(mut index) = find(name) else {
            return error(format!("'{spec}': there is no lock '{name}'"));
        };
        if !table()[index].alias.is_null() {
            index = find(text(table()[index].alias)).expect("an alias is of a lock");
        }
        let lock = &table()[index];
        let settings = settings(lock);
        let mut parsed = LockSpec {
            index,
            wait: lock.wait as usize,
            values: settings.iter().map(|setting| (setting.offset, setting.value)).collect(),
        };
        for part in parts {
            let Some((key, value)) = part.split_once('=') else {
                return error(format!("'{spec}': '{part}' is not KEY=VALUE"));
            };
            if key == "wait" {
                let way = WAYS.iter().position(|way| *way == value);
                parsed.wait =
                    way.ok_or(SimError(format!("'{spec}': wait is spin, yield or park")))?;
                continue;
            }
            let Some(at) = settings.iter().position(|setting| text(setting.name) == key) else {
                return error(format!("'{spec}': {name} has no setting '{key}'"));
            };
            parsed.values[at].1 = value_of(settings[at], value)
                .map_err(|wrong| SimError(format!("'{spec}': {wrong}")))?;
        }
        Ok(parsed)
    }

    /// The lock's name.
    pub fn name(&self) -> &'static str {
        text(table()[self.index].name)
    }

    /// Whether it is a readers-writer lock.
    pub fn has_readers(&self) -> bool {
        table()[self.index].ops[0].lock_shared.is_some()
    }

    /// Writes its policy. Only for the simulation that has the arena.
    pub(crate) fn set_up(&self) {
        let lock = &table()[self.index];
        for (offset, value) in &self.values {
            // SAFETY: the policy has a uint32_t at the offset, and only this simulation accesses
            // it.
            unsafe { lock.policy.byte_add(*offset).write(*value) };
        }
    }

    pub(crate) fn ops(&self) -> Ops {
        table()[self.index].ops[self.wait]
    }

    /// Its size in bytes. To be called by [`Engine::prepare`](crate::engine::Engine::prepare).
    pub(crate) fn size(&self) -> usize {
        let size = table()[self.index].size.expect("aliases are resolved");
        // SAFETY: an engine runs.
        unsafe { size() }
    }

    /// Initialises it in `size` zeroed bytes at `address`. To be called as [`LockSpec::size`].
    pub(crate) fn init(&self, address: usize, size: usize) {
        let init = table()[self.index].init.expect("aliases are resolved");
        // SAFETY: an engine runs, and the memory is its own.
        unsafe { init(address as *mut _, size) }
    }
}

fn value_of(setting: &Setting, value: &str) -> Result<u32, String> {
    let key = text(setting.name);
    if let Some(named) = text(setting.names).split_whitespace().position(|name| name == value) {
        return Ok(named as u32);
    }
    let number =
        value.parse().ok().filter(|number| (setting.least..=setting.most).contains(number));
    number.ok_or(format!("{key} is not from {} to {}", setting.least, setting.most))
}
