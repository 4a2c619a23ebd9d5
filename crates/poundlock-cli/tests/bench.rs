//! `poundlock bench`: every workload under the requested locks, its counts, and its errors.

mod common;

use common::{assert_refused, output, poundlock, scratch, stderr, stdout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

const WORKLOADS: [&[&str]; 5] = [
    &["map", "--keys", "64", "--updates", "50", "--work", "20"],
    &["hash", "--keys", "64", "--buckets", "8", "--writes", "50"],
    &["ron", "--words", "10", "--outside", "1us"],
    &[
        "cfl",
        "--hold",
        "1us,5us",
        "--outside",
        "500ns",
        "--shares",
        "1,2",
        "--weights",
        "1024,512",
        "--tenants",
        "1,3",
    ],
    &["loop"],
];

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("bench wrote it");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Runs bench. Returns its report and its tables.
fn bench(options: &[&str]) -> (Value, String) {
    let output = output(poundlock(["bench"]).args(options).args(["--json", "-"]));
    assert_eq!(output.status.code(), Some(0), "{options:?}: {}", stderr(&output));
    (
        serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else"),
        stderr(&output),
    )
}

fn array<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("no {name} in {value:#}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Checks a run that ended by its number of acquisitions.
fn consistent(run: &Value, acquisitions: u64) {
    assert_eq!(run["outcome"]["kind"], "ok", "{run:#}");
    let threads = array(&run["counts"], "threads");
    assert_eq!(json!(threads.len()), run["threads"]);
    let count = |name: &str| {
        threads.iter().map(|thread| thread[name].as_u64().expect("a count")).sum::<u64>()
    };
    assert_eq!(count("acquisitions"), acquisitions, "{run:#}");
    assert!(
        count("handovers") < acquisitions && count("handovers_remote") <= count("handovers"),
        "{run:#}"
    );
    let figures = &run["figures"];
    for (name, least, most) in [
        ("fairness_factor", 0.5, 1.0),
        ("jain", 1.0 / threads.len() as f64 - 1e-9, 1.0),
        ("variation", 0.0, (threads.len() as f64).sqrt()),
        ("handovers", 0.0, 1.0),
        ("handovers_remote", 0.0, 1.0),
        ("waiters", 0.0, f64::INFINITY),
        ("per_second", 0.0, f64::INFINITY),
    ] {
        assert!((least..=most).contains(&number(&figures[name])), "{name}: {run:#}");
    }
    assert_eq!(figures["wakes_in_section"].is_null(), run["lock"] == "native", "{run:#}");
    // All hold times may be 0: short ones are below the clock's resolution.
    let shares: f64 = array(run, "class_shares").iter().map(number).sum();
    assert!(shares == 0.0 || (shares - 1.0).abs() < 1e-9, "{run:#}");
    assert_eq!(shares == 0.0, figures["jain_hold"].is_null(), "{run:#}");
}

#[test]
fn every_workload_runs_with_consistent_counts() {
    for workload in WORKLOADS {
        let options = [
            "-l",
            "mcs,wait=yield,shfl_mutex,ttas",
            "-t",
            "1,3",
            "--acquisitions",
            "2000",
            "-n",
            "2",
        ];
        let (report, tables) = bench(&[workload, &options].concat());
        assert_eq!(report["schema"], "poundlock.bench/1");
        assert_eq!(report["workload"]["name"], workload[0]);
        assert_eq!(
            array(&report, "runs").len(),
            2 * 4 * 2,
            "repeats, locks and numbers of threads"
        );
        assert_eq!(array(&report, "points").len(), 4 * 2);
        array(&report, "runs").iter().for_each(|run| consistent(run, 2000));
        for point in array(&report, "points") {
            assert_eq!(
                (&point["succeeded"], &point["failed"]),
                (&json!(2), &json!(0)),
                "{point:#}"
            );
            let spread = &point["ratio"];
            assert!(number(&spread["min"]) <= number(&spread["median"]), "{point:#}");
            assert!(
                point["lock"] != "native"
                    || *spread == json!({"median": 1.0, "min": 1.0, "max": 1.0}),
                "{point:#}"
            );
        }
        for words in [
            &format!("{}, 3 threads", workload[0]),
            "native",
            "mcs,wait=yield",
            "2 interleaved repeats",
        ] {
            assert!(tables.contains(words), "no {words:?} in {tables}");
        }
    }
}

#[test]
fn lookups_take_a_readers_writer_lock_as_readers() {
    for workload in ["map", "hash"] {
        let (report, _) =
            bench(&[workload, "--rw", "-t", "3", "--acquisitions", "3000", "-n", "1"]);
        assert_eq!(report["workload"]["readers"], true);
        let names: Vec<&str> = array(&report, "locks").iter().filter_map(Value::as_str).collect();
        assert!(names.len() > 1 && names[0] == "native" && !names.contains(&"mcs"), "{names:?}");
        array(&report, "runs").iter().for_each(|run| consistent(run, 3000));
    }
    assert_refused(&mut poundlock(["bench", "hash", "--rw", "-l", "mcs"]), 125, &["'mcs'"]);
}

#[test]
fn the_report_has_its_provenance() {
    let (report, _) = bench(&[
        "loop",
        "-l",
        "ticket",
        "-t",
        "2",
        "--acquisitions",
        "10",
        "-n",
        "1",
        "--seed",
        "7",
    ]);
    for name in
        ["/poundlock/version", "/poundlock/revision", "/machine/cpu", "/kernel", "/compiler/locks"]
    {
        assert!(
            report.pointer(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty()),
            "{name}"
        );
    }
    assert_eq!(report["settings"]["limit"], json!({"acquisitions": 10}));
    assert_eq!(report["workload"]["seed"], 7);
    assert_eq!(report["workload"]["placement"], "first-fill");
    let cpus: BTreeSet<u64> = array(&report["runs"][0]["counts"], "threads")
        .iter()
        .map(|thread| thread["cpu"].as_u64().expect("it is bound"))
        .collect();
    assert_eq!(cpus.len(), std::thread::available_parallelism().expect("known").get().min(2));
}

#[test]
fn every_lock_and_native_run_by_default() {
    let (report, _) = bench(&["map", "-t", "2", "--acquisitions", "500", "-n", "1"]);
    let names: BTreeSet<&str> =
        array(&report, "runs").iter().filter_map(|run| run["lock"].as_str()).collect();
    let expected: BTreeSet<&str> =
        poundlock::locks().map(|lock| lock.name).chain(["native"]).collect();
    assert_eq!(names, expected);
    let (report, _) =
        bench(&["map", "-l", "mcs", "-t", "2", "--acquisitions", "500", "-n", "1", "--no-native"]);
    assert!(array(&report, "runs").iter().all(|run| run["lock"] == "mcs"));
    assert!(report["points"][0]["ratio"].is_null(), "there is nothing to relate to");
}

#[test]
fn repeats_rotate_the_first_lock() {
    let (report, _) =
        bench(&["loop", "-l", "mcs,ttas", "-t", "1", "--acquisitions", "10", "-n", "3"]);
    let order: Vec<&str> =
        array(&report, "runs").iter().filter_map(|run| run["lock"].as_str()).collect();
    assert_eq!(order, ["native", "mcs", "ttas", "mcs", "ttas", "native", "ttas", "native", "mcs"]);
}

#[test]
fn time_can_end_a_run() {
    let options =
        ["hash", "-l", "shfl_spin", "-t", "2", "--seconds", "0.05", "--warmup", "0.01", "-n", "1"];
    let (report, _) = bench(&options);
    assert_eq!(report["settings"]["limit"], json!({"seconds": {"warmup": 0.01, "measured": 0.05}}));
    for run in array(&report, "runs") {
        assert!(run["counts"]["elapsed_ns"].as_u64() >= Some(50_000_000), "{run:#}");
    }
}

#[test]
fn a_description_runs_like_its_options() {
    let directory = scratch();
    for workload in WORKLOADS {
        let described =
            output(poundlock(["bench"]).args(workload).args(["--seed", "3", "--describe"]));
        let file = directory.path().join("workload.toml");
        std::fs::write(&file, &described.stdout).expect("the test's directory takes files");
        let limit = ["-l", "mcs", "-t", "2", "--acquisitions", "200", "-n", "1"];
        let (of_options, _) = bench(&[workload, &["--seed", "3"], &limit[..]].concat());
        let (of_file, _) = bench(&[&["file", file.to_str().expect("UTF-8")], &limit[..]].concat());
        assert_eq!(of_file["workload"], of_options["workload"]);
    }
}

#[test]
fn the_papers_workloads_are_described_in_files_that_run() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/workloads");
    let files = std::fs::read_dir(directory)
        .expect("it is there")
        .map(|entry| entry.expect("readable").path());
    let files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    assert!(!files.is_empty());
    for file in files {
        let file = file.to_str().expect("UTF-8");
        let lock = if file.contains("-rw-") { "shfl_rw" } else { "shfl_mutex" };
        let (report, _) =
            bench(&["file", file, "-l", lock, "-t", "2", "--acquisitions", "200", "-n", "1"]);
        array(&report, "runs").iter().for_each(|run| consistent(run, 200));
    }
}

#[test]
fn the_plot_is_in_its_file() {
    let directory = scratch();
    let file = directory.path().join("plot.svg");
    for threads in ["2", "1,2,3"] {
        let mut command = poundlock([
            "bench",
            "cfl",
            "-l",
            "mcs,ticket",
            "--acquisitions",
            "100",
            "-n",
            "1",
            "-t",
        ]);
        let output = output(command.arg(threads).arg("--svg").arg(&file));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains("hold shares"), "{}", stdout(&output));
        let plot = std::fs::read_to_string(&file).expect("bench wrote it");
        assert!(plot.starts_with("<svg") && plot.trim_end().ends_with("</svg>"), "{plot}");
        for text in ["native", "mcs", "ticket", "hold time", "acquisitions"] {
            assert!(plot.contains(text), "no {text} in {plot}");
        }
    }
}

#[test]
fn bad_input_is_one_line() {
    let directory = scratch();
    let file = directory.path().join("bad.toml");
    std::fs::write(&file, "name = 1\n").expect("the test's directory takes files");
    let bad = file.to_str().expect("UTF-8");
    let group = directory.path().join("group.toml");
    let text = "name = \"a\"\nsource = \"a\"\nsection = { kind = \"none\" }\ntimed = 1\n\
                classes = [{ cpu_max = { quota = 5000, period = 10000 } }]\n";
    std::fs::write(&group, text).expect("the test's directory takes files");
    let group = group.to_str().expect("UTF-8");
    for (options, words) in [
        (&["map", "-l", "mcs,nosuch"][..], &["nosuch"][..]),
        (&["map", "-l", "native"], &["native"]),
        (&["map", "--keys", "1"], &["keys", "1"]),
        (&["map", "--updates", "101"], &["101"]),
        (&["map", "--threads", "0"], &["'0'", "--threads"]),
        (&["map", "--threads", "2,2"], &["--threads", "2", "twice"]),
        (&["map", "--seconds", "0"], &["'0'", "--seconds"]),
        (&["map", "--acquisitions", "5", "--seconds", "1"], &["--acquisitions"]),
        (&["map", "--timed", "0"], &["timed"]),
        (&["map", "--placement", "here"], &["'here'"]),
        (&["hash", "--buckets", "0"], &["buckets"]),
        (&["ron", "--outside", "10"], &["'10'", "10us"]),
        (&["cfl", "--hold", "1us,2us", "--shares", "1"], &["--shares", "1", "2"]),
        (&["cfl", "--hold", "1us,2us", "--nice", "0,20"], &["nice", "20"]),
        (&["cfl", "--weights", "1024"], &["--weights", "1", "2"]),
        (&["cfl", "--tenants", "1024,0"], &["tenant"]),
        (&["loop", "--keys", "5"], &["--keys"]),
        (&["nosuch"], &["nosuch"]),
        (&["file", "/no/such/file"], &["/no/such/file"]),
        (&["file", bad], &[bad, "line 1"]),
        (&["file", group, "-l", "mcs"], &["cpu_max", "poundlock sim"]),
        (&["loop", "--json", "/no/such/directory/file"], &["/no/such/directory/file"]),
        (&["loop", "--svg", "/no/such/directory/file"], &["/no/such/directory/file"]),
    ] {
        assert_refused(poundlock(["bench"]).args(options), 125, words);
    }
    assert_refused(&mut poundlock(["bench-worker", "{}"]), 125, &["not a job"]);
}

#[test]
fn a_run_that_takes_too_long_is_killed_and_the_others_count() {
    let directory = scratch();
    let file = directory.path().join("report.json");
    // The run takes much longer than the timeout.
    let mut command = poundlock([
        "bench",
        "loop",
        "-l",
        "mcs",
        "-t",
        "1",
        "--acquisitions",
        "1000000000000",
        "-n",
        "1",
    ]);
    let output = output(command.args(["--timeout", "0.3", "--json"]).arg(&file));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("mcs, 1 threads, repeat 1: timed out"), "{}", stderr(&output));
    assert!(stdout(&output).contains("1 of 1 FAILED"), "{}", stdout(&output));
    for run in array(&json(&file), "runs") {
        assert_eq!(run["outcome"]["kind"], "timeout");
        assert!(run["counts"].is_null() && run["figures"]["per_second"].is_null(), "{run:#}");
    }
}

/// The children of the process.
fn children(process: u32) -> BTreeSet<String> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"))
        .unwrap_or_default();
    children.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn an_interrupt_keeps_the_results() {
    let directory = scratch();
    let file = directory.path().join("report.json");
    let options = ["-l", "ticket", "-n", "100000", "-t", "1", "--acquisitions", "100"];
    let mut command = poundlock(["bench", "loop"]);
    let mut child = command
        .args(options)
        .arg("--json")
        .arg(&file)
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    // The second run begins only after the first has ended.
    let mut seen = BTreeSet::new();
    while seen.len() < 2 {
        seen.append(&mut children(child.id()));
    }
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    assert_eq!(child.wait().expect("it is our child").code(), Some(130));
    let report = json(&file);
    assert_eq!(report["interrupted"], true);
    assert!((1..200_000).contains(&array(&report, "runs").len()), "one at least, and not all");
    array(&report, "runs").iter().for_each(|run| consistent(run, 100));
}

#[test]
fn the_papers_runs_leave_tables_figures_and_plots() {
    let directory = scratch();
    let results = directory.path().join("papers");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/papers.py");
    let mut command = std::process::Command::new(script);
    command.args([
        "ron-empty",
        "--minutes",
        "0.001",
        "--repeats",
        "1",
        "--poundlock",
        env!("CARGO_BIN_EXE_poundlock"),
    ]);
    let output = output(command.arg("--output").arg(&results));
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let text = std::fs::read_to_string(results.with_extension("md")).expect("it is written");
    for words in ["## ron-empty", "RON figure 8", "ron-empty, 2 threads", "(papers-ron-empty.svg)"]
    {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    let report = json(&directory.path().join("papers-ron-empty.json"));
    assert_eq!(report["workload"]["name"], "ron-empty");
    assert!(directory.path().join("papers-ron-empty.svg").exists());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/papers.py");
    let refused = common::output(std::process::Command::new(script).arg("nosuch"));
    assert_eq!(
        (refused.status.code(), stderr(&refused).lines().count()),
        (Some(2), 1),
        "{}",
        stderr(&refused)
    );
}
