// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of `struct check_engine` (world/check/engine.h), which the client's code calls.

use std::arch::global_asm;
use std::ffi::{c_char, c_void};
use std::ptr;

use super::state::Request;
use super::{current, describe};
use crate::abi::{self, Caller, Engine, Kind, Site, Wait};
use crate::arena;

/// The table of hooks.
pub static HOOKS: Engine = Engine {
    operate: poundlock_check_operate,
    wait: poundlock_check_wait,
    plain,
    event,
    yield_,
    this,
    returned,
    ended,
    renewed,
    fail,
    outcome,
    node,
    generation,
    busy_nodes,
    cpu,
    domain,
    cpu_count,
    queue,
    acquires,
    acquired,
    arrival,
};

/// Defines the entry `$entry` of `$hook`. It saves the caller's registers and passes the address of
/// the first one in `$argument`, the register of the hook's last argument: the thread's state is
/// the stack from there up. It excludes the frames of the hooks, which depend on how this crate is
/// compiled.
macro_rules! entry {
    ($entry:literal, $hook:path, $argument:literal) => {
        global_asm!(
            concat!(".global ", $entry),
            concat!($entry, ":"),
            "push rbp",
            "push rbx",
            "push r12",
            "push r13",
            "push r14",
            "push r15",
            concat!("mov ", $argument, ", rsp"),
            "sub rsp, 8",
            "call {hook}",
            "add rsp, 56",
            "ret",
            hook = sym $hook,
        );
    };
}

entry!("poundlock_check_operate", operate, "r8");
entry!("poundlock_check_wait", wait, "r9");

unsafe extern "C" {
    safe fn poundlock_check_operate(
        site: *const Site,
        object: *mut c_void,
        operand: u64,
        expected: u64,
    ) -> u64;
    safe fn poundlock_check_wait(
        site: *const Site,
        object: *mut c_void,
        brief: bool,
        deadline: *const c_void,
        holds: bool,
    ) -> Wait;
}

extern "C" fn operate(
    site: *const Site,
    object: *mut c_void,
    operand: u64,
    expected: u64,
    frame: usize,
) -> u64 {
    let machine = current();
    // SAFETY: a site is a static object.
    let place = unsafe { &*site };
    let address = object as usize;
    if machine.direct {
        return machine.operate_directly(place, address, operand, expected);
    }
    if let Some(result) = machine.known_result(place, address) {
        return result;
    }
    if place.kind == Kind::Fence && !machine.needs.fences {
        machine.needs.add_fence(&mut machine.fault);
    }
    let deadline = if place.kind == Kind::Park { expected as usize } else { 0 };
    let mask = if place.size == 4 { u32::MAX as u64 } else { u64::MAX };
    let (operand, expected) = (operand & mask, expected & mask);
    machine.request(place, Request { site, address, operand, expected, brief: false, deadline });
    machine.stop_at(frame);
    current().reply
}

extern "C" fn wait(
    site: *const Site,
    object: *mut c_void,
    brief: bool,
    deadline: *const c_void,
    holds: bool,
    frame: usize,
) -> Wait {
    let machine = current();
    // SAFETY: a site is a static object.
    let place = unsafe { &*site };
    if machine.direct {
        return Wait { value: machine.operate_directly(place, object as usize, 0, 0), more: 0 };
    }
    if machine.testing {
        machine.ends_wait = holds;
    } else {
        let (address, deadline) = (object as usize, deadline as usize);
        machine.request(place, Request { site, address, operand: 0, expected: 0, brief, deadline });
    }
    machine.stop_at(frame);
    let machine = current();
    Wait { value: machine.reply, more: machine.testing as u64 }
}

extern "C" fn plain(object: *const c_void, size: usize, write: bool, caller: *const Caller) {
    let machine = current();
    // SAFETY: the runtime passes its own frame.
    let (pc, frame_end) = unsafe { ((*caller).pc, caller.add(1) as usize) };
    let (address, own) = (object as usize, arena::stack_base(machine.running));
    if !machine.direct && (own..frame_end).contains(&address) {
        machine.report_dead_frame(address, pc);
        return;
    }
    machine.plain_access(address, size, write, pc);
}

extern "C" fn event(event: u32) {
    let machine = current();
    machine.events[event as usize] += 1;
    if machine.client.since == event + 1 && !machine.direct {
        machine.now.arrivals.count(machine.running);
    }
}

extern "C" fn yield_() {
    let machine = current();
    if !machine.direct {
        machine.now.threads[machine.running].yielded = true;
    }
}

extern "C" fn this() -> u32 {
    current().running as u32
}

extern "C" fn returned(frame: *const c_void) {
    let machine = current();
    let (base, end) = (arena::stack_base(machine.running), frame as usize);
    machine.check_frames(base, end);
    machine.end_lifetime(base, end);
}

extern "C" fn ended(object: *const c_void, size: usize) {
    let machine = current();
    let (start, end) = (object as usize, object as usize + size);
    machine.plain_access(start, size, true, ptr::null());
    machine.written.clear();
    machine.end_lifetime(start, end);
}

extern "C" fn renewed() {
    let machine = current();
    machine.now.threads[machine.running].expired = false;
}

extern "C" fn fail(file: *const c_char, line: i32, what: *const c_char) {
    let machine = current();
    let file = describe::file_name(abi::text(file));
    let actor = if machine.direct { machine.phase.into() } else { format!("T{}", machine.running) };
    machine.fault.get_or_insert(format!("{}: {actor} ({file}:{line})", abi::text(what)));
}

extern "C" fn outcome(slot: u32, value: u64) {
    current().now.outcomes[slot as usize] = value;
}

extern "C" fn node(index: u32) -> *mut c_void {
    if index as usize >= arena::NODES_EACH {
        return ptr::null_mut();
    }
    arena::node(current().running, index as usize) as *mut c_void
}

extern "C" fn generation() -> u32 {
    current().now.generation
}

extern "C" fn busy_nodes() -> u32 {
    let threads = current().now.threads.len();
    let nodes = (0..threads)
        .flat_map(|thread| (0..arena::NODES_EACH).map(move |index| arena::node(thread, index)));
    nodes.filter(|&node| arena::load(node, 4) != 0).count() as u32
}

extern "C" fn cpu() -> u32 {
    let machine = current();
    machine.now.threads[machine.running].cpu
}

extern "C" fn domain() -> u32 {
    cpu() % current().settings.domains
}

extern "C" fn cpu_count() -> u32 {
    current().settings.cpus
}

extern "C" fn queue(object: *const c_void) {
    current().queues.push(object as usize);
}

extern "C" fn acquires() {
    let machine = current();
    if !machine.direct {
        machine.now.arrivals.begin(machine.running);
    }
}

extern "C" fn acquired(has: bool) {
    let machine = current();
    if machine.direct || machine.queues.is_empty() {
        return;
    }
    let bypassed = machine.now.arrivals.end(machine.running, has, machine.client.since == 0);
    let Some((waiter, times)) = bypassed.filter(|_| machine.client.flags & abi::CLIENT_ORDER != 0)
    else {
        return;
    };
    machine.bypasses = machine.bypasses.max(times);
    let bound = machine.client.bypass;
    if times > bound {
        let last = machine.running;
        let what = format!(
            "T{waiter} bypassed {times} times, the last time by T{last}; the bound is {bound}"
        );
        machine.fault.get_or_insert(what);
    }
}

extern "C" fn arrival(thread: u32) -> u64 {
    current().now.arrivals.arrival(thread as usize)
}
