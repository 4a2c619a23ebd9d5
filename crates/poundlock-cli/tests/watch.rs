//! `poundlock watch` against processes whose waiting is known: each measures the waits of its own
//! threads, and the report must agree. Holds and pauses are sleeps, so that the waits do not depend
//! on the machine's load.
//!
//! Where the kernel refuses BPF, the tests print the reason and pass.
#![cfg(feature = "watch")]

mod common;

use common::terminal::{Screen, pseudo_terminal};
use common::{assert_refused, compile, output, poundlock, preload, scratch, stderr, stdout};
use serde_json::Value;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

// ---- Processes to watch ----

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

    /// The first line of output that starts with a number or is `word`.
    fn line(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            let size = self.output.read_line(&mut line).expect("a pipe");
            assert!(size > 0, "the watched program has ended");
            let first = line.split_whitespace().next().unwrap_or_default();
            if first == word || first.parse::<u64>().is_ok() {
                return line;
            }
        }
    }

    /// The waiting time and the time of all threads so far, in nanoseconds.
    fn truth(&mut self) -> [f64; 2] {
        let input = self.input.as_mut().expect("it runs");
        input.write_all(b"\n").expect("a pipe");
        let line = self.line("-");
        let mut numbers = line.split_whitespace().map(|number| number.parse().expect("a number"));
        std::array::from_fn(|_| numbers.next().expect("two numbers"))
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

fn watch(pid: &str, arguments: &[&str]) -> Value {
    let mut command = poundlock(["watch", "-p", pid, "--json", "-"]);
    let output = output(command.args(arguments));
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("a document")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Watches a process, and compares the waiting with what the process itself measured meanwhile.
/// Returns the report.
#[track_caller]
fn assert_true(watched: &mut Watched) -> Value {
    let before = watched.truth();
    let report = watch(&watched.pid(), &["--for", "3s"]);
    let after = watched.truth();
    let truth = (after[0] - before[0]) / (after[1] - before[1]);
    let seen = number(&report["lock_share"]);
    assert!((0.2..0.6).contains(&truth), "the program waits as planned: {truth}");
    assert!((seen - truth).abs() < 0.1, "{seen} instead of {truth}: {report:#}");
    report
}

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
    let mut watched = Watched::start(&mut Command::new(built(folder.path(), "planted")));
    let report = assert_true(&mut watched);
    assert_first(&report, "pthread mutex", "planted_site");
    assert_eq!(report["waits"][0]["object"], "planted_lock");
    assert!(report["verdict"].as_str().unwrap().contains("poundlock can replace it"), "{report:#}");
    let releases = report["waits"][0]["releases"].as_array().expect("a list");
    let wakes: f64 = releases.iter().map(|release| number(&release["wakes"])).sum();
    let waits = number(&report["waits"][0]["waits"]);
    assert!((0.8..1.05).contains(&(wakes / waits)), "{wakes} wake-ups of {waits}: {report:#}");
    // From woken to running takes a part of a wait.
    let delayed = number(&report["waits"][0]["delayed"]);
    let waited = number(&report["waits"][0]["seconds"]);
    assert!(0.0 < delayed && delayed < waited, "{delayed} of {waited} s");
    // The holders sleep in half of their waiters' time or more.
    assert!(number(&report["waits"][0]["holder_off_share"]) > 0.3, "{report:#}");
    assert_eq!(number(&report["threads"]), 7.0);
    // All of the time of seven threads is accounted for.
    let whole = number(&report["seconds"]) * 7.0;
    let total = number(&report["time"]["total"]);
    assert!((total / whole - 1.0).abs() < 0.05, "{total} of {whole} s");
    // One consumer never wakes; its condition variable is not taken for a lock.
    let idle = number(&report["time"]["idle"]) / total;
    assert!((0.2..0.32).contains(&idle), "{report:#}");
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
    let report = assert_true(&mut watched);
    assert_first(&report, "Poundlock's lock", "planted_site");
}

/// Four threads that hold a lock, as in planted.c; ends with its input. `hold` returns when it had
/// the lock.
fn plant(hold: fn() -> Instant) {
    static WAITED: AtomicU64 = AtomicU64::new(0);
    const THREADS: u64 = 4;
    for _ in 0..THREADS {
        std::thread::spawn(move || {
            loop {
                let start = Instant::now();
                let waited = hold() - start;
                WAITED.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
        });
    }
    let start = Instant::now();
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).expect("a pipe") > 0 {
        // Also the thread of the test, and that of its harness.
        let time = start.elapsed().as_nanos() as u64 * (THREADS + 2);
        println!("\n{} {time}", WAITED.load(Ordering::Relaxed));
    }
}

const PAUSE: Duration = Duration::from_millis(2);

static OF_STD: std::sync::Mutex<u64> = std::sync::Mutex::new(0);
static OF_PARKING_LOT: parking_lot::Mutex<u64> = parking_lot::Mutex::new(0);

#[inline(never)]
fn planted_site_of_std() -> Instant {
    let mut guard = OF_STD.lock().expect("no thread panics");
    let locked = Instant::now();
    std::thread::sleep(PAUSE);
    *guard += 1;
    locked
}

#[inline(never)]
fn planted_site_of_parking_lot() -> Instant {
    let mut guard = OF_PARKING_LOT.lock();
    let locked = Instant::now();
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
        assert!(all == 0.0 || inside / all > 0.5, "{inside} of {all} samples: {report:#}");
        all >= 3.0
    });
}

#[test]
fn a_page_has_the_verdict_the_stacks_and_a_flame_graph() {
    if refused() {
        return;
    }
    let folder = scratch();
    let watched = Watched::start(&mut Command::new(built(folder.path(), "planted")));
    let file = folder.path().join("page.html");
    let mut command = poundlock(["watch", "-p", &watched.pid(), "--for", "1s", "--report"]);
    let output = output(command.arg(&file));
    assert!(output.status.success(), "{}", stderr(&output));
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
    let watched = Watched::start(&mut Command::new(built(folder.path(), "planted")));
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

    let watched = Watched::start(&mut Command::new(&program));
    let report = |urls: &str| -> Value {
        let mut command = poundlock(["watch", "-p", &watched.pid(), "--for", "1s", "--json", "-"]);
        command.env("DEBUGINFOD_URLS", urls);
        command.env("DEBUGINFOD_CACHE_PATH", folder.path().join("cache"));
        let output = output(&mut command);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).expect("a document")
    };
    assert_first(&report(""), "pthread mutex", "planted+0x");
    let named = report(&server);
    assert_first(&named, "pthread mutex", "planted_site");
    assert_eq!(first_lock(&named)["object"], "planted_lock", "{named:#}");
}

// ---- Events in the life of the process and of its watcher ----

fn signal(pid: &str, name: &str) {
    assert!(Command::new("kill").args([name, pid]).status().expect("kill").success());
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

fn is_attached(pid: u32) -> bool {
    attached(pid).len() >= 2
}

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

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A watcher that is attached, and the file of its report.
fn start_watch(pid: &str, folder: &Path) -> (Child, PathBuf) {
    let file = folder.join(format!("{}.json", std::process::id()));
    let mut command = poundlock(["watch", "-p", pid, "--json"]);
    let child = command.arg(&file).stdout(Stdio::null()).spawn().expect("the command starts");
    until("attached", || is_attached(child.id()));
    (child, file)
}

/// The report of a watcher that ends by itself.
fn report_of(watcher: &mut Child, file: &Path) -> Value {
    assert!(watcher.wait().expect("our child").success());
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// planted.c, watched for half a second.
fn start_planted(folder: &Path) -> (Watched, Child, PathBuf) {
    let watched = Watched::start(&mut Command::new(built(folder, "planted")));
    let (watcher, file) = start_watch(&watched.pid(), folder);
    std::thread::sleep(Duration::from_millis(500));
    (watched, watcher, file)
}

#[test]
fn the_report_follows_when_the_process_ends() {
    if refused() {
        return;
    }
    let folder = scratch();
    let (watched, mut watcher, file) = start_planted(folder.path());
    signal(&watched.pid(), "-KILL");
    let report = report_of(&mut watcher, &file);
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
    let (_watched, mut watcher, file) = start_planted(folder.path());
    signal(&watcher.id().to_string(), "-INT");
    let report = report_of(&mut watcher, &file);
    assert_first(&report, "pthread mutex", "planted_site");
}

#[test]
fn a_killed_watcher_leaves_nothing_and_two_agree() {
    if refused() {
        return;
    }
    let folder = scratch();
    let mut watched = Watched::start(&mut Command::new(built(folder.path(), "planted")));
    let (mut killed, _) = start_watch(&watched.pid(), folder.path());
    // Beside it, another watcher sees the truth.
    assert_first(&assert_true(&mut watched), "pthread mutex", "planted_site");
    let programs = attached(killed.id());
    assert!(programs.iter().all(|program| is_loaded(*program)));
    killed.kill().expect("our child");
    killed.wait().expect("our child");
    until("detached", || programs.iter().all(|program| !is_loaded(*program)));
    assert_first(&assert_true(&mut watched), "pthread mutex", "planted_site");
}

/// The number of different programs that a watcher has attached.
fn programs_of(watcher: u32) -> usize {
    attached(watcher).into_iter().collect::<HashSet<_>>().len()
}

#[test]
fn wake_ups_are_followed_if_threads_wait_for_futexes() {
    if refused() {
        return;
    }
    let folder = scratch();
    let mut shell = Command::new("sh");
    let without = Watched::start(shell.args(["-c", "while sleep 0.01; do :; done"]));
    let (mut watcher, file) = start_watch(&without.pid(), folder.path());
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(programs_of(watcher.id()), 2, "switches and samples");
    signal(&watcher.id().to_string(), "-INT");
    report_of(&mut watcher, &file);
    let (_watched, mut watcher, _) = start_planted(folder.path());
    until("wake-ups are followed", || programs_of(watcher.id()) == 3);
    watcher.kill().expect("our child");
    watcher.wait().expect("our child");
}

#[test]
fn a_stopped_process_is_seen_stopped() {
    if refused() {
        return;
    }
    let folder = scratch();
    let watched = Watched::start(&mut Command::new(built(folder.path(), "planted")));
    signal(&watched.pid(), "-STOP");
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
    let (mut watcher, file) = start_watch(&watched.pid(), folder.path());
    watched.input.as_mut().unwrap().write_all(b"go\n").unwrap();
    let start = watched.truth();
    until("it waits", || watched.truth()[0] - start[0] > 4e9);
    signal(&watcher.id().to_string(), "-INT");
    let report = report_of(&mut watcher, &file);
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
    let mut child = None;
    until("unshare starts the program", || {
        let path = format!("/proc/{0}/task/{0}/children", watched.pid());
        let children = std::fs::read_to_string(path).unwrap_or_default();
        let name = |child: &&str| std::fs::read_to_string(format!("/proc/{child}/comm"));
        let is_planted = |child: &&str| name(child).is_ok_and(|name| name.trim() == "planted");
        child = children.split_whitespace().next().filter(is_planted).map(str::to_owned);
        child.is_some()
    });
    let child = child.expect("it has started");
    let _ = watched.truth();
    let report = watch(&child, &["--for", "1s"]);
    assert_first(&report, "pthread mutex", "planted_site");
    assert_eq!(number(&report["threads"]), 7.0);
    drop(watched);

    let script = "\"$1\" <&3 >/dev/null & exec \"$0\" watch -p $! --for 1s --json -";
    let mut command = Command::new("unshare");
    command.args(unshare).args(["sh", "-c"]).arg(format!("exec 3<&0; {script}"));
    command.arg(env!("CARGO_BIN_EXE_poundlock")).arg(&planted);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut inside = command.spawn().expect("unshare");
    // The program ends with its input.
    let input = inside.stdin.take();
    let output = inside.wait_with_output().expect("our child");
    drop(input);
    let text = String::from_utf8(output.stdout).unwrap();
    let report: Value = serde_json::from_str(&text).expect("a document");
    assert!(number(&report["pid"]) < 10.0, "{report:#}");
    assert_first(&report, "pthread mutex", "planted_site");
}

#[test]
fn many_threads_and_locks_have_room() {
    if refused() {
        return;
    }
    let folder = scratch();
    let many = built(folder.path(), "many");
    let mut watched = Watched::start(Command::new(many).args(["2000", "10000"]));
    watched.line("running");
    let report = watch(&watched.pid(), &["--for", "5s"]);
    assert_eq!(number(&report["threads"]), 2001.0);
    assert_eq!(number(&report["lost"]["threads"]), 0.0, "{}", report["lost"]);
    assert_eq!(number(&report["lost"]["waits"]), 0.0, "{}", report["lost"]);
    let whole = number(&report["seconds"]) * 2001.0;
    let total = number(&report["time"]["total"]);
    assert!((total / whole - 1.0).abs() < 0.05, "{total} of {whole} s");
    let waits = report["waits"].as_array().unwrap();
    let locks = waits.iter().filter(|wait| wait["kind"] == "pthread mutex").count();
    assert!(locks > 1000, "{locks} locks");
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
