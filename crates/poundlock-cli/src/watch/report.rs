//! The meaning of the counts: the split of thread time, the locks in the order of the time that
//! threads waited for them, and a verdict.

use super::kernel::Counts;
use super::kernel_locks::KernelLock;
use super::records::{BLOCKED, FUTEX, Place, RUNNABLE, RUNNING, Releases, STOPPED, Waits};
use super::sites::{Site, Sites, What};
use super::stacks::{Functions, Stacks};
use super::target::Program;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The process, as it was at the beginning.
#[derive(Clone)]
pub struct Seen {
    pub pid: u32,
    pub command: String,
    pub program: Program,
}

/// The threads of the process at the beginning and at the end.
pub struct Threads {
    pub first: Vec<u32>,
    pub last: Vec<u32>,
}

/// The report on a process. Times are in seconds of thread time.
#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub pid: u32,
    pub command: String,
    /// The duration of the watch.
    pub seconds: f64,
    /// Whether the process ended.
    pub ended: bool,
    /// Threads at the end, and threads that ended before.
    pub threads: u64,
    pub threads_ended: u64,
    pub time: Time,
    /// The share of all thread time, and of the time without sleep of other kinds.
    pub lock_share: f64,
    pub lock_share_of_busy: f64,
    /// By waiting time, the longest first.
    pub waits: Vec<Wait>,
    /// Sleeps of goroutines in semaphores, which mutexes of Go use; None: they are not followed.
    pub goroutines: Option<Vec<Wait>>,
    /// Sleeps outside of futexes, by system call.
    pub system_calls: Vec<SystemCall>,
    /// Waits for locks of the kernel, if asked for: running or other sleep above.
    pub kernel_locks: Option<Vec<KernelLock>>,
    pub lost: Lost,
    pub verdict: String,
}

/// The split of thread time.
#[derive(Debug, Default, Serialize)]
pub struct Time {
    pub total: f64,
    pub running: f64,
    /// Preempted, or new: ready to run, without a CPU.
    pub runnable: f64,
    pub lock: f64,
    pub semaphore: f64,
    /// In futexes that are not classified.
    pub unclassified: f64,
    /// For work: condition variables, queues, joins.
    pub idle: f64,
    /// In other system calls, page faults and the like.
    pub other: f64,
    pub stopped: f64,
    /// Of waits that found no room in the kernel's map.
    pub lost: f64,
}

/// The waits in one futex for one purpose.
#[derive(Debug, Serialize)]
pub struct Wait {
    pub what: What,
    /// Such as "pthread mutex".
    pub kind: String,
    pub remedy: Option<String>,
    /// None: its waiters sleep in words of their own, and it may be several locks.
    pub address: Option<String>,
    /// The static object at the address, or its offset in a file.
    pub object: Option<String>,
    pub waits: u64,
    pub seconds: f64,
    /// The part of `seconds` from being woken to running.
    pub delayed: f64,
    pub longest: f64,
    /// The share of all thread time; None: of goroutines.
    pub share: Option<f64>,
    /// The places where threads wait.
    pub sites: Vec<Waiters>,
    /// The places where waiters are woken.
    pub releases: Vec<Release>,
    /// The places where the thread that was woken last ran while others waited.
    pub holders: Vec<Holder>,
    /// The part of the time of woken waiters in which the thread that woke them was itself off its
    /// CPU; a lower bound.
    pub holder_off_share: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct Waiters {
    /// The function outside of the lock's library.
    pub function: String,
    pub waits: u64,
    pub seconds: f64,
    /// Innermost first.
    pub stack: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Release {
    pub function: String,
    pub wakes: u64,
    pub stack: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Holder {
    pub function: String,
    pub samples: u64,
    pub stack: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct SystemCall {
    /// Its number; None: none, for instance a page fault.
    pub number: Option<i32>,
    pub name: String,
    pub waits: u64,
    pub seconds: f64,
}

/// Counts of records that found no room in the kernel's maps.
#[derive(Debug, Serialize)]
pub struct Lost {
    pub threads: u64,
    pub waits: u64,
    pub releases: u64,
    pub stacks: u64,
    pub goroutines: u64,
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The kind of waits, such as "pthread mutex".
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kind {
    what: What,
    name: String,
    remedy: Option<String>,
    own_words: bool,
}

impl Kind {
    fn of(site: &Site) -> Kind {
        Kind {
            what: site.what,
            name: site.name.clone(),
            remedy: site.remedy.clone(),
            own_words: site.own_words,
        }
    }

    fn without_remedy(what: What, name: &str) -> Kind {
        Kind { what, name: name.to_owned(), remedy: None, own_words: false }
    }
}

impl Report {
    /// `value` reads a futex of the process.
    pub fn of(
        seen: Seen,
        ended: bool,
        counts: &Counts,
        threads: &Threads,
        value: impl Fn(u64) -> Option<u32>,
        stacks: &mut Stacks,
    ) -> Report {
        let mut places = summed(&counts.places);
        let mut time = Time {
            running: seconds(counts.sums.running_ns),
            runnable: seconds(counts.sums.runnable_ns),
            lost: seconds(counts.sums.lost_waits_ns),
            ..Time::default()
        };
        let alive: HashSet<u32> = threads.last.iter().copied().collect();
        let whole = counts.end - counts.begin;
        let mut threads_ended = counts.sums.ended_threads;
        for (number, thread) in &counts.threads {
            time.running += seconds(thread.running_ns);
            time.runnable += seconds(thread.runnable_ns);
            if !alive.contains(number) {
                // By execve(), or just now; when is not known.
                threads_ended += 1;
                continue;
            }
            let last = counts.end.saturating_sub(thread.since);
            match thread.state {
                RUNNING => time.running += seconds(last),
                RUNNABLE => time.runnable += seconds(last),
                BLOCKED => places.entry(thread.place).or_default().add(&Waits::unfinished(last)),
                _ => {}
            }
        }
        let recorded: HashSet<u32> = counts.threads.iter().map(|(number, _)| *number).collect();
        let unmoved = |number: &&u32| alive.contains(number) && !recorded.contains(number);
        if counts.sums.lost_threads == 0 {
            // It has not left its CPU all the time.
            time.running += threads.first.iter().filter(unmoved).count() as f64 * seconds(whole);
        }
        // pthread_join() waits in the thread's number, by functions that a stripped library does
        // not name.
        let is_join = |word| value(word).is_some_and(|value| alive.contains(&value));
        let waits = waits(&places, counts, is_join, stacks);
        let goroutines = counts
            .goroutines
            .as_ref()
            .map(|sleeps| self::waits(&summed(sleeps), counts, |_| false, stacks));
        for wait in &waits {
            *match wait.what {
                What::Lock => &mut time.lock,
                What::Semaphore => &mut time.semaphore,
                What::Unknown => &mut time.unclassified,
                What::Idle => &mut time.idle,
            } += wait.seconds;
        }
        let (system_calls, stopped) = system_calls(&places);
        time.stopped = stopped;
        time.other = system_calls.iter().map(|call| call.seconds).sum();
        time.total = time.sum();
        let busy = time.running + time.runnable + time.lock;
        let mut report = Report {
            schema: "poundlock.watch/1",
            pid: seen.pid,
            command: seen.command,
            seconds: seconds(whole),
            ended,
            threads: alive.len() as u64,
            threads_ended,
            lock_share: share(time.lock, time.total),
            lock_share_of_busy: share(time.lock, busy),
            waits,
            goroutines,
            system_calls,
            kernel_locks: None,
            lost: Lost {
                threads: counts.sums.lost_threads,
                waits: counts.sums.lost_places,
                releases: counts.sums.lost_releases,
                stacks: counts.sums.lost_samples,
                goroutines: counts.sums.lost_goroutines,
            },
            verdict: String::new(),
            time,
        };
        let total = report.time.total;
        for wait in &mut report.waits {
            wait.share = Some(share(wait.seconds, total));
        }
        report.verdict = report.judge(seen.program);
        report
    }

    /// The locks, the longest waits first.
    pub fn locks(&self) -> impl Iterator<Item = &Wait> {
        self.waits.iter().filter(|wait| wait.what == What::Lock)
    }

    fn judge(&self, program: Program) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let mut text = if self.lock_share_of_busy < NEGLIGIBLE {
            format!(
                "Locks are no problem of this process: {:.1} % of its thread time waits for them.",
                self.lock_share * 100.0
            )
        } else {
            let locks: Vec<&Wait> = self.locks().collect();
            let first = locks[0];
            let mut text = format!(
                "{} of thread time waits for locks ({} of the time that threads would run).",
                percent(self.lock_share),
                percent(self.lock_share_of_busy)
            );
            let of_lock = share(first.seconds, self.time.lock);
            let function = first.function();
            let taken =
                if function.is_empty() { String::new() } else { format!(", taken in {function}") };
            let one = if first.address.is_some() { "for one" } else { "at one place:" };
            if locks.len() == 1 {
                text += &format!(" All of it {one} {}{taken}", first.kind);
            } else {
                text += &format!(
                    " {} of that {one} {}{taken}; the rest for {} others",
                    percent(of_lock),
                    first.kind,
                    locks.len() - 1
                );
            }
            let remedy = first.remedy.as_deref().unwrap_or_default();
            let by_preload = remedy.contains("poundlock run");
            text += "; ";
            text += if by_preload && program.is_static {
                "poundlock cannot replace it: the program is statically linked"
            } else {
                remedy
            };
            text + "."
        };
        let unclear = self.time.unclassified + self.time.semaphore;
        let busy = self.time.running + self.time.runnable + self.time.lock + unclear;
        if share(unclear, busy) >= UNCLEAR {
            text += &format!(
                " {} of thread time waits in semaphores and futexes that may be locks or queues: \
                 see their stacks.",
                percent(share(unclear, self.time.total))
            );
        }
        if program.is_go {
            text += &self.judge_goroutines();
        }
        text
    }

    /// The part of the verdict on goroutines.
    fn judge_goroutines(&self) -> String {
        let Some(waits) = &self.goroutines else {
            return " This is a Go program without symbols, or of a version before 1.18: goroutines \
                    that wait for a sync.Mutex sleep without their thread, and are not seen."
                .to_owned();
        };
        let locks = || waits.iter().filter(|wait| wait.what == What::Lock);
        let waiting = locks().map(|wait| wait.seconds).sum::<f64>() / self.seconds;
        let Some(first) = locks().next().filter(|_| waiting >= NEGLIGIBLE) else {
            return " Its goroutines hardly wait for locks.".to_owned();
        };
        format!(
            " On average {waiting:.2} goroutines wait for locks, which threads do not: mostly for \
             a {}, taken in {}; {}.",
            first.kind,
            first.function(),
            first.remedy.as_deref().unwrap_or_default()
        )
    }
}

/// The share of busy time below which waits for locks are no problem.
const NEGLIGIBLE: f64 = 0.02;

/// The share of busy time from which waits that may be for locks are mentioned.
const UNCLEAR: f64 = 0.1;

impl Time {
    /// The parts that are not zero, by name.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("running", self.running),
            ("ready, without a CPU", self.runnable),
            ("waiting for locks", self.lock),
            ("waiting in semaphores", self.semaphore),
            ("unclassified futex waits", self.unclassified),
            ("idle: waiting for work", self.idle),
            ("other sleep", self.other),
            ("stopped", self.stopped),
            ("lost", self.lost),
        ]
        .into_iter()
        .filter(|(_, seconds)| *seconds > 0.0)
    }

    fn sum(&self) -> f64 {
        self.parts().map(|(_, seconds)| seconds).sum()
    }
}

impl Wait {
    /// The lock, as reports name it.
    pub fn label(&self) -> String {
        let place = self.object.as_deref().or(self.address.as_deref()).unwrap_or("at one place");
        format!("{} {place}", self.kind)
    }

    /// The function that takes the lock most.
    pub fn function(&self) -> &str {
        self.sites.first().map_or("", |site| &site.function)
    }
}

/// The waits of one kind in one futex, or by one function in several futexes.
struct Group {
    kind: Kind,
    words: BTreeSet<u64>,
    /// By stack.
    parts: Vec<(u64, Waits)>,
}

/// The waits in futexes, by address and kind, the longest first.
fn waits(
    places: &HashMap<Place, Waits>,
    counts: &Counts,
    is_join: impl Fn(u64) -> bool,
    stacks: &mut Stacks,
) -> Vec<Wait> {
    let sites = Sites::read();
    let groups = groups(places, is_join, stacks, &sites);
    let mut wakers = Wakers::default();
    for (release, counted) in &counts.releases {
        wakers.releases.entry(release.word).or_default().push((release.stack, *counted));
    }
    for (hold, samples) in &counts.holds {
        wakers.holds.entry(hold.word).or_default().push((hold.stack, *samples));
    }
    let mut waits: Vec<Wait> =
        groups.into_iter().map(|group| wait(group, &wakers, stacks, &sites)).collect();
    waits.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    waits
}

/// The places that wake waiters, and those where holders run, by the address of the futex.
#[derive(Default)]
struct Wakers {
    releases: HashMap<u64, Vec<(u64, Releases)>>,
    holds: HashMap<u64, Vec<(u64, u64)>>,
}

fn groups(
    places: &HashMap<Place, Waits>,
    is_join: impl Fn(u64) -> bool,
    stacks: &mut Stacks,
    sites: &Sites,
) -> Vec<Group> {
    let mut kinds: HashMap<u64, Option<Kind>> = HashMap::new();
    let mut locks: HashMap<u64, Kind> = HashMap::new();
    let futexes: Vec<_> = places.iter().filter(|(place, _)| place.kind == FUTEX).collect();
    for (place, _) in &futexes {
        let kind = kinds
            .entry(place.stack)
            .or_insert_with(|| sites.of(&stacks.functions(place.stack)).map(Kind::of));
        if let Some(kind) = kind
            && kind.what == What::Lock
            && !kind.own_words
        {
            locks.insert(place.word, kind.clone());
        }
    }
    // A futex that is a lock by one stack is one by all: a condition variable waits for its mutex
    // by functions that a stripped library does not name.
    let mut groups: BTreeMap<(u64, String, String), Group> = BTreeMap::new();
    for (place, waits) in futexes {
        let known = locks.get(&place.word).or(kinds[&place.stack].as_ref()).cloned();
        let kind = known.unwrap_or_else(|| match is_join(place.word) {
            true => Kind::without_remedy(What::Idle, "joins a thread"),
            false => Kind::without_remedy(What::Unknown, "unclassified wait"),
        });
        let (word, function) = match kind.own_words {
            true => (0, sites.user(&stacks.functions(place.stack)).to_owned()),
            false => (place.word, String::new()),
        };
        let group = groups.entry((word, kind.name.clone(), function)).or_insert_with(|| Group {
            kind,
            words: BTreeSet::new(),
            parts: Vec::new(),
        });
        group.words.insert(place.word);
        group.parts.push((place.stack, *waits));
    }
    groups.into_values().collect()
}

fn wait(group: Group, wakers: &Wakers, stacks: &mut Stacks, sites: &Sites) -> Wait {
    let Group { kind, words, parts } = group;
    let mut all = Waits::default();
    let mut by_stack: BTreeMap<Functions, Waits> = BTreeMap::new();
    for (stack, waits) in parts {
        all.add(&waits);
        by_stack.entry(stacks.functions(stack)).or_default().add(&waits);
    }
    let mut waiters: Vec<Waiters> = by_stack
        .into_iter()
        .map(|(stack, waits)| Waiters {
            function: sites.user(&stack).to_owned(),
            waits: waits.count,
            seconds: seconds(waits.total_ns()),
            stack: stack.to_vec(),
        })
        .collect();
    waiters.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let releases = words.iter().filter_map(|word| wakers.releases.get(word)).flatten();
    let (waited, off) = releases
        .clone()
        .fold((0, 0), |(waited, off), (_, one)| (waited + one.waited_ns, off + one.off_ns));
    let releases = by_functions(releases.map(|(stack, one)| (*stack, one.count)), stacks);
    let holds = words.iter().filter_map(|word| wakers.holds.get(word)).flatten();
    let holds = by_functions(holds.copied(), stacks);
    let first = words.first().copied().unwrap_or_default();
    Wait {
        what: kind.what,
        kind: kind.name,
        remedy: kind.remedy,
        address: (!kind.own_words).then(|| format!("{first:#x}")),
        object: if kind.own_words { None } else { stacks.object(first) },
        waits: all.count,
        seconds: seconds(all.total_ns()),
        delayed: seconds(all.delayed_ns),
        longest: seconds(all.longest_ns),
        share: None,
        sites: waiters,
        releases: releases
            .into_iter()
            .map(|(stack, wakes)| Release {
                function: sites.user(&stack).to_owned(),
                wakes,
                stack: stack.to_vec(),
            })
            .collect(),
        holders: holds
            .into_iter()
            .map(|(stack, samples)| Holder {
                function: sites.user(&stack).to_owned(),
                samples,
                stack: stack.to_vec(),
            })
            .collect(),
        holder_off_share: (waited > 0).then(|| share(off as f64, waited as f64)),
    }
}

/// Counts by the functions of their stacks, the largest first.
fn by_functions(
    counts: impl Iterator<Item = (u64, u64)>,
    stacks: &mut Stacks,
) -> Vec<(Functions, u64)> {
    let mut sums = BTreeMap::<Functions, u64>::new();
    for (stack, count) in counts {
        *sums.entry(stacks.functions(stack)).or_default() += count;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sums
}

/// The waits of each place.
fn summed(waits: &[(Place, Waits)]) -> HashMap<Place, Waits> {
    let mut places: HashMap<Place, Waits> = HashMap::new();
    for (place, waits) in waits {
        places.entry(*place).or_default().add(waits);
    }
    places
}

/// Sleeps outside of futexes by system call, and the time stopped.
fn system_calls(places: &HashMap<Place, Waits>) -> (Vec<SystemCall>, f64) {
    let mut calls = Vec::new();
    let mut stopped = 0.0;
    for (place, waits) in places.iter().filter(|(place, _)| place.kind != FUTEX) {
        if place.kind == STOPPED {
            stopped += seconds(waits.total_ns());
            continue;
        }
        calls.push(SystemCall {
            number: (place.syscall >= 0).then_some(place.syscall),
            name: name_of(place.syscall),
            waits: waits.count,
            seconds: seconds(waits.total_ns()),
        });
    }
    calls.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    (calls, stopped)
}

/// The usual system calls that sleep.
fn name_of(number: i32) -> String {
    let known = [
        (libc::SYS_read, "read"),
        (libc::SYS_write, "write"),
        (libc::SYS_recvfrom, "recvfrom"),
        (libc::SYS_recvmsg, "recvmsg"),
        (libc::SYS_sendto, "sendto"),
        (libc::SYS_accept, "accept"),
        (libc::SYS_accept4, "accept4"),
        (libc::SYS_ppoll, "ppoll"),
        (libc::SYS_pselect6, "pselect6"),
        (libc::SYS_epoll_pwait, "epoll_pwait"),
        (libc::SYS_nanosleep, "nanosleep"),
        (libc::SYS_clock_nanosleep, "clock_nanosleep"),
        (libc::SYS_fsync, "fsync"),
        (libc::SYS_fdatasync, "fdatasync"),
        (libc::SYS_pread64, "pread64"),
        (libc::SYS_pwrite64, "pwrite64"),
        (libc::SYS_wait4, "wait4"),
        (libc::SYS_rt_sigtimedwait, "sigtimedwait"),
        (libc::SYS_semtimedop, "semtimedop"),
        (libc::SYS_flock, "flock"),
        (libc::SYS_fcntl, "fcntl"),
        (libc::SYS_futex, "futex"),
        (libc::SYS_io_uring_enter, "io_uring_enter"),
        (libc::SYS_mmap, "mmap"),
        (libc::SYS_munmap, "munmap"),
        (libc::SYS_mprotect, "mprotect"),
        (libc::SYS_madvise, "madvise"),
        (libc::SYS_openat, "openat"),
        (libc::SYS_rt_sigsuspend, "sigsuspend"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_poll, "poll"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_select, "select"),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_epoll_wait, "epoll_wait"),
    ];
    let found = known.iter().find(|(call, _)| *call == i64::from(number));
    match found {
        Some((_, name)) => (*name).to_owned(),
        None if number < 0 => "outside of system calls".to_owned(),
        None => format!("system call {number}"),
    }
}
