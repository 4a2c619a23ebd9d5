//! Gives the tool the layouts of statistics files and control pages, the hashes of the simulator's
//! sources, the names of its revision and Rust compiler, and the BPF program of `watch`.

#[path = "../poundlock-sys/c_numbers.rs"]
mod c_numbers;
mod fingerprints;
mod layouts;

use std::path::Path;
use std::process::Command;

fn main() {
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    layouts::write(Path::new("../.."), Path::new(&out));
    fingerprints::write(&Path::new("../..").canonicalize().expect("it is there"), Path::new(&out));
    if std::env::var_os("CARGO_FEATURE_WATCH").is_some() {
        compile_bpf(Path::new(&out));
    }
    // The revision's "-dirty" depends on every source file.
    for path in [
        ".git/HEAD",
        ".git/logs/HEAD",
        ".git/index",
        "core",
        "world",
        "lib",
        "preload",
        "bench/workloads",
        "crates",
        "Cargo.lock",
    ] {
        println!("cargo::rerun-if-changed=../../{path}");
    }
    let revision = first_line("git", &["describe", "--always", "--dirty", "--abbrev=12"]);
    println!("cargo::rustc-env=POUNDLOCK_REVISION={revision}");
    let rustc = std::env::var("RUSTC").expect("cargo sets RUSTC");
    println!("cargo::rustc-env=POUNDLOCK_RUSTC={}", first_line(&rustc, &["--version"]));
}

/// Compiles the BPF program with clang, the only compiler that records what the loader relocates.
fn compile_bpf(out: &Path) {
    let clang = std::env::var_os("CLANG").unwrap_or("clang".into());
    println!("cargo::rerun-if-env-changed=CLANG");
    let machine = match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("aarch64") => "-D__TARGET_ARCH_arm64",
        _ => "-D__TARGET_ARCH_x86",
    };
    let done = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", machine])
        .args(["-c", "bpf/watch.bpf.c", "-o"])
        .arg(out.join("watch.bpf.o"))
        .status();
    let hint = "install clang, or build without `watch`: -p poundlock-cli --no-default-features";
    match done {
        Ok(status) => assert!(status.success(), "clang cannot compile bpf/watch.bpf.c; {hint}"),
        Err(error) => panic!("cannot run {}: {error}; {hint}", clang.display()),
    }
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success());
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}
