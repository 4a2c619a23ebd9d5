//! A file of statistics as it is: preload/stats/file.h has the layout.

use crate::failure::Failure;
use crate::output::unreadable;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"poundlock stats\0";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 1944;
/// How often a file is read again because its process moved counts meanwhile.
const ATTEMPTS: u32 = 20;

/// Counters by name.
pub type Counts = HashMap<String, u64>;

/// All that a file has.
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
    pub lock: String,
    pub rwlock: String,
    pub program: String,
    pub modules: Vec<Module>,
    pub locks: Vec<LockItem>,
    pub stacks: Vec<Stack>,
    pub threads: Vec<Thread>,
    pub shares: Vec<Share>,
    /// The names of threads' events.
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
    /// Its place in the file.
    pub index: u32,
    /// 0 for what found no room.
    pub address: u64,
    pub readers_writer: bool,
    /// Whether the program uses it through poundlock.h.
    pub api: bool,
    pub lives: u32,
    /// The place of the stack that first contended it.
    pub stack: Option<u32>,
    pub waiting: u32,
    pub counts: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackKind {
    /// The one that first contended a lock.
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
    /// In the order of [`Observed::events`].
    pub events: Vec<u64>,
    /// The lock's place and what this thread counted.
    pub rows: Vec<(u32, Counts)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub thread: u64,
    pub lock: u32,
    pub acquisitions: u64,
}

/// A piece of the file, by offsets.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn long(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    fn text(&self, at: usize, length: usize) -> String {
        let bytes = &self.0[at..at + length];
        let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
        // A terminal would obey control characters.
        text.replace(char::is_control, "\u{fffd}")
    }
}

/// An array of the file.
struct Area {
    items: Vec<u8>,
    bytes: usize,
}

/// The most items of each array: several times what the library makes. What follows takes time by their product.
const MOST: [u32; 5] = [1 << 10, 1 << 16, 1 << 14, 1 << 13, 1 << 17];
const MODULES: usize = 0;
const LOCKS: usize = 1;
const STACKS: usize = 2;
const THREADS: usize = 3;
const SHARES: usize = 4;
/// The most bytes of a file. It is sparse, and may be much larger than what is in it.
const MOST_BYTES: u64 = 64 << 20;

/// A file that has the right size and header. Anybody may have written it.
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
        let mut header = vec![0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0).map_err(damaged)?;
        let bytes = Bytes(&header);
        if !header.starts_with(MAGIC) || length > MOST_BYTES {
            return Err(DAMAGED.to_owned());
        }
        if bytes.word(16) != VERSION {
            return Err(format!("is of version {} of the format, not {VERSION}", bytes.word(16)));
        }
        let names = |at, length| bytes.text(at, length).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (counters, events) = (names(408, 512), names(920, 1024));
        Ok(Source { file, length, header, counters, events })
    }

    fn header(&self) -> Bytes<'_> {
        Bytes(&self.header)
    }

    /// How many rows a thread has.
    fn rows(&self) -> usize {
        self.header().word(52) as usize
    }

    /// Where they begin.
    fn rows_at(&self) -> usize {
        24 + 8 * self.events.len()
    }

    fn row_bytes(&self) -> usize {
        40 + 8 * self.counters.len()
    }

    /// What an item of the array has at least.
    fn least_bytes(&self, index: usize) -> usize {
        match index {
            LOCKS => 128 + 8 * self.counters.len(),
            STACKS => 32,
            THREADS => self.rows_at().saturating_add(self.row_bytes().saturating_mul(self.rows())),
            _ => 24,
        }
    }

    /// Reads an array, all of which must be in the file.
    fn area(&self, index: usize) -> io::Result<Area> {
        let at = 56 + 24 * index;
        let header = self.header();
        let (offset, bytes) = (header.long(at), header.word(at + 8) as usize);
        let count = header.word(at + 12).min(header.word(at + 16));
        let length = u64::from(count) * bytes as u64;
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        if bytes < self.least_bytes(index) || count > MOST[index] || !inside {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut items = vec![0; length as usize];
        self.file.read_exact_at(&mut items, offset)?;
        Ok(Area { items, bytes })
    }

    /// Reads all arrays, again while counts move. A process that was killed in the middle stays there.
    fn areas(&self) -> io::Result<[Area; 5]> {
        let mut attempts = 1;
        loop {
            let threads = self.area(THREADS)?;
            let before = merges(&threads);
            let areas = [self.area(MODULES)?, self.area(LOCKS)?, self.area(STACKS)?, threads, self.area(SHARES)?];
            let whole = before.is_some() && before == merges(&self.area(THREADS)?);
            if whole || attempts == ATTEMPTS {
                return Ok(areas);
            }
            attempts += 1;
        }
    }

    fn counts(&self, bytes: &Bytes<'_>, at: usize) -> Counts {
        self.counters.iter().enumerate().map(|(index, name)| (name.clone(), bytes.long(at + 8 * index))).collect()
    }

    fn thread(&self, bytes: &Bytes<'_>) -> Thread {
        let rows = (0..self.rows()).map(|row| self.rows_at() + row * self.row_bytes());
        Thread {
            serial: bytes.long(8),
            events: (0..self.events.len()).map(|event| bytes.long(24 + 8 * event)).collect(),
            rows: rows
                .filter(|at| bytes.long(*at) != 0)
                .map(|at| (bytes.word(at + 8), self.counts(bytes, at + 40)))
                .collect(),
        }
    }
}

impl Area {
    fn iter(&self) -> impl Iterator<Item = (u32, Bytes<'_>)> {
        (0..).zip(self.items.chunks_exact(self.bytes).map(Bytes))
    }
}

const DAMAGED: &str = "is not a whole file of statistics";

impl Observed {
    /// Reads a file, which its process may go on writing.
    pub fn read(path: &Path) -> Result<Observed, Failure> {
        let file = open_regular(path).map_err(|error| unreadable(path, &error))?;
        Observed::of(&file, path).map_err(|wrong| Failure::ours(format!("'{}' {wrong}", path.display())))
    }

    fn of(file: &File, path: &Path) -> Result<Observed, String> {
        let source = Source::open(file)?;
        let [modules, locks, stacks, threads, shares] = source.areas().map_err(|_| DAMAGED.to_owned())?;
        let header = source.header();
        Ok(Observed {
            path: path.to_path_buf(),
            pid: header.word(24),
            profile: header.word(28) != 0,
            start_ns: header.long(32),
            start_s: header.long(40),
            hold_every: header.word(48),
            threads_seen: header.long(176),
            threads_unobserved: header.long(184),
            locks_unobserved: header.long(192),
            stacks_unobserved: header.long(200),
            shares_unobserved: header.long(208),
            lock: header.text(216, 64),
            rwlock: header.text(280, 64),
            program: header.text(344, 64),
            modules: modules.iter().filter_map(|(_, bytes)| module(&bytes, modules.bytes)).collect(),
            locks: locks.iter().map(|(index, bytes)| lock(index, &bytes, source.counts(&bytes, 128))).collect(),
            stacks: stacks.iter().filter_map(|(index, bytes)| stack(index, &bytes, stacks.bytes)).collect(),
            threads: threads.iter().map(|(_, bytes)| source.thread(&bytes)).collect(),
            shares: shares.iter().map(|(_, bytes)| share(&bytes)).filter(|share| share.thread != 0).collect(),
            events: source.events.clone(),
        })
    }
}

/// Opens a regular file. Another kind is not even opened: a FIFO may block, a device may act.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let none = || io::Error::other("not a regular file");
    if !path.metadata()?.is_file() {
        return Err(none());
    }
    // It may have become another since.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(none()) }
}

fn share(bytes: &Bytes<'_>) -> Share {
    Share { thread: bytes.long(0), lock: bytes.word(8), acquisitions: bytes.long(16) }
}

/// What tells that no thread's counts move; None while some do.
fn merges(threads: &Area) -> Option<Vec<(u64, u64)>> {
    let seen: Vec<(u64, u64)> = threads.iter().map(|(_, bytes)| (bytes.long(8), bytes.long(16))).collect();
    seen.iter().all(|(_, merges)| merges % 2 == 0).then_some(seen)
}

fn module(bytes: &Bytes<'_>, length: usize) -> Option<Module> {
    let start = bytes.long(0);
    (start != 0).then(|| Module {
        start,
        end: bytes.long(8),
        bias: bytes.long(16),
        path: PathBuf::from(bytes.text(24, length - 24)),
    })
}

fn lock(index: u32, bytes: &Bytes<'_>, counts: Counts) -> LockItem {
    LockItem {
        index,
        address: bytes.long(8),
        readers_writer: bytes.word(16) & 1 != 0,
        api: bytes.word(16) & 2 != 0,
        lives: bytes.word(20),
        stack: bytes.word(24).checked_sub(1),
        waiting: bytes.word(64),
        counts,
    }
}

fn stack(index: u32, bytes: &Bytes<'_>, length: usize) -> Option<Stack> {
    let depth = bytes.word(0) as usize;
    let kind = match bytes.word(4) {
        0 => StackKind::First,
        1 => StackKind::Waiter,
        2 => StackKind::Holder,
        _ => return None,
    };
    (depth != 0 && depth <= (length - 32) / 8).then(|| Stack {
        index,
        kind,
        lock: bytes.word(8),
        count: bytes.long(16),
        ns: bytes.long(24),
        frames: (0..depth).map(|frame| bytes.long(32 + 8 * frame)).collect(),
    })
}
