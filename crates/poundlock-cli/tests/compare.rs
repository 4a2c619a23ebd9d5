//! `poundlock compare`: every run of every lock is measured, and failures are reported.

mod common;

use common::{assert_refused, output, poundlock, scratch, stderr, stdout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("compare wrote it");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Runs compare with `options` on a shell script. Returns its exit status and its JSON.
fn compare(options: &[&str], script: &str) -> (Option<i32>, Value) {
    let directory = scratch();
    let file = directory.path().join("comparison.json");
    let mut command = poundlock(["compare", "--json"]);
    let output = output(command.arg(&file).args(options).args(["--", "sh", "-c", script]));
    (output.status.code(), json(&file))
}

/// The runs' member `name`, in order.
fn each_run<'a>(comparison: &'a Value, name: &str) -> Vec<&'a Value> {
    comparison["runs"].as_array().expect("runs").iter().map(|run| &run[name]).collect()
}

fn lock<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let locks = comparison["locks"].as_array().expect("locks");
    locks
        .iter()
        .find(|lock| lock["lock"] == name)
        .unwrap_or_else(|| panic!("no {name} in {locks:?}"))
}

#[test]
fn bad_input_is_one_line() {
    for (options, words) in [
        (&["--metric", "rate: ("][..], &["rate: (", "unclosed group"][..]),
        (&["--metric", "rate"], &["rate", "no group"]),
        (&["-l", "mcs,nosuch"], &["nosuch"]),
        (&["-l", "wait=spin,mcs"], &["'wait=spin'", "no lock before it"]),
        (&["-l", "mcs", "-l", "ttas,mcs"], &["'mcs'", "twice"]),
        (&["-l", "native"], &["native"]),
        (&["--json", "/no/such/directory/file"], &["/no/such/directory/file"]),
        (&["--svg", "/no/such/directory/file"], &["/no/such/directory/file"]),
        (&["--export-markdown", "/no/such/directory/file"], &["/no/such/directory/file"]),
        (&["--export-csv", "/no/such/directory/file"], &["/no/such/directory/file"]),
        (&["--export-csv", "-", "--json", "-"], &["only one file can be '-'"]),
        (&["--preload", "/no/such.so"], &["/no/such.so"]),
    ] {
        assert_refused(poundlock(["compare"]).args(options).args(["--", "true"]), 125, words);
    }
    assert_refused(&mut poundlock(["compare", "no-such-program"]), 127, &["'no-such-program'"]);
    assert_refused(&mut poundlock(["compare", "/"]), 126, &["'/'"]);
}

#[test]
fn the_json_has_results_and_provenance() {
    let options = [
        "-l",
        "mcs,wait=park,ttas",
        "-n",
        "2",
        "--warmup",
        "1",
        "--metric",
        r"^rate: (\d+)",
        "--timeout",
        "60",
    ];
    let script =
        "sleep 0.05; if [ -n \"$POUNDLOCK_LOCK\" ]; then echo rate: 30; else echo rate: 10; fi";
    let (status, comparison) = compare(&options, script);
    assert_eq!(status, Some(0), "{comparison:#}");
    assert_eq!(comparison["schema"], "poundlock.compare/1");
    for name in [
        "/poundlock/version",
        "/poundlock/revision",
        "/machine/cpu",
        "/kernel",
        "/compiler/locks",
        "/preload",
    ] {
        assert!(
            comparison.pointer(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty()),
            "{name}"
        );
    }
    assert!(comparison["machine"]["cores_online"].as_u64() >= Some(1));
    assert_eq!(comparison["command"], serde_json::json!(["sh", "-c", script]));
    assert_eq!(comparison["settings"]["repeats"], 2);
    assert_eq!(comparison["settings"]["metric"], options[7]);
    assert_eq!(comparison["figure"]["better"], "higher");
    assert_eq!(comparison["interrupted"], false);

    assert_eq!(
        comparison["runs"].as_array().map(Vec::len),
        Some(9),
        "three of the warm-up and two of each lock"
    );
    assert_eq!(each_run(&comparison, "repeat").iter().filter(|repeat| repeat.is_null()).count(), 3);
    for run in comparison["runs"].as_array().expect("runs") {
        assert_eq!(run["outcome"]["kind"], "ok", "{run}");
        assert!(run["wall"].as_f64() >= Some(0.05), "it slept: {run}");
        assert!(run["peak_rss_bytes"].as_u64() > Some(0), "{run}");
    }
    for (name, figure, ratio) in
        [("native", 10.0, 1.0), ("mcs,wait=park", 30.0, 3.0), ("ttas", 30.0, 3.0)]
    {
        let lock = lock(&comparison, name);
        assert_eq!(lock["figure"]["median"], figure, "{lock}");
        assert_eq!(lock["ratio"]["median"], ratio, "{lock}");
        assert_eq!((&lock["succeeded"], &lock["failed"]), (&2.into(), &0.into()), "{lock}");
    }
}

#[test]
fn repeats_rotate_the_first_lock() {
    let (_, comparison) = compare(&["-l", "mcs,ttas", "-n", "4"], "true");
    let order = [
        "native", "mcs", "ttas", "mcs", "ttas", "native", "ttas", "native", "mcs", "native", "mcs",
        "ttas",
    ];
    assert_eq!(each_run(&comparison, "lock"), order);
}

#[test]
fn every_lock_is_compared_by_default() {
    let (_, comparison) = compare(&["-n", "1", "--no-native"], "true");
    let names: Vec<&str> = poundlock::locks().map(|lock| lock.name).collect();
    assert_eq!(each_run(&comparison, "lock"), names);
    assert!(lock(&comparison, names[0])["ratio"].is_null(), "there is nothing to relate to");
}

#[test]
fn a_failed_run_is_shown_and_the_others_count() {
    let directory = scratch();
    let file = directory.path().join("comparison.json");
    let script =
        r#"case "$POUNDLOCK_LOCK" in ttas) echo went wrong; exit 3;; mcs) kill -SEGV $$;; esac"#;
    let mut command = poundlock(["compare", "-l", "ttas,mcs,cna", "-n", "2", "--json"]);
    let output = output(command.arg(&file).args(["--", "sh", "-c", script]));
    assert_eq!(output.status.code(), Some(1));
    let row = |name: &str| {
        let table = stdout(&output);
        table
            .lines()
            .find(|line| line.trim_start().starts_with(name))
            .expect("a row for each lock")
            .to_owned()
    };
    assert!(row("ttas").contains("2 of 2 FAILED"), "{}", row("ttas"));
    assert!(!row("cna").contains("FAILED"), "{}", row("cna"));
    assert!(
        stderr(&output).contains("ttas, repeat 1: exit status 3\n  | went wrong"),
        "{}",
        stderr(&output)
    );
    let comparison = json(&file);
    assert_eq!(comparison["runs"].as_array().map(Vec::len), Some(8));
    assert!(lock(&comparison, "ttas")["figure"].is_null());
    assert_eq!(lock(&comparison, "cna")["succeeded"], 2);
    let outcome = |name: &str| {
        let runs = comparison["runs"].as_array().expect("runs");
        runs.iter().find(|run| run["lock"] == name).expect("a run of each lock")["outcome"].clone()
    };
    assert_eq!(outcome("ttas"), serde_json::json!({"kind": "exit", "status": 3}));
    assert_eq!(
        outcome("mcs"),
        serde_json::json!({"kind": "signal", "number": libc::SIGSEGV, "name": "SIGSEGV"})
    );
}

#[test]
fn progress_is_a_line_for_each_run_if_asked_for() {
    let run = |options: &[&str]| {
        stderr(&output(
            poundlock(["compare", "-l", "mcs", "-n", "2"]).args(options).args(["--", "true"]),
        ))
    };
    let lines = run(&["--progress", "lines"]);
    let want = ["native, repeat 1", "mcs, repeat 1", "mcs, repeat 2", "native, repeat 2"]
        .iter()
        .zip(1..)
        .fold(String::new(), |text, (what, run)| text + &format!("  run {run} of 4: {what}\n"));
    assert_eq!(lines, want);
    assert_eq!(run(&[]), "", "stderr is no terminal");
}

#[test]
fn a_run_that_hangs_is_killed() {
    let (status, comparison) = compare(&["-l", "mcs", "-n", "1", "--timeout", "0.3"], "sleep 1000");
    assert_eq!(status, Some(1));
    for outcome in each_run(&comparison, "outcome") {
        assert_eq!(outcome["kind"], "timeout");
    }
}

#[test]
fn leftover_processes_of_a_run_are_killed() {
    let directory = scratch();
    let file = directory.path().join("pid");
    let script = format!("sleep 1000 & echo $! > {}", file.display());
    let (status, _) = compare(&["-l", "mcs", "-n", "1", "--no-native"], &script);
    assert_eq!(status, Some(0));
    let pid = std::fs::read_to_string(file).expect("the run wrote it");
    let command_line = format!("/proc/{}/cmdline", pid.trim());
    // A killed process may take time to end, but must end. A zombie has no command line.
    let lives = || std::fs::read(&command_line).is_ok_and(|line| line.starts_with(b"sleep"));
    let gone = (0..10_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !lives()
    });
    assert!(gone, "process {pid} still sleeps");
}

#[test]
fn a_missing_figure_is_a_failure() {
    for (script, reason) in [("echo nothing", "matches nothing"), ("echo rate: none", "'none'")] {
        let (status, comparison) =
            compare(&["-l", "mcs", "-n", "1", "--metric", r"rate: (\w+)"], script);
        assert_eq!(status, Some(1));
        for outcome in each_run(&comparison, "outcome") {
            assert_eq!(outcome["kind"], "no-figure");
            assert!(
                outcome["reason"].as_str().is_some_and(|text| text.contains(reason)),
                "{outcome}"
            );
        }
    }
}

#[test]
fn memory_and_cpu_time_are_the_programs_own() {
    let script = "exec /usr/bin/python3 -c 'x = bytearray(200 << 20)\nwhile __import__(\"time\").process_time() < 0.2: pass'";
    let (_, comparison) = compare(&["-l", "mcs", "-n", "1"], script);
    for run in comparison["runs"].as_array().expect("runs") {
        let mebibytes = run["peak_rss_bytes"].as_f64().expect("a number") / f64::from(1 << 20);
        assert!((200.0..300.0).contains(&mebibytes), "{run}");
        let cpu = run["cpu_user"].as_f64().expect("a number")
            + run["cpu_system"].as_f64().expect("a number");
        assert!(cpu >= 0.2, "{run}");
    }
}

#[test]
fn json_is_on_stdout_and_the_plot_in_its_file() {
    let directory = scratch();
    let file = directory.path().join("plot.svg");
    let mut command = poundlock(["compare", "-l", "mcs,ticket", "-n", "1", "--json", "-", "--svg"]);
    let output = output(command.arg(&file).args(["--", "echo", "<&>"]));
    let comparison: Value =
        serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else");
    assert_eq!(comparison["command"], serde_json::json!(["echo", "<&>"]));
    assert!(stderr(&output).contains("ratio"), "the table: {}", stderr(&output));
    let plot = std::fs::read_to_string(file).expect("compare wrote it");
    assert!(plot.starts_with("<svg") && plot.trim_end().ends_with("</svg>"), "{plot}");
    for text in ["native", "mcs", "ticket", "wall time s", "&lt;&amp;&gt;"] {
        assert!(plot.contains(text), "no {text} in {plot}");
    }
}

#[test]
fn an_interrupt_keeps_the_results() {
    let directory = scratch();
    let (file, started) =
        (directory.path().join("comparison.json"), directory.path().join("started"));
    let script = format!(
        "[ -z \"$POUNDLOCK_LOCK\" ] || {{ touch {}; exec sleep 1000; }}",
        started.display()
    );
    let mut command: Command = poundlock(["compare", "-l", "mcs", "-n", "5", "--json"]);
    command.arg(&file).args(["--", "sh", "-c", &script]).stdout(Stdio::null());
    let mut child = command.spawn().expect("the command runs");
    while !started.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    assert_eq!(child.wait().expect("it is our child").code(), Some(130));
    let comparison = json(&file);
    assert_eq!(comparison["interrupted"], true);
    assert_eq!(each_run(&comparison, "lock"), ["native"]);
}

#[test]
fn every_run_is_prepared_and_cleaned_up() {
    let directory = scratch();
    let log = directory.path().join("log");
    let to = format!(">> {}", log.display());
    let prepare = format!("echo prepare $POUNDLOCK_COMPARE_LOCK $POUNDLOCK_LOCK $LD_PRELOAD {to}");
    let cleanup = format!("echo cleanup $POUNDLOCK_COMPARE_LOCK {to}");
    let options = ["-l", "mcs,wait=spin", "-n", "2", "--prepare", &prepare, "--cleanup", &cleanup];
    let (status, comparison) = compare(&options, &format!("echo run {to}"));
    assert_eq!(status, Some(0), "{comparison:#}");
    let around = |lock: &str| format!("prepare {lock}\nrun\ncleanup {lock}\n");
    let (mcs, native) = (around("mcs,wait=spin"), around("native"));
    let log = std::fs::read_to_string(log).expect("the commands wrote it");
    assert_eq!(log, [native.as_str(), &mcs, &mcs, &native].concat(), "POUNDLOCK_LOCK is not set");
    assert_eq!(comparison["settings"]["prepare"], prepare);
    assert_eq!(comparison["settings"]["cleanup"], cleanup);
}

#[test]
fn a_run_that_is_not_prepared_or_cleaned_up_fails() {
    let directory = scratch();
    let ran = directory.path().join("ran");
    for (option, kind, runs) in
        [("--prepare", "not-prepared", false), ("--cleanup", "not-cleaned", true)]
    {
        let file = directory.path().join("comparison.json");
        let script = format!("touch {}", ran.display());
        let mut command = poundlock(["compare", "-l", "mcs", "-n", "1", "--json"]);
        command.arg(&file).args([option, "echo no room; exit 3", "--", "sh", "-c", &script]);
        let output = output(&mut command);
        assert_eq!(output.status.code(), Some(1));
        let message = format!("{option} failed: exit status 3\n  | no room");
        assert!(stderr(&output).contains(&message), "{}", stderr(&output));
        let comparison = json(&file);
        for outcome in each_run(&comparison, "outcome") {
            assert_eq!(*outcome, serde_json::json!({"kind": kind, "reason": "exit status 3"}));
        }
        assert!(lock(&comparison, "mcs")["figure"].is_null());
        assert_eq!(ran.exists(), runs, "{option}");
    }
}

#[test]
fn a_daemon_may_live_from_its_preparation_to_its_cleanup() {
    let directory = scratch();
    let file = directory.path().join("pid").display().to_string();
    let prepare = format!("sleep 1000 & echo $! > {file}");
    let cleanup = format!("kill $(cat {file})");
    let options = ["-l", "mcs", "-n", "2", "--prepare", &prepare, "--cleanup", &cleanup];
    let (status, comparison) = compare(&options, &format!("kill -0 $(cat {file})"));
    assert_eq!(status, Some(0), "{comparison:#}");
}

#[test]
fn the_summary_is_exported_as_markdown_and_csv() {
    let directory = scratch();
    let [csv, markdown] = ["table.csv", "table.md"].map(|name| directory.path().join(name));
    let counter = directory.path().join("n").display().to_string();
    let script = format!("echo x >> {counter}; echo rate: $(wc -l < {counter})");
    let mut command = poundlock(["compare", "--no-native", "-l", "mcs,wait=park", "-n", "3"]);
    command.args(["--metric", r"rate: (\d+)", "--export-csv"]).arg(&csv);
    command.arg("--export-markdown").arg(&markdown).args(["--", "sh", "-c", &script]);
    let output = output(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(table.lines().next().is_some_and(|header| header.contains("std dev")), "{table}");

    let csv = std::fs::read_to_string(csv).expect("compare wrote it");
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("lock,succeeded,failed,median,stddev,min,max,ratio,"), "{csv}");
    assert!(
        lines[1].starts_with("\"mcs,wait=park\",3,0,2.0,1.0,1.0,3.0,,,,"),
        "the figures are 1, 2 and 3: {csv}"
    );
    assert_eq!(lines.len(), 2);
    let fields = |line: &str| line.replace("mcs,wait", "").split(',').count();
    assert_eq!(fields(lines[0]), fields(lines[1]), "{csv}");

    let markdown = std::fs::read_to_string(markdown).expect("compare wrote it");
    let row = "| mcs,wait=park | 2.000 | 1.000 | 1.000 - 3.000 | - | - |";
    assert!(markdown.contains(row), "{markdown}");
    let bars: Vec<usize> = markdown
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.matches('|').count())
        .collect();
    assert_eq!(bars, [10, 10, 10], "{markdown}");
}
