// SPDX-License-Identifier: MIT OR Apache-2.0
//! What simulated C code calls: `world/sim/engine.h`, and the hooks that the compiler inserts for
//! plain accesses (-fsanitize=thread). Change both sides together.

use crate::engine::engine;
use crate::time::NEVER;
use std::ffi::{CStr, c_char};

/// Defines functions that C calls, with the engine that runs the calling coroutine.
macro_rules! offer {
    ($(
        $name:ident($engine:ident $(, $argument:ident: $type:ty)*) $(-> $result:ty)? $body:block
    )*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: C code of the simulated world runs only in coroutines of the engine.
            let $engine = unsafe { engine() };
            $body
        }
    )* };
}

fn until(nanoseconds: u64) -> u64 {
    if nanoseconds == u64::MAX { NEVER } else { nanoseconds.saturating_mul(1000) }
}

offer! {
    sim_load(engine, object: usize, size: u32) -> u64 { engine.load(object, size) }
    sim_store(engine, object: usize, size: u32, value: u64) { engine.store(object, size, value) }
    sim_exchange(engine, object: usize, size: u32, value: u64) -> u64 {
        engine.update(object, size, |_| Some(value))
    }
    sim_compare_exchange(engine, object: usize, size: u32, expected: u64, value: u64) -> u64 {
        // C may pass the expected value with bits beyond the object's size.
        let expected = if size == 4 { expected & 0xffff_ffff } else { expected };
        engine.update(object, size, |old| (old == expected).then_some(value))
    }
    sim_fetch_add(engine, object: usize, size: u32, value: u64) -> u64 {
        engine.update(object, size, |old| Some(old.wrapping_add(value)))
    }
    sim_fetch_or(engine, object: usize, size: u32, value: u64) -> u64 {
        engine.update(object, size, |old| Some(old | value))
    }
    sim_fetch_and(engine, object: usize, size: u32, value: u64) -> u64 {
        engine.update(object, size, |old| Some(old & value))
    }
    sim_fence(engine) { engine.fence() }
    sim_prefetch(engine, object: usize) { engine.ask(object) }
    sim_wait_begin(engine, how: u32, pace: u64) {
        engine.wait_begin(how, pace)
    }
    sim_wait_again(engine, deadline: u64) -> bool { engine.wait_again(until(deadline)) }
    sim_wait_end(engine) { engine.wait_end(false) }
    sim_has_own_cpu(engine) -> bool { engine.has_own_cpu() }
    sim_pause(engine, pauses: u32) { engine.pause_for(pauses) }
    sim_yield(engine) { engine.nap() }
    sim_sched_yield(engine) { engine.yield_cpu() }
    sim_park(engine, object: usize, expected: u32, deadline: u64) {
        engine.park(object, expected.into(), until(deadline))
    }
    sim_unpark(engine, object: usize, all: bool) { engine.unpark(object, all) }
    sim_now(engine) -> u64 { engine.clock() }
    sim_cpu(engine) -> u32 { engine.place(); engine.me().cpu as u32 }
    sim_domain(engine) -> u32 { engine.domain() as u32 }
    sim_route_position(engine) -> u32 { engine.route_position() as u32 }
    sim_domain_at(engine, position: u32) -> u32 {
        engine.places.domain_at(position as usize) as u32
    }
    sim_cpu_count(engine) -> u32 { engine.machine.cpus.len() as u32 }
    sim_domain_count(engine) -> u32 { engine.places.domain_count() as u32 }
    sim_domain_parents(engine) -> u32 { engine.places.parent_count() as u32 }
    sim_domain_parent(engine, domain: u32) -> u32 { engine.domain_parent(domain as usize) as u32 }
    sim_event(engine, event: u32) { engine.event(event as usize) }
    sim_number(engine) -> u32 { engine.current }
    sim_self(engine) -> usize { engine.record() }
    sim_self_of(engine, thread: u32) -> usize { engine.record_of(thread) }
    sim_block(engine, which: u32, bytes: usize) -> usize { engine.block(which as usize, bytes) }
    sim_keep(engine, bytes: usize) -> usize { engine.keep(bytes) }
    sim_fail(engine, what: *const c_char) {
        // SAFETY: a literal of the C side.
        let what = unsafe { CStr::from_ptr(what) }.to_string_lossy().into_owned();
        engine.fail(&what)
    }
    __tsan_read1(engine, p: usize) { engine.plain(p, 1, false) }
    __tsan_read2(engine, p: usize) { engine.plain(p, 2, false) }
    __tsan_read4(engine, p: usize) { engine.plain(p, 4, false) }
    __tsan_read8(engine, p: usize) { engine.plain(p, 8, false) }
    __tsan_read16(engine, p: usize) { engine.plain(p, 16, false) }
    __tsan_unaligned_read2(engine, p: usize) { engine.plain(p, 2, false) }
    __tsan_unaligned_read4(engine, p: usize) { engine.plain(p, 4, false) }
    __tsan_unaligned_read8(engine, p: usize) { engine.plain(p, 8, false) }
    __tsan_unaligned_read16(engine, p: usize) { engine.plain(p, 16, false) }
    __tsan_read_range(engine, p: usize, size: usize) { engine.plain(p, size, false) }
    __tsan_write1(engine, p: usize) { engine.plain(p, 1, true) }
    __tsan_write2(engine, p: usize) { engine.plain(p, 2, true) }
    __tsan_write4(engine, p: usize) { engine.plain(p, 4, true) }
    __tsan_write8(engine, p: usize) { engine.plain(p, 8, true) }
    __tsan_write16(engine, p: usize) { engine.plain(p, 16, true) }
    __tsan_unaligned_write2(engine, p: usize) { engine.plain(p, 2, true) }
    __tsan_unaligned_write4(engine, p: usize) { engine.plain(p, 4, true) }
    __tsan_unaligned_write8(engine, p: usize) { engine.plain(p, 8, true) }
    __tsan_unaligned_write16(engine, p: usize) { engine.plain(p, 16, true) }
    __tsan_write_range(engine, p: usize, size: usize) { engine.plain(p, size, true) }
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_init() {}

#[unsafe(no_mangle)]
extern "C" fn __tsan_func_entry(_caller: usize) {}

#[unsafe(no_mangle)]
extern "C" fn __tsan_func_exit() {}
