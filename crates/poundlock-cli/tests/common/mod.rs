//! Functions that the tests of the command share.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod terminal;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The preload library, which the tests require: $POUNDLOCK_PRELOAD, or the library in the build
/// folder.
pub fn preload() -> PathBuf {
    let built =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/preload/libpoundlock-preload.so");
    let path = std::env::var_os("POUNDLOCK_PRELOAD").map_or(built, PathBuf::from);
    path.canonicalize().unwrap_or_else(|error| {
        panic!(
            "the preload library is not at {} ({error}): build it with ./dev build, or set POUNDLOCK_PRELOAD",
            path.display()
        )
    })
}

/// The command with these arguments. Of Poundlock's environment variables, only the library's path
/// is set.
pub fn poundlock<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_poundlock"));
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("POUNDLOCK_"))
    {
        command.env_remove(name);
    }
    command.env_remove("LD_PRELOAD").env("POUNDLOCK_PRELOAD", preload()).args(arguments);
    command
}

/// Runs a command that is expected to end by itself, and returns its output.
pub fn output(command: &mut Command) -> Output {
    command.output().expect("the command runs")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Fails unless the command exits with `status` and prints one line of its own that contains
/// `words`.
#[track_caller]
pub fn assert_refused(command: &mut Command, status: i32, words: &[&str]) {
    let output = output(command);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{command:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{command:?}: {error}");
    assert!(error.starts_with("poundlock: "), "{command:?}: {error}");
    for word in words {
        assert!(error.contains(word), "{command:?}: no {word:?} in {error}");
    }
    assert_eq!(stdout(&output), "", "{command:?}");
}

/// Compiles C.
pub fn compile(source: &str, flags: &[&str], to: &Path) {
    let file = to.with_extension("c");
    std::fs::write(&file, source).expect("the test's directory takes files");
    let output = output(Command::new("cc").arg(&file).args(flags).arg("-o").arg(to));
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Writes an executable file.
pub fn executable(path: &Path, content: impl AsRef<[u8]>) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, content).expect("the test's directory takes files");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}
