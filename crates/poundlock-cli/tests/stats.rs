//! `poundlock stat`, `profile`, `report` and `top`, on a program of which is known what it does to its locks.

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

    /// What `poundlock stat` has to say of the program doing `what` under `lock`, and its exit status.
    fn stat(&self, lock: &str, what: &str) -> (Value, Option<i32>) {
        let output = output(
            poundlock(["stat", "-l", lock, "--rwlock", "fair_rw", "--json", "-", "--"]).arg(&self.program).arg(what),
        );
        let json = serde_json::from_str(&stdout(&output));
        (json.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output))), output.status.code())
    }

    /// The program alive, with a lock that is locked again and again.
    fn live(&self, folder: &Path) -> Child {
        let mut command = poundlock(["run"]);
        command.arg(format!("--stats={}", folder.display())).arg("--").arg(&self.program).arg("live");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it says so");
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
    let found: Vec<&Value> = rows(process, name).into_iter().filter(|lock| lock["side"] == side).collect();
    assert_eq!(found.len(), 1, "{name} {side} in {process}");
    found[0]
}

#[test]
fn what_was_done_is_counted_exactly() {
    let observed = Observed::make();
    for lock in ["shfl_mutex", "mcs,wait=park", "ticket,wait=park"] {
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
        assert!(table["parks"].as_u64() >= Some(1), "{table} under {lock}");
        let handovers = table["handovers_local"].as_u64().zip(table["handovers_remote"].as_u64());
        assert_eq!(handovers.map(|(local, remote)| local + remote), Some(1), "{table} under {lock}");
        assert!(table["wait_max_ns"].as_u64() <= table["wait_ns"].as_u64());
        // By one 1002 times, by the other once.
        let jain = 1003.0_f64.powi(2) / (2.0 * (1002.0_f64.powi(2) + 1.0));
        assert!((table["jain"].as_f64().expect("two threads took it") - jain).abs() < 1e-9, "{table}");
        assert_eq!(row(process, "names", "readers")["acquisitions"], 20);
        assert_eq!(row(process, "names", "writers")["acquisitions"], 7);
    }
}

#[test]
fn every_process_has_its_own_counts_and_the_exit_status_is_the_programs() {
    let (document, status) = Observed::make().stat("cna", "forked");
    assert_eq!(status, Some(5));
    let mut taken: Vec<_> = document["processes"].as_array().expect("processes").iter().collect();
    taken.sort_by_key(|process| row(process, "table", "mutex")["acquisitions"].as_u64());
    let taken: Vec<_> = taken.into_iter().map(|process| &row(process, "table", "mutex")["acquisitions"]).collect();
    assert_eq!(taken, [10, 20]);
}

#[test]
fn who_was_killed_leaves_what_was_counted() {
    let (document, status) = Observed::make().stat("shfl_mutex", "killed");
    assert_eq!(status, Some(128 + 9));
    assert_eq!(row(&document["processes"][0], "table", "mutex")["acquisitions"], 50);
}

#[test]
fn of_a_hundred_thousand_locks_nothing_is_lost_and_what_was_waited_for_has_a_row() {
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
fn a_living_process_is_looked_at() {
    let observed = Observed::make();
    let folder = scratch();
    let mut child = observed.live(folder.path());
    let pid = child.id().to_string();
    let one = output(&mut poundlock(["stat", "--json", "-", "--pid", &pid]));
    let first: Value = serde_json::from_str(&stdout(&one)).unwrap_or_else(|error| panic!("{error}: {}", stderr(&one)));
    let top = output(&mut poundlock(["top", "--once", "--interval", "0.2", "--pid", &pid]));
    assert!(top.status.success(), "{}", stderr(&top));
    assert!(stdout(&top).contains("table"), "{}", stdout(&top));
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    let left = output(poundlock(["stat", "--json", "-", "--file"]).arg(folder.path()));
    let last: Value = serde_json::from_str(&stdout(&left)).unwrap_or_else(|error| panic!("{error}: {}", stderr(&left)));
    let taken = |document: &Value| row(&document["processes"][0], "table", "mutex")["acquisitions"].as_u64();
    assert!(taken(&first) >= Some(1) && taken(&last) > taken(&first), "{first} {last}");
    assert_refused(&mut poundlock(["stat", "--pid", &pid]), 125, &[&pid]);
}

#[test]
fn stacks_have_names() {
    let observed = Observed::make();
    let (svg, folded, page) = (observed.file("p.svg"), observed.file("p.txt"), observed.file("r.html"));
    let profile = output(
        poundlock(["profile", "-o"])
            .arg(&svg)
            .arg("--folded")
            .arg(&folded)
            .arg("--")
            .arg(&observed.program)
            .arg("counts"),
    );
    assert!(profile.status.success(), "{}", stderr(&profile));
    let lines = std::fs::read_to_string(&folded).expect("it is written");
    let waiters = lines.lines().find(|line| line.contains("table;waiters;") && line.contains("wait_for_table"));
    assert!(waiters.is_some_and(|line| line.contains("wait_once;wait_for_table")), "{lines}");
    let holders = lines.lines().find(|line| line.contains("table;holders;"));
    assert!(holders.is_some_and(|line| line.contains("main") && line.contains("hold_until_it_sleeps")), "{lines}");
    let picture = std::fs::read_to_string(&svg).expect("it is written");
    assert!(picture.contains("<svg") && picture.contains("wait_for_table"));
    let report = output(poundlock(["report", "-o"]).arg(&page).arg("--").arg(&observed.program).arg("counts"));
    assert!(report.status.success(), "{}", stderr(&report));
    let page = std::fs::read_to_string(&page).expect("it is written");
    for part in ["<td>table</td>", "<td>names (readers)</td>", "<svg", "wait_for_table"] {
        assert!(page.contains(part), "no {part}");
    }
    // It needs nothing from elsewhere.
    assert!(!page.contains("src=\"http") && !page.contains("<link"));
}

#[test]
fn a_spreadsheet_has_a_line_for_each_lock() {
    let observed = Observed::make();
    let output = output(poundlock(["stat", "--csv", "-", "--"]).arg(&observed.program).arg("counts"));
    let text = stdout(&output);
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let place = |name| header.iter().position(|column| *column == name).expect("the column is there");
    let table: Vec<&str> = lines.find(|line| line.contains(",table,")).expect("the lock is there").split(',').collect();
    assert_eq!(table[place("acquisitions")], "1003");
    assert_eq!(table[place("timeouts")], "3");
}

#[test]
fn wrong_questions_are_named() {
    let directory = scratch();
    let other = directory.path().join("poundlock.1.0.stats");
    std::fs::write(&other, "no statistics").expect("the test's directory takes files");
    assert_refused(poundlock(["stat", "--file"]).arg(&other), 125, &["poundlock.1.0.stats", "not a whole file"]);
    assert_refused(&mut poundlock(["stat", "--file", "/nowhere"]), 125, &["/nowhere"]);
    assert_refused(&mut poundlock(["stat", "-l", "native", "--", "true"]), 125, &["native locks are not observed"]);
    assert_refused(&mut poundlock(["stat", "-l", "nosuch", "--", "true"]), 125, &["nosuch"]);
    assert_refused(&mut poundlock(["run", "--stats=/nowhere", "--", "true"]), 125, &["/nowhere"]);
    assert_refused(&mut poundlock(["stat", "--", "/nowhere/program"]), 127, &["/nowhere/program"]);
    let own = std::process::id().to_string();
    assert_refused(&mut poundlock(["top", "--pid", &own]), 125, &["keeps no statistics"]);
}
