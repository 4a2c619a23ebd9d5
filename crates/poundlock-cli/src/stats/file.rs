//! A file of statistics as it is: preload/stats_file.h has the layout.

use crate::failure::Failure;
use crate::output::unreadable;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
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
        String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
    }
}

/// An array of the file.
struct Area {
    items: Vec<u8>,
    bytes: usize,
}

impl Area {
    fn read(file: &File, header: &Bytes<'_>, index: usize) -> io::Result<Area> {
        let at = 56 + 24 * index;
        let (bytes, most, used) = (header.word(at + 8) as usize, header.word(at + 12), header.word(at + 16));
        if bytes == 0 || bytes > 1 << 20 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut items = vec![0; bytes * used.min(most) as usize];
        file.read_exact_at(&mut items, header.long(at))?;
        Ok(Area { items, bytes })
    }

    fn iter(&self) -> impl Iterator<Item = (u32, Bytes<'_>)> {
        (0..).zip(self.items.chunks_exact(self.bytes).map(Bytes))
    }
}

impl Observed {
    /// Reads a file, which its process may go on writing.
    pub fn read(path: &Path) -> Result<Observed, Failure> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let mut attempts = 0;
        loop {
            let (observed, whole) = Observed::read_once(&file, path)?;
            attempts += 1;
            // A process that was killed in the middle stays so.
            if whole || attempts == ATTEMPTS {
                return Ok(observed);
            }
        }
    }

    /// The content, and whether no counts moved while it was read.
    fn read_once(file: &File, path: &Path) -> Result<(Observed, bool), Failure> {
        let mut header = vec![0; HEADER_BYTES];
        let read = file.read_exact_at(&mut header, 0);
        let damaged = || Failure::ours(format!("'{}' is not a whole file of statistics", path.display()));
        if read.is_err() || !header.starts_with(MAGIC) {
            return Err(damaged());
        }
        let header = Bytes(&header);
        if header.word(16) != VERSION {
            return Err(Failure::ours(format!(
                "'{}' is of version {} of the format, not {VERSION}",
                path.display(),
                header.word(16)
            )));
        }
        let area = |index| Area::read(file, &header, index).map_err(|_| damaged());
        let threads = area(3)?;
        let (modules, locks, stacks, shares) = (area(0)?, area(1)?, area(2)?, area(4)?);
        let whole = merges(&threads) == merges(&area(3)?);
        let names = |at, length| header.text(at, length).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (counters, events) = (names(408, 512), names(920, 1024));
        let row_bytes = 40 + 8 * counters.len();
        let rows_at = 24 + 8 * events.len();
        if locks.bytes < 128 + 8 * counters.len()
            || stacks.bytes < 32
            || modules.bytes < 24
            || shares.bytes < 24
            || threads.bytes < rows_at + row_bytes * header.word(52) as usize
        {
            return Err(damaged());
        }
        let counts = |bytes: &Bytes<'_>, at: usize| -> Counts {
            counters.iter().enumerate().map(|(index, name)| (name.clone(), bytes.long(at + 8 * index))).collect()
        };
        Ok((
            Observed {
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
                locks: locks.iter().map(|(index, bytes)| lock(index, &bytes, counts(&bytes, 128))).collect(),
                stacks: stacks.iter().filter_map(|(index, bytes)| stack(index, &bytes, stacks.bytes)).collect(),
                threads: threads
                    .iter()
                    .map(|(_, bytes)| Thread {
                        serial: bytes.long(8),
                        events: (0..events.len()).map(|event| bytes.long(24 + 8 * event)).collect(),
                        rows: (0..header.word(52) as usize)
                            .map(|row| rows_at + row * row_bytes)
                            .filter(|at| bytes.long(*at) != 0)
                            .map(|at| (bytes.word(at + 8), counts(&bytes, at + 40)))
                            .collect(),
                    })
                    .collect(),
                shares: shares
                    .iter()
                    .map(|(_, bytes)| Share {
                        thread: bytes.long(0),
                        lock: bytes.word(8),
                        acquisitions: bytes.long(16),
                    })
                    .filter(|share| share.thread != 0)
                    .collect(),
                events,
            },
            whole,
        ))
    }
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
        readers_writer: bytes.word(16) != 0,
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
    (depth != 0 && 32 + 8 * depth <= length).then(|| Stack {
        index,
        kind,
        lock: bytes.word(8),
        count: bytes.long(16),
        ns: bytes.long(24),
        frames: (0..depth).map(|frame| bytes.long(32 + 8 * frame)).collect(),
    })
}
