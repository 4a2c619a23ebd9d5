// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types and functions of `csrc/locks.h` and of the critical sections, as C declares them: change both sides together.

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

unsafe extern "C" {
    pub(crate) static sim_locks: Lock;
    pub(crate) static sim_event_names: *const c_char;
    pub(crate) static sim_self_size: usize;
    pub(crate) fn sim_self_make(memory: *mut c_void, random: u32, weight: u32, group: u32);
    pub(crate) fn sim_group_weight_set(group: u32, weight: u32);
    pub(crate) fn sim_section_size(settings: *const SectionSettings) -> usize;
    pub(crate) fn sim_section_fill(settings: *const SectionSettings, data: *mut c_void, seed: u64);
    pub(crate) fn sim_section_draw(settings: *const SectionSettings, random: *mut u64) -> Operation;
    pub(crate) fn sim_section_do(settings: *const SectionSettings, data: *mut c_void, operation: Operation) -> c_int;
    pub(crate) fn sim_section_check(
        settings: *const SectionSettings,
        data: *const c_void,
        operations: u64,
        net: i64,
    ) -> *const c_char;
}
