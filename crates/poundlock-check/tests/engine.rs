// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the checker: litmus tests against RC11, small locks with seeded bugs, and the command.

use std::fs::OpenOptions;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn checker(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_poundlock-check"));
    command.args(arguments);
    command
}

fn check(arguments: &[&str]) -> Output {
    checker(arguments).output().expect("the checker runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn litmus_tests_have_the_outcomes_of_the_model() {
    let output = check(&["litmus/"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn seeded_bugs_are_found() {
    let output = check(&["seeded/"]);
    assert!(output.status.success(), "{}", text(&output));
}

/// The reduction omits no outcome, and hides no bug: these clients list their outcomes and errors.
#[test]
fn outcomes_and_bugs_do_not_depend_on_the_reduction() {
    let output = check(&["--unreduced", "litmus/", "seeded/"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn the_reduction_omits_most_states() {
    let states = |arguments: &[&str]| -> u64 {
        let output = check(&[arguments, &["--complete", "cna/4x1/spin"]].concat());
        let text = text(&output);
        let counts = text.split(" states").next().expect("a result has the number of states");
        counts.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a number")
    };
    let (reduced, all) = (states(&[]), states(&["--unreduced"]));
    assert!(reduced * 4 < all, "{reduced} of {all}");
}

/// The sorted lines of `output` without times.
fn results(output: &Output) -> Vec<String> {
    let untimed = |line: &str| {
        let (before, verdict) = line.split_once(" s  ").unwrap_or((line, ""));
        before.rsplit_once(' ').map_or(before, |(counts, _)| counts).trim_end().to_string()
            + verdict
    };
    let mut lines: Vec<String> = text(output).lines().map(untimed).collect();
    lines.sort();
    lines
}

#[test]
fn runs_are_reproducible() {
    let run = || results(&check(&["mcs/2x2", "mcs/3x1/park", "mcs/order/5/park"]));
    assert_eq!(run(), run());
}

/// A state is that of the client. What the checker's own functions leave behind is not part of it:
/// with it, these clients, whose operations are the same, had different numbers of states.
#[test]
fn states_are_independent_of_the_checker() {
    let run = |way: &str| {
        let client = format!("cfl_spin/2x1/{way}");
        let lines = results(&check(&[&client]));
        let line = lines.iter().find(|line| line.starts_with(&client)).expect("it is explored");
        line[client.len()..].trim_start().to_string()
    };
    assert_eq!(run("spin"), run("yield"));
}

#[test]
fn sequential_consistency_forbids_weak_outcomes() {
    let output = check(&["--sc", "litmus/sb"]);
    assert!(
        !output.status.success()
            && text(&output).contains("found the outcomes 01 10 11, not 00 01 10 11")
    );
}

#[test]
fn an_execution_is_replayed() {
    let output = check(&["--replay", "0011", "seeded/dekker_no_fence"]);
    assert!(text(&output).contains("T0 store_relaxed &M->word[self]"), "{}", text(&output));
}

#[test]
fn a_replayed_promise_is_kept() {
    let output = check(&["--replay", "0b111000", "seeded/promises/announced_relaxed"]);
    for step in ["T0 promises shared+8 := 1", "as promised in step 1", "lost wake-up"] {
        assert!(text(&output).contains(step), "{}", text(&output));
    }
}

/// A thread that begins with a fence: the replay has to model fences from the start.
#[test]
fn an_execution_that_begins_with_a_fence_is_replayed() {
    let output = check(&["--replay", "1", "litmus/plain_fence_too_early"]);
    assert!(text(&output).contains("T1 fence_seq_cst"), "{}", text(&output));
}

#[test]
fn a_replayed_cycle_is_confirmed() {
    for (choices, client, error) in [
        ("000100011111:100000011111", "token_pass_back", "livelock under a fair scheduler"),
        ("0:0", "token_pass_back", "do not lead back"),
        (":0", "loops_right", "unfair: T1 can always continue, but does not"),
    ] {
        let output = check(&["--replay", choices, &format!("seeded/{client}")]);
        assert!(text(&output).contains(error), "{choices}: {}", text(&output));
    }
}

#[test]
fn unit_tests_kill_mutants() {
    let output = check(&[
        "--mutants",
        "--kills",
        "shuffle.h: w_store_release(&node->shuffler, 1);: dropped",
    ]);
    assert!(
        output.status.success() && text(&output).contains("by unit/shuffle: tests/unit/"),
        "{}",
        text(&output)
    );
}

/// A repository like this one, but without the record of `client` in tests/check/explorations.csv.
fn without_record(client: &str) -> tempfile::TempDir {
    let (root, ours) =
        (tempfile::tempdir().unwrap(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    let ours = ours.canonicalize().unwrap();
    ["core", "crates", "kernel", "lib", "preload", "world"]
        .iter()
        .for_each(|name| symlink(ours.join(name), root.path().join(name)).unwrap());
    let (from, to) = (ours.join("tests/check"), root.path().join("tests/check"));
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(&from)
        .unwrap()
        .map(Result::unwrap)
        .filter(|e| e.file_name() != "explorations.csv")
    {
        symlink(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let records = std::fs::read_to_string(from.join("explorations.csv")).unwrap();
    let others = records
        .lines()
        .filter(|line| line.split(',').next() != Some(client))
        .map(|line| format!("{line}\n"));
    std::fs::write(to.join("explorations.csv"), others.collect::<String>()).unwrap();
    root
}

#[test]
fn a_client_without_a_record_fails_until_it_is_accepted() {
    let root = without_record("litmus/sb_fences");
    let check = |arguments: &[&str]| {
        check(&[&["--root", root.path().to_str().unwrap()], arguments].concat())
    };
    let output = check(&["litmus/sb_fences"]);
    let advice = "new: no record in tests/check/explorations.csv; review the result, then run ./dev check --accept \
                  litmus/sb_fences\n";
    assert!(!output.status.success() && text(&output).contains(advice), "{}", text(&output));
    assert!(check(&["--accept", "litmus/sb_fences"]).status.success());
    assert!(check(&["litmus/sb_fences"]).status.success());
}

#[test]
fn an_error_is_one_line() {
    for (arguments, line) in [
        (&["no such"][..], "poundlock-check: no client matches: no such\n"),
        (&["--replay", "x", "litmus/sb"], "poundlock-check: not a list of choices to replay: x\n"),
        (
            &["--replay", "0:b", "litmus/sb"],
            "poundlock-check: not a list of choices to replay: 0:b\n",
        ),
        (&["--mutants", "no such"], "poundlock-check: no mutant matches: no such\n"),
        (&["--no-such"], "poundlock-check: unexpected argument '--no-such' found\n"),
    ] {
        let output = check(arguments);
        assert_eq!((output.status.code(), text(&output).as_str()), (Some(125), line));
    }
}

#[test]
fn a_full_stdout_is_an_error() {
    let error = "poundlock-check: cannot write to stdout: No space left on device (os error 28)\n";
    for arguments in [
        &["seeded/mcs"][..],
        &["--faults", "fork generation"],
        &["--replay", "0", "litmus/sb_fences"],
        &["--help"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = checker(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(
            (output.status.code(), text(&output).as_str()),
            (Some(125), error),
            "{arguments:?}"
        );
    }
}
