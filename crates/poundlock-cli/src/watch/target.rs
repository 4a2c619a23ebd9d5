//! The watched process, as /proc shows it: its threads, its code, and where its threads sleep.

use super::kernel::unreadable_code;
use super::records::{CODE_RANGES, Ranges};
use super::unwind::Registers;
use crate::failure::{Failure, reason};
use crate::program::elf::{Elf, Language};
use crate::program::mapped::{self, Files};
use crate::statistics::Module;
use object::{Object, ObjectSection, ReadCache};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The inode of the initial PID namespace, a constant of the kernel.
const INITIAL_NAMESPACE: u64 = 0xefff_fffc;

/// A process.
pub struct Target {
    pub pid: u32,
    end: OwnedFd,
}

impl Target {
    /// Fails if there is no such process, or if its code is not of this machine's word size.
    pub fn find(pid: u32) -> Result<Target, Failure> {
        // SAFETY: plain numbers; the descriptor is checked.
        let end = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let end = i32::try_from(end).ok().filter(|end| *end >= 0).ok_or_else(|| {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ESRCH) => Failure::ours(format!("there is no process {pid}")),
                Some(libc::EINVAL | libc::ENOENT) => {
                    Failure::ours(format!("{pid} is no process, or only one of its threads"))
                }
                _ => Failure::ours(format!("cannot watch process {pid}: {}", reason(&error))),
            }
        })?;
        // SAFETY: the kernel has just opened it for us.
        let end = unsafe { OwnedFd::from_raw_fd(end) };
        let target = Target { pid, end };
        let maps = File::open(target.file("maps"));
        if maps.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return Err(unreadable_code(pid));
        }
        target.await_program();
        if target.maps().is_empty() {
            return Err(Failure::ours(format!(
                "process {pid} has no program: it is a kernel thread, or it has ended"
            )));
        }
        let mut head = [0; 5];
        let read = File::open(target.file("exe")).and_then(|exe| exe.read_exact_at(&mut head, 0));
        const CLASS_32: u8 = 1;
        if read.is_ok() && head[4] == CLASS_32 {
            return Err(Failure::ours(format!(
                "process {pid} is a 32-bit program; watch reads the stacks of 64-bit ones"
            )));
        }
        Ok(target)
    }

    /// Waits for a process that has begun, but not ended, execve(): it still has the memory of its
    /// parent, after vfork(), or a stack, and no program.
    fn await_program(&self) {
        const PATIENCE: Duration = Duration::from_secs(1);
        let start = Instant::now();
        let has_no_program = || {
            let text = self.maps();
            let mappings = mapped::mappings(&text);
            !text.is_empty() && mappings.iter().all(|mapping| mapping.inode == 0)
        };
        let within_execve = || self.has_memory_of_parent() || has_no_program();
        while within_execve() && start.elapsed() < PATIENCE {
            if self.ends_within(Duration::from_millis(1)) {
                return;
            }
        }
    }

    /// Whether it shares its memory with its parent; false if the kernel does not compare them.
    fn has_memory_of_parent(&self) -> bool {
        const KCMP_VM: libc::c_long = 1;
        let parent = self.status("PPid").and_then(|number| number.parse().ok());
        let Some(parent) = parent.filter(|parent: &libc::c_long| *parent > 0) else { return false };
        let unused: libc::c_long = 0;
        // SAFETY: plain numbers.
        unsafe { libc::syscall(libc::SYS_kcmp, self.pid, parent, KCMP_VM, unused, unused) == 0 }
    }

    /// The value of a field of its status in /proc.
    fn status(&self, field: &str) -> Option<String> {
        let text = fs::read_to_string(self.file("status")).ok()?;
        let value = |line: &str| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().into());
        text.lines().find_map(value)
    }

    /// A file of the process in /proc.
    pub fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }

    /// Waits until the process has ended, or for `time`. Returns whether it has ended.
    pub fn ends_within(&self, time: Duration) -> bool {
        let mut end = libc::pollfd { fd: self.end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let limit = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one descriptor, which lives as long as the call.
        unsafe { libc::poll(&raw mut end, 1, limit) > 0 }
    }

    /// The command line, as far as it is readable.
    pub fn command(&self) -> String {
        let words = fs::read(self.file("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ")
    }

    /// The numbers of its threads.
    pub fn threads(&self) -> Vec<u32> {
        let Ok(entries) = fs::read_dir(self.file("task")) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// The kind of its program.
    pub fn program(&self) -> Program {
        let exe = self.file("exe");
        Program {
            is_static: Elf::head(&exe).is_ok_and(|head| head.loader.is_none()),
            is_go: Elf::read(&exe).is_ok_and(|program| program.language == Language::Go),
        }
    }

    /// Whether it is a Go program whose functions pass arguments and the goroutine in registers: of
    /// Go 1.18 or later, which has changed the format of this section.
    pub fn passes_goroutines(&self) -> bool {
        const FLAGS: usize = 15;
        const INLINE_STRINGS: u8 = 2;
        let Ok(file) = File::open(self.file("exe")) else { return false };
        let data = ReadCache::new(file);
        let section = object::File::parse(&data).ok().and_then(|exe| {
            let section = exe.section_by_name(".go.buildinfo")?;
            section.data().ok().map(<[u8]>::to_vec)
        });
        section
            .and_then(|bytes| bytes.get(FLAGS).copied())
            .is_some_and(|flags| flags & INLINE_STRINGS != 0)
    }

    fn maps(&self) -> String {
        fs::read_to_string(self.file("maps")).unwrap_or_default()
    }

    /// Its mapped files, and its code.
    pub fn code(&self, files: &mut Files) -> Code {
        let text = self.maps();
        let mappings = mapped::mappings(&text);
        let code = mappings.iter().filter(|mapping| mapping.executable);
        let ranges = ranges(code.map(|mapping| [mapping.start, mapping.end]).collect());
        let modules = files.modules(self.pid, &mappings);
        Code { modules, ranges }
    }

    /// The functions that a just-in-time compiler lists in /tmp/perf-PID.map, as perf reads them.
    pub fn compiled_functions(&self) -> Vec<(u64, u64, String)> {
        let numbers = self.status("NSpid").unwrap_or_default();
        let own = numbers.split_whitespace().last().map_or(self.pid.to_string(), str::to_owned);
        let list = self.file("root").join(format!("tmp/perf-{own}.map"));
        let owner = |path: &Path| path.symlink_metadata().map(|file| file.uid()).ok();
        // Anyone can write to /tmp: the list counts if it is the process's.
        if owner(&list) != owner(&self.file("maps")) {
            return Vec::new();
        }
        let text = fs::read_to_string(&list).unwrap_or_default();
        let mut found: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let (start, rest) = line.split_once(' ')?;
                let (size, name) = rest.split_once(' ')?;
                let number =
                    |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
                Some((number(start)?, number(size)?, name.to_owned()))
            })
            .collect();
        found.sort();
        found
    }

    /// The sleep of a thread. None: it runs.
    pub fn sleep(&self, thread: u32) -> Option<Sleep> {
        let text = fs::read_to_string(self.file(&format!("task/{thread}/syscall"))).ok()?;
        let stat = fs::read_to_string(self.file(&format!("task/{thread}/stat"))).ok()?;
        let state = stat[stat.rfind(')')? + 1..].trim_start().chars().next()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let [.., stack_pointer, instruction] = words[..] else { return None };
        let argument = |index: usize| words.get(index).and_then(|word| number(word));
        Some(Sleep {
            stopped: matches!(state, 'T' | 't'),
            syscall: words[0].parse().ok()?,
            word: argument(1).unwrap_or(0),
            operation: argument(2).unwrap_or(0),
            registers: Registers {
                instruction: number(instruction)?,
                stack_pointer: number(stack_pointer)?,
                ..Registers::default()
            },
        })
    }

    /// Up to `size` bytes of its memory.
    pub fn memory(&self, start: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        let read =
            File::open(self.file("mem")).and_then(|memory| memory.read_at(&mut bytes, start));
        bytes.truncate(read.unwrap_or(0));
        bytes
    }
}

/// The kind of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// It loads no libraries, so no preload library either.
    pub is_static: bool,
    pub is_go: bool,
}

/// The sleep of a thread.
pub struct Sleep {
    pub stopped: bool,
    pub syscall: i32,
    /// The first two arguments.
    pub word: u64,
    pub operation: u64,
    pub registers: Registers,
}

impl Sleep {
    /// Whether it sleeps in the futex `word`.
    pub fn in_futex(&self) -> bool {
        const FUTEX_WAIT_NEW: i64 = 455;
        let command = self.operation as i32 & libc::FUTEX_CMD_MASK;
        let sleeps = [
            libc::FUTEX_WAIT,
            libc::FUTEX_LOCK_PI,
            libc::FUTEX_WAIT_BITSET,
            libc::FUTEX_WAIT_REQUEUE_PI,
            libc::FUTEX_LOCK_PI2,
        ];
        match i64::from(self.syscall) {
            libc::SYS_futex => sleeps.contains(&command),
            FUTEX_WAIT_NEW => true,
            _ => false,
        }
    }
}

/// The inode of this process's PID namespace for the BPF program: 0 if it is the initial one.
pub fn own_namespace() -> u32 {
    let inode = fs::metadata("/proc/self/ns/pid").map_or(INITIAL_NAMESPACE, |file| file.ino());
    if inode == INITIAL_NAMESPACE { 0 } else { u32::try_from(inode).unwrap_or(0) }
}

/// The code of a process at some time.
#[derive(Clone, Debug, Default)]
pub struct Code {
    pub modules: Vec<Module>,
    pub ranges: Ranges,
}

impl Code {
    pub fn is_same(&self, other: &Code) -> bool {
        let key = |module: &Module| (module.start, module.end, module.bias);
        self.ranges == other.ranges
            && self.modules.iter().map(key).eq(other.modules.iter().map(key))
            && self.modules.iter().zip(&other.modules).all(|(one, other)| one.path == other.path)
    }
}

/// At most [`CODE_RANGES`] ranges that cover `code`, which is sorted: the narrowest gaps are
/// covered, too.
fn ranges(mut code: Vec<[u64; 2]>) -> Ranges {
    while code.len() > CODE_RANGES {
        let gap = |at: &usize| code[at + 1][0] - code[*at][1];
        let narrowest = (0..code.len() - 1).min_by_key(gap).unwrap_or(0);
        code[narrowest][1] = code[narrowest + 1][1];
        code.remove(narrowest + 1);
    }
    let mut ranges = Ranges::default();
    ranges.code[..code.len()].copy_from_slice(&code);
    ranges
}

#[cfg(test)]
mod tests {
    use super::{Files, Target, ranges};
    use std::ffi::CStr;
    use std::io::{PipeReader, Write, pipe};
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};
    use std::ptr;
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::thread;
    use std::time::Duration;

    /// A program that has just been started is often still within execve().
    #[test]
    fn a_process_within_execve_is_awaited() {
        for _ in 0..100 {
            let mut command = Command::new("cat");
            let mut child = command.stdin(Stdio::piped()).spawn().expect("cat is installed");
            let target = Target::find(child.id()).expect("it waits for input");
            assert!(!target.code(&mut Files::default()).modules.is_empty());
            drop(child.stdin.take());
            assert!(child.wait().expect("our child").success());
        }
    }

    /// A child as after vfork(), with the memory of this process, until the pipe `go` has a byte.
    struct Vforked {
        pid: AtomicI32,
        go: PipeReader,
    }

    const PROGRAM: &CStr = c"/bin/sleep";

    extern "C" fn run_vforked(child: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the parent's thread waits while the child uses it, which calls only the kernel.
        unsafe {
            let child = &*child.cast::<Vforked>();
            let mut byte = 0u8;
            let pid = libc::syscall(libc::SYS_getpid);
            child.pid.store(i32::try_from(pid).unwrap_or(-1), Ordering::Release);
            libc::read(child.go.as_raw_fd(), (&raw mut byte).cast(), 1);
            let arguments = [PROGRAM.as_ptr(), c"100".as_ptr(), ptr::null()];
            libc::execv(PROGRAM.as_ptr(), arguments.as_ptr());
            libc::_exit(1)
        }
    }

    /// Returns once the child has called execve(), or ended.
    fn vfork(child: &Vforked) {
        let mut stack = vec![0u128; 4096];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the stack lives until the child has other memory.
        let pid = unsafe {
            let child = ptr::from_ref(child).cast_mut().cast();
            libc::clone(run_vforked, stack.as_mut_ptr_range().end.cast(), flags, child)
        };
        assert!(pid > 0, "clone");
    }

    #[test]
    fn a_process_between_vfork_and_execve_is_awaited() {
        let (go, mut writer) = pipe().expect("a pipe");
        let child = Vforked { pid: AtomicI32::new(0), go };
        thread::scope(|scope| {
            scope.spawn(|| vfork(&child));
            while child.pid.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(20));
                writer.write_all(&[1]).expect("the child reads");
            });
            let pid = child.pid.load(Ordering::Acquire);
            let target = Target::find(pid.cast_unsigned()).expect("it is there");
            let modules = target.code(&mut Files::default()).modules;
            assert!(modules.iter().any(|module| module.path.ends_with("sleep")), "{modules:?}");
            // SAFETY: our own child.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            // SAFETY: as before.
            assert_eq!(unsafe { libc::waitpid(pid, ptr::null_mut(), 0) }, pid);
        });
    }

    #[test]
    fn narrow_gaps_are_covered() {
        let few = vec![[1, 2], [5, 6]];
        assert_eq!(ranges(few).code, [[1, 2], [5, 6], [0, 0], [0, 0]]);
        let many = vec![[1, 2], [10, 11], [12, 13], [30, 31], [40, 41], [41, 42]];
        assert_eq!(ranges(many).code, [[1, 2], [10, 13], [30, 31], [40, 42]]);
    }
}
