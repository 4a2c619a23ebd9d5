// SPDX-License-Identifier: MIT OR Apache-2.0
//! The catalogue of clients: those that test the checker itself; those of the threads' records, of
//! the condition variable, of once, of the semaphore, of the recursive lock, of the kernel's spin
//! lock, mutex, rwsem and sleeping, of the slow path for unmodified kernels, of futexes, of
//! pthread's condition variable, of the program's policies, of the statistics' rows and tables, and
//! of the control page; those of CFL with any order, in the kernel as well; those of BRAVO and the
//! default lock beside specifications of other parts; lock.c for each lock with the lock's own
//! clients; and rw.c for each readers-writer lock.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, bail};

use crate::abi::{self, Client};
use crate::compile;
use crate::pool;
use crate::sources::Sources;

/// A file of clients, and how it is compiled.
pub struct File {
    pub name: String,
    path: String,
    defines: Vec<String>,
    /// The headers that it tests: its lock's, by the path from core/, or files of other parts.
    pub headers: Vec<String>,
}

/// The headers of threads' records.
const RECORDS: [&str; 2] = ["world/user/process.h", "world/user/records.h"];

/// The headers of the kernel's spin lock. Holders of `cna` and `ron_shared` look ahead there alone.
const KERNEL: [&str; 5] = [
    "kernel/overlay/spin_queues.h",
    "world/kernel/pending.h",
    "world/kernel/objects.h",
    "cna.h",
    "ron_shared.h",
];

/// The kernel's mutex.
const MUTEX: [&str; 2] = ["kernel/overlay/task_mutex.h", "world/kernel/objects.h"];

/// The kernel's rwsem, whose readers alone enter and leave by fetch-and-add.
const RWSEM: [&str; 3] = ["kernel/overlay/task_rwsem.h", "part/rw_word.h", "rw/shfl_rw.h"];

/// The program's own policies.
const POLICIES: [&str; 2] = ["lib/intern.c", "lib/policies.c"];

/// All files of clients.
pub fn files(sources: &Sources) -> Result<Vec<File>> {
    let own = |name: &str, headers: &[&str]| File {
        name: name.into(),
        path: format!("{name}.c"),
        defines: Vec::new(),
        headers: headers.iter().map(|&header| header.into()).collect(),
    };
    let mut files = vec![
        own("litmus", &[]),
        own("seeded", &[]),
        own("records", &RECORDS),
        own("cond", &["cond.h"]),
        own("once", &["once.h"]),
        own("sema", &["sema.h"]),
        own("recursive", &["recursive.h"]),
        own("qspinlock", &KERNEL),
        own("futex", &["world/user/park.h"]),
        own("cond_word", &["preload/cond_word.h"]),
        own("policies", &POLICIES),
        own("statistics", &["preload/stats/row.c"]),
        own("tables", &["preload/stats/tables.h"]),
        own("control", &["preload/control_table.h", "lib/live.c"]),
        own("kernel_mutex", &MUTEX),
        own("kernel_rwsem", &RWSEM),
        own("kernel_park", &["world/kernel/sleepers.h", "world/kernel/nodes.h"]),
        own("kernel_tuning", &["kernel/overlay/tuning.h"]),
        own("kernel_cfl", &["kernel/overlay/cfl_qspinlock.h"]),
        own("kernel_cfl_mutex", &["kernel/overlay/cfl_task_mutex.h"]),
        own("kernel_cfl_any", &["kernel/overlay/cfl_qspinlock.h"]),
        own("kernel_cfl_mutex_any", &["kernel/overlay/cfl_task_mutex.h"]),
        own("cfl_mutex_any", &["cfl_mutex.h"]),
        own("cfl_spin_any", &["cfl_spin.h"]),
        own("tickets", &["part/tickets.h"]),
        own("shfl_mutex_word", &["shfl_mutex.h"]),
        own("shfl_ron_parts", &["shfl_ron.h"]),
        own("shfl_ron_steady", &["shfl_ron.h"]),
        own("stays", &["part/stay.h"]),
        own("bravo_any_rw", &["rw/bravo.h"]),
        own("hook", &["kernel/hook/queue.h", "world/kernel/pending.h"]),
    ];
    for lock in sources.locks()? {
        let header = header(sources, &lock.name, format!("{}.h", lock.name))?;
        let include = format!("LOCK_HEADER=\"{header}\"");
        let traits = format!("LOCK_TRAITS=\"locks/{header}\"");
        let defines =
            vec![format!("LOCK={}", lock.name), include, traits, format!("LOCK_{}", lock.kind)];
        push_lock(&mut files, sources, lock.name, "lock.c", defines, header);
    }
    for name in sources.rw_locks()? {
        let header = header(sources, &name, format!("rw/{name}.h"))?;
        let defines = vec![format!("LOCK={name}"), format!("LOCK_HEADER=\"{header}\"")];
        push_lock(&mut files, sources, name, "rw.c", defines, header);
    }
    Ok(files)
}

/// Adds a lock's clients in `path`, and those of its own in locks/NAME.c, if there are any.
fn push_lock(
    files: &mut Vec<File>,
    sources: &Sources,
    name: String,
    path: &str,
    defines: Vec<String>,
    header: String,
) {
    let extra = format!("locks/{name}.c");
    if sources.root.join("tests/check").join(&extra).exists() {
        files.push(File {
            name: format!("{name}+"),
            path: extra,
            defines: defines.clone(),
            headers: vec![header.clone()],
        });
    }
    files.push(File { name, path: path.into(), defines, headers: vec![header] });
}

/// Returns `header` if the lock has it.
fn header(sources: &Sources, lock: &str, header: String) -> Result<String> {
    let path = sources.core.join(&header);
    if !path.exists() {
        bail!("core/locks.def lists {lock}, but {} does not exist", path.display());
    }
    Ok(header)
}

/// Whether `client` is explored a second time, with promises. A `deep` exploration includes all
/// clients that are explored exhaustively under weak memory.
fn has_promises(client: &Client, deep: bool) -> bool {
    let flagged = client.flags & abi::CLIENT_PROMISES != 0;
    flagged || deep && client.walks == 0 && client.flags & abi::CLIENT_ORDER == 0
}

/// A client, and its full name.
#[derive(Clone)]
pub struct Entry {
    /// e.g. "mcs/2x1/spin"
    pub name: String,
    pub client: &'static Client,
    /// Whether threads can promise stores.
    pub promises: bool,
}

impl File {
    /// The name of the tested lock, in both lock.c and locks/LOCK.c; of other files, their own.
    pub fn subject(&self) -> &str {
        self.name.trim_end_matches('+')
    }

    /// Whether the tested lock includes `header` of the core, directly or not.
    pub fn contains(&self, sources: &Sources, header: &str) -> bool {
        self.headers.iter().any(|own| sources.includes(own, header))
    }

    /// Compiles and loads the file's clients. The library in `folder` must stay while they are
    /// used.
    pub fn clients(&self, sources: &Sources, folder: &Path) -> Result<Vec<Entry>> {
        self.load(&compile::build(sources, &self.name, &self.path, &self.defines, folder)?, false)
    }

    fn load(&self, library: &Path, deep: bool) -> Result<Vec<Entry>> {
        let clients = compile::load(library)?;
        let entry = |promises: bool, client: &'static Client| {
            let model = if promises { "promises/" } else { "" };
            let name = format!("{}/{model}{}", self.name, abi::text(client.name));
            Entry { name, client, promises }
        };
        let usual = clients.iter().map(|client| entry(false, client));
        let promised = clients.iter().filter(|client| has_promises(client, deep));
        Ok(usual.chain(promised.map(|client| entry(true, client))).collect())
    }
}

/// The clients of `files`, compiled in parallel; with `deep`, those of a deep exploration.
pub fn all(files: &[&File], sources: &Sources, folder: &Path, deep: bool) -> Result<Vec<Entry>> {
    compile::build_runtime(sources, folder)?;
    let next = AtomicUsize::new(0);
    let build = || -> Result<()> {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            compile::build(sources, &file.name, &file.path, &file.defines, folder)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let builders: Vec<_> = (0..pool::workers()).map(|_| scope.spawn(build)).collect();
        builders.into_iter().try_for_each(|builder| builder.join().expect("builders do not panic"))
    })?;
    let loaded = files.iter().map(|file| file.load(&compile::library(folder, &file.name), deep));
    Ok(loaded.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}
