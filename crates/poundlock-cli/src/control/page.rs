//! Finds, reads and writes the control page of a process. Its layout is generated from
//! preload/control_page.h.
//!
//! The process may be hostile to us: only a file of its own user that it has mapped is opened, and
//! nothing in the file is followed.

use super::layout::{self, lock, page};
use super::settings::{Kind, Settings};
use crate::failure::{Failure, reason};
use crate::output::unreadable;
use crate::program::mapped::{self, Mapping};
use crate::statistics::layout::Field;
use crate::statistics::open_regular;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

pub const MAGIC: &[u8] = b"poundlock control\0";
const DAMAGED: &str = "is damaged, or no control page";

/// A lock that a thread has waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub kind: Kind,
    /// Its index in the page.
    index: usize,
    pub address: u64,
    /// The return address of the call that initialised it; 0: unknown.
    pub site: u64,
    /// Its settings by a rule, or the process's; 0: they cannot change.
    pub own: u64,
    /// Its settings by this command; 0: none.
    pub wanted: u64,
    /// The settings by this command of all locks of its kind that have none of their own; 0: none.
    pub of_all: u64,
    /// Waits that have begun.
    pub waits: u64,
    pub waiting: u32,
    /// The line of the rule that applies to it; 0: none.
    pub rule: u32,
    /// The name of its algorithm.
    pub lock: String,
}

impl Item {
    /// Whether it has an algorithm whose settings can be changed.
    pub fn is_changeable(&self) -> bool {
        self.own != 0
    }

    /// The settings by which the next thread will wait. The error says why they cannot be changed.
    pub fn settings(&self) -> Result<Settings, String> {
        if !self.is_changeable() {
            let giver = match self.rule {
                0 => "the process".to_owned(),
                line => format!("the rule in line {line}"),
            };
            return Err(format!(
                "{giver} gave it {}, and a lock that is used cannot change to another one, or \
                 another way of waiting",
                self.lock
            ));
        }
        let of_all = if self.rule == 0 { self.of_all } else { 0 };
        [self.wanted, of_all, self.own]
            .into_iter()
            .find_map(Settings::of)
            .ok_or_else(|| "the control page is damaged".to_owned())
    }

    /// The origin of the settings, in words.
    pub fn set_by(&self) -> String {
        let changed = |word| self.is_changeable() && Settings::of(word).is_some();
        let origin = match self.rule {
            _ if changed(self.wanted) => return "control".to_owned(),
            0 if changed(self.of_all) => "all".to_owned(),
            0 => "start".to_owned(),
            line => format!("rule:{line}"),
        };
        if self.wanted == 0 { origin } else { origin + " (invalid settings in the page)" }
    }
}

/// The result of [`Page::replace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    Done,
    /// Another command has set other settings.
    Differs,
    /// The lock is destroyed.
    Gone,
}

/// The control page of a running process.
pub struct Page {
    pid: u32,
    inode: u64,
    file: File,
    path: PathBuf,
    memory: NonNull<u8>,
}

impl Page {
    /// The page that the process has mapped now.
    pub fn find(pid: u32) -> Result<Page, Failure> {
        let text = maps(pid)?;
        let mappings = mapped::mappings(&text);
        let mapping = mappings.iter().find(|mapping| is_page(mapping)).ok_or_else(|| {
            Failure::ours(format!(
                "process {pid} has no control page: start it with `poundlock run --control` or \
                 POUNDLOCK_CONTROL=1"
            ))
        })?;
        let path = mapped::readable(pid, mapping);
        let file = open(pid, mapping, &path).map_err(|why| {
            Failure::ours(format!("cannot open the control page '{}': {why}", path.display()))
        })?;
        let memory = map(&file).map_err(|error| unreadable(&path, &error))?;
        let found = Page { pid, inode: mapping.inode, file, path, memory };
        found.items()?;
        // A forked child has its parent's page mapped, and does not use it.
        if found.maker()? != own_number(pid) {
            return Err(Failure::ours(format!(
                "process {pid} has no control page yet: it was forked, and none of its threads has \
                 waited for a lock"
            )));
        }
        Ok(found)
    }

    /// The number of the process that made the page, as that process sees it.
    fn maker(&self) -> Result<u32, Failure> {
        let mut bytes = [0; size_of::<u32>()];
        let read = self.file.read_exact_at(&mut bytes, page::PID.at as u64);
        read.map_err(|error| unreadable(&self.path, &error))?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// The locks that threads have waited for.
    pub fn items(&self) -> Result<Vec<Item>, Failure> {
        let mut bytes = vec![0; layout::PAGE_SIZE];
        self.file
            .read_exact_at(&mut bytes, 0)
            .map_err(|_| DAMAGED.to_owned())
            .and_then(|()| parse(&bytes))
            .map_err(|wrong| Failure::ours(format!("'{}' {wrong}", self.path.display())))
    }

    /// Sets `wanted` of all locks of a kind without settings of their own (0: none).
    pub fn set_all(&self, kind: Kind, word: u64) {
        self.at(0, wanted_of(kind)).store(word, Ordering::SeqCst);
    }

    /// The settings of all locks of a kind without settings of their own. None: those of the start.
    pub fn of_all(&self, kind: Kind) -> Option<Settings> {
        Settings::of(self.at(0, wanted_of(kind)).load(Ordering::SeqCst))
    }

    /// Sets `wanted` of a lock (0: none). Returns whether the lock still exists.
    pub fn set(&self, item: &Item, word: u64) -> bool {
        let address = self.word(item.index, lock::ADDRESS);
        let wanted = self.word(item.index, lock::WANTED);
        let exists = || address.load(Ordering::SeqCst) == item.address;
        if !exists() {
            return false;
        }
        wanted.store(word, Ordering::SeqCst);
        if exists() {
            return true;
        }
        // Another lock may have the place now. It keeps what another command has set.
        let _ = wanted.compare_exchange(word, 0, Ordering::SeqCst, Ordering::SeqCst);
        false
    }

    /// Sets `wanted` of a lock to `word`, if it is `before`.
    pub fn replace(&self, item: &Item, before: u64, word: u64) -> Replaced {
        let address = self.word(item.index, lock::ADDRESS);
        let wanted = self.word(item.index, lock::WANTED);
        let exists = || address.load(Ordering::SeqCst) == item.address;
        if !exists() {
            return Replaced::Gone;
        }
        if wanted.compare_exchange(before, word, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return if exists() { Replaced::Differs } else { Replaced::Gone };
        }
        if exists() {
            return Replaced::Done;
        }
        // As in set().
        let _ = wanted.compare_exchange(word, 0, Ordering::SeqCst, Ordering::SeqCst);
        Replaced::Gone
    }

    /// Fails if the process has ended, or executed another program, since [`Page::find`].
    pub fn check(&self) -> Result<(), Failure> {
        let is_mapped = maps(self.pid).is_ok_and(|text| {
            let mappings = mapped::mappings(&text);
            mappings.iter().any(|mapping| is_page(mapping) && mapping.inode == self.inode)
        });
        if is_mapped {
            return Ok(());
        }
        Err(Failure::ours(format!("process {} has ended, or executed another program", self.pid)))
    }

    /// The field of a lock.
    fn word(&self, index: usize, field: Field) -> &AtomicU64 {
        assert!(index < layout::LOCKS);
        self.at(page::LOCKS.at + index * layout::LOCK_SIZE, field)
    }

    /// The field of the structure at this offset of the page.
    fn at(&self, structure: usize, field: Field) -> &AtomicU64 {
        let at = structure + field.at;
        assert!(field.bytes == size_of::<u64>() && at <= layout::PAGE_SIZE - field.bytes);
        // SAFETY: inside of the mapping, by the assertion, and aligned as in C.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(at).cast()) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping is this page's, and no reference to it is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), layout::PAGE_SIZE) };
    }
}

/// The text of /proc/PID/maps.
fn maps(pid: u32) -> Result<String, Failure> {
    let gone = || Failure::ours(format!("there is no process {pid}"));
    let process = PathBuf::from(format!("/proc/{pid}"));
    let owner = process.metadata().map_err(|_| gone())?.uid();
    let user = nix::unistd::geteuid().as_raw();
    if user != 0 && user != owner {
        return Err(Failure::ours(format!(
            "process {pid} belongs to another user: only its owner and root can control it"
        )));
    }
    let maps = process.join("maps");
    let text = std::fs::read_to_string(&maps).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => gone(),
        _ => unreadable(&maps, &error),
    })?;
    if text.is_empty() {
        return Err(Failure::ours(format!("process {pid} has ended, or is a kernel thread")));
    }
    Ok(text)
}

/// The control page in a file, if that is one: the number of the process that made it, and its
/// locks.
pub fn read(path: &Path) -> Option<(u32, Vec<Item>)> {
    let mut bytes = vec![0; layout::PAGE_SIZE];
    open_regular(path).ok()?.read_exact_at(&mut bytes, 0).ok()?;
    Some((page::PID.word(&bytes), parse(&bytes).ok()?))
}

/// The number of a process in its own PID namespace.
fn own_number(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.and_then(|line| line.split_whitespace().last()?.parse().ok()).unwrap_or(pid)
}

fn is_page(mapping: &Mapping<'_>) -> bool {
    let path = mapping.path.strip_suffix(" (deleted)").unwrap_or(mapping.path);
    is_file_of_page(Path::new(path))
}

/// Whether a file has the name of a control page.
pub fn is_file_of_page(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("poundlock.") && name.ends_with(".control")
}

/// Opens the file of `mapping`, which must belong to the process's user. The error is a reason.
fn open(pid: u32, mapping: &Mapping<'_>, path: &Path) -> Result<File, String> {
    let of_system = |error: io::Error| reason(&error);
    if !path.metadata().map_err(of_system)?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    // The file may have been replaced since the check.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .map_err(of_system)?;
    let found = file.metadata().map_err(of_system)?;
    let owner = Path::new(&format!("/proc/{pid}")).metadata().map_err(of_system)?.uid();
    if !found.is_file() || found.ino() != mapping.inode {
        return Err("it has been replaced".to_owned());
    }
    if found.uid() != owner {
        return Err(format!("it does not belong to the user of process {pid}"));
    }
    if found.len() < layout::PAGE_SIZE as u64 {
        return Err("it is too short".to_owned());
    }
    Ok(file)
}

/// Maps the whole page.
fn map(file: &File) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping; its address is checked.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            layout::PAGE_SIZE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}

/// The locks in the bytes of a page. The error is one line.
pub fn parse(bytes: &[u8]) -> Result<Vec<Item>, String> {
    if bytes.len() < layout::PAGE_SIZE || !bytes.starts_with(MAGIC) {
        return Err(DAMAGED.to_owned());
    }
    let version = page::VERSION.word(bytes);
    if version as usize != layout::VERSION {
        return Err(format!("has version {version} of the format, not {}", layout::VERSION));
    }
    let of_all = |kind| wanted_of(kind).long(bytes);
    let array = &bytes[page::LOCKS.at..layout::PAGE_SIZE];
    let found = array.chunks_exact(layout::LOCK_SIZE).enumerate().map(|(index, bytes)| {
        let kind = match bytes[lock::IS_RW.at] {
            0 => Kind::Mutex,
            _ => Kind::ReadersWriter,
        };
        Item {
            kind,
            index,
            address: lock::ADDRESS.long(bytes),
            site: lock::SITE.long(bytes),
            own: lock::OWN.long(bytes),
            wanted: lock::WANTED.long(bytes),
            of_all: of_all(kind),
            waits: lock::WAITS.long(bytes),
            waiting: lock::WAITING.word(bytes),
            rule: lock::RULE.word(bytes),
            lock: name(&bytes[lock::LOCK.range()]),
        }
    });
    Ok(found.filter(|item| item.address != 0).collect())
}

/// The field with the settings of all locks of a kind.
fn wanted_of(kind: Kind) -> Field {
    match kind {
        Kind::Mutex => page::WANTED,
        Kind::ReadersWriter => page::RW_WANTED,
    }
}

/// The name of a lock, whatever the process has written there.
fn name(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_right = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.iter().map(|byte| if is_right(byte) { char::from(*byte) } else { '?' }).collect()
}
