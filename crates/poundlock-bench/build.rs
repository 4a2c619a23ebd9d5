//! Compiles the critical sections, which are in C because the simulator compiles the same.

use std::env;
use std::path::Path;

const SOURCES: [&str; 3] = ["section.c", "map.c", "hash.c"];

fn main() {
    let directory = Path::new("../../bench/workloads");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut build = cc::Build::new();
    build.std("gnu11").warnings(true).extra_warnings(true);
    // Not rerun when it changes: that would only compile the same again.
    build.warnings_into_errors(env::var_os("POUNDLOCK_WERROR").is_some());
    // A critical section is part of what is measured: it is optimised in debug builds too.
    build.opt_level(2);
    build.files(SOURCES.map(|source| directory.join(source)));
    build.compile("poundlock_sections");
}
