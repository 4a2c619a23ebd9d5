//! `poundlock stat`, `profile`, `report` and `top` on a program with known lock operations.

mod common;

use common::{assert_refused, compile, output, poundlock, scratch, stderr, stdout};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use tempfile::TempDir;

struct Observed {
    directory: TempDir,
    program: PathBuf,
}

impl Observed {
    fn make() -> Observed {
        let directory = scratch();
        let program = directory.path().join("observed");
        compile(include_str!("observed.c"), &["-g", "-O1", "-pthread", "-rdynamic"], &program);
        Observed { directory, program }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs `poundlock stat` on the program doing `what` under `lock`. Returns the JSON and the
    /// exit status.
    fn stat(&self, lock: &str, what: &str) -> (Value, Option<i32>) {
        let output = output(
            poundlock(["stat", "-l", lock, "--rwlock", "fair_rw", "--json", "-", "--"])
                .arg(&self.program)
                .arg(what),
        );
        let json = serde_json::from_str(&stdout(&output));
        (json.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output))), output.status.code())
    }

    /// Starts the program in a mode in which it uses a lock repeatedly until its input ends.
    fn live(&self, lock: &str, folder: &Path) -> Child {
        let mut command = poundlock(["run", "-l", lock]);
        command
            .arg(format!("--stats={}", folder.display()))
            .arg("--")
            .arg(&self.program)
            .arg("live");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe"))
            .read_line(&mut line)
            .expect("a line when it is ready");
        assert_eq!(line, "ready\n");
        child
    }
}

/// The rows of a lock's name in a process.
fn rows<'a>(process: &'a Value, name: &str) -> Vec<&'a Value> {
    process["locks"].as_array().expect("locks").iter().filter(|lock| lock["name"] == name).collect()
}

#[track_caller]
fn row<'a>(process: &'a Value, name: &str, side: &str) -> &'a Value {
    let found: Vec<&Value> =
        rows(process, name).into_iter().filter(|lock| lock["side"] == side).collect();
    assert_eq!(found.len(), 1, "{name} {side} in {process}");
    found[0]
}

#[test]
fn operations_are_counted_exactly() {
    let observed = Observed::make();
    for lock in ["shfl_mutex", "mcs,wait=park", "ticket,wait=park", "native"] {
        let (document, status) = observed.stat(lock, "counts");
        assert_eq!(status, Some(0));
        let process = &document["processes"][0];
        assert_eq!(document["processes"].as_array().map(Vec::len), Some(1));
        assert_eq!(process["program"], "observed");
        let table = row(process, "table", "mutex");
        for (figure, expected) in [
            ("acquisitions", 1000 + 1 + 2),
            ("trylock_failures", 5),
            ("timeouts", 3),
            ("contended", 3 + 1),
            ("threads", 2),
            ("queue_max", 1),
            ("waiting", 0),
            ("lives", 1),
        ] {
            assert_eq!(table[figure], expected, "{figure} of {table} under {lock}");
        }
        assert_eq!(table["named_by"], "symbol");
        if lock == "native" {
            assert_eq!(
                (&table["parks"], &table["wakeups_in_section"]),
                (&Value::Null, &Value::Null)
            );
        } else {
            assert!(table["parks"].as_u64() >= Some(1), "{table} under {lock}");
        }
        let handovers = table["handovers_local"].as_u64().zip(table["handovers_remote"].as_u64());
        assert_eq!(
            handovers.map(|(local, remote)| local + remote),
            Some(1),
            "{table} under {lock}"
        );
        assert!(table["wait_max_ns"].as_u64() <= table["wait_ns"].as_u64());
        // One thread acquired it 1002 times, the other once.
        let jain = 1003.0_f64.powi(2) / (2.0 * (1002.0_f64.powi(2) + 1.0));
        assert!(
            (table["jain"].as_f64().expect("two threads took it") - jain).abs() < 1e-9,
            "{table}"
        );
        assert_eq!(row(process, "names", "readers")["acquisitions"], 20);
        assert_eq!(row(process, "names", "writers")["acquisitions"], 7);
    }
}

#[test]
fn each_process_has_its_own_counts_and_the_exit_status_passes_through() {
    let observed = Observed::make();
    for (lock, how) in [
        ("cna", "forked"),
        ("cna", "forked_raw"),
        ("shfl_mutex", "forked"),
        ("shfl_mutex", "forked_raw"),
        ("native", "forked"),
        ("native", "forked_raw"),
    ] {
        let (document, status) = observed.stat(lock, how);
        assert_eq!(status, Some(5));
        let processes = document["processes"].as_array().expect("processes");
        let mut taken: Vec<_> = processes
            .iter()
            .map(|process| row(process, "table", "mutex")["acquisitions"].as_u64())
            .collect();
        taken.sort_unstable();
        assert_eq!(taken, [Some(10), Some(20)], "{how} under {lock}");
    }
}

#[test]
fn a_killed_program_leaves_its_counts() {
    for lock in ["shfl_mutex", "native"] {
        let (document, status) = Observed::make().stat(lock, "killed");
        assert_eq!(status, Some(128 + 9));
        assert_eq!(row(&document["processes"][0], "table", "mutex")["acquisitions"], 50);
    }
}

/// Spin locks, recursive mutexes, condition variables, and the program's own exit.
#[test]
fn native_locks_of_all_kinds_are_counted_and_none_is_replaced() {
    let (document, status) = Observed::make().stat("native", "others");
    assert_eq!(status, Some(0));
    let process = &document["processes"][0];
    assert_eq!((&process["lock"], &process["rwlock"]), (&"native".into(), &"native".into()));
    let turn = row(process, "turn", "spin");
    assert_eq!((&turn["acquisitions"], &turn["trylock_failures"]), (&6.into(), &6.into()));
    let nested = row(process, "nested", "mutex");
    assert_eq!((&nested["acquisitions"], &nested["holds_timed"]), (&4.into(), &4.into()));
    // The return from each wait on a condition variable is an acquisition.
    let table = row(process, "table", "mutex");
    assert_eq!((&table["acquisitions"], &table["holds_timed"]), (&4.into(), &4.into()));
    // None of the library's own locks.
    assert_eq!(process["locks"].as_array().map(Vec::len), Some(3), "{process}");
}

#[test]
fn no_operation_of_many_threads_is_lost() {
    let observed = Observed::make();
    for lock in ["native", "shfl_mutex", "mcs,wait=park"] {
        let (document, status) = observed.stat(lock, "crowd");
        assert_eq!(status, Some(0), "{lock}");
        let process = &document["processes"][0];
        let acquired = |name, side| row(process, name, side)["acquisitions"].as_u64();
        assert_eq!(acquired("table", "mutex"), Some(80_000), "{lock}");
        assert_eq!(acquired("names", "readers"), Some(72_000), "{lock}");
        assert_eq!(acquired("names", "writers"), Some(8_000), "{lock}");
        let waiting: Vec<_> =
            process["locks"].as_array().expect("locks").iter().map(|of| &of["waiting"]).collect();
        assert!(waiting.iter().all(|waiting| **waiting == 0), "{waiting:?} under {lock}");
    }
}

/// The wait to re-acquire the mutex after a wait on a condition variable is counted and timed.
#[test]
fn waits_for_a_mutex_after_a_condition_variable_are_counted() {
    let observed = Observed::make();
    for lock in ["native", "shfl_mutex"] {
        let (document, status) = observed.stat(lock, "signalled");
        assert_eq!(status, Some(0));
        let process = &document["processes"][0];
        // Robust mutexes are not replaced, and not counted then.
        for name in if lock == "native" { vec!["table", "robust"] } else { vec!["table"] } {
            let mutex = row(process, name, "mutex");
            // Three waits: the waiter's lock, its return, and the lock of the thread that wakes it.
            assert_eq!((&mutex["acquisitions"], &mutex["contended"]), (&9.into(), &3.into()));
            assert!(mutex["wait_ns"].as_f64() >= Some(3e8), "{mutex} under {lock}");
        }
    }
}

/// The program measures how long its threads wait and live. Elsewhere waiting is not a share of
/// thread time; the verdict names the lock.
#[test]
fn planted_waiting_is_found() {
    let observed = Observed::make();
    for lock in ["native", "shfl_mutex"] {
        let json = observed.file("planted.json");
        let output = output(
            poundlock(["stat", "-l", lock, "--json"])
                .arg(&json)
                .arg("--")
                .args([observed.program.as_os_str(), "planted".as_ref()]),
        );
        let figures: Vec<f64> =
            stdout(&output).split_whitespace().map(|word| word.parse().expect("a time")).collect();
        let text = std::fs::read_to_string(&json).expect("it is written");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let process = &document["processes"][0];
        let share = row(process, "table", "mutex")["wait_share"].as_f64().expect("a share");
        let planted = figures[0] / figures[1];
        assert!((share / planted - 1.0).abs() < 0.1, "{share} {planted} in {process}");
        let verdict = process["verdict"].as_str().expect("a verdict");
        assert!(verdict.contains("of thread time waits for locks"), "{verdict}");
        assert!(verdict.contains("table, waited for in wait_for_table"), "{verdict}");
        assert!(stderr(&output).contains(verdict), "{}", stderr(&output));
        assert!(process["elapsed_ns"].as_f64() <= process["thread_ns"].as_f64(), "{process}");
    }
}

/// An executed program, and one in C++.
#[test]
fn native_locks_are_counted_in_an_executed_program_of_cxx() {
    let directory = scratch();
    let (source, program) = (directory.path().join("cxx.cpp"), directory.path().join("cxx"));
    std::fs::write(
        &source,
        "#include <condition_variable>\n#include <mutex>\n#include <shared_mutex>\n\
         std::mutex plain;\nstd::shared_mutex shared;\nint main() {\n\
         for (int i = 0; i < 9; i++) std::lock_guard<std::mutex> guard(plain);\n\
         for (int i = 0; i < 5; i++) std::shared_lock<std::shared_mutex> guard(shared);\n\
         for (int i = 0; i < 2; i++) std::unique_lock<std::shared_mutex> guard(shared);\n}\n",
    )
    .expect("a file");
    let built = output(
        std::process::Command::new("c++")
            .args(["-std=c++17", "-pthread", "-rdynamic", "-o"])
            .args([&program, &source]),
    );
    assert!(built.status.success(), "{}", stderr(&built));
    let script = format!("exec {}", program.display());
    let run =
        output(&mut poundlock(["stat", "-l", "native", "--json", "-", "--", "sh", "-c", &script]));
    let document: Value = serde_json::from_str(&stdout(&run))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&run)));
    let processes = document["processes"].as_array().expect("processes");
    let process =
        processes.iter().find(|process| process["program"] == "cxx").expect("it is there");
    assert_eq!(row(process, "plain", "mutex")["acquisitions"], 9);
    assert_eq!(row(process, "shared", "readers")["acquisitions"], 5);
    assert_eq!(row(process, "shared", "writers")["acquisitions"], 2);
    assert_eq!(process["verdict"].as_str().map(|text| text.contains("no problem")), Some(true));
}

#[test]
fn a_hundred_thousand_locks_lose_no_counts_and_contended_ones_have_rows() {
    let (document, status) = Observed::make().stat("shfl_mutex", "many");
    assert_eq!(status, Some(0));
    let process = &document["processes"][0];
    let locks = process["locks"].as_array().expect("locks");
    let sum: u64 = locks.iter().filter_map(|lock| lock["acquisitions"].as_u64()).sum();
    assert_eq!(sum, 100_000 + 2);
    assert!(process["locks_unobserved"].as_u64() > Some(0));
    assert!(row(process, "(others)", "others")["acquisitions"].as_u64() > Some(0));
    assert_eq!(row(process, "table", "mutex")["contended"], 1);
}

#[test]
fn rare_acquisitions_are_all_timed() {
    let (document, _) = Observed::make().stat("shfl_mutex", "rarely");
    let table = row(&document["processes"][0], "table", "mutex");
    assert_eq!(
        (&table["acquisitions"], &table["holds_timed"]),
        (&10.into(), &10.into()),
        "{table}"
    );
    assert!(table["hold_mean_ns"].as_f64() >= Some(2e6), "{table}");
}

#[test]
fn c_names_are_not_demangled() {
    let (document, _) = Observed::make().stat("shfl_mutex", "named");
    for (name, taken) in [("m", 3), ("i", 2), ("St", 1)] {
        assert_eq!(row(&document["processes"][0], name, "mutex")["acquisitions"], taken);
    }
}

/// The program runs without statistics if the limit on file sizes is too low for them.
#[test]
fn a_limit_on_the_size_of_files_does_not_end_the_program() {
    let observed = Observed::make();
    let folder = scratch();
    let script = format!(
        "ulimit -f 8; trap '' XFSZ; trap - XFSZ; exec {} counts",
        observed.program.display()
    );
    let mut command = poundlock(["run"]);
    command.arg(format!("--stats={}", folder.path().display()));
    let output =
        output(command.args(["--", "sh", "-c", &script]).env("POUNDLOCK_LOCK", "shfl_mutex"));
    assert_eq!(output.status.code(), Some(0), "{:?}: {}", output.status, stderr(&output));
    let lines: Vec<String> = stderr(&output).lines().map(str::to_owned).collect();
    assert!(lines.len() == 1 && lines[0].contains("File too large"), "{lines:?}");
    let left = std::fs::read_dir(folder.path()).expect("a folder").flatten().collect::<Vec<_>>();
    assert!(
        left.iter().all(|file| file.metadata().is_ok_and(|file| file.len() > 8192)),
        "{left:?}"
    );
}

/// Every obstacle to reading a file of statistics is a one-line error.
#[test]
fn a_file_of_statistics_may_be_anything() {
    let folder = scratch();
    let path = |name: &str| folder.path().join(name);
    let refuse = |file: &Path, why: &str| {
        assert_refused(
            poundlock(["stat", "--file"]).arg(file),
            125,
            &[&file.display().to_string(), why],
        );
    };
    let fifo = path("poundlock.1.0.stats");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    refuse(&fifo, "not a regular file");
    refuse(Path::new("/dev/zero"), "not a regular file");
    // Corrupt item sizes and counts: five arrays of 4 Gi items of 1 MiB, arrays that exceed the
    // file, and items that are too small.
    for (bytes, count) in [(1u32 << 20, u32::MAX), (4096, 16), (128, 1 << 20), (0, 1), (1, 8)] {
        let mut content = vec![0; 8192];
        content[..16].copy_from_slice(b"poundlock stats\0");
        content[16..20].copy_from_slice(&4u32.to_ne_bytes());
        for area in 0..5 {
            let header: Vec<u8> = [4096u32, 0, bytes, count, count]
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect();
            content[56 + 24 * area..76 + 24 * area].copy_from_slice(&header);
        }
        let crafted = path("crafted");
        std::fs::write(&crafted, &content).expect("a file");
        refuse(&crafted, "is not a complete file of statistics");
    }
    // In a folder, files that are not statistics are skipped.
    let all = output(poundlock(["stat", "--json", "-", "--file"]).arg(folder.path()));
    let document: Value = serde_json::from_str(&stdout(&all))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&all)));
    assert_eq!(document["processes"], Value::Array(Vec::new()));
}

#[test]
fn endless_files_are_refused() {
    for arguments in [
        &["route", "--matrix", "/dev/zero"][..],
        &["bench", "file", "/dev/zero"],
        &["sim", "run", "-t", "2", "-l", "mcs", "-m", "/dev/zero", "-w", "cna-map"],
        &["sim", "figure", "/dev/zero"],
    ] {
        assert_refused(&mut poundlock(arguments), 125, &["/dev/zero", "larger than"]);
    }
}

/// The build folder of libpoundlock, relative to the preload library.
fn built() -> PathBuf {
    common::preload().ancestors().nth(2).expect("build/preload").to_path_buf()
}

/// A file may have any bytes in the place of a lock's name.
#[test]
fn names_in_a_file_cannot_control_the_terminal() {
    let directory = scratch();
    let program = directory.path().join("program");
    let include = format!("-I{}/../../lib", env!("CARGO_MANIFEST_DIR"));
    let archive = built().join("libpoundlock.a").display().to_string();
    compile(
        include_str!("api.c"),
        &[&include, "-pthread", "-Wl,--no-as-needed", &archive],
        &program,
    );
    let folder = directory.path().join("files");
    std::fs::create_dir(&folder).expect("a folder");
    let stats = format!("--stats={}", folder.display());
    assert!(output(poundlock(["run", &stats, "--"]).arg(&program)).status.success());
    let mut files =
        std::fs::read_dir(&folder).expect("the folder").map(|file| file.expect("a file").path());
    let file = files.next().expect("the file of statistics");
    let mut content = std::fs::read(&file).expect("the file");
    let at = content
        .windows(10)
        .position(|bytes| bytes == b"late name\0")
        .expect("the name is in the file");
    // Also without a final zero, and not in UTF-8.
    content[at..at + 32].copy_from_slice(b"\x1b[2J\r\n\xff,\"=1;<b>&;bbbbbbbbbbbbbbb");
    std::fs::write(&file, &content).expect("the file");
    for format in [&["--json", "-"][..], &["--csv", "-"], &[]] {
        let shown = output(poundlock(["stat"]).args(format).arg("--file").arg(&file));
        assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
        // The table is on stderr.
        let text = stdout(&shown) + &stderr(&shown);
        assert!(text.contains("\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd},"), "{text}");
        assert!(!text.contains('\x1b') && !text.contains('\r'), "{text}");
    }
}

/// Locks that a program uses through poundlock.h, linked dynamically and statically.
#[test]
fn locks_of_our_own_interface_are_counted() {
    let directory = scratch();
    let (library, root) = (built(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let include = format!("-I{}", root.join("lib").display());
    let (place, path) =
        (format!("-L{}", library.display()), format!("-Wl,-rpath,{}", library.display()));
    let archive = library.join("libpoundlock.a").display().to_string();
    for linked in [&[place.as_str(), "-lpoundlock", &path][..], &["-Wl,--no-as-needed", &archive]] {
        let program = directory.path().join("program");
        // An archive follows the objects that need it.
        compile(
            include_str!("api.c"),
            &[&[include.as_str(), "-pthread"], linked].concat(),
            &program,
        );
        let output = output(poundlock(["stat", "--json", "-", "--"]).arg(&program));
        let json = serde_json::from_str::<Value>(&stdout(&output));
        let document = json.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
        assert_eq!(output.status.code(), Some(0), "{linked:?}: {}", stderr(&output));
        let process = &document["processes"][0];
        for (name, side, acquisitions, contended) in [
            ("by_name", "mutex", 100, 0),
            ("of_zeroes", "readers", 20, 0),
            ("of_zeroes", "writers", 7, 0),
            ("rw_by_name", "readers", 20, 0),
            ("rw_by_name", "writers", 7, 0),
            ("waited_for", "mutex", 1, 1),
        ] {
            let row = row(process, name, side);
            let counts = (&row["acquisitions"], &row["contended"], &row["api"]);
            assert_eq!(
                counts,
                (&acquisitions.into(), &contended.into(), &true.into()),
                "{row} of {linked:?}"
            );
        }
        assert_eq!(row(process, "by_name", "mutex")["trylock_failures"], 100);
        for (name, side, acquisitions, named_by) in [
            ("early?name", "mutex", 2, "program"),
            ("table", "readers", 20, "program"),
            ("table", "writers", 7, "program"),
            ("late name", "mutex", 3, "program"),
            ("unnamed", "mutex", 4, "symbol"),
            ("first", "mutex", 5, "program"),
            ("second", "mutex", 6, "program"),
            ("pthread's", "mutex", 1, "program"),
        ] {
            let row = row(process, name, side);
            let seen = (&row["acquisitions"], &row["named_by"]);
            assert_eq!(seen, (&acquisitions.into(), &named_by.into()), "{row} of {linked:?}");
        }
        // Without its one lock of pthread's.
        compile(
            include_str!("api.c"),
            &[&[include.as_str(), "-pthread", "-DOWN_LOCKS_ONLY"], linked].concat(),
            &program,
        );
        let doctor = common::output(poundlock(["doctor"]).arg(&program));
        assert_eq!(doctor.status.code(), Some(1), "{}", stdout(&doctor));
        assert!(stdout(&doctor).contains("uses Poundlock's API"), "{}", stdout(&doctor));
        assert!(
            stdout(&doctor).contains("already uses Poundlock's own locks"),
            "{}",
            stdout(&doctor)
        );
    }
}

#[test]
fn a_live_process_is_observed() {
    let observed = Observed::make();
    for lock in ["shfl_mutex", "native"] {
        watch_live(&observed, lock);
    }
}

fn watch_live(observed: &Observed, lock: &str) {
    let folder = scratch();
    let mut child = observed.live(lock, folder.path());
    let pid = child.id().to_string();
    let one = output(&mut poundlock(["stat", "--json", "-", "--pid", &pid]));
    let first: Value = serde_json::from_str(&stdout(&one))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&one)));
    let top = output(&mut poundlock(["top", "--once", "--interval", "0.2", "--pid", &pid]));
    assert!(top.status.success(), "{}", stderr(&top));
    assert!(stdout(&top).contains("table"), "{}", stdout(&top));
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    let left = output(poundlock(["stat", "--json", "-", "--file"]).arg(folder.path()));
    let last: Value = serde_json::from_str(&stdout(&left))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&left)));
    let taken = |document: &Value| {
        row(&document["processes"][0], "table", "mutex")["acquisitions"].as_u64()
    };
    assert!(taken(&first) >= Some(1) && taken(&last) > taken(&first), "{first} {last}");
    assert_refused(&mut poundlock(["stat", "--pid", &pid]), 125, &[&pid]);
}

#[test]
fn stacks_have_names() {
    let observed = Observed::make();
    for lock in ["shfl_mutex", "native"] {
        name_stacks(&observed, lock);
    }
}

fn name_stacks(observed: &Observed, lock: &str) {
    let (svg, folded, page) =
        (observed.file("p.svg"), observed.file("p.txt"), observed.file("r.html"));
    let profile = output(
        poundlock(["profile", "-l", lock, "-o"])
            .arg(&svg)
            .arg("--folded")
            .arg(&folded)
            .arg("--")
            .arg(&observed.program)
            .arg("counts"),
    );
    assert!(profile.status.success(), "{}", stderr(&profile));
    let lines = std::fs::read_to_string(&folded).expect("it is written");
    let waiters = lines
        .lines()
        .find(|line| line.contains("table;waiters;") && line.contains("wait_for_table"));
    assert!(waiters.is_some_and(|line| line.contains("wait_once;wait_for_table")), "{lines}");
    let holders = lines.lines().find(|line| line.contains("table;holders;"));
    assert!(
        holders.is_some_and(|line| line.contains("main") && line.contains("hold_until_it_sleeps")),
        "{lines}"
    );
    let picture = std::fs::read_to_string(&svg).expect("it is written");
    assert!(picture.contains("<svg") && picture.contains("wait_for_table"));
    let report = output(
        poundlock(["report", "-o"]).arg(&page).arg("--").arg(&observed.program).arg("counts"),
    );
    assert!(report.status.success(), "{}", stderr(&report));
    let page = std::fs::read_to_string(&page).expect("it is written");
    for part in ["<td>table</td>", "<td>names (readers)</td>", "<svg", "wait_for_table"] {
        assert!(page.contains(part), "no {part}");
    }
    assert!(page.contains("svg { display: block; width: 100% }"), "as wide as its frame");
    // The file has no external references.
    assert!(!page.contains("src=\"http") && !page.contains("<link"));
}

#[test]
fn a_spreadsheet_has_a_line_for_each_lock() {
    let observed = Observed::make();
    let output =
        output(poundlock(["stat", "--csv", "-", "--"]).arg(&observed.program).arg("counts"));
    let text = stdout(&output);
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let place =
        |name| header.iter().position(|column| *column == name).expect("the column is there");
    let table: Vec<&str> = lines
        .find(|line| line.contains(",table,"))
        .expect("the lock is there")
        .split(',')
        .collect();
    assert_eq!(table[place("acquisitions")], "1003");
    assert_eq!(table[place("timeouts")], "3");
}

#[test]
fn invalid_arguments_are_named() {
    let directory = scratch();
    let other = directory.path().join("poundlock.1.0.stats");
    std::fs::write(&other, "no statistics").expect("the test's directory takes files");
    assert_refused(
        poundlock(["stat", "--file"]).arg(&other),
        125,
        &["poundlock.1.0.stats", "not a complete file"],
    );
    assert_refused(&mut poundlock(["stat", "--file", "/nowhere"]), 125, &["/nowhere"]);
    assert_refused(&mut poundlock(["stat", "-l", "nosuch", "--", "true"]), 125, &["nosuch"]);
    assert_refused(&mut poundlock(["run", "--stats=/nowhere", "--", "true"]), 125, &["/nowhere"]);
    assert_refused(&mut poundlock(["stat", "--", "/nowhere/program"]), 127, &["/nowhere/program"]);
    let own = std::process::id().to_string();
    assert_refused(&mut poundlock(["top", "--pid", &own]), 125, &["has no statistics"]);
}
