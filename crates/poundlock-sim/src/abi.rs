// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types and functions of `csrc/*.h` and of the critical sections, as C declares them. A test
//! compares the layouts.

use poundlock_workload::section::{Operation, Settings as SectionSettings};
use std::ffi::{c_char, c_int, c_void};

/// `struct sim_setting`.
#[repr(C)]
pub(crate) struct Setting {
    pub name: *const c_char,
    pub offset: usize,
    pub value: u32,
    pub least: u32,
    pub most: u32,
    pub names: *const c_char,
}

/// `struct sim_ops`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Ops {
    /// Both are none of an alias.
    pub lock: Option<unsafe extern "C" fn(*mut c_void) -> *mut c_void>,
    pub unlock: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub lock_shared: Option<unsafe extern "C" fn(*mut c_void)>,
    pub unlock_shared: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// `struct sim_lock`.
#[repr(C)]
pub(crate) struct Lock {
    pub name: *const c_char,
    pub alias: *const c_char,
    pub size: Option<unsafe extern "C" fn() -> usize>,
    pub init: Option<unsafe extern "C" fn(*mut c_void, usize)>,
    pub ops: [Ops; 3],
    pub wait: u32,
    pub policy: *mut u32,
    pub settings: *const Setting,
}

/// `struct sim_rules`.
#[repr(C)]
pub(crate) struct Rules {
    pub spin_nanoseconds: u32,
    pub yield_nanoseconds: u32,
    pub sharing_nanoseconds: u32,
    pub spin_parts: u32,
    pub spins_whole: u32,
    pub groups: u32,
    pub how_spin: u32,
    pub how_yield: u32,
    pub how_ordered: u32,
    pub how_polite: u32,
    pub next_pause: u32,
    pub next_sched_yield: u32,
    pub next_sleep: u32,
}

/// `struct sim_how`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct How {
    pub spins: bool,
    pub returns: bool,
    pub adapts: bool,
    pub backs_off: bool,
    pub history: u32,
    pub parts: u32,
}

/// `struct w_spin_history`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct SpinHistory {
    pub parts_lost: u8,
    pub spins: u8,
}

unsafe extern "C" {
    pub(crate) static sim_rules: Rules;
    pub(crate) fn sim_how(how: u32) -> How;
    pub(crate) fn sim_spinners_limit(cpus: u32) -> u32;
    pub(crate) fn sim_spin_rounds(how: u32, cpus: u32) -> u32;
    pub(crate) fn sim_first_pauses(how: u32, pace: u64, pauses: u32) -> u32;
    pub(crate) fn sim_spin_longer(how: u32, pauses: u32) -> u32;
    pub(crate) fn sim_spin_budget(history: *mut SpinHistory) -> u32;
    pub(crate) fn sim_spin_learn(history: *mut SpinHistory, failed: bool);
    pub(crate) fn sim_spin_next(how: u32, turns: u32) -> u32;
}

unsafe extern "C" {
    pub(crate) static sim_locks: Lock;
    pub(crate) static sim_event_names: *const c_char;
    pub(crate) static sim_self_size: usize;
    pub(crate) fn sim_self_make(memory: *mut c_void, random: u32, weight: u32, group: u32);
    pub(crate) fn sim_group_weight_set(group: u32, weight: u32);
    pub(crate) fn sim_section_size(settings: *const SectionSettings) -> usize;
    pub(crate) fn sim_section_fill(settings: *const SectionSettings, data: *mut c_void, seed: u64);
    pub(crate) fn sim_section_draw(settings: *const SectionSettings, random: *mut u64)
    -> Operation;
    pub(crate) fn sim_section_do(
        settings: *const SectionSettings,
        data: *mut c_void,
        operation: Operation,
    ) -> c_int;
    pub(crate) fn sim_section_check(
        settings: *const SectionSettings,
        data: *const c_void,
        operations: u64,
        net: i64,
    ) -> *const c_char;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::mem::{offset_of, size_of};

    /// `struct sim_layout`.
    #[repr(C)]
    struct Layout {
        name: *const c_char,
        size: usize,
        last: usize,
    }

    unsafe extern "C" {
        static sim_layouts: Layout;
    }

    #[test]
    fn layouts_are_those_of_c() {
        let own = [
            ("sim_setting", size_of::<Setting>(), offset_of!(Setting, names)),
            ("sim_ops", size_of::<Ops>(), offset_of!(Ops, unlock_shared)),
            ("sim_lock", size_of::<Lock>(), offset_of!(Lock, settings)),
            ("sim_rules", size_of::<Rules>(), offset_of!(Rules, next_sleep)),
            ("sim_how", size_of::<How>(), offset_of!(How, history)),
            ("w_spin_history", size_of::<SpinHistory>(), offset_of!(SpinHistory, spins)),
            ("section_settings", size_of::<SectionSettings>(), SectionSettings::LAST),
            ("section_operation", size_of::<Operation>(), offset_of!(Operation, to)),
        ];
        let first = &raw const sim_layouts;
        for (at, layout) in own.iter().enumerate() {
            // SAFETY: the C table has an entry for each of these, and one without a name behind
            // them.
            let (c, name) = unsafe { (&*first.add(at), CStr::from_ptr((*first.add(at)).name)) };
            assert_eq!((name.to_str().expect("ASCII"), c.size, c.last), *layout);
        }
        // SAFETY: as above.
        assert!(unsafe { (*first.add(own.len())).name.is_null() }, "types without a check");
    }
}
