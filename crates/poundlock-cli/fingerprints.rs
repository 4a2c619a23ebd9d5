//! Part of build.rs: a hash of the sources of each lock, and one of the simulator's, so that
//! results of simulations are kept as long as neither changes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The simulator's sources apart from the locks.
const SIMULATOR: [&str; 7] = [
    "crates/poundlock-sim/build.rs",
    "crates/poundlock-sim/csrc",
    "crates/poundlock-sim/src",
    "crates/poundlock-workload/src",
    "world/sim",
    "bench/workloads",
    "Cargo.lock",
];

/// Writes fingerprints.rs to `out`: `SIMULATOR`, and `LOCKS` by name. `root` is the source tree.
pub fn write(root: &Path, out: &Path) {
    let mut text = format!("const SIMULATOR: u64 = {:#x};\n", hash(&simulator(root)));
    text += "const LOCKS: &[(&str, u64)] = &[\n";
    let list = fs::read_to_string(root.join("core/locks.def")).expect("the list of locks");
    for line in list.lines() {
        let Some((what, rest)) = line.split_once('(') else { continue };
        let folder = match what {
            "LOCK" => "core",
            "RWLOCK" => "core/rw",
            _ => continue,
        };
        let name = rest.split(',').next().expect("split() has a first part");
        let mut sources = BTreeSet::new();
        add(root, &root.join(folder).join(format!("{name}.h")), &mut sources);
        let _ = writeln!(text, "(\"{name}\", {:#x}),", hash(&sources));
    }
    text += "];\n";
    fs::write(out.join("fingerprints.rs"), text).expect("cargo's folder can be written");
}

fn simulator(root: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut waiting: Vec<PathBuf> = SIMULATOR.iter().map(|path| root.join(path)).collect();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder of the source tree");
            waiting.extend(entries.map(|entry| entry.expect("an entry of a folder").path()));
        } else if path.extension().is_none_or(|ending| ending != "toml") {
            files.insert(path);
        }
    }
    files
}

/// Adds a source of a lock, and those that it includes.
fn add(root: &Path, file: &Path, sources: &mut BTreeSet<PathBuf>) {
    if !sources.insert(file.to_owned()) {
        return;
    }
    let text = fs::read_to_string(file).unwrap_or_else(|_| panic!("no {}", file.display()));
    let beside = file.parent().expect("a file is in a folder");
    for line in text.lines() {
        let Some(name) = line.strip_prefix("#include \"").and_then(|rest| rest.split('"').next())
        else {
            continue;
        };
        let places = [beside, &root.join("core"), &root.join("world/sim")];
        let found = places.iter().map(|place| place.join(name)).find(|path| path.is_file());
        if let Some(found) = found.and_then(|path| path.canonicalize().ok()) {
            add(root, &found, sources);
        }
    }
}

/// FNV-1a of the names within the folders, and of the contents.
fn hash(files: &BTreeSet<PathBuf>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for file in files {
        let name = file.file_name().expect("a file has a name").as_encoded_bytes();
        let content = fs::read(file).unwrap_or_else(|_| panic!("no {}", file.display()));
        for byte in name.iter().chain(&content) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}
