//! `poundlock doctor` reports whether a program's locks can be replaced, and why not.

mod common;

use common::{assert_refused, compile, executable, output, poundlock, scratch, stderr};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

const LOCKS: &str = "
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int main(void) { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); return 0; }
";
/// The offset of the machine type in a 64-bit ELF file, and the type of ARM.
const MACHINE_OFFSET: usize = 18;
const OTHER_MACHINE: u8 = if cfg!(target_arch = "aarch64") { 62 } else { 183 };

/// Runs doctor on a program. Returns its exit status and its JSON.
fn examine_with(options: &[&OsStr], program: &OsStr) -> (Option<i32>, Value) {
    let output = output(poundlock(["doctor", "--json"]).args(options).arg("--").arg(program));
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(report["schema"], "poundlock.doctor/1");
    (output.status.code(), report)
}

/// Fails unless doctor reports that the program's locks cannot be replaced because of `why`.
#[track_caller]
fn assert_no(program: impl AsRef<OsStr>, why: &str) {
    let (status, report) = examine_with(&[], program.as_ref());
    assert!(
        report["verdict"].as_str().is_some_and(|verdict| verdict.contains(why)),
        "no {why:?} in {report:#}"
    );
    assert_eq!((status, &report["works"]), (Some(1), &false.into()), "{report:#}");
}

/// Fails unless doctor reports that the program's locks can be replaced. Returns its JSON.
#[track_caller]
fn assert_yes(program: impl AsRef<OsStr>) -> Value {
    let (status, report) = examine_with(&[], program.as_ref());
    assert_eq!((status, &report["works"]), (Some(0), &true.into()), "{report:#}");
    report
}

/// The names of the lock functions that the program itself imports, and whether all are interposed.
fn own_functions(report: &Value) -> (Vec<&str>, bool) {
    let functions = report["imports"][0]["functions"].as_array().expect("functions");
    let mut names: Vec<&str> =
        functions.iter().filter_map(|function| function["name"].as_str()).collect();
    names.sort_unstable();
    (names, functions.iter().all(|function| function["interposed"] == true))
}

#[test]
fn a_dynamic_program_with_locks() {
    let directory = scratch();
    let program = directory.path().join("locks");
    compile(LOCKS, &["-pthread"], &program);
    let report = assert_yes(&program);
    assert_eq!(own_functions(&report), (vec!["pthread_mutex_lock", "pthread_mutex_unlock"], true));
    assert!(
        !report["notes"].to_string().contains("semaphores and locks that a program"),
        "{report:#}"
    );
    assert_eq!(report["imports"][0]["functions"][0]["family"], "mutex");
    assert!(
        report["machine"]["cpu"].is_string() && report["machine_type"].is_string(),
        "{report:#}"
    );
}

#[test]
fn locks_in_a_library_count() {
    let directory = scratch();
    let (library, program) = (directory.path().join("libx.so"), directory.path().join("program"));
    compile(&LOCKS.replace("main", "x"), &["-shared", "-fPIC", "-pthread"], &library);
    let place = format!("-L{}", directory.path().display());
    let path = format!("-Wl,-rpath,{}", directory.path().display());
    let flags = [place.as_str(), "-Wl,--no-as-needed", "-lx", &path];
    compile("int x(void); int main(void) { return x(); }", &flags, &program);
    let report = assert_yes(&program);
    assert_eq!(own_functions(&report).0, [""; 0]);
    assert!(
        report["notes"].to_string().contains("semaphores and locks that a program"),
        "{report:#}"
    );
    std::fs::remove_file(library).expect("it is there");
    assert_no(&program, "cannot start");
}

#[test]
fn a_static_program() {
    let directory = scratch();
    let program = directory.path().join("static");
    compile(LOCKS, &["-static", "-pthread"], &program);
    assert_no(&program, "statically linked");
}

#[test]
fn programs_without_locks() {
    assert_no("sleep", "acquires a lock that can be replaced");
    assert_no("bash", "acquires a lock that can be replaced");
}

#[test]
fn a_go_program() {
    if Command::new("go").arg("version").output().is_err() {
        return eprintln!("go is not installed: no Go program was looked at");
    }
    let directory = scratch();
    let source = directory.path().join("main.go");
    std::fs::write(&source, "package main\nfunc main() {}\n").expect("a file");
    let program = directory.path().join("go-program");
    let build = output(Command::new("go").args(["build", "-o"]).arg(&program).arg(&source));
    assert!(build.status.success(), "{}", stderr(&build));
    assert_no(&program, "Go program");
}

#[test]
fn a_rust_program() {
    let directory = scratch();
    let source = directory.path().join("main.rs");
    std::fs::write(&source, "fn main() { println!(\"{:?}\", std::sync::Mutex::new(1).lock()); }\n")
        .expect("a file");
    let program = directory.path().join("rust-program");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let build = output(Command::new(rustc).arg("-o").arg(&program).arg(&source));
    assert!(build.status.success(), "{}", stderr(&build));
    assert_no(&program, "Rust program");
}

#[test]
fn a_script_is_its_interpreter() {
    let directory = scratch();
    let script = directory.path().join("script.py");
    executable(&script, "#!/usr/bin/python3 -u\nprint()\n");
    let report = assert_yes(&script);
    assert!(report["program"].as_str().is_some_and(|path| path.contains("python3")), "{report:#}");
    assert_eq!(report["scripts"][0], script.to_str().expect("a UTF-8 path"));
    executable(&script, "#!/no/such/interpreter\n");
    assert_refused(poundlock(["doctor"]).arg(&script), 125, &["script.py", "/no/such/interpreter"]);
    executable(&script, "#!\n");
    assert_refused(poundlock(["doctor"]).arg(&script), 125, &["script.py", "no interpreter"]);
    executable(&script, format!("#!{}\n", script.display()));
    assert_refused(poundlock(["doctor"]).arg(&script), 125, &["script.py", "too many nested"]);
}

#[test]
fn a_privileged_program() {
    let directory = scratch();
    let program = directory.path().join("setuid");
    compile(LOCKS, &["-pthread"], &program);
    if !nix::unistd::getuid().is_root() {
        // Only root can give a program to another user. This one belongs to root on every system.
        return assert_no("su", "LD_PRELOAD");
    }
    let nobody = nix::unistd::Uid::from_raw(65534);
    nix::unistd::chown(&program, Some(nobody), None).expect("root may");
    assert_yes(&program);
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o4755))
        .expect("root may");
    assert_no(&program, "LD_PRELOAD");
}

#[test]
fn programs_for_other_systems() {
    let directory = scratch();
    let program = directory.path().join("program");
    compile(LOCKS, &["-pthread", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"], &program);
    assert_no(&program, "musl");
    compile(LOCKS, &["-pthread"], &program);
    let mut content = std::fs::read(&program).expect("it was compiled");
    content[MACHINE_OFFSET] = OTHER_MACHINE;
    executable(&program, content);
    assert_no(&program, "the preload library is");
}

#[test]
fn a_preload_library_that_is_missing_or_does_not_load() {
    let directory = scratch();
    let program = directory.path().join("program");
    compile(LOCKS, &["-pthread"], &program);
    let (gone, broken) =
        (directory.path().join("libgone.so"), directory.path().join("libbroken.so"));
    compile("int gone;", &["-shared", "-fPIC"], &gone);
    let place = format!("-L{}", directory.path().display());
    compile("int broken;", &["-shared", "-fPIC", "-Wl,--no-as-needed", &place, "-lgone"], &broken);
    std::fs::remove_file(gone).expect("it is there");
    for (library, why) in [(Path::new("/no/such.so"), "No such file"), (&broken, "libgone.so")] {
        let (status, report) =
            examine_with(&["--preload".as_ref(), library.as_os_str()], program.as_os_str());
        let verdict = report["verdict"].as_str().expect("a verdict");
        assert!(verdict.contains(why) && verdict.contains("preload library"), "{verdict}");
        assert_eq!(status, Some(1));
    }
}

#[test]
fn a_function_that_bypasses_the_library_is_named() {
    let directory = scratch();
    let (program, library) = (directory.path().join("program"), directory.path().join("libold.so"));
    compile(LOCKS, &["-pthread"], &program);
    // An interposer with only one version of glibc's symbols.
    let map = directory.path().join("map");
    std::fs::write(&map, "ANCIENT { global: pthread_mutex_lock; local: *; };").expect("a file");
    let script = format!("-Wl,--version-script={}", map.display());
    compile(
        "void pthread_mutex_lock(void) {}",
        &["-shared", "-fPIC", "-fno-builtin", &script],
        &library,
    );
    let (status, report) =
        examine_with(&["--preload".as_ref(), library.as_os_str()], program.as_os_str());
    assert_eq!(status, Some(1), "{report:#}");
    assert!(
        report["notes"].to_string().contains("not interposed: pthread_mutex_lock"),
        "{report:#}"
    );
}

#[test]
fn an_invalid_program_is_one_line() {
    let directory = scratch();
    let text = directory.path().join("text");
    executable(&text, "no program");
    let damaged = directory.path().join("damaged");
    executable(&damaged, b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0");
    assert_refused(poundlock(["doctor"]).arg(&text), 125, &["not an ELF file"]);
    assert_refused(poundlock(["doctor"]).arg(&damaged), 125, &["damaged"]);
    assert_refused(&mut poundlock(["doctor", "no-such-program"]), 125, &["'no-such-program'"]);
}
