// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model checker's clients (`tests/check`) of every lock, run on the simulated machine.

use crate::abi;
use crate::arena::Arena;
use crate::engine::{Engine, engine};
use crate::error::SimError;
use crate::locks::event_names;
use crate::machine::Machine;
use crate::run::{JITTER, Locality, localities, order, route};
use crate::time::{NEVER, ns};
use poundlock_workload::Placement;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::rc::Rc;

/// `struct check_client`; some fields are only for the checker.
#[repr(C)]
struct Definition {
    name: *const c_char,
    shared: usize,
    ghost: usize,
    threads: u32,
    flags: u32,
    bound: u32,
    spurious: u32,
    domains: u32,
    cpus: u32,
    moves: u32,
    bypass: u32,
    since: u32,
    walks: u32,
    setup: Option<unsafe extern "C" fn()>,
    thread: unsafe extern "C" fn(u32),
    finish: Option<unsafe extern "C" fn()>,
    invariant: Option<unsafe extern "C" fn()>,
    texts: [*const c_char; 6],
}

/// `CHECK_CLIENT_FORKS`.
const FORKS: u32 = 2;

/// `struct sim_clients`.
#[repr(C)]
struct OfLock {
    lock: *const c_char,
    clients: *const Definition,
}

unsafe extern "C" {
    static sim_clients: OfLock;
    static mut sim_client_memory: *mut c_void;
    static mut sim_client_ghost: *mut c_void;
    static mut sim_client_threads: u32;
}

/// A client of a lock.
#[derive(Clone, Copy)]
pub struct Client {
    lock: &'static str,
    definition: &'static Definition,
}

/// The clients of all locks, except those that fork: the simulated machine has one process.
pub fn clients() -> Vec<Client> {
    let first = &raw const sim_clients;
    // SAFETY: the table and the list of each lock are C constants that end with an entry without a
    // name.
    let lists = (0..).map(|i| unsafe { &*first.add(i) }).take_while(|list| !list.lock.is_null());
    let of = |list: &'static OfLock| {
        // SAFETY: as above.
        let all = (0..)
            .map(|i| unsafe { &*list.clients.add(i) })
            .take_while(|client| !client.name.is_null());
        all.map(|definition| Client { lock: text(list.lock), definition })
    };
    lists.flat_map(of).filter(|client| client.definition.flags & FORKS == 0).collect()
}

fn text(string: *const c_char) -> &'static str {
    // SAFETY: a literal of the C side, in ASCII.
    unsafe { CStr::from_ptr(string) }.to_str().unwrap_or_default()
}

/// The interval at which thread 0 polls for the end of the others, in nanoseconds.
const POLL: f64 = 500.0;

impl Client {
    /// Its name, behind that of its lock.
    pub fn name(&self) -> String {
        format!("{}/{}", self.lock, text(self.definition.name))
    }

    /// Its lock's name.
    pub fn lock(&self) -> &'static str {
        self.lock
    }

    /// Runs it on `machine`. Returns the counts of the events of [`event_names`]; an error if an
    /// assertion fails, or if the client does not end.
    pub fn simulate(&self, machine: &Machine, seed: u64) -> Result<Vec<u64>, SimError> {
        let client = self.definition;
        let mut engine =
            Box::new(Engine::new(machine.clone(), Arena::map()?, seed, event_names().len(), false));
        engine.set_places(localities(machine, Locality::L3), route(machine));
        let memory = engine.allocate(client.shared, 4096, 0);
        engine.call(memory, client.shared, "the client's memory".to_owned());
        let mut ghost = vec![0_u64; client.ghost.div_ceil(8)];
        // SAFETY: only the simulation that has the arena accesses these.
        unsafe {
            sim_client_memory = memory as *mut _;
            sim_client_ghost = ghost.as_mut_ptr().cast();
            sim_client_threads = client.threads;
        }
        let cpus = order(machine, Placement::RoundRobin);
        let course = Rc::new(Course::default());
        for index in 0..client.threads {
            let own = course.clone();
            // SAFETY: a constant of the C side.
            let bytes = unsafe { abi::sim_self_size };
            let body = move || own.run(client, index);
            let record = engine.spawn(cpus[index as usize % cpus.len()], 1024, bytes, body);
            // SAFETY: the record has sim_self_size zeroed bytes; the simulation has the arena.
            engine.prepare(|| unsafe {
                abi::sim_self_make(record as *mut _, seed as u32 * 64 + index + 1, 1024, index % 2);
                abi::sim_group_weight_set(index % 2, 1024);
            });
        }
        engine.run(NEVER, ns(JITTER))?;
        drop(ghost);
        Ok(std::mem::take(&mut engine.counts))
    }
}

/// The progress of a client. Thread 0 runs its setup and its finish.
#[derive(Default)]
struct Course {
    begun: Cell<bool>,
    done: Cell<u32>,
}

impl Course {
    fn run(&self, client: &Definition, index: u32) {
        // SAFETY: threads of the engine call this; the client is C code of the simulated world,
        // whose memory exists.
        let (pass, call) =
            (|| unsafe { engine() }.pass(POLL), |part: unsafe extern "C" fn()| unsafe { part() });
        if index == 0 {
            client.setup.map(call);
            self.begun.set(true);
        }
        while !self.begun.get() {
            pass();
        }
        // SAFETY: as above.
        unsafe { (client.thread)(index) };
        self.done.set(self.done.get() + 1);
        if index == 0 {
            while self.done.get() < client.threads {
                pass();
            }
            client.finish.map(call);
        }
    }
}
