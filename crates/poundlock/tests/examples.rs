//! Every example ends successfully: each checks its own result.

use std::path::PathBuf;
use std::process::Command;

/// The folder of the built examples. Cargo builds them before the tests, except if --test selects a
/// single test.
fn folder() -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    test.ancestors().nth(2).expect("it is in target/PROFILE/deps").join("examples")
}

fn run(example: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(folder().join(example))
        .args(arguments)
        .output()
        .expect("cargo test --package poundlock builds it");
    (
        output.status.code(),
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
    )
}

#[test]
fn examples_run() {
    for (example, is_built) in [
        ("counter", true),
        ("by_name", cfg!(feature = "cna")),
        ("queue", true),
        ("readers", true),
        ("tenants", cfg!(feature = "cfl_mutex")),
    ] {
        if !is_built {
            continue;
        }
        let (status, output) = run(example, &[]);
        assert_eq!(status, Some(0), "{example}: {output}");
    }
}

#[cfg(feature = "cna")]
#[test]
fn a_wrong_name_is_one_line() {
    let (status, output) = run("by_name", &["nosuch"]);
    assert_eq!(status, Some(2));
    assert_eq!(output, "by_name: there is no lock 'nosuch'\n");
}
