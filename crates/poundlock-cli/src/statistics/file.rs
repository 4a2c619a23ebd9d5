//! Reads files of statistics. Their layout is generated from preload/stats/file.h.
//!
//! Anybody may have written a file: every size in it is checked against the size of the file and
//! against bounds.

use super::layout::{self, Field, area, header, lock, module, row, share, stack, thread};
use crate::failure::Failure;
use crate::output::unreadable;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

const MAGIC: &[u8] = b"poundlock stats\0";
/// The number of attempts to read a file while its process moves counts.
const ATTEMPTS: u32 = 20;
/// The size of a counter, an event and a return address.
const LONG: usize = 8;

/// Counters by name.
pub type Counts = HashMap<String, u64>;

/// The content of a file.
#[derive(Debug)]
pub struct Observed {
    pub path: PathBuf,
    pub pid: u32,
    pub profile: bool,
    pub start_ns: u64,
    pub start_s: u64,
    pub hold_every: u32,
    pub threads_seen: u64,
    pub threads_unobserved: u64,
    pub locks_unobserved: u64,
    pub stacks_unobserved: u64,
    pub shares_unobserved: u64,
    /// None if the process has not ended by itself.
    pub end_ns: Option<u64>,
    /// The time of threads that have ended and are not in `threads`.
    pub ended_threads_ns: u64,
    pub lock: String,
    pub rwlock: String,
    pub program: String,
    pub modules: Vec<Module>,
    pub locks: Vec<LockItem>,
    pub stacks: Vec<Stack>,
    pub threads: Vec<Thread>,
    pub shares: Vec<Share>,
    /// The names of the events that each thread counts.
    pub events: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Module {
    pub start: u64,
    pub end: u64,
    pub bias: u64,
    pub path: PathBuf,
}

#[derive(Clone, Debug)]
pub struct LockItem {
    /// Its index in the file.
    pub index: u32,
    /// 0: all locks that found no room of their own.
    pub address: u64,
    pub readers_writer: bool,
    /// Whether the program uses the lock through poundlock.h.
    pub api: bool,
    /// Whether it is a spin lock of the C library.
    pub spin: bool,
    pub lives: u32,
    /// The index of the stack that first contended the lock.
    pub stack: Option<u32>,
    /// The name that the program gave it; empty: none.
    pub name: String,
    pub waiting: u32,
    pub counts: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackKind {
    /// The stack that first contended a lock.
    First,
    Waiter,
    Holder,
}

#[derive(Clone, Debug)]
pub struct Stack {
    pub index: u32,
    pub kind: StackKind,
    pub lock: u32,
    pub count: u64,
    pub ns: u64,
    /// Return addresses, innermost first.
    pub frames: Vec<u64>,
}

#[derive(Clone, Debug)]
pub struct Thread {
    pub serial: u64,
    /// Its first operation (0: there was none yet), the last time that it read the clock, and its
    /// end.
    pub start_ns: u64,
    pub seen_ns: u64,
    pub end_ns: Option<u64>,
    /// In the order of [`Observed::events`].
    pub events: Vec<u64>,
    /// The index of a lock, and the thread's counts for it.
    pub rows: Vec<(u32, Counts)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub thread: u64,
    pub lock: u32,
    pub acquisitions: u64,
}

/// A piece of the file.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn word(&self, field: Field) -> u32 {
        field.word(self.0)
    }

    fn long(&self, field: Field) -> u64 {
        field.long(self.0)
    }

    fn long_at(&self, at: usize) -> u64 {
        self.long(Field { at, bytes: LONG })
    }

    /// Text up to its NUL. Control characters are replaced: a terminal would obey them.
    fn text(&self, field: Field) -> String {
        let bytes = &self.0[field.range()];
        let text =
            String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
                .into_owned();
        text.replace(char::is_control, "\u{fffd}")
    }
}

/// An array of the file.
struct Area {
    items: Vec<u8>,
    bytes: usize,
}

/// The maximum number of items of each array, several times what the library makes. The time of
/// all that follows is bounded by their product.
const MOST: [u32; layout::AREAS] = {
    let mut most = [0; layout::AREAS];
    most[layout::MODULES] = 1 << 10;
    most[layout::LOCKS] = 1 << 16;
    most[layout::STACKS] = 1 << 14;
    most[layout::THREADS] = 1 << 13;
    most[layout::SHARES] = 1 << 17;
    most
};
/// The maximum size of a file. It is sparse, and may be much larger than its content.
const MOST_BYTES: u64 = 64 << 20;

/// A file that has the right size and header.
struct Source<'a> {
    file: &'a File,
    length: u64,
    header: Vec<u8>,
    counters: Vec<String>,
    events: Vec<String>,
}

impl<'a> Source<'a> {
    fn open(file: &'a File) -> Result<Source<'a>, String> {
        let damaged = |_| DAMAGED.to_owned();
        let length = file.metadata().map_err(damaged)?.len();
        let mut header = vec![0; layout::HEADER_SIZE];
        file.read_exact_at(&mut header, 0).map_err(damaged)?;
        let bytes = Bytes(&header);
        if !header.starts_with(MAGIC) || length > MOST_BYTES {
            return Err(DAMAGED.to_owned());
        }
        let version = bytes.word(header::VERSION);
        if version as usize != layout::VERSION {
            return Err(format!("has version {version} of the format, not {}", layout::VERSION));
        }
        let names =
            |field| bytes.text(field).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (counters, events) = (names(header::COUNTERS), names(header::EVENTS));
        Ok(Source { file, length, header, counters, events })
    }

    fn header(&self) -> Bytes<'_> {
        Bytes(&self.header)
    }

    /// The number of rows of a thread.
    fn rows(&self) -> usize {
        self.header().word(header::ROWS) as usize
    }

    /// The offset of a thread's first row: the rows follow the events.
    fn rows_at(&self) -> usize {
        thread::EVENTS.at + LONG * self.events.len()
    }

    fn row_bytes(&self) -> usize {
        row::COUNTS.at + LONG * self.counters.len()
    }

    /// The minimum size of an item of the array.
    fn least_bytes(&self, index: usize) -> usize {
        match index {
            layout::MODULES => module::PATH.at,
            layout::LOCKS => lock::COUNTS.at + LONG * self.counters.len(),
            layout::STACKS => stack::FRAMES.at,
            layout::THREADS => {
                self.rows_at().saturating_add(self.row_bytes().saturating_mul(self.rows()))
            }
            _ => share::ACQUISITIONS.range().end,
        }
    }

    /// Reads an array, all of which must be in the file.
    fn area(&self, index: usize) -> io::Result<Area> {
        let at = header::AREAS.at + layout::AREA_SIZE * index;
        let area = Bytes(&self.header[at..at + layout::AREA_SIZE]);
        let (offset, bytes) = (area.long(area::OFFSET), area.word(area::BYTES) as usize);
        let count = area.word(area::MOST).min(area.word(area::USED));
        let length = u64::from(count) * bytes as u64;
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        if bytes < self.least_bytes(index) || count > MOST[index] || !inside {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut items = vec![0; length as usize];
        self.file.read_exact_at(&mut items, offset)?;
        Ok(Area { items, bytes })
    }

    /// Reads all arrays, and reads them again while counts move. After [`ATTEMPTS`] the counts are
    /// taken as they are: the process may have been killed while it moved them. The fences keep the
    /// reads of counts between those of the numbers of moves.
    fn areas(&self) -> io::Result<[Area; 5]> {
        let mut attempts = 1;
        loop {
            let before = merges(&self.area(layout::THREADS)?);
            fence(Ordering::SeqCst);
            let threads = self.area(layout::THREADS)?;
            let [modules, locks, stacks, shares] =
                [layout::MODULES, layout::LOCKS, layout::STACKS, layout::SHARES]
                    .map(|index| self.area(index));
            let areas = [modules?, locks?, stacks?, threads, shares?];
            fence(Ordering::SeqCst);
            let whole = before.is_some() && before == merges(&self.area(layout::THREADS)?);
            if whole || attempts == ATTEMPTS {
                return Ok(areas);
            }
            attempts += 1;
        }
    }

    fn counts(&self, bytes: &Bytes<'_>, at: usize) -> Counts {
        self.counters
            .iter()
            .enumerate()
            .map(|(index, name)| (name.clone(), bytes.long_at(at + LONG * index)))
            .collect()
    }

    fn thread(&self, bytes: &Bytes<'_>) -> Thread {
        let rows = (0..self.rows()).map(|index| {
            let at = self.rows_at() + index * self.row_bytes();
            Bytes(&bytes.0[at..at + self.row_bytes()])
        });
        let event = |index| bytes.long_at(thread::EVENTS.at + LONG * index);
        Thread {
            serial: bytes.long(thread::SERIAL),
            start_ns: bytes.long(thread::START_NS),
            seen_ns: bytes.long(thread::SEEN_NS),
            end_ns: Some(bytes.long(thread::END_NS)).filter(|end| *end > 0),
            events: (0..self.events.len()).map(event).collect(),
            rows: rows
                .filter(|row| row.long(row::KEY) != 0)
                .map(|row| (row.word(row::LOCK), self.counts(&row, row::COUNTS.at)))
                .collect(),
        }
    }
}

impl Area {
    fn iter(&self) -> impl Iterator<Item = (u32, Bytes<'_>)> {
        (0..).zip(self.items.chunks_exact(self.bytes).map(Bytes))
    }
}

const DAMAGED: &str = "is not a complete file of statistics";

impl Observed {
    /// The names that the program gave its mutexes, by address.
    pub fn given_names(&self) -> HashMap<u64, String> {
        let named = self.locks.iter().filter(|lock| !lock.name.is_empty() && !lock.api);
        named.map(|lock| (lock.address, lock.name.clone())).collect()
    }

    /// The number of acquisitions of each lock, by its index.
    pub fn acquisitions(&self) -> HashMap<u32, u64> {
        let ended = self.locks.iter().map(|item| (item.index, &item.counts));
        let rows = self.threads.iter().flat_map(|thread| &thread.rows);
        let mut sums: HashMap<u32, u64> = HashMap::new();
        for (lock, counts) in ended.chain(rows.map(|(lock, counts)| (*lock, counts))) {
            let sum = sums.entry(lock).or_default();
            *sum = sum.saturating_add(acquisitions_in(counts));
        }
        sums
    }

    /// The number of acquisitions of a lock by each thread that runs, by the thread's number.
    pub fn acquisitions_by_thread(&self, lock: u32) -> BTreeMap<u64, u64> {
        let running = self.threads.iter().filter(|thread| thread.end_ns.is_none());
        let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
        for thread in running {
            let rows = thread.rows.iter().filter(|(of, _)| *of == lock);
            let taken = rows.map(|(_, counts)| acquisitions_in(counts));
            let kept = self.shares.iter();
            let kept = kept.filter(|share| share.lock == lock && share.thread == thread.serial);
            let all = taken.chain(kept.map(|share| share.acquisitions));
            sums.insert(thread.serial, all.fold(0, u64::saturating_add));
        }
        sums.retain(|_, count| *count > 0);
        sums
    }

    /// Reads a file that its process may still write to.
    pub fn read(path: &Path) -> Result<Observed, Failure> {
        let file = open_regular(path).map_err(|error| unreadable(path, &error))?;
        Observed::of(&file, path)
            .map_err(|wrong| Failure::ours(format!("'{}' {wrong}", path.display())))
    }

    fn of(file: &File, path: &Path) -> Result<Observed, String> {
        let source = Source::open(file)?;
        let [modules, locks, stacks, threads, shares] =
            source.areas().map_err(|_| DAMAGED.to_owned())?;
        let header = source.header();
        Ok(Observed {
            path: path.to_path_buf(),
            pid: header.word(header::PID),
            profile: header.word(header::PROFILE) != 0,
            start_ns: header.long(header::START_NS),
            start_s: header.long(header::START_S),
            hold_every: header.word(header::HOLD_EVERY),
            threads_seen: header.long(header::THREADS),
            threads_unobserved: header.long(header::THREADS_UNOBSERVED),
            locks_unobserved: header.long(header::LOCKS_UNOBSERVED),
            stacks_unobserved: header.long(header::STACKS_UNOBSERVED),
            shares_unobserved: header.long(header::SHARES_UNOBSERVED),
            end_ns: Some(header.long(header::END_NS)).filter(|end| *end > 0),
            ended_threads_ns: header.long(header::THREAD_NS),
            lock: header.text(header::LOCK),
            rwlock: header.text(header::RWLOCK),
            program: header.text(header::PROGRAM),
            modules: modules.iter().filter_map(|(_, bytes)| module_of(&bytes)).collect(),
            locks: locks
                .iter()
                .map(|(index, bytes)| {
                    lock_of(index, &bytes, source.counts(&bytes, lock::COUNTS.at))
                })
                .collect(),
            stacks: stacks.iter().filter_map(|(index, bytes)| stack_of(index, &bytes)).collect(),
            threads: threads.iter().map(|(_, bytes)| source.thread(&bytes)).collect(),
            shares: shares
                .iter()
                .map(|(_, bytes)| share_of(&bytes))
                .filter(|share| share.thread != 0)
                .collect(),
            events: source.events.clone(),
        })
    }
}

fn acquisitions_in(counts: &Counts) -> u64 {
    counts.get("acquisitions").copied().unwrap_or(0)
}

/// Opens a regular file. Other files are not opened at all: a FIFO may block, a device may act.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let none = || io::Error::other("not a regular file");
    if !path.metadata()?.is_file() {
        return Err(none());
    }
    // The file may have been replaced since the check.
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(none()) }
}

/// The serial number of each thread with its count of merges, which changes while counts move. None
/// if a merge is in progress.
fn merges(threads: &Area) -> Option<Vec<(u64, u64)>> {
    let seen: Vec<(u64, u64)> = threads
        .iter()
        .map(|(_, bytes)| (bytes.long(thread::SERIAL), bytes.long(thread::MERGES)))
        .collect();
    seen.iter().all(|(_, merges)| merges % 2 == 0).then_some(seen)
}

fn share_of(bytes: &Bytes<'_>) -> Share {
    Share {
        thread: bytes.long(share::THREAD),
        lock: bytes.word(share::LOCK),
        acquisitions: bytes.long(share::ACQUISITIONS),
    }
}

fn module_of(bytes: &Bytes<'_>) -> Option<Module> {
    let start = bytes.long(module::START);
    let path = Field { bytes: bytes.0.len() - module::PATH.at, ..module::PATH };
    (start != 0).then(|| Module {
        start,
        end: bytes.long(module::END),
        bias: bytes.long(module::BIAS),
        path: PathBuf::from(bytes.text(path)),
    })
}

fn lock_of(index: u32, bytes: &Bytes<'_>, counts: Counts) -> LockItem {
    let kind = bytes.word(lock::KIND) as usize;
    LockItem {
        index,
        address: bytes.long(lock::ADDRESS),
        readers_writer: kind & layout::READERS_WRITER != 0,
        api: kind & layout::API != 0,
        spin: kind & layout::SPIN != 0,
        lives: bytes.word(lock::LIVES),
        stack: bytes.word(lock::STACK).checked_sub(1),
        name: bytes.text(lock::NAME),
        waiting: bytes.word(lock::WAITING),
        counts,
    }
}

fn stack_of(index: u32, bytes: &Bytes<'_>) -> Option<Stack> {
    let depth = bytes.word(stack::DEPTH) as usize;
    let kind = match bytes.word(stack::KIND) as usize {
        layout::FIRST => StackKind::First,
        layout::WAITER => StackKind::Waiter,
        layout::HOLDER => StackKind::Holder,
        _ => return None,
    };
    (depth != 0 && depth <= (bytes.0.len() - stack::FRAMES.at) / LONG).then(|| Stack {
        index,
        kind,
        lock: bytes.word(stack::LOCK),
        count: bytes.long(stack::COUNT),
        ns: bytes.long(stack::NS),
        frames: (0..depth).map(|frame| bytes.long_at(stack::FRAMES.at + LONG * frame)).collect(),
    })
}
