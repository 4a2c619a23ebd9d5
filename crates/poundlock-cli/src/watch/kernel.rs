//! The BPF program in the kernel: loads it, attaches it, and reads what it counted. Links belong to
//! descriptors of this process: the kernel detaches them when it ends, however it ends.

use super::records::{KernelPlace, Place, Ranges, Release, Releases, Sample, Sums, Thread, Waits};
use super::target::own_namespace;
use crate::failure::{Failure, reason};
use aya::maps::{Array, HashMap, MapData, MapError, RingBuf, StackTraceMap};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};
use nix::time::{ClockId, clock_gettime};
use std::fmt::Display;
use std::hash::Hash;
use std::io;
use std::path::Path;
use std::time::Duration;

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/watch.bpf.o"));

/// The attached program.
pub struct Kernel {
    /// Attached until dropped.
    _attached: Ebpf,
    samples: RingBuf<MapData>,
    ranges: Array<MapData, Ranges>,
    threads: HashMap<MapData, u32, Thread>,
    places: HashMap<MapData, Place, Waits>,
    releases: HashMap<MapData, Release, Releases>,
    sums: Array<MapData, Sums>,
    kernel_places: HashMap<MapData, KernelPlace, Waits>,
    kernel_stacks: StackTraceMap<MapData>,
    begin: u64,
}

/// The counts of the program.
pub struct Counts {
    pub begin: u64,
    pub end: u64,
    pub threads: Vec<(u32, Thread)>,
    pub places: Vec<(Place, Waits)>,
    pub releases: Vec<(Release, Releases)>,
    pub sums: Sums,
    pub kernel: Vec<KernelWaits>,
}

/// Waits for locks of the kernel at one place.
pub struct KernelWaits {
    pub flags: u32,
    pub waits: Waits,
    /// Addresses in the kernel, innermost first.
    pub stack: Vec<u64>,
}

/// Each program with its trace point.
const PROGRAMS: [(&str, &str); 2] = [("on_switch", "sched_switch"), ("on_waking", "sched_waking")];

/// The same for locks of the kernel.
const KERNEL_PROGRAMS: [(&str, &str); 2] =
    [("on_contention", "contention_begin"), ("on_acquisition", "contention_end")];

impl Kernel {
    /// Attaches the program for the process `pid`. `kernel_locks`: also counts the kernel's locks.
    pub fn attach(pid: u32, ranges: &Ranges, kernel_locks: bool) -> Result<Kernel, Failure> {
        let more = if kernel_locks { &KERNEL_PROGRAMS[..] } else { &[] };
        let programs = || PROGRAMS.iter().chain(more);
        let btf = Btf::from_sys_fs().map_err(refused)?;
        let target = pid.cast_signed();
        let namespace = own_namespace();
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("TARGET", &target, true)
            .override_global("NAMESPACE", &namespace, true)
            .load(OBJECT)
            .map_err(|error| refused(explain(error)))?;
        for (name, point) in programs() {
            load(&mut ebpf, name, point, &btf)?;
        }
        let mut map = |name| ebpf.take_map(name).expect("the object has the map");
        let samples = map("samples").try_into().map_err(refused)?;
        let threads = map("threads").try_into().map_err(refused)?;
        let places = map("places").try_into().map_err(refused)?;
        let releases = map("releases").try_into().map_err(refused)?;
        let kernel_places = map("kernel_places").try_into().map_err(refused)?;
        let kernel_stacks = map("kernel_stacks").try_into().map_err(refused)?;
        let mut code: Array<_, Ranges> = map("ranges").try_into().map_err(refused)?;
        let mut sums: Array<_, Sums> = map("sums").try_into().map_err(refused)?;
        let begin = now();
        code.set(0, ranges, 0).map_err(refused)?;
        sums.set(0, Sums { begin, ..Sums::default() }, 0).map_err(refused)?;
        for (name, _) in programs() {
            program(&mut ebpf, name)?.attach().map_err(refused)?;
        }
        Ok(Kernel {
            _attached: ebpf,
            samples,
            ranges: code,
            threads,
            places,
            releases,
            sums,
            kernel_places,
            kernel_stacks,
            begin,
        })
    }

    pub fn set_ranges(&mut self, ranges: &Ranges) -> Result<(), Failure> {
        self.ranges.set(0, ranges, 0).map_err(refused)
    }

    /// Adds a thread that has slept since the beginning, unless it has moved since.
    pub fn add_sleeper(&mut self, thread: u32, place: Place) -> Result<(), Failure> {
        const NOEXIST: u64 = 1;
        let record = Thread {
            since: self.begin,
            off: self.begin,
            on: self.begin,
            place,
            state: super::records::BLOCKED,
            slept: 1,
            ..Thread::default()
        };
        match self.threads.insert(thread, record, NOEXIST) {
            Err(MapError::SyscallError(error))
                if error.io_error.raw_os_error() != Some(libc::EEXIST) =>
            {
                Err(refused(error.io_error))
            }
            _ => Ok(()),
        }
    }

    pub fn samples(&mut self, take: impl FnMut(&Sample, &[u8])) {
        drain(&mut self.samples, take);
    }

    /// Detaches the program, then calls `take` with the stacks that are left and reads the counts.
    pub fn detach(self, take: impl FnMut(&Sample, &[u8])) -> Result<Counts, Failure> {
        let end = now();
        let Kernel { _attached: attached, mut samples, .. } = self;
        drop(attached);
        drain(&mut samples, take);
        let stack = |place: &KernelPlace| -> Option<Vec<u64>> {
            let number = u32::try_from(place.stack).ok()?;
            let stack = self.kernel_stacks.get(&number, 0).ok()?;
            Some(stack.frames().iter().map(|frame| frame.ip).collect())
        };
        let kernel = all(&self.kernel_places)?.into_iter().map(|(place, waits)| KernelWaits {
            flags: place.flags,
            waits,
            stack: stack(&place).unwrap_or_default(),
        });
        Ok(Counts {
            begin: self.begin,
            end,
            threads: all(&self.threads)?,
            places: all(&self.places)?,
            releases: all(&self.releases)?,
            sums: self.sums.get(&0, 0).map_err(refused)?,
            kernel: kernel.collect(),
        })
    }
}

fn load(ebpf: &mut Ebpf, name: &str, point: &str, btf: &Btf) -> Result<(), Failure> {
    program(ebpf, name)?.load(point, btf).map_err(|error| match error {
        ProgramError::Btf(_) => Failure::ours(format!(
            "the kernel has no trace point {point}: watch needs Linux 5.15, and --kernel 5.19"
        )),
        error => refused(explain_program(error)),
    })
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut BtfTracePoint, Failure> {
    ebpf.program_mut(name).expect("the object has the program").try_into().map_err(refused)
}

/// The number of stacks after which the watcher looks up: others may follow without end.
const MOST_STACKS: usize = 512;

/// Calls `take` with each copied stack.
fn drain(samples: &mut RingBuf<MapData>, mut take: impl FnMut(&Sample, &[u8])) {
    for _ in 0..MOST_STACKS {
        let Some(item) = samples.next() else { break };
        let Some((head, bytes)) = item.split_at_checked(size_of::<Sample>()) else { continue };
        // SAFETY: as many bytes as a record has, of which any are one; it may be unaligned.
        let head: Sample = unsafe { head.as_ptr().cast::<Sample>().read_unaligned() };
        let size = usize::try_from(head.size).unwrap_or(0).min(bytes.len());
        take(&head, &bytes[..size]);
    }
}

fn all<K: aya::Pod + Eq + Hash, V: aya::Pod>(
    map: &HashMap<MapData, K, V>,
) -> Result<Vec<(K, V)>, Failure> {
    map.iter().collect::<Result<_, _>>().map_err(refused)
}

/// The kernel's clock of trace points.
fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn refused(error: impl Display) -> Failure {
    Failure::ours(format!("the kernel refuses to watch: {error}"))
}

/// Fails with a line on what is missing: rights, or parts of the kernel.
pub fn require() -> Result<(), Failure> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Failure::ours(
            "watch needs /sys/kernel/btf/vmlinux: a kernel with CONFIG_DEBUG_INFO_BTF, and /sys mounted",
        ));
    }
    // The smallest map: fails as the program would, but says whether it is for want of rights.
    let attributes: [u32; 12] = [2, 4, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    const BPF_MAP_CREATE: libc::c_int = 0;
    // SAFETY: the attributes are an array map's, of the size that is given.
    let map = unsafe {
        libc::syscall(libc::SYS_bpf, BPF_MAP_CREATE, attributes.as_ptr(), size_of_val(&attributes))
    };
    if map >= 0 {
        // SAFETY: the kernel has just opened it for us.
        unsafe { libc::close(map as i32) };
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(Failure::ours(match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) if !nix::unistd::geteuid().is_root() => {
            "watch needs root, or the capabilities CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE"
                .to_owned()
        }
        Some(libc::EPERM | libc::EACCES) => {
            "watch needs BPF, which this container or a security policy forbids (CAP_BPF, CAP_PERFMON)"
                .to_owned()
        }
        Some(libc::ENOSYS) => "watch needs a kernel with CONFIG_BPF_SYSCALL".to_owned(),
        _ => format!("watch needs BPF: {}", reason(&error)),
    }))
}

/// The system error below an error, if any.
fn explain(error: EbpfError) -> String {
    match error {
        EbpfError::MapError(MapError::CreateError { io_error, name, .. }) => {
            format!("map {name}: {}", reason(&io_error))
        }
        EbpfError::ProgramError(error) => explain_program(error),
        other => other.to_string(),
    }
}

/// The verifier's last line, or the error.
fn explain_program(error: ProgramError) -> String {
    match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            let log = verifier_log.to_string();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines.iter().rev().find(|line| !line.starts_with("processed"));
            format!("{}: {}", reason(&io_error), last.unwrap_or(&"no log"))
        }
        other => other.to_string(),
    }
}
