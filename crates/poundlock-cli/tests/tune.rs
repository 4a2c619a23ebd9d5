//! `poundlock tune` on a program whose figures depend on its settings, and on nothing else.

mod common;

use common::{assert_refused, compile, output, poundlock, scratch, stderr, stdout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// Tunings end at numbers of runs or windows, whatever time these take.
const NO_LIMIT: [&str; 2] = ["--for", "1h"];

/// The windows of a process. One has many acquisitions.
const WINDOWS: [&str; 4] = ["--window", "100ms", "--windows", "200"];

const METRIC: &str = r"score: (\d+)";

/// The program, and a folder for its files.
struct Tuned {
    directory: TempDir,
    program: PathBuf,
}

impl Tuned {
    fn new() -> Tuned {
        let directory = scratch();
        let program = directory.path().join("tuned");
        compile(include_str!("tuned.c"), &["-g", "-O1", "-pthread"], &program);
        Tuned { directory, program }
    }

    fn rules(&self) -> PathBuf {
        self.directory.path().join("rules.toml")
    }

    /// `poundlock tune` with these options, of the program in this mode.
    fn command(&self, options: &[&str], mode: &str) -> Command {
        let mut command = poundlock(["tune", "--runs", "120"]);
        command
            .args(NO_LIMIT)
            .arg("-o")
            .arg(self.rules())
            .args(options)
            .arg("--")
            .arg(&self.program)
            .arg(mode);
        command.current_dir(self.directory.path());
        command
    }

    fn tune(&self, options: &[&str], mode: &str) -> Output {
        let output = output(&mut self.command(options, mode));
        assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
        output
    }

    /// The output of the program under `poundlock run` with the rules.
    fn run_by_rules(&self, options: &[&str], mode: &str) -> String {
        let mut command = poundlock(["run", "--rules"]);
        command.arg(self.rules()).args(options).arg("--").arg(&self.program).arg(mode);
        stdout(&output(&mut command))
    }
}

#[track_caller]
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|wrong| panic!("{wrong}: {text}"))
}

#[test]
fn the_right_settings_are_found_and_the_rules_apply_them() {
    let tuned = Tuned::new();
    for (mode, key) in [
        ("score", "symbol = \"cache\"\nlock = \"shfl_ron,"),
        ("heap", "site = \"queue_init\"\nlock = \"shfl_ron,"),
        ("readers", "symbol = \"table\"\nrwlock = \"shfl_rw,"),
    ] {
        let output = tuned.tune(&["--metric", METRIC, "--force"], mode);
        assert!(stdout(&output).contains("confirmed: better"), "{}", stdout(&output));
        let rules = std::fs::read_to_string(tuned.rules()).expect("rules");
        assert!(rules.contains(key) && rules.contains("patience=0"), "{rules}");
        for evidence in [
            "# Written by",
            "# Command, with -l shfl_ron: ",
            "1.300 times (1.300 to 1.300, 8 rounds)",
        ] {
            assert!(rules.contains(evidence), "{evidence}: {rules}");
        }
        assert_eq!(tuned.run_by_rules(&[], mode), "score: 130\n", "{rules}");
    }
}

#[test]
fn a_rule_keeps_the_algorithm_of_the_lock() {
    let tuned = Tuned::new();
    let bravo = ["--rwlock", "bravo_shfl_rw,inhibit=7"];
    let mutex = ["--lock", "shfl_mutex"];
    for (options, mode, lock) in [
        (&bravo, "readers", "rwlock = \"bravo_shfl_rw,inhibit=7,patience=0"),
        (&mutex, "score", "lock = \"shfl_mutex,patience=0"),
    ] {
        tuned.tune(&[&options[..], &["--metric", METRIC, "--force"]].concat(), mode);
        let rules = std::fs::read_to_string(tuned.rules()).expect("rules");
        assert!(rules.contains(lock), "{rules}");
        assert_eq!(tuned.run_by_rules(options, mode), "score: 130\n", "{rules}");
    }
}

/// A rule can give these mutexes another algorithm.
#[test]
fn another_algorithm_for_one_lock_is_tried_and_kept() {
    let tuned = Tuned::new();
    for (mode, key) in [("score", "symbol = \"cache\""), ("heap", "site = \"queue_init\"")] {
        let mut command = tuned.command(&["--metric", METRIC, "--force", "--no-native"], mode);
        let found = output(command.env("OTHER_SCORE", "150"));
        assert!(stdout(&found).contains("cfl_mutex"), "{}{}", stdout(&found), stderr(&found));
        let rules = std::fs::read_to_string(tuned.rules()).expect("rules");
        assert!(rules.contains(&format!("{key}\nlock = \"cfl_mutex\"")), "{rules}");
        assert!(rules.contains("cfl_mutex: 1.500 times (1.500 to 1.500, 8 rounds), confirmed"));
    }
    // A readers-writer lock has no such candidate.
    let found = tuned.tune(&["--metric", METRIC, "--force", "--no-native"], "readers");
    assert!(!stdout(&found).contains("cfl_mutex"), "{}", stdout(&found));
}

#[test]
fn nothing_helps_where_nothing_can() {
    let tuned = Tuned::new();
    let output = tuned.tune(&["--metric", METRIC], "same");
    assert!(stdout(&output).contains("Nothing helps"), "{}", stdout(&output));
    assert!(!tuned.rules().exists());
    // The present rules are the best already.
    let present = tuned.directory.path().join("present.toml");
    let rule = "[[rule]]\nsymbol = \"cache\"\nlock = \"shfl_mutex,patience=0,policy=fifo\"\n";
    std::fs::write(&present, rule).expect("it is ours");
    let present = present.display().to_string();
    let output = tuned.tune(&["--metric", METRIC, "--rules", &present], "score");
    assert!(stdout(&output).contains("Nothing helps"), "{}", stdout(&output));
    assert!(!tuned.rules().exists());
}

#[test]
fn a_program_that_does_not_wait_is_not_tuned() {
    let tuned = Tuned::new();
    let output = tuned.tune(&[], "idle");
    assert!(stdout(&output).contains("Locks are no problem"), "{}", stdout(&output));
    assert!(!tuned.rules().exists());
}

#[test]
fn the_programs_own_locks_may_be_best() {
    let tuned = Tuned::new();
    let mut command = tuned.command(&["--metric", METRIC, "--json", "-"], "score");
    let output = output(command.env("NATIVE_SCORE", "200"));
    let document = json(&stdout(&output));
    assert_eq!(document["lock"], "native", "{document:#}");
    assert!(stderr(&output).contains("run it without poundlock"), "{}", stderr(&output));
    assert!(document["rules"].is_null() && !tuned.rules().exists());
}

#[test]
fn the_document_has_the_evidence() {
    let tuned = Tuned::new();
    let output = tuned.tune(&["--metric", METRIC, "--no-native", "--json", "-"], "score");
    let document = json(&stdout(&output));
    assert_eq!(document["schema"], "poundlock.tune/1");
    assert_eq!(document["metric"], format!("the metric {METRIC}"));
    let target = &document["targets"][0];
    assert_eq!(target["symbol"], "cache", "{document:#}");
    let kept = target["kept"].as_str().expect("settings");
    assert!(kept.starts_with("shfl_mutex,patience=0"), "{kept}");
    let confirmation = &target["confirmation"];
    assert_eq!(confirmation["result"], "confirmed: better");
    assert_eq!(confirmation["ratios"].as_array().map(Vec::len), Some(8));
    for bound in ["ratio", "low", "high"] {
        let bound = confirmation[bound].as_f64().expect("a ratio");
        assert!((bound - 1.3).abs() < 1e-9, "{confirmation}");
    }
    let trials = target["trials"].as_array().expect("trials");
    assert!(trials.len() >= 4, "{trials:#?}");
    assert!(trials.iter().all(|trial| trial["settings"] != "native locks"));
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let tuned = Tuned::new();
    std::fs::write(tuned.rules(), "mine").expect("it is ours");
    assert_refused(&mut tuned.command(&[], "score"), 125, &["rules.toml", "exists", "--force"]);
    assert_eq!(std::fs::read_to_string(tuned.rules()).expect("it is there"), "mine");
    let refused = |options: &[&str], words: &[&str]| {
        let mut command = tuned.command(&[&["--force"], options].concat(), "score");
        assert_refused(&mut command, 125, words);
    };
    refused(&["--lock", "mcs"], &["--lock mcs", "shfl_mutex"]);
    refused(&["--locks", "nosuch"], &["nosuch"]);
    refused(&["--metric", "score: (x)"], &["first run failed", "matches nothing"]);
    refused(&["--metric", "("], &["regular expression"]);
    refused(&["--by", "slowest"], &["--pid"]);
    refused(&["--rules", "/nosuch"], &["/nosuch"]);
    refused(&["--top", "0"], &["--top"]);
    let mut few = poundlock(["tune", "--runs", "5", "-o", "none.toml", "--"]);
    few.arg(&tuned.program).current_dir(tuned.directory.path());
    assert_refused(&mut few, 125, &["--runs 5", "at least"]);
    assert_refused(&mut poundlock(["tune", "--", "/nosuch"]), 127, &["/nosuch"]);
    assert_refused(&mut poundlock(["tune"]), 125, &["COMMAND"]);
    assert_refused(&mut poundlock(["tune", "-p", "1", "--metric", "(x)"]), 125, &["--metric"]);
    let mut other = poundlock(["tune", "-p", "1", "--rwlock", "bravo"]);
    assert_refused(&mut other, 125, &["--rwlock", "COMMAND"]);
    let mut short = poundlock(["tune", "-p", "1", "--window", "0.1ms"]);
    assert_refused(&mut short, 125, &["--window"]);
    for of_a_process in [&["--windows", "100"][..], &["--window", "1s"], &["--keep"]] {
        refused(of_a_process, &[of_a_process[0], "COMMAND"]);
    }
    let own = std::process::id().to_string();
    assert_refused(&mut poundlock(["tune", "-p", &own]), 125, &["no control page"]);
}

/// The program as a running process.
struct Serving {
    tuned: Tuned,
    child: Child,
    /// The name of its lock.
    lock: &'static str,
}

impl Serving {
    fn start() -> Serving {
        Serving::start_as("serve", "cache")
    }

    fn start_as(mode: &str, lock: &'static str) -> Serving {
        Serving::start_with(&[], mode, lock)
    }

    fn start_with(options: &[&str], mode: &str, lock: &'static str) -> Serving {
        let tuned = Tuned::new();
        let folder = tuned.directory.path();
        let mut command = poundlock(["run"]);
        for option in ["--control", "--stats"] {
            command.arg(format!("{option}={}", folder.display()));
        }
        command.args(options).arg("--").arg(&tuned.program).arg(mode);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("text");
        assert_eq!(line, "ready\n");
        let serving = Serving { tuned, child, lock };
        await_that(|| serving.settings().is_some());
        serving
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// `poundlock tune` of the process.
    fn command(&self, options: &[&str]) -> Command {
        let mut command = poundlock(["tune", "-p", &self.pid()]);
        command.args(NO_LIMIT).arg("-o").arg(self.tuned.rules()).args(options);
        command.current_dir(self.tuned.directory.path());
        command
    }

    /// Starts a long tuning, and returns when it has changed settings.
    fn tuning(&self) -> Child {
        let mut command = self.command(&["--window", "30ms"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("it runs");
        let before = self.settings();
        await_that(|| self.settings() != before);
        child
    }

    /// Patience, policy, batch, spins and their origin, of the lock: the columns after its name and
    /// algorithm.
    fn settings(&self) -> Option<Vec<String>> {
        let output = output(&mut poundlock(["control", "-p", &self.pid(), self.lock]));
        let text = stdout(&output);
        let line = text.lines().find(|line| line.trim_start().starts_with(self.lock))?;
        Some(line.split_whitespace().skip(2).take(5).map(str::to_owned).collect())
    }

    #[track_caller]
    fn assert_restored(&self) {
        assert_eq!(self.settings().expect("a mutex"), ["4", "numa", "1024", "1", "start"]);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn await_that(happened: impl Fn() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < PATIENCE, "it does not happen");
        thread::sleep(Duration::from_millis(5));
    }
}

fn end_of(mut child: Child) -> (Option<i32>, String, String) {
    let (mut out, mut error) = (String::new(), String::new());
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    child.stderr.take().expect("a pipe").read_to_string(&mut error).expect("text");
    (child.wait().expect("it ends").code(), out, error)
}

#[test]
fn a_process_is_tuned_and_has_its_former_settings_afterwards() {
    let serving = Serving::start();
    for by in ["acquisitions", "slowest"] {
        let output = output(serving.command(&WINDOWS).args(["--by", by, "--force"]));
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
        assert!(text.contains("confirmed: better"), "{text}");
        assert!(text.contains("The process has its former settings"), "{text}");
        let rules = std::fs::read_to_string(serving.tuned.rules()).expect("rules");
        assert!(rules.contains("symbol = \"cache\"") && rules.contains("patience=0"), "{rules}");
        serving.assert_restored();
    }
}

#[test]
fn a_readers_writer_lock_of_a_process_is_tuned() {
    for lock in ["shfl_rw", "bravo_shfl_rw"] {
        let serving = Serving::start_with(&["--rwlock", lock], "serve_readers", "table");
        let output = output(&mut serving.command(&WINDOWS));
        let text = stdout(&output);
        assert!(text.contains("confirmed: better"), "{text}{}", stderr(&output));
        assert!(!text.contains("cfl_mutex"), "{text}");
        let rules = std::fs::read_to_string(serving.tuned.rules()).expect("rules");
        assert!(rules.contains(&format!("rwlock = \"{lock},patience=0")), "{rules}");
        serving.assert_restored();
    }
}

#[test]
fn too_few_windows_are_refused() {
    let serving = Serving::start();
    let mut few = serving.command(&["--window", "30ms", "--windows", "43"]);
    assert_refused(&mut few, 125, &["--windows 43", "at least 44"]);
    serving.assert_restored();
}

#[test]
fn a_process_keeps_what_is_better_if_requested() {
    let serving = Serving::start();
    let output = output(serving.command(&WINDOWS).arg("--keep"));
    assert!(stdout(&output).contains("The process keeps them"), "{}", stdout(&output));
    let settings = serving.settings().expect("a mutex");
    assert_eq!((settings[0].as_str(), settings[4].as_str()), ("0", "control"));
}

#[test]
fn an_interrupt_restores_the_settings() {
    let serving = Serving::start();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        let tuning = serving.tuning();
        let pid = Pid::from_raw(tuning.id().cast_signed());
        for _ in 0..3 {
            // The first one may have ended it.
            let _ = kill(pid, signal);
        }
        let (status, out, error) = end_of(tuning);
        assert_eq!(status, Some(130), "{signal}: {out}{error}");
        assert!(out.contains("Interrupted"), "{signal}: {out}");
        assert!(!serving.tuned.rules().exists(), "{signal}");
        serving.assert_restored();
    }
}

#[test]
fn a_killed_tuning_is_undone_by_the_command_that_it_printed() {
    let serving = Serving::start();
    let mut tuning = serving.tuning();
    tuning.kill().expect("it runs");
    let (_, _, error) = end_of(tuning);
    let command = error.split('`').nth(1).expect("a command").replace('\'', "");
    let words: Vec<&str> = command.split_whitespace().collect();
    assert_eq!(words[..3], ["poundlock", "control", "-p"], "{error}");
    assert!(output(&mut poundlock(&words[1..])).status.success(), "{command}");
    serving.assert_restored();
}

#[test]
fn the_death_of_the_process_ends_the_tuning() {
    let mut serving = Serving::start();
    let tuning = serving.tuning();
    serving.child.kill().expect("it runs");
    serving.child.wait().expect("it ends");
    let (status, out, error) = end_of(tuning);
    assert_eq!(status, Some(125), "{out}{error}");
    assert_eq!(out, "");
    assert!(error.lines().last().is_some_and(|line| line.contains("has ended")), "{error}");
}

#[test]
fn settings_of_before_that_control_has_made_are_restored() {
    let serving = Serving::start();
    assert!(
        output(&mut poundlock(["control", "-p", &serving.pid(), "cache", "batch=7"]))
            .status
            .success()
    );
    let tuning = serving.tuning();
    kill(Pid::from_raw(tuning.id().cast_signed()), Signal::SIGINT).expect("it runs");
    assert_eq!(end_of(tuning).0, Some(130));
    assert_eq!(serving.settings().expect("a mutex"), ["4", "numa", "7", "1", "control"]);
}

#[test]
fn settings_that_another_command_makes_meanwhile_stay() {
    let serving = Serving::start();
    let tuning = serving.tuning();
    let pid = serving.pid();
    let mut control = poundlock(["control", "-p", &pid, "cache", "batch=7"]);
    assert!(output(&mut control).status.success());
    let (status, out, error) = end_of(tuning);
    assert_eq!(status, Some(125), "{out}{error}");
    assert!(error.contains("another command has changed the settings of cache"), "{error}");
    assert_eq!(serving.settings().expect("a mutex"), ["4", "numa", "7", "1", "control"]);
}

/// docs/scenario.md. The machine may be so busy that one tuning does not suffice.
#[test]
fn a_noisy_neighbour_is_found_and_tuned() {
    let directory = scratch();
    let program = directory.path().join("neighbour");
    compile(include_str!("../../../examples/neighbour.c"), &["-O2", "-pthread"], &program);
    let mut command = poundlock(["run"]);
    for option in ["--control", "--stats"] {
        command.arg(format!("{option}={}", directory.path().display()));
    }
    command.arg("--").arg(&program).arg("0").stdout(Stdio::null());
    let mut neighbour = command.spawn().expect("it runs");
    let pid = neighbour.id().to_string();
    await_that(|| output(&mut poundlock(["control", "-p", &pid, "cache"])).status.success());
    let tuned = (0..5).any(|_| {
        let mut command = poundlock(["tune", "-p", &pid, "--by", "slowest", "-o", "-"]);
        command.args(NO_LIMIT).args(["--window", "50ms", "--windows", "600"]);
        // Rules are written only for what is confirmed.
        stdout(&output(&mut command)).contains("symbol = \"cache\"")
    });
    neighbour.kill().expect("it runs");
    neighbour.wait().expect("it ends");
    assert!(tuned);
}
