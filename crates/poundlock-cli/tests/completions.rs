//! `poundlock completions`: each shell accepts its script, which completes commands and options.

mod common;

use common::{assert_refused, output, poundlock, stdout};
use std::io::Write;
use std::process::Command;

/// The script for a shell.
fn script(shell: &str) -> String {
    let printed = output(&mut poundlock(["completions", shell]));
    assert!(printed.status.success(), "{shell}: {printed:?}");
    stdout(&printed)
}

#[test]
fn each_shell_has_a_script_with_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = script(shell);
        for word in ["compare", "doctor", "advise", "rwlock", "completions"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
}

#[test]
fn an_unknown_shell_is_refused() {
    assert_refused(&mut poundlock(["completions", "csh"]), 125, &["csh"]);
}

/// Completes the words in bash, whose script needs no other package.
fn completed(words: &[&str]) -> String {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(script("bash").as_bytes()).expect("a script");
    let (last, previous) = (words[words.len() - 1], words[words.len() - 2]);
    let program = format!(
        "source {}; COMP_WORDS=({}); COMP_CWORD={}; _poundlock poundlock '{last}' '{previous}'; \
         echo \"${{COMPREPLY[@]}}\"",
        file.path().display(),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1
    );
    let mut bash = Command::new("bash");
    let printed = output(bash.args(["--norc", "-c", &program]));
    assert!(printed.status.success(), "{printed:?}");
    stdout(&printed).trim().to_owned()
}

#[test]
fn bash_completes_commands_and_options() {
    assert_eq!(completed(&["poundlock", "doc"]), "doctor");
    assert_eq!(completed(&["poundlock", "sim", "adv"]), "advise");
    assert_eq!(completed(&["poundlock", "run", "--rwl"]), "--rwlock");
    assert_eq!(completed(&["poundlock", "bench-w"]), "", "an internal command");
}
