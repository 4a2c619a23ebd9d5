//! `poundlock list`: the locks and their properties.

use crate::failure::Failure;
use crate::output;
use crate::provenance::Provenance;
use crate::text_table;
use clap::Args;
use comfy_table::Table;
use poundlock::LockInfo;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

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
    /// None if not counted.
    atomics_alone: Option<f64>,
    atomics_contended: Option<f64>,
    /// Of readers-writer locks.
    atomics_reading: Option<f64>,
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
            atomics_reading: counted(info.atomics_reading),
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

/// Prints the locks as tables or JSON.
pub fn list(args: &ListArgs) -> Result<ExitCode, Failure> {
    let locks: Vec<Lock> = poundlock::locks().map(Lock::from).collect();
    let rwlocks: Vec<Lock> = poundlock::rw_locks().map(Lock::from).collect();
    if args.json {
        let provenance = Provenance::new(poundlock::C_COMPILER.to_owned());
        let listing = Listing { schema: "poundlock.list/1", provenance, locks, rwlocks };
        output::print(output::json(&listing)?)?;
    } else {
        let [mutual, rw] = [table(&locks, &ATOMICS), table(&rwlocks, &RW_ATOMICS)];
        output::print(format!(
            "mutexes (-l, --lock)\n{mutual}\n\nreaders-writer locks (--rwlock)\n{rw}\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A column of the numbers of atomic operations.
type Atomics = (&'static str, fn(&Lock) -> Option<f64>);

const ALONE: fn(&Lock) -> Option<f64> = |lock| lock.atomics_alone;
const CONTENDED: Atomics = ("contended", |lock| lock.atomics_contended);
const ATOMICS: [Atomics; 2] = [("atomics", ALONE), CONTENDED];
const RW_ATOMICS: [Atomics; 3] =
    [("read", |lock| lock.atomics_reading), ("write", ALONE), CONTENDED];

fn table(locks: &[Lock], atomics: &[Atomics]) -> Table {
    let mut header = vec!["lock", "boxed", "bytes", "+ waiter", "+ holder"];
    header.extend(atomics.iter().map(|(name, _)| name));
    let figures = 2..header.len();
    header.extend(["wait", "keys", "promise", "paper"]);
    let mut table = text_table::with_header(&header, figures);
    for lock in locks {
        let mut row: Vec<String> =
            vec![lock.name.into(), if lock.boxed { "yes" } else { "" }.into()];
        row.extend(
            [lock.bytes_per_lock, lock.bytes_per_waiter, lock.bytes_per_holder]
                .map(|bytes| bytes.to_string()),
        );
        row.extend(
            atomics
                .iter()
                .map(|(_, of)| of(lock).map_or(String::new(), |count| format!("{count:.1}"))),
        );
        row.extend([lock.wait, &lock.keys.join(","), lock.promise, lock.paper].map(str::to_owned));
        table.add_row(row);
    }
    table
}
