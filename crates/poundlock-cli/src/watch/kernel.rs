//! The BPF program in the kernel: loads it, attaches it, and reads what it counted. Links belong to
//! descriptors of this process: the kernel detaches them when it ends, however it ends.

use super::records::{
    Clocks, Goroutine, KernelPlace, Place, Ranges, Release, Releases, Sample, Sums, Thread, Waits,
};
use super::target::{Target, own_namespace};
use crate::failure::{Failure, reason};
use aya::maps::{Array, HashMap, MapData, MapError, RingBuf, StackTraceMap};
use aya::programs::perf_event::{
    PerfEvent, PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent,
};
use aya::programs::uprobe::UProbeScope;
use aya::programs::{BtfTracePoint, Program, ProgramError, UProbe};
use aya::util::online_cpus;
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};
use nix::time::{ClockId, clock_gettime};
use std::collections::HashMap as StdHashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/watch.bpf.o"));

/// The attached program.
pub struct Kernel {
    /// Attached until dropped.
    attached: Option<Ebpf>,
    /// Whether goroutines are followed.
    pub goroutines_seen: bool,
    samples: RingBuf<MapData>,
    ranges: Array<MapData, Ranges>,
    ended: Array<MapData, u32>,
    threads: Array<MapData, Thread>,
    sleepers: HashMap<MapData, u32, Place>,
    places: HashMap<MapData, Place, Waits>,
    releases: HashMap<MapData, Release, Releases>,
    holds: HashMap<MapData, Release, u64>,
    goroutines: HashMap<MapData, u64, Goroutine>,
    goroutine_places: HashMap<MapData, Place, Waits>,
    sums: Array<MapData, Sums>,
    clocks: Array<MapData, Clocks>,
    kernel_places: HashMap<MapData, KernelPlace, Waits>,
    kernel_stacks: StackTraceMap<MapData>,
    wakes: Wakes,
    begin: u64,
    /// When it was detached.
    end: Option<u64>,
}

/// Whether the program sees wake-ups.
enum Wakes {
    Seen,
    /// With the start of the present period, and the waiting time for futexes until then.
    Unseen {
        from: Instant,
        futex_ns: u64,
    },
}

/// The counts of the program.
pub struct Counts {
    pub begin: u64,
    pub end: u64,
    pub threads: Vec<(u32, Thread)>,
    /// A place may occur several times.
    pub places: Vec<(Place, Waits)>,
    pub releases: Vec<(Release, Releases)>,
    /// The places where holders ran while others waited, with the number of samples.
    pub holds: Vec<(Release, u64)>,
    /// The sleeps of goroutines; None: they are not followed.
    pub goroutines: Option<Vec<(Place, Waits)>>,
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

/// A program with its trace point.
type Hook = (&'static str, &'static str);

const SWITCH: Hook = ("on_switch", "sched_switch");

/// Attached once threads wait for futexes: most processes need it, but it costs the others.
const WAKING: Hook = ("on_waking", "sched_waking");

/// For locks of the kernel.
const KERNEL_HOOKS: [Hook; 2] =
    [("on_contention", "contention_begin"), ("on_acquisition", "contention_end")];

/// The waiting time in one period from which wake-ups are followed: 0.5 % of one thread's time. A
/// few waits for preempted holders take less.
const PERIOD: Duration = Duration::from_secs(10);
const WORTH_NS: u64 = 50_000_000;

/// Each program with its function of Go's runtime.
const GO_PROGRAMS: [(&str, &str); 2] =
    [("on_goroutine_sleep", "runtime.(*semaRoot).queue"), ("on_goroutine_ready", "runtime.ready")];

/// Samples of holders per second and CPU. Not a divisor of usual periods.
const SAMPLES: u64 = 99;

impl Kernel {
    /// Attaches the program. `kernel_locks`: also counts the kernel's locks.
    pub fn attach(target: &Target, ranges: &Ranges, kernel_locks: bool) -> Result<Kernel, Failure> {
        let more = if kernel_locks { &KERNEL_HOOKS[..] } else { &[] };
        let first = || [SWITCH].into_iter().chain(more.iter().copied());
        let btf = Btf::from_sys_fs().map_err(refused)?;
        let pid = target.pid.cast_signed();
        let namespace = own_namespace();
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("TARGET", &pid, true)
            .override_global("NAMESPACE", &namespace, true)
            .load(OBJECT)
            .map_err(|error| refused(explain(error)))?;
        for (name, point) in first().chain([WAKING]) {
            load(&mut ebpf, name, point, &btf)?;
        }
        let sampling: &mut PerfEvent = typed(&mut ebpf, "on_sample")?;
        sampling.load().map_err(|error| refused(explain_program(error)))?;
        let goroutines_seen = target.passes_goroutines() && follow_goroutines(&mut ebpf, target);
        let mut map = |name| ebpf.take_map(name).expect("the object has the map");
        let samples = map("samples").try_into().map_err(refused)?;
        let threads = map("threads").try_into().map_err(refused)?;
        let sleepers = map("sleepers").try_into().map_err(refused)?;
        let places = map("places").try_into().map_err(refused)?;
        let releases = map("releases").try_into().map_err(refused)?;
        let holds = map("holds").try_into().map_err(refused)?;
        let goroutines = map("goroutines").try_into().map_err(refused)?;
        let goroutine_places = map("goroutine_places").try_into().map_err(refused)?;
        let kernel_places = map("kernel_places").try_into().map_err(refused)?;
        let kernel_stacks = map("kernel_stacks").try_into().map_err(refused)?;
        let mut code: Array<_, Ranges> = map("ranges").try_into().map_err(refused)?;
        let clocks = map("clocks").try_into().map_err(refused)?;
        let ended = map("ended").try_into().map_err(refused)?;
        let mut sums: Array<_, Sums> = map("sums").try_into().map_err(refused)?;
        let begin = now();
        code.set(0, ranges, 0).map_err(refused)?;
        sums.set(0, Sums { begin, ..Sums::default() }, 0).map_err(refused)?;
        for (name, _) in first() {
            program(&mut ebpf, name)?.attach().map_err(refused)?;
        }
        attach_sampling(&mut ebpf)?;
        await_comparison(&clocks)?;
        Ok(Kernel {
            attached: Some(ebpf),
            goroutines_seen,
            samples,
            ranges: code,
            ended,
            threads,
            sleepers,
            places,
            releases,
            holds,
            goroutines,
            goroutine_places,
            sums,
            clocks,
            kernel_places,
            kernel_stacks,
            wakes: Wakes::Unseen { from: Instant::now(), futex_ns: 0 },
            begin,
            end: None,
        })
    }

    pub fn set_ranges(&mut self, ranges: &Ranges) -> Result<(), Failure> {
        self.ranges.set(0, ranges, 0).map_err(refused)
    }

    /// Adds a thread that has slept since the beginning, unless it has run since.
    pub fn add_sleeper(&mut self, thread: u32, place: Place) -> Result<(), Failure> {
        self.sleepers.insert(thread, place, 0).map_err(refused)
    }

    /// CLOCK_MONOTONIC less the clock of the times in the records of threads.
    fn offset(&self) -> Result<u64, Failure> {
        Ok(self.clocks.get(&0, 0).map_err(refused)?.offset)
    }

    /// Attaches to wake-ups if the threads wait long enough for futexes.
    pub fn follow_wakes(&mut self) -> Result<(), Failure> {
        let Wakes::Unseen { from, futex_ns } = self.wakes else { return Ok(()) };
        let Some(ebpf) = &mut self.attached else { return Ok(()) };
        let now_ns = self.sums.get(&0, 0).map_err(refused)?.futex_ns;
        if now_ns - futex_ns >= WORTH_NS {
            program(ebpf, WAKING.0)?.attach().map_err(refused)?;
            self.wakes = Wakes::Seen;
        } else if from.elapsed() >= PERIOD {
            self.wakes = Wakes::Unseen { from: Instant::now(), futex_ns: now_ns };
        }
        Ok(())
    }

    pub fn samples(&mut self, take: impl FnMut(&Sample, &[u8])) {
        drain(&mut self.samples, take);
    }

    /// From here on nothing is counted.
    pub fn stop(&mut self) -> Result<(), Failure> {
        if self.end.is_none() {
            self.ended.set(0, 1, 0).map_err(refused)?;
            self.end = Some(now());
        }
        Ok(())
    }

    /// Stops and detaches the program, then calls `take` with the stacks that are left. On a busy
    /// machine the kernel takes seconds to detach it.
    pub fn detach(&mut self, take: impl FnMut(&Sample, &[u8])) -> Result<(), Failure> {
        self.stop()?;
        self.attached = None;
        self.samples(take);
        Ok(())
    }

    /// The counts so far.
    pub fn counts(&self) -> Result<Counts, Failure> {
        let end = self.end.unwrap_or_else(now);
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
        // First the places: a thread may move its waits there meanwhile, and none counts twice.
        let mut places = all(&self.places)?;
        let threads = self.threads()?;
        let pending = threads.iter().map(|(_, thread)| (thread.place, thread.pending));
        places.extend(pending.filter(|(_, waits)| waits.count > 0));
        Ok(Counts {
            begin: self.begin,
            end,
            threads,
            places,
            releases: all(&self.releases)?,
            holds: all(&self.holds)?,
            goroutines: self.goroutines(end)?,
            sums: self.sums.get(&0, 0).map_err(refused)?,
            kernel: kernel.collect(),
        })
    }

    /// The records of threads, with times of CLOCK_MONOTONIC.
    fn threads(&self) -> Result<Vec<(u32, Thread)>, Failure> {
        let offset = self.offset()?;
        let mut threads: StdHashMap<u32, Thread> = all(&self.sleepers)?
            .into_iter()
            .map(|(number, place)| (number, Thread::sleeping(self.begin, place)))
            .collect();
        for thread in self.threads.iter() {
            let mut thread = thread.map_err(refused)?;
            thread.since = thread.since.wrapping_add(offset);
            if thread.number != 0 {
                threads.insert(thread.number, thread);
            }
        }
        Ok(threads.into_iter().collect())
    }

    /// The sleeps of goroutines until `end`, with those that last.
    fn goroutines(&self, end: u64) -> Result<Option<Vec<(Place, Waits)>>, Failure> {
        if !self.goroutines_seen {
            return Ok(None);
        }
        let mut sleeps = all(&self.goroutine_places)?;
        let last = all(&self.goroutines)?.into_iter();
        sleeps.extend(last.map(|(_, it)| {
            let since = it.since.max(self.begin);
            (it.place, Waits::unfinished(end.saturating_sub(since)))
        }));
        Ok(Some(sleeps))
    }
}

/// Samples where holders run, on each CPU.
fn attach_sampling(ebpf: &mut Ebpf) -> Result<(), Failure> {
    let sampling: &mut PerfEvent = typed(ebpf, "on_sample")?;
    let clock = PerfEventConfig::Software(SoftwareEvent::CpuClock);
    for cpu in online_cpus().map_err(|(_, error)| refused(error))? {
        let scope = PerfEventScope::AllProcessesOneCpu { cpu };
        sampling
            .attach(clock, scope, SamplePolicy::Frequency(SAMPLES), false)
            .map_err(|error| refused(explain_program(error)))?;
    }
    Ok(())
}

/// Waits until the program has compared the clocks: any switch between threads makes it do so.
fn await_comparison(clocks: &Array<MapData, Clocks>) -> Result<(), Failure> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let start = Instant::now();
    while clocks.get(&0, 0).map_err(refused)?.compared == 0 {
        if start.elapsed() > PATIENCE {
            return Err(refused("its trace point sched_switch does not call programs"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Attaches to Go's runtime. Returns whether that succeeded: stripped programs have no symbols, and
/// some kernels no uprobes.
fn follow_goroutines(ebpf: &mut Ebpf, target: &Target) -> bool {
    GO_PROGRAMS.iter().all(|(name, function)| {
        let Ok(probe) = typed::<UProbe>(ebpf, name) else { return false };
        let scope = NonZeroU32::new(target.pid).map(UProbeScope::OneProcess);
        let exe = target.file("exe");
        scope.is_some_and(|scope| {
            probe.load().and_then(|()| probe.attach(*function, &exe, scope)).is_ok()
        })
    })
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
    typed(ebpf, name)
}

fn typed<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, Failure>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
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
    if let Some(line) = forbidden() {
        return Err(Failure::ours(line));
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
        Some(libc::EPERM | libc::EACCES) => {
            "watch needs BPF, which a security policy forbids: seccomp of a container, or an LSM"
                .to_owned()
        }
        Some(libc::ENOSYS) => "watch needs a kernel with CONFIG_BPF_SYSCALL".to_owned(),
        _ => format!("watch needs BPF: {}", reason(&error)),
    }))
}

/// Capabilities, by their numbers. CAP_SYS_ADMIN includes the rights of the other ones.
const CAPABILITIES: [(u32, &str); 2] = [(39, "CAP_BPF"), (38, "CAP_PERFMON")];
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_PTRACE: u32 = 19;

/// The line on what forbids to watch, as far as /proc and /sys show it.
fn forbidden() -> Option<String> {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let missing = CAPABILITIES.into_iter().filter(|(number, _)| !has(*number));
    let missing: Vec<&str> = missing.map(|(_, name)| name).collect();
    if !missing.is_empty() && !has(CAP_SYS_ADMIN) {
        return Some(format!(
            "watch needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; missing: {}",
            missing.join(", ")
        ));
    }
    let numbers = read("/proc/self/uid_map");
    if numbers.split_whitespace().ne(["0", "0", "4294967295"]) {
        return Some(
            "watch needs root of the system: in a user namespace, as of a rootless container, the \
             kernel refuses BPF"
                .to_owned(),
        );
    }
    read("/sys/kernel/security/lockdown").contains("[confidentiality]").then(|| {
        "watch needs a kernel without lockdown=confidentiality, under which BPF may not read \
         kernel memory"
            .to_owned()
    })
}

/// The failure to read the memory of another process.
pub fn unreadable_code(pid: u32) -> Failure {
    let need = if has(CAP_SYS_PTRACE) { "" } else { ": watch needs root, or CAP_SYS_PTRACE" };
    Failure::ours(format!("cannot read the code of process {pid}{need}"))
}

/// Whether this process has a capability.
fn has(capability: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    held.is_some_and(|held| held >> capability & 1 == 1)
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
