// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of `struct check_engine` (world/check/engine.h), which the client's code calls.

use std::arch::global_asm;
use std::ffi::{c_char, c_void};
use std::ptr;

use super::state::Request;
use super::{Machine, current, describe};
use crate::abi::{self, Caller, Engine, Kind, Site, Wait};
use crate::context::saving_registers;
use crate::{arena, context};

/// The table of hooks.
pub static HOOKS: Engine = Engine {
    operate: poundlock_check_operate,
    wait: poundlock_check_wait,
    plain: entry::plain,
    event: entry::event,
    yield_: entry::yield_,
    this: entry::this,
    returned: entry::returned,
    ended: entry::ended,
    renewed: entry::renewed,
    fail: entry::fail,
    outcome: entry::outcome,
    node: entry::node,
    generation: entry::generation,
    busy_nodes: entry::busy_nodes,
    cpu: entry::cpu,
    domain_of: entry::domain_of,
    cpu_count: entry::cpu_count,
    queue: entry::queue,
    mixed: entry::mixed,
    hint: entry::hint,
    acquires: entry::acquires,
    acquired: entry::acquired,
    arrival: entry::arrival,
};

/// The most threads of a client whose hints are explored like other objects. Random walks, which
/// have no states to save, explore them so as well.
const EXACT_HINTS: u32 = 2;

// No function of this crate runs on a thread's stack. The remains of its frames would become part
// of states, where the thread's code does not initialise its own: states would depend on how this
// crate is compiled, and equal ones would differ.

/// Defines the hooks `entry::NAME`, which run the function NAME on the engine's stack. If the
/// engine itself runs, it has called the client's code, and that stack is in use already.
macro_rules! hooks {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block)*) => {
        $(
            extern "C" fn $name($($argument: $type),*) $(-> $result)? $body

            global_asm!(
                concat!(".global poundlock_check_", stringify!($name)),
                concat!("poundlock_check_", stringify!($name), ":"),
                "push rbp",
                "mov rbp, rsp",
                "mov rax, [rip + {engine}]",
                "test rax, rax",
                "cmovnz rsp, rax",
                "and rsp, -16",
                "call {hook}",
                "mov rsp, rbp",
                "pop rbp",
                "ret",
                engine = sym context::ENGINE,
                hook = sym $name,
            );
        )*

        mod entry {
            use super::*;

            unsafe extern "C" {
                $(
                    #[link_name = concat!("poundlock_check_", stringify!($name))]
                    pub safe fn $name($($argument: $type),*) $(-> $result)?;
                )*
            }
        }
    };
}

/// How an operation begins.
#[repr(C)]
struct Begun {
    /// The place for the stack pointer of the thread, which is to be suspended. Null: the
    /// operation is over.
    sp: *mut usize,
    /// Its result.
    value: u64,
}

impl Begun {
    fn over(value: u64) -> Begun {
        Begun { sp: ptr::null_mut(), value }
    }

    /// Suspends the running thread, whose code uses the stack from `frame` on.
    fn suspended(machine: &mut Machine, frame: usize) -> Begun {
        let thread = &mut machine.now.threads[machine.running];
        thread.frame = frame;
        Begun { sp: &raw mut thread.sp, value: 0 }
    }
}

/// The reply to the operation for which the thread was suspended.
extern "C" fn resumed() -> Wait {
    let machine = current();
    Wait { value: machine.reply, more: machine.testing as u64 }
}

/// Defines the hook `$entry`: begins an operation by `$begin`, and suspends the thread if that asks
/// for it. It saves the caller's registers and passes the address of the first one in `$argument`,
/// the register of the last argument: the thread's state is the stack from there up.
macro_rules! operation {
    ($entry:literal, $begin:path, $argument:literal) => {
        saving_registers!(
            $entry,
            [
                concat!("mov ", $argument, ", rsp"),
                "mov rbx, rsp",
                "mov rax, [rip + {engine}]",
                "test rax, rax",
                "cmovnz rsp, rax",
                "and rsp, -16",
                "call {begin}",
                "mov rsp, rbx",
                "test rax, rax",
                "jz 2f",
                "mov rdi, rax",
                "call {leave}",
                "mov rsp, [rip + {engine}]",
                "and rsp, -16",
                "call {resumed}",
                "mov rsp, rbx",
                "jmp 3f",
                "2:",
                "mov rax, rdx",
                "xor edx, edx",
                "3:"
            ],
            engine = context::ENGINE,
            leave = context::poundlock_check_leave,
            begin = $begin,
            resumed = resumed
        );
    };
}

operation!("poundlock_check_operate", operate, "r8");
operation!("poundlock_check_wait", wait, "r9");

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
) -> Begun {
    let machine = current();
    // SAFETY: a site is a static object.
    let place = unsafe { &*site };
    let address = object as usize;
    if machine.direct {
        return Begun::over(machine.operate_directly(place, address, operand, expected));
    }
    if let Some(result) = machine.known_result(place, address) {
        return Begun::over(result);
    }
    if place.kind == Kind::Fence && !machine.needs.fences {
        machine.needs.add_fence(&mut machine.fault);
    }
    let composed = machine.settings.composed;
    match place.kind {
        Kind::Unpark if composed && machine.needs.shared_sleeps.contains(&address) => {}
        Kind::Unpark | Kind::UnparkAll if composed => {
            machine.pay_all(address);
            return Begun::over(0);
        }
        Kind::Park if composed => machine.begin_park(address),
        _ => {}
    }
    machine.note_dependence(place.kind, address);
    let deadline = if place.kind == Kind::Park { expected as usize } else { 0 };
    let (operand, expected) = (operand & place.mask(), expected & place.mask());
    machine.request(place, Request { site, address, operand, expected, brief: false, deadline });
    Begun::suspended(machine, frame)
}

extern "C" fn wait(
    site: *const Site,
    object: *mut c_void,
    brief: bool,
    deadline: *const c_void,
    holds: bool,
    frame: usize,
) -> Begun {
    let machine = current();
    // SAFETY: a site is a static object.
    let place = unsafe { &*site };
    if machine.direct {
        return Begun::over(machine.operate_directly(place, object as usize, 0, 0));
    }
    if machine.testing {
        machine.ends_wait = holds;
    } else {
        if !brief {
            machine.check_paid();
        }
        let (address, deadline) = (object as usize, deadline as usize);
        machine.request(place, Request { site, address, operand: 0, expected: 0, brief, deadline });
    }
    Begun::suspended(machine, frame)
}

hooks! {
    fn plain(object: *const c_void, size: usize, write: bool, caller: *const Caller) {
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

    fn event(event: u32) {
        let machine = current();
        machine.events[event as usize] += 1;
        if machine.client.since == event + 1 && !machine.direct {
            machine.effect.visible = true;
            machine.now.arrivals.count(machine.running);
        }
    }

    fn yield_() {
        let machine = current();
        if !machine.direct {
            machine.check_paid();
            machine.now.threads[machine.running].yielded = true;
        }
    }

    fn this() -> u32 {
        current().running as u32
    }

    fn returned(frame: *const c_void) {
        let machine = current();
        let (base, end) = (arena::stack_base(machine.running), frame as usize);
        machine.check_frames(base, end);
        machine.end_lifetime(base, end);
    }

    fn ended(object: *const c_void, size: usize) {
        let machine = current();
        let (start, end) = (object as usize, object as usize + size);
        machine.plain_access(start, size, true, ptr::null());
        machine.written.clear();
        machine.end_lifetime(start, end);
    }

    fn renewed() {
        let machine = current();
        machine.now.threads[machine.running].expired = false;
    }

    fn fail(file: *const c_char, line: i32, what: *const c_char) {
        let machine = current();
        let file = describe::file_name(abi::text(file));
        let actor = if machine.direct { machine.phase.into() } else { format!("T{}", machine.running) };
        machine.fault.get_or_insert(format!("{}: {actor} ({file}:{line})", abi::text(what)));
    }

    fn outcome(slot: u32, value: u64) {
        let machine = current();
        machine.effect.visible = true;
        machine.now.outcomes[slot as usize] = value;
    }

    fn node(index: u32) -> *mut c_void {
        if index as usize >= arena::NODES_EACH {
            return ptr::null_mut();
        }
        arena::node(current().running, index as usize) as *mut c_void
    }

    fn generation() -> u32 {
        current().now.generation
    }

    fn busy_nodes() -> u32 {
        let threads = current().now.threads.len();
        let nodes = (0..threads)
            .flat_map(|thread| (0..arena::NODES_EACH).map(move |index| arena::node(thread, index)));
        nodes.filter(|&node| arena::load(node, 4) != 0).count() as u32
    }

    fn cpu() -> u32 {
        let machine = current();
        machine.now.threads[machine.running].cpu
    }

    fn domain_of(cpu: u32) -> u32 {
        cpu % current().settings.domains
    }

    fn cpu_count() -> u32 {
        current().settings.cpus
    }

    fn queue(object: *const c_void) {
        let machine = current();
        let watched = machine.watched();
        if watched.in_order || watched.in_states {
            machine.queues.push(object as usize);
        }
    }

    fn mixed(object: *const c_void, size: usize) {
        current().places.mix(object as usize, size);
    }

    fn hint(object: *const c_void) {
        let machine = current();
        if machine.settings.exhaustive && machine.client.threads > EXACT_HINTS {
            machine.hints.push(object as usize);
        }
    }

    fn acquires() {
        let machine = current();
        if !machine.direct && !machine.queues.is_empty() {
            machine.effect.visible = true;
            machine.now.arrivals.begin(machine.running);
        }
    }

    fn acquired(has: bool) {
        let machine = current();
        if machine.direct || machine.queues.is_empty() {
            return;
        }
        machine.effect.visible = true;
        let watched = machine.watched();
        let bypassed = machine.now.arrivals.end(machine.running, has, watched.from_arrival);
        let Some((waiter, times)) = bypassed.filter(|_| watched.in_order) else {
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

    fn arrival(thread: u32) -> u64 {
        current().now.arrivals.arrival(thread as usize)
    }
}
