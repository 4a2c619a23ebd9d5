//! `poundlock list`: every lock with what is known of it.

use crate::args::ListArgs;
use crate::failure::Failure;
use crate::provenance::Provenance;
use crate::text_table;
use comfy_table::Table;
use poundlock::LockInfo;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Listing {
    schema: &'static str,
    #[serde(flatten)]
    provenance: Provenance,
    locks: Vec<Lock>,
    rwlocks: Vec<Lock>,
}

#[derive(Serialize)]
struct Lock {
    name: &'static str,
    boxed: bool,
    bytes_per_lock: usize,
    bytes_per_waiter: usize,
    bytes_per_holder: usize,
    /// None where they were not counted.
    atomics_alone: Option<f64>,
    atomics_contended: Option<f64>,
    wait: &'static str,
    keys: Vec<String>,
    promise: &'static str,
    paper: &'static str,
}

impl From<LockInfo> for Lock {
    fn from(info: LockInfo) -> Lock {
        Lock {
            name: info.name,
            boxed: info.boxed,
            bytes_per_lock: info.bytes_per_lock,
            bytes_per_waiter: info.bytes_per_waiter,
            bytes_per_holder: info.bytes_per_holder,
            atomics_alone: counted(info.atomics_alone),
            atomics_contended: counted(info.atomics_contended),
            wait: info.wait,
            keys: info.keys.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect(),
            promise: info.promise,
            paper: info.paper,
        }
    }
}

fn counted(atomics: f64) -> Option<f64> {
    (!atomics.is_nan()).then_some(atomics)
}

/// Prints the locks.
pub fn list(args: &ListArgs) -> Result<ExitCode, Failure> {
    let locks: Vec<Lock> = poundlock::locks().map(Lock::from).collect();
    let rwlocks: Vec<Lock> = poundlock::rw_locks().map(Lock::from).collect();
    if args.json {
        let provenance = Provenance::new(poundlock::C_COMPILER.to_owned());
        let listing = Listing { schema: "poundlock.list/1", provenance, locks, rwlocks };
        println!("{}", serde_json::to_string_pretty(&listing).map_err(Failure::ours)?);
    } else {
        println!("{}\n\nreaders-writer locks (--rwlock)\n{}", table(&locks), table(&rwlocks));
    }
    Ok(ExitCode::SUCCESS)
}

fn table(locks: &[Lock]) -> Table {
    let header =
        ["lock", "boxed", "bytes", "+ waiter", "+ holder", "atomics", "contended", "wait", "keys", "promise", "paper"];
    let mut table = text_table::with_header(&header, 2..7);
    for lock in locks {
        table.add_row([
            lock.name,
            if lock.boxed { "yes" } else { "" },
            &lock.bytes_per_lock.to_string(),
            &lock.bytes_per_waiter.to_string(),
            &lock.bytes_per_holder.to_string(),
            &lock.atomics_alone.map_or(String::new(), |atomics| format!("{atomics:.0}")),
            &lock.atomics_contended.map_or(String::new(), |atomics| format!("{atomics:.1}")),
            lock.wait,
            &lock.keys.join(","),
            lock.promise,
            lock.paper,
        ]);
    }
    table
}
