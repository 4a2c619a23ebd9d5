//! Compiles the locks and the critical sections for the simulated machine: every plain access becomes a call.

use std::path::Path;

/// What `bench/workloads` exports: named apart from the native benchmark's, which may be linked with this crate.
const SECTIONS: [&str; 13] = [
    "section_size",
    "section_fill",
    "section_draw",
    "section_do",
    "section_check",
    "section_vary",
    "map_size",
    "map_init",
    "map_look",
    "map_insert",
    "map_remove",
    "map_check",
    "hash_size",
];
const MORE_SECTIONS: [&str; 4] = ["hash_init", "hash_look", "hash_move", "hash_check"];

fn main() {
    let root = Path::new("../..");
    for directory in ["core", "world/sim", "bench/workloads"] {
        println!("cargo::rerun-if-changed={}", root.join(directory).display());
    }
    let mut locks = instrumented();
    locks.includes(["world/sim", "core"].map(|directory| root.join(directory)));
    locks.file(root.join("world/sim/locks.c"));
    locks.compile("poundlock_sim_locks");

    let mut sections = instrumented();
    for name in SECTIONS.iter().chain(&MORE_SECTIONS) {
        sections.define(name, format!("sim_{name}").as_str());
    }
    sections.files(["section.c", "map.c", "hash.c"].map(|file| root.join("bench/workloads").join(file)));
    sections.compile("poundlock_sim_sections");
}

fn instrumented() -> cc::Build {
    let mut build = cc::Build::new();
    build.std("gnu11").warnings(true).extra_warnings(true).warnings_into_errors(true);
    // Optimised in debug builds too: the accesses are what is simulated, and they must be those of the code that ships.
    build.opt_level(2);
    build.flag("-fsanitize=thread").flag("-fno-tree-loop-distribute-patterns");
    build
}
