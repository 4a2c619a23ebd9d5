//! `poundlock watch` against processes whose waiting is known: each measures the waits of its own
//! threads, and the report must agree. A watch ends when the process has done enough, not after a
//! time: a busy machine only takes longer.
//!
//! Where the kernel refuses BPF, the tests print the reason and pass.
#![cfg(feature = "watch")]

mod common;

use common::terminal::{Screen, pseudo_terminal};
use common::{assert_refused, compile, output, poundlock, preload, scratch, stderr, stdout};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

// ---- Processes to watch ----

/// The waits of a process's threads so far, by its own measurement. Times are in nanoseconds.
struct Truth {
    waited: f64,
    /// Of all threads.
    time: f64,
    /// The part of `waited` in which the waiter was not ready to run.
    slept: f64,
    longest: f64,
    waits: f64,
}

/// A running process, which ends with its standard input.
struct Watched {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Watched {
    fn start(command: &mut Command) -> Watched {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Watched { child, input, output }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The numbers in the line that it prints for a line of input.
    fn numbers(&mut self) -> Vec<f64> {
        let input = self.input.as_mut().expect("it runs");
        input.write_all(b"\n").expect("a pipe");
        loop {
            let mut line = String::new();
            let size = self.output.read_line(&mut line).expect("a pipe");
            assert!(size > 0, "the watched program has ended");
            let numbers = line.split_whitespace().map(|number| number.parse().ok());
            // Others are those of the test harness.
            match numbers.collect::<Option<Vec<f64>>>() {
                Some(numbers) if !numbers.is_empty() => return numbers,
                _ => {}
            }
        }
    }

    fn truth(&mut self) -> Truth {
        let numbers = self.numbers();
        let [waited, time, slept, longest, waits] = numbers[..] else { panic!("{numbers:?}") };
        Truth { waited, time, slept, longest, waits }
    }

    fn await_waits(&mut self, more: f64) {
        let start = self.truth().waits;
        until("it waits", || self.truth().waits - start > more);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watched").join(name);
    std::fs::read_to_string(path).expect("a source of the tests")
}

fn built(folder: &Path, name: &str) -> PathBuf {
    let program = folder.join(name);
    compile(&source(&format!("{name}.c")), &["-O2", "-pthread"], &program);
    program
}

/// planted.c, whose threads all run.
fn planted(folder: &Path) -> Watched {
    let mut watched = Watched::start(&mut Command::new(built(folder, "planted")));
    watched.await_waits(100.0);
    watched
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    const PATIENCE: Duration = Duration::from_secs(1200);
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

// ---- Watching ----

/// The reason why nothing can be watched here, if so. Printed, since the test then passes.
fn refused() -> bool {
    let output =
        output(&mut poundlock(["watch", "-p", &std::process::id().to_string(), "--for", "1ms"]));
    let error = stderr(&output);
    let reasons =
        ["watch needs root", "watch needs BPF", "watch needs /sys", "watch needs a kernel"];
    let refused = reasons.iter().any(|reason| error.contains(reason));
    if refused {
        println!("SKIPPED: {error}");
    }
    refused
}

/// Watches for a time, for what a process does all the time.
fn watch(pid: &str, arguments: &[&str]) -> Value {
    let mut command = poundlock(["watch", "-p", pid, "--json", "-"]);
    let output = output(command.args(arguments));
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("a document")
}

/// The BPF programs that a process has attached: the numbers in its links.
fn attached(pid: u32) -> Vec<u32> {
    let Ok(files) = std::fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return Vec::new() };
    let links = files
        .flatten()
        .filter_map(|file| std::fs::read_to_string(file.path()).ok())
        .filter(|text| text.contains("link_type:"));
    links
        .filter_map(|text| {
            text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
        })
        .collect()
}

/// The number of different programs that a watcher has attached.
fn programs_of(watcher: u32) -> usize {
    attached(watcher).into_iter().collect::<HashSet<_>>().len()
}

/// Switches and samples, without wake-ups.
const AT_FIRST: usize = 2;

fn signal(pid: &str, name: &str) {
    assert!(Command::new("kill").args([name, pid]).status().expect("kill").success());
}

/// A watcher that is attached, until it is interrupted or the process ends.
struct Watcher {
    child: Child,
    folder: TempDir,
}

impl Watcher {
    fn start(watched: &Watched) -> Watcher {
        Watcher::start_by(&mut poundlock(["watch"]), watched.child.id())
    }

    fn start_by(command: &mut Command, pid: u32) -> Watcher {
        let folder = scratch();
        command.args(["-p", &pid.to_string(), "--json"]).arg(folder.path().join("report"));
        let mut child = command.stdout(Stdio::null()).spawn().expect("the command starts");
        until("attached", || {
            assert_eq!(child.try_wait().expect("our child"), None, "it has ended");
            programs_of(child.id()) >= AT_FIRST
        });
        Watcher { child, folder }
    }

    fn await_wakes(&self) {
        until("wake-ups are followed", || programs_of(self.child.id()) > AT_FIRST);
    }

    fn interrupt(self) -> Value {
        signal(&self.child.id().to_string(), "-INT");
        self.report()
    }

    /// The report after its end.
    fn report(mut self) -> Value {
        assert!(self.child.wait().expect("our child").success());
        report_in(&self.folder.path().join("report"))
    }
}

fn report_in(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).expect("a report");
    serde_json::from_str(&text).expect("a document")
}

/// Watches while the threads of a process wait.
fn watch_waits(watched: &mut Watched) -> Value {
    let watcher = Watcher::start(watched);
    watched.await_waits(100.0);
    watcher.interrupt()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Watches a process, and compares the waiting with what the process itself measured: at least the
/// sleep in waits while the watcher was attached, at most the waits between its start and its end.
/// Returns the report.
#[track_caller]
fn assert_true(watched: &mut Watched) -> Value {
    let before = watched.truth();
    let watcher = Watcher::start(watched);
    watcher.await_wakes();
    let first = watched.truth();
    watched.await_waits((10.0 * (first.waits - before.waits)).max(1000.0));
    let last = watched.truth();
    let report = watcher.interrupt();
    let after = watched.truth();
    // Waits that last at either end.
    let unknown = WAITERS * after.longest;
    let least = (last.slept - first.slept - unknown) / (after.time - before.time);
    let most = (after.waited - before.waited + unknown) / (last.time - first.time);
    let seen = number(&report["lock_share"]);
    let is_true = (least - TOLERANCE..most + TOLERANCE).contains(&seen);
    assert!(is_true, "{seen} instead of {least} to {most}: {report:#}");
    report
}

/// The threads of a process that wait, and the error of its own measurement.
const WAITERS: f64 = 4.0;
const TOLERANCE: f64 = 0.02;

/// The lock with the longest waits.
#[track_caller]
fn first_lock(report: &Value) -> &Value {
    let waits = report["waits"].as_array().expect("a list");
    let lock = waits.iter().find(|wait| wait["what"] == "lock");
    lock.unwrap_or_else(|| panic!("no lock: {report:#}"))
}

/// That lock has this kind, and is taken in a function of this name.
#[track_caller]
fn assert_first(report: &Value, kind: &str, function: &str) {
    let first = first_lock(report);
    assert_eq!(first["kind"], kind, "{report:#}");
    let found = first["sites"][0]["function"].as_str().unwrap_or_default();
    assert!(found.contains(function), "{found}: {report:#}");
    let verdict = report["verdict"].as_str().unwrap_or_default();
    assert!(verdict.contains(kind) && verdict.contains(function), "{verdict}");
}

#[test]
fn a_pthread_mutex_is_found_with_its_share() {
    if refused() {
        return;
    }
    let folder = scratch();
    let mut watched = planted(folder.path());
    let report = assert_true(&mut watched);
    assert_first(&report, "pthread mutex", "planted_site");
    let lock = first_lock(&report);
    assert_eq!(lock["object"], "planted_lock");
    assert!(report["verdict"].as_str().unwrap().contains("poundlock can replace it"), "{report:#}");
    let releases = lock["releases"].as_array().expect("a list");
    let wakes: f64 = releases.iter().map(|release| number(&release["wakes"])).sum();
    let waits = number(&lock["waits"]);
    assert!((0.8..1.05).contains(&(wakes / waits)), "{wakes} wake-ups of {waits}: {report:#}");
    // From woken to running takes a part of a wait.
    let delayed = number(&lock["delayed"]);
    let waited = number(&lock["seconds"]);
    assert!(0.0 < delayed && delayed < waited, "{delayed} of {waited} s");
    // The holders sleep in half of their waiters' time or more.
    assert!(number(&lock["holder_off_share"]) > 0.3, "{report:#}");
    assert_eq!(number(&report["threads"]), 7.0);
    // All of the time of seven threads is accounted for.
    let whole = number(&report["seconds"]) * 7.0;
    let total = number(&report["time"]["total"]);
    assert!((total / whole - 1.0).abs() < 0.05, "{total} of {whole} s");
    // Of two consumers one never wakes; their condition variables are not taken for locks.
    let idle = number(&report["time"]["idle"]) / total;
    assert!((0.98..2.02).contains(&(idle * 7.0)), "{report:#}");
    for (name, lost) in report["lost"].as_object().unwrap() {
        assert_eq!(number(lost), 0.0, "{name}");
    }
}

#[test]
fn a_lock_of_poundlock_is_named_as_such() {
    if refused() {
        return;
    }
    let folder = scratch();
    let mut command = Command::new(built(folder.path(), "planted"));
    let mut watched = Watched::start(command.env("LD_PRELOAD", preload()));
    watched.await_waits(100.0);
    let report = assert_true(&mut watched);
    assert_first(&report, "Poundlock's lock", "planted_site");
}

/// The time, and the part of it in which the calling thread was ready to run.
struct Moment {
    time: Instant,
    ready: u64,
}

impl Moment {
    fn now() -> Moment {
        thread_local! {
            static COUNTS: Option<File> = File::open("/proc/thread-self/schedstat").ok();
        }
        let mut bytes = [0; 64];
        COUNTS.with(|file| file.as_ref().and_then(|file| file.read_at(&mut bytes, 0).ok()));
        let text = String::from_utf8_lossy(&bytes);
        let numbers = text.split_whitespace().map_while(|number| number.parse::<u64>().ok());
        Moment { time: Instant::now(), ready: numbers.take(2).sum() }
    }
}

/// Four threads that hold a lock, as in planted.c; ends with its input. `hold` returns when it had
/// the lock.
fn plant(hold: fn() -> Moment) {
    static WAITED: AtomicU64 = AtomicU64::new(0);
    static SLEPT: AtomicU64 = AtomicU64::new(0);
    static LONGEST: AtomicU64 = AtomicU64::new(0);
    static WAITS: AtomicU64 = AtomicU64::new(0);
    const THREADS: u64 = WAITERS as u64;
    for _ in 0..THREADS {
        std::thread::spawn(move || {
            loop {
                let start = Moment::now();
                let end = hold();
                let waited = (end.time - start.time).as_nanos() as u64;
                let slept = waited.saturating_sub(end.ready - start.ready);
                WAITED.fetch_add(waited, Ordering::Relaxed);
                SLEPT.fetch_add(slept, Ordering::Relaxed);
                LONGEST.fetch_max(waited, Ordering::Relaxed);
                WAITS.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
        });
    }
    let start = Instant::now();
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).expect("a pipe") > 0 {
        // Also the thread of the test, and that of its harness.
        let time = start.elapsed().as_nanos() as u64 * (THREADS + 2);
        let [waited, slept, longest, waits] =
            [&WAITED, &SLEPT, &LONGEST, &WAITS].map(|count| count.load(Ordering::Relaxed));
        println!("\n{waited} {time} {slept} {longest} {waits}");
    }
}

const PAUSE: Duration = Duration::from_millis(2);

static OF_STD: std::sync::Mutex<u64> = std::sync::Mutex::new(0);
static OF_PARKING_LOT: parking_lot::Mutex<u64> = parking_lot::Mutex::new(0);

#[inline(never)]
fn planted_site_of_std() -> Moment {
    let mut guard = OF_STD.lock().expect("no thread panics");
    let locked = Moment::now();
    std::thread::sleep(PAUSE);
    *guard += 1;
    locked
}

#[inline(never)]
fn planted_site_of_parking_lot() -> Moment {
    let mut guard = OF_PARKING_LOT.lock();
    let locked = Moment::now();
    std::thread::sleep(PAUSE);
    *guard += 1;
    locked
}

#[test]
#[ignore = "a program for the other tests to watch"]
fn program_of_std() {
    plant(planted_site_of_std);
}

#[test]
#[ignore = "a program for the other tests to watch"]
fn program_of_parking_lot() {
    plant(planted_site_of_parking_lot);
}

/// Runs one of the programs above: this file's own binary.
fn program(name: &str) -> Watched {
    let own = std::env::current_exe().expect("/proc");
    let mut command = Command::new(own);
    Watched::start(command.args([name, "--exact", "--ignored", "--nocapture"]))
}

#[test]
fn a_mutex_of_rust_is_found_with_its_share() {
    if refused() {
        return;
    }
    let report = assert_true(&mut program("program_of_std"));
    assert_first(&report, "Mutex of Rust", "planted_site_of_std");
}

#[test]
fn a_mutex_of_parking_lot_is_found_with_its_share() {
    if refused() {
        return;
    }
    let report = assert_true(&mut program("program_of_parking_lot"));
    assert_first(&report, "Mutex of parking_lot", "planted_site_of_parking_lot");
}

// ---- Holders, names, and other outputs ----

#[test]
fn the_running_holder_is_sampled() {
    if refused() {
        return;
    }
    let folder = scratch();
    let watched = Watched::start(Command::new(built(folder.path(), "planted")).arg("busy"));
    // On a busy machine, the holder runs rarely.
    until("there are samples", || {
        let report = watch(&watched.pid(), &["--for", "3s"]);
        assert_first(&report, "pthread mutex", "planted_site");
        let holders = first_lock(&report)["holders"].as_array().expect("a list");
        let samples = |holder: &Value| number(&holder["samples"]);
        let computes = |holder: &&Value| holder["stack"].to_string().contains("planted_site");
        let all: f64 = holders.iter().map(samples).sum();
        let inside: f64 = holders.iter().filter(computes).map(samples).sum();
        assert!(all < 5.0 || inside / all > 0.5, "{inside} of {all} samples: {report:#}");
        all >= 5.0
    });
}

#[test]
fn a_page_has_the_verdict_the_stacks_and_a_flame_graph() {
    if refused() {
        return;
    }
    let folder = scratch();
    let mut watched = planted(folder.path());
    let file = folder.path().join("page.html");
    let mut command = poundlock(["watch", "--report"]);
    let watcher = Watcher::start_by(command.arg(&file), watched.child.id());
    watched.await_waits(100.0);
    watcher.interrupt();
    let page = std::fs::read_to_string(&file).expect("the page");
    for part in ["of thread time waits for locks", "planted_lock", "Stacks of", "<svg", "<iframe"] {
        assert!(page.contains(part), "no {part}");
    }
}

#[test]
fn a_terminal_shows_the_report_so_far() {
    if refused() {
        return;
    }
    let folder = scratch();
    let watched = planted(folder.path());
    let (user, program) = pseudo_terminal();
    let stdio = || Stdio::from(program.try_clone().expect("a copy"));
    let mut command = poundlock(["watch", "-p", &watched.pid()]);
    command.env("TERM", "xterm").stdin(stdio()).stdout(stdio()).stderr(Stdio::piped());
    let live = command.spawn().expect("it starts");
    let screen = Screen::of(&user);
    screen.await_text("q: quit");
    screen.await_text("pthread mutex planted_lock");
    (&user).write_all(b"\x1b[6~\x1b[6~").expect("keys");
    screen.await_text("waits for locks (");
    (&user).write_all(b"q").expect("a key");
    let ended = live.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{}", stderr(&ended));
    screen.await_text("poundlock run.");
}

/// Serves one file to debuginfod's client, under the build ID in its path.
fn serve_debug_file(build_id: &str, file: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its own"));
    let wanted = format!("GET /buildid/{build_id}/debuginfo ");
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.expect("a connection");
            let mut head = BufReader::new(connection.try_clone().expect("a copy")).lines();
            let request = head.next().and_then(Result::ok).unwrap_or_default();
            head.map_while(Result::ok).find(String::is_empty);
            let found = request.starts_with(&wanted);
            let (status, body) = if found { ("200 OK", &file[..]) } else { ("404 None", &[][..]) };
            let size = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close");
            let _ = connection.write_all(format!("{head}\r\n\r\n").as_bytes());
            let _ = connection.write_all(body);
        }
    });
    address
}

#[test]
fn a_stripped_program_is_named_by_its_debug_file() {
    let client = Command::new("debuginfod-find").arg("--version").output();
    if refused() || client.is_err() {
        println!("SKIPPED, unless said above: there is no debuginfod-find");
        return;
    }
    let folder = scratch();
    let program = folder.path().join("planted");
    compile(&source("planted.c"), &["-g", "-O2", "-pthread", "-Wl,--build-id=sha1"], &program);
    let debug = folder.path().join("planted.debug");
    let run = |command: &mut Command| assert!(output(command).status.success(), "{command:?}");
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&program).arg(&debug));
    let notes = output(Command::new("readelf").arg("-n").arg(&program));
    let notes = stdout(&notes);
    let (_, id) = notes.split_once("Build ID: ").expect("a build ID");
    let id = id.split_whitespace().next().expect("a build ID");
    run(Command::new("strip").arg(&program));
    let server = serve_debug_file(id, std::fs::read(&debug).expect("it is made"));

    let mut watched = Watched::start(&mut Command::new(&program));
    watched.await_waits(100.0);
    let mut report = |urls: &str| -> Value {
        let mut command = poundlock(["watch"]);
        command.env("DEBUGINFOD_URLS", urls);
        command.env("DEBUGINFOD_CACHE_PATH", folder.path().join("cache"));
        let watcher = Watcher::start_by(&mut command, watched.child.id());
        watched.await_waits(100.0);
        watcher.interrupt()
    };
    assert_first(&report(""), "pthread mutex", "planted+0x");
    let named = report(&server);
    assert_first(&named, "pthread mutex", "planted_site");
    assert_eq!(first_lock(&named)["object"], "planted_lock", "{named:#}");
}

// ---- Events in the life of the process and of its watcher ----

/// Whether the kernel still has a BPF program of this number.
fn is_loaded(program: u32) -> bool {
    const BPF_PROG_GET_FD_BY_ID: libc::c_int = 13;
    let attributes = [program, 0, 0];
    // SAFETY: the attributes are those of the command, of the size that is given.
    let found = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_GET_FD_BY_ID,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    };
    if found >= 0 {
        // SAFETY: the kernel has just opened it for us.
        unsafe { libc::close(found as libc::c_int) };
    }
    found >= 0
}

#[test]
fn the_report_follows_when_the_process_ends() {
    if refused() {
        return;
    }
    let folder = scratch();
    let mut watched = planted(folder.path());
    let watcher = Watcher::start(&watched);
    watched.await_waits(100.0);
    signal(&watched.pid(), "-KILL");
    let report = watcher.report();
    assert_eq!(report["ended"], true);
    assert_eq!(number(&report["threads_ended"]), 7.0, "{report:#}");
    assert_first(&report, "pthread mutex", "planted_site");
}

#[test]
fn an_interrupt_ends_with_the_report() {
    if refused() {
        return;
    }
    let folder = scratch();
    let report = watch_waits(&mut planted(folder.path()));
    assert_eq!(report["ended"], false);
    assert_first(&report, "pthread mutex", "planted_site");
}

#[test]
fn a_killed_watcher_leaves_nothing_and_two_agree() {
    if refused() {
        return;
    }
    let folder = scratch();
    let mut watched = planted(folder.path());
    let mut killed = Watcher::start(&watched);
    // Beside it, another watcher sees the truth.
    assert_first(&assert_true(&mut watched), "pthread mutex", "planted_site");
    let programs = attached(killed.child.id());
    assert!(programs.iter().all(|program| is_loaded(*program)));
    killed.child.kill().expect("our child");
    killed.child.wait().expect("our child");
    until("detached", || programs.iter().all(|program| !is_loaded(*program)));
    assert_first(&assert_true(&mut watched), "pthread mutex", "planted_site");
}

#[test]
fn wake_ups_are_followed_if_threads_wait_for_futexes() {
    if refused() {
        return;
    }
    let folder = scratch();
    let mut shell = Command::new("sh");
    let without = Watched::start(shell.args(["-c", "while sleep 0.01; do :; done"]));
    let watcher = Watcher::start(&without);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(programs_of(watcher.child.id()), AT_FIRST, "switches and samples");
    watcher.interrupt();
    let with = planted(folder.path());
    let watcher = Watcher::start(&with);
    watcher.await_wakes();
    watcher.interrupt();
}

#[test]
fn a_stopped_process_is_seen_stopped() {
    if refused() {
        return;
    }
    let folder = scratch();
    let watched = planted(folder.path());
    signal(&watched.pid(), "-STOP");
    let tasks = PathBuf::from(format!("/proc/{}/task", watched.pid()));
    until("all threads are stopped", || {
        std::fs::read_dir(&tasks).expect("it lives").flatten().all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.contains(") T ")
        })
    });
    let report = watch(&watched.pid(), &["--for", "1s"]);
    signal(&watched.pid(), "-CONT");
    let share = number(&report["time"]["stopped"]) / number(&report["time"]["total"]);
    assert!(share > 0.9, "{report:#}");
}

#[test]
fn children_are_not_counted_and_a_new_program_is() {
    if refused() {
        return;
    }
    let folder = scratch();
    let planted = built(folder.path(), "planted");
    // A shell with a child, which then executes the program.
    let script = "sleep 60 & read line; exec \"$0\"";
    let mut command = Command::new("sh");
    let mut watched = Watched::start(command.args(["-c", script]).arg(planted));
    let watcher = Watcher::start(&watched);
    watched.input.as_mut().unwrap().write_all(b"go\n").unwrap();
    // Most of them after the watcher has seen the new code.
    watched.await_waits(1000.0);
    let report = watcher.interrupt();
    assert_eq!(number(&report["threads"]), 7.0, "{report:#}");
    assert_first(&report, "pthread mutex", "planted_site");
}

#[test]
fn a_process_in_a_pid_namespace_is_watched_from_outside_and_inside() {
    if refused() {
        return;
    }
    let folder = scratch();
    let planted = built(folder.path(), "planted");
    let unshare = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    let mut watched = Watched::start(Command::new("unshare").args(unshare).arg(&planted));
    watched.await_waits(100.0);
    let child = first_child(&watched, "planted");
    let watcher = Watcher::start_by(&mut poundlock(["watch"]), child);
    watched.await_waits(100.0);
    let report = watcher.interrupt();
    assert_first(&report, "pthread mutex", "planted_site");
    assert_eq!(number(&report["threads"]), 7.0);
    drop(watched);

    let file = folder.path().join("report");
    let script = "exec 3<&0; \"$1\" <&3 & exec \"$0\" watch -p $! --json \"$2\" >/dev/null";
    let mut command = Command::new("unshare");
    command.args(unshare).args(["sh", "-c", script, env!("CARGO_BIN_EXE_poundlock")]);
    let mut watched = Watched::start(command.arg(&planted).arg(&file));
    watched.await_waits(100.0);
    let watcher = first_child(&watched, "poundlock");
    until("attached", || programs_of(watcher) >= AT_FIRST);
    watched.await_waits(1000.0);
    signal(&watcher.to_string(), "-INT");
    assert!(watched.child.wait().expect("our child").success());
    let report = report_in(&file);
    assert!(number(&report["pid"]) < 10.0, "{report:#}");
    assert_first(&report, "pthread mutex", "planted_site");
}

/// The first child of a program, once it has executed the program `name`.
fn first_child(parent: &Watched, name: &str) -> u32 {
    let path = format!("/proc/{0}/task/{0}/children", parent.pid());
    let comm = |child: u32| std::fs::read_to_string(format!("/proc/{child}/comm"));
    let mut found = None;
    until("it has executed the program", || {
        let children = std::fs::read_to_string(&path).expect("it lives");
        found = children.split_whitespace().next().and_then(|child| child.parse().ok());
        found.is_some_and(|child| comm(child).is_ok_and(|comm| comm.trim() == name))
    });
    found.expect("a child")
}

#[test]
fn many_threads_and_locks_have_room() {
    if refused() {
        return;
    }
    let folder = scratch();
    let many = built(folder.path(), "many");
    let mut watched = Watched::start(Command::new(many).args(["2000", "10000"]));
    let taken = |watched: &mut Watched| watched.numbers()[0];
    until("all threads run", || taken(&mut watched) >= 1.0);
    let watcher = Watcher::start(&watched);
    let start = taken(&mut watched);
    // Once through all locks.
    until("all wait for all locks", || taken(&mut watched) > start + 10.0);
    let report = watcher.interrupt();
    assert_eq!(number(&report["threads"]), 2001.0);
    assert_eq!(number(&report["lost"]["threads"]), 0.0, "{}", report["lost"]);
    assert_eq!(number(&report["lost"]["waits"]), 0.0, "{}", report["lost"]);
    let whole = number(&report["seconds"]) * 2001.0;
    let total = number(&report["time"]["total"]);
    assert!((total / whole - 1.0).abs() < 0.05, "{total} of {whole} s");
    let waits = report["waits"].as_array().unwrap();
    let locks = waits.iter().filter(|wait| wait["kind"] == "pthread mutex").count();
    assert!(locks > 9000, "{locks} locks");
    assert!(waits.iter().all(|wait| wait["what"] != "unknown"), "every stack was copied");
}

#[test]
fn locks_of_the_kernel_are_named() {
    if refused() {
        return;
    }
    let folder = scratch();
    let watched = Watched::start(&mut Command::new(built(folder.path(), "mappings")));
    until("the threads wait for the lock of the address space", || {
        let report = watch(&watched.pid(), &["--kernel", "--for", "1s"]);
        let locks = report["kernel_locks"].as_array().expect("it was asked for");
        locks.iter().any(|lock| {
            let names = lock["stack"].as_array().expect("a stack");
            let unmaps = |name: &Value| name.as_str().is_some_and(|name| name.contains("munmap"));
            lock["kind"] == "rwsem, writing" && names.iter().any(unmaps)
        })
    });
}

// ---- Failures ----

#[test]
fn what_cannot_be_watched_is_refused_in_a_line() {
    if refused() {
        return;
    }
    assert_refused(&mut poundlock(["watch", "-p", "4194305"]), 125, &["no process 4194305"]);
    assert_refused(&mut poundlock(["watch", "-p", "2"]), 125, &["kernel thread"]);
    assert_refused(&mut poundlock(["watch", "-p", "1", "--for", "0s"]), 125, &["--for"]);
}

/// Runs `watch` by a command line in front of it: one line must name what is missing.
#[track_caller]
fn assert_forbidden(before: &[&str], why: &[&str]) {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut command = Command::new(before[0]);
    command.args(&before[1..]).arg(env!("CARGO_BIN_EXE_poundlock")).args(["watch", "-p", "1"]);
    assert_refused(&mut command, 125, why);
}

#[test]
fn rights_that_are_missing_are_named() {
    let all = "missing: CAP_BPF, CAP_PERFMON";
    let nobody = ["setpriv", "--reuid", "65534", "--clear-groups", "--bounding-set", "-all"];
    assert_forbidden(&nobody, &["needs root", all]);
    assert_forbidden(&["setpriv", "--bounding-set", "-all"], &[all]);
    for (sets, missing) in [
        ("-sys_admin,-bpf", "missing: CAP_BPF"),
        ("-sys_admin,-perfmon", "missing: CAP_PERFMON"),
        ("-sys_ptrace", "cannot read the code of process 1: watch needs root, or CAP_SYS_PTRACE"),
    ] {
        assert_forbidden(&["setpriv", "--bounding-set", sets], &[missing]);
    }
}

#[test]
fn a_user_namespace_is_named() {
    let inside = ["unshare", "--user", "--map-root-user"];
    if output(Command::new(inside[0]).args(&inside[1..]).arg("true")).status.success() {
        assert_forbidden(&inside, &["user namespace"]);
    }
}

/// Files of /sys are hidden in a mount namespace.
#[test]
fn a_kernel_that_cannot_be_watched_is_named() {
    let hide = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    let lock = "mount -t tmpfs none /sys/kernel/security && \
                echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown && \
                exec \"$@\"";
    for (script, why) in [(hide, "CONFIG_DEBUG_INFO_BTF"), (lock, "lockdown=confidentiality")] {
        let inside = ["unshare", "--mount", "sh", "-c", script, "sh"];
        assert_forbidden(&inside, &[why]);
    }
}
