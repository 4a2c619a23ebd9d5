//! Tells the tool which revision and which Rust compiler it is built from.

use std::process::Command;

fn main() {
    // A revision is said to be dirty at build time: whatever makes it so must come back here.
    for path in [".git/HEAD", ".git/logs/HEAD", ".git/index", "core", "world", "lib", "preload", "crates", "Cargo.lock"]
    {
        println!("cargo::rerun-if-changed=../../{path}");
    }
    let revision = first_line("git", &["describe", "--always", "--dirty", "--abbrev=12"]);
    println!("cargo::rustc-env=POUNDLOCK_REVISION={revision}");
    let rustc = std::env::var("RUSTC").expect("cargo sets RUSTC");
    println!("cargo::rustc-env=POUNDLOCK_RUSTC={}", first_line(&rustc, &["--version"]));
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}
