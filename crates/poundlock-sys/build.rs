//! Compiles the chosen locks and libpoundlock for the user world into a static library, records the
//! compiler, and asserts that the structures of lib.rs match those of poundlock.h.

mod c_numbers;
mod layout;
mod locks;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Contains the folders of the C sources: links in the repository, copies in the package.
const ROOT: &str = "c";
const SOURCES: [&str; 3] = ["lib", "lib/checks", "world/user"];
const INCLUDES: [&str; 3] = ["world/user", "core", "lib"];

fn main() {
    let root = Path::new(ROOT);
    for directory in ["core", "lib", "world"] {
        println!("cargo:rerun-if-changed={}", root.join(directory).display());
    }
    for file in ["build.rs", "c_numbers.rs", "layout.rs", "locks.rs", "src/inline.c"] {
        println!("cargo:rerun-if-changed={file}");
    }

    assert_version(&root.join("lib/poundlock.h"));
    let mut build = cc::Build::new();
    build.std("gnu11").warnings(true).extra_warnings(true);
    // A change of this variable needs no rebuild: the result would be the same.
    build.warnings_into_errors(env::var_os("POUNDLOCK_WERROR").is_some());
    // Locks are optimised in debug builds too: their speed is part of what users measure.
    build.opt_level(2);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    build.includes(locks::choose(&root.join("core"), &out));
    build.includes(INCLUDES.map(|directory| root.join(directory)));
    layout::write(&build, &out);
    build.files(SOURCES.iter().flat_map(|directory| c_files(&root.join(directory))));
    build.file("src/inline.c");
    println!("cargo:rustc-env=POUNDLOCK_SYS_COMPILER={}", version(&build.get_compiler()));
    build.compile("poundlock");
}

/// Asserts that the crates have the header's version.
fn assert_version(header: &Path) {
    let text =
        std::fs::read_to_string(header).unwrap_or_else(|e| panic!("{}: {e}", header.display()));
    let parts = ["MAJOR", "MINOR", "PATCH"].map(|part| {
        let name = format!("#define POUNDLOCK_VERSION_{part} ");
        text.lines()
            .find_map(|line| line.strip_prefix(&name))
            .unwrap_or_else(|| panic!("no '{name}' in the header"))
    });
    let (header, crates) = (parts.join("."), env!("CARGO_PKG_VERSION"));
    assert_eq!(
        header, crates,
        "the versions of lib/poundlock.h and of [workspace.package] in Cargo.toml differ"
    );
}

fn c_files(directory: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable directory").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    files.sort();
    files
}

/// The first line of the compiler's --version.
fn version(compiler: &cc::Tool) -> String {
    let output = Command::new(compiler.path()).arg("--version").output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}
