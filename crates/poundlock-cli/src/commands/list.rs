//! `poundlock list`: the locks and their properties.

use crate::failure::Failure;
use crate::output::{self, Page};
use crate::provenance::Provenance;
use crate::spec::no_such_lock;
use crate::text_table;
use clap::Args;
use comfy_table::ContentArrangement;
use poundlock::{LockInfo, Setting};
use serde::Serialize;
use std::process::ExitCode;
use textwrap::WordSplitter;

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Describe the locks of these names, or whose names start with them [default: list all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
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
    /// Except `wait`.
    settings: Vec<Key>,
    promise: &'static str,
    paper: &'static str,
}

/// A setting and its values.
#[derive(Serialize)]
#[serde(untagged)]
enum Key {
    Choice { key: &'static str, default: &'static str, choices: Vec<&'static str> },
    Number { key: &'static str, default: u32, least: u32, most: u32 },
}

impl From<Setting> for Key {
    fn from(setting: Setting) -> Key {
        let Setting { key, choices, default, least, most } = setting;
        match choices.get(default as usize) {
            Some(default) => Key::Choice { key, default, choices },
            None => Key::Number { key, default, least, most },
        }
    }
}

impl Key {
    fn description(&self) -> String {
        match self {
            Key::Choice { key, default, choices } => {
                format!("{key}={default} by default; {}", choices.join(", "))
            }
            Key::Number { key, default, least, most } => {
                format!("{key}={default} by default; {least} to {most}")
            }
        }
    }
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
            settings: info.settings.into_iter().map(Key::from).collect(),
            promise: info.promise,
            paper: info.paper,
        }
    }
}

fn counted(atomics: f64) -> Option<f64> {
    (!atomics.is_nan()).then_some(atomics)
}

/// Prints the locks as tables, descriptions or JSON.
pub fn list(args: &ListArgs) -> Result<ExitCode, Failure> {
    let mut locks: Vec<Lock> = poundlock::locks().map(Lock::from).collect();
    let mut rwlocks: Vec<Lock> = poundlock::rw_locks().map(Lock::from).collect();
    if !args.names.is_empty() {
        let known: Vec<&str> = locks.iter().chain(&rwlocks).map(|lock| lock.name).collect();
        let chosen = choose(&args.names, &known)?;
        locks.retain(|lock| chosen.contains(&lock.name));
        rwlocks.retain(|lock| chosen.contains(&lock.name));
    }
    let text = if args.json {
        let provenance = Provenance::new(poundlock::C_COMPILER.to_owned());
        output::json(&Listing { schema: "poundlock.list/1", provenance, locks, rwlocks })?
    } else if args.names.is_empty() {
        let [mutual, rw] = [&locks, &rwlocks].map(|locks| table(locks, Page::Stdout.width()));
        format!(
            "mutexes (-l, --lock)\n{mutual}\n\nreaders-writer locks (--rwlock)\n{rw}\n\n\
             `poundlock list NAME` describes a lock.\n"
        )
    } else {
        let width = Page::Stdout.width();
        let all = locks.iter().chain(&rwlocks);
        all.map(|lock| description(lock, width)).collect::<Vec<_>>().join("\n")
    };
    output::print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// The locks that `names` mean: the lock of that name, or else all whose names start with it.
fn choose<'a>(names: &[String], known: &[&'a str]) -> Result<Vec<&'a str>, Failure> {
    let mut chosen = Vec::new();
    for name in names {
        let before = chosen.len();
        if let Some(exact) = known.iter().find(|known| *known == name) {
            chosen.push(*exact);
        } else {
            chosen.extend(known.iter().filter(|known| known.starts_with(name.as_str())));
        }
        if chosen.len() == before {
            return Err(no_such_lock(name));
        }
    }
    Ok(chosen)
}

/// One line per lock. The last column wraps in a terminal of limited `width`.
fn table(locks: &[Lock], width: Option<usize>) -> String {
    let mut table = text_table::with_header(&["lock", "bytes", "wait", "order of waiters"], 1..2);
    for lock in locks {
        table.add_row([lock.name, &lock.bytes_per_lock.to_string(), lock.wait, lock.promise]);
    }
    if let Some(width) = width.and_then(|width| u16::try_from(width).ok()) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.to_string()
}

/// All that is known about a lock, by property. Lines wrap in a terminal of limited `width`.
fn description(lock: &Lock, width: Option<usize>) -> String {
    let is_rw = poundlock::rw_locks().any(|info| info.name == lock.name);
    let kind = if is_rw { "readers-writer lock (--rwlock)" } else { "mutex (--lock)" };
    let boxed = if lock.boxed { ", allocated behind a pointer" } else { "" };
    let size = format!(
        "{} bytes per lock{boxed}; {} per waiter, {} per holder",
        lock.bytes_per_lock, lock.bytes_per_waiter, lock.bytes_per_holder
    );
    let page = format!("docs/locks/{}.md", lock.name);
    [
        ("kind", kind),
        ("order", lock.promise),
        ("size", &size),
        ("atomics", &atomics(lock)),
        ("settings", &settings(lock)),
        ("paper", lock.paper),
        ("page", &page),
    ]
    .iter()
    .fold(format!("{}\n", lock.name), |text, (name, value)| text + &property(name, value, width))
}

/// The lines of `value` beside its name.
fn property(name: &str, value: &str, width: Option<usize>) -> String {
    let (beside, below) = (format!("  {name:9}"), " ".repeat(11));
    let line = |(index, line)| {
        let options = textwrap::Options::new(width.unwrap_or(usize::MAX))
            .initial_indent(if index == 0 { &beside } else { &below })
            .subsequent_indent(&below)
            .word_splitter(WordSplitter::NoHyphenation);
        textwrap::fill(line, options) + "\n"
    };
    value.lines().enumerate().map(line).collect()
}

/// `wait` and the lock's own settings, on a line each, as they are named in a spec.
fn settings(lock: &Lock) -> String {
    let wait = format!("wait={} by default; spin, yield, park", lock.wait);
    let own = lock.settings.iter().map(Key::description);
    std::iter::once(wait).chain(own).collect::<Vec<_>>().join("\n")
}

/// The numbers of atomic operations that have been counted.
fn atomics(lock: &Lock) -> String {
    let alone = if lock.atomics_reading.is_some() { "to write" } else { "uncontended" };
    let counts = [
        (lock.atomics_reading, "to read"),
        (lock.atomics_alone, alone),
        (lock.atomics_contended, "contended"),
    ];
    let known: Vec<String> = counts
        .iter()
        .filter_map(|(count, when)| count.map(|count| format!("{count:.1} {when}")))
        .collect();
    if known.is_empty() {
        return "not counted".to_owned();
    }
    format!("{} (read-modify-writes to lock and unlock)", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Lock, description};

    #[test]
    fn descriptions_wrap_and_lose_nothing() {
        for lock in poundlock::locks().chain(poundlock::rw_locks()).map(Lock::from) {
            let whole = description(&lock, None);
            let wrapped = description(&lock, Some(60));
            assert!(wrapped.lines().all(|line| line.chars().count() <= 60), "{wrapped}");
            assert!(wrapped.split_whitespace().eq(whole.split_whitespace()), "{wrapped}");
        }
    }
}
