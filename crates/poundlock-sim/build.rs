//! Compiles the locks and the critical sections for the simulated machine: every plain access
//! becomes a call.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The functions of `bench/workloads`, renamed, since the native benchmark may be linked too.
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
    println!("cargo::rerun-if-changed=csrc");
    for directory in ["core", "world", "bench/workloads"] {
        println!("cargo::rerun-if-changed={}", root.join(directory).display());
    }
    let mut locks = instrumented();
    locks.includes(["world/sim", "core"].map(|directory| root.join(directory)));
    locks.file("csrc/locks.c");
    locks.compile("poundlock_sim_locks");

    let mut rules = plain();
    rules.include(root.join("core")).file("csrc/rules.c");
    rules.compile("poundlock_sim_rules");

    let mut sections = instrumented();
    for name in SECTIONS.iter().chain(&MORE_SECTIONS) {
        sections.define(name, format!("sim_{name}").as_str());
    }
    sections.files(
        ["section.c", "map.c", "hash.c"].map(|file| root.join("bench/workloads").join(file)),
    );
    sections.compile("poundlock_sim_sections");

    if env::var_os("CARGO_FEATURE_CLIENTS").is_some() {
        compile_clients(root);
    }
}

/// Compiles the model checker's clients, one generated file per lock.
fn compile_clients(root: &Path) {
    println!("cargo::rerun-if-changed={}", root.join("tests/check").display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let definitions = fs::read_to_string(root.join("core/locks.def")).expect("the list of locks");
    let mut clients = instrumented();
    clients.includes(
        ["world/sim", "world/check", "core", "tests/check"].map(|directory| root.join(directory)),
    );
    clients.file("csrc/clients.c");
    for line in definitions.lines() {
        let Some((lock, header, source, more)) = client(line) else { continue };
        let file = out.join(format!("client_{lock}.c"));
        let text = format!(
            "#define check_clients sim_clients_of_{lock}\n#define LOCK {lock}\n#define LOCK_HEADER \"{header}\"\n\
             {more}#include \"{source}\"\n"
        );
        fs::write(&file, text).expect("cargo's folder can be written");
        clients.file(file);
    }
    clients.compile("poundlock_sim_clients");
}

/// Parses a line of core/locks.def: the lock, its header, the source of its clients, and further
/// definitions.
fn client(line: &str) -> Option<(&str, String, &str, String)> {
    let (what, rest) = line.split_once('(')?;
    let mut arguments = rest.split(", ");
    let lock = arguments.next()?;
    match what {
        "LOCK" => {
            let kind = arguments.next()?;
            Some((
                lock,
                format!("{lock}.h"),
                "lock.c",
                format!("#define LOCK_{kind}\n#define LOCK_TRAITS \"locks/{lock}.h\"\n"),
            ))
        }
        "RWLOCK" => Some((lock, format!("rw/{lock}.h"), "rw.c", String::new())),
        _ => None,
    }
}

fn plain() -> cc::Build {
    let mut build = cc::Build::new();
    build.std("gnu11").warnings(true).extra_warnings(true);
    // Not rerun when it changes: that would only compile the same again.
    build.warnings_into_errors(env::var_os("POUNDLOCK_WERROR").is_some());
    build
}

/// Compiles with calls of the engine at every plain access.
fn instrumented() -> cc::Build {
    let mut build = plain();
    // Optimised in debug builds too, so that the accesses are those of the code that ships.
    build.opt_level(2);
    build.flag("-fsanitize=thread").flag("-fno-tree-loop-distribute-patterns");
    build
}
