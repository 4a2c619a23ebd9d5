//! Part of build.rs: the locks that are built. They are those of the enabled features that the
//! environment variable `POUNDLOCK_LOCKS`, if it is set, lists as well.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The locks of `pound_mutex_t` and `pound_rwlock_t`, always built. cmake/locks.cmake has the same.
const NEEDED: [&str; 2] = ["shfl_mutex", "shfl_rw"];

const VARIABLE: &str = "POUNDLOCK_LOCKS";

/// Writes the list of locks to build into a folder in `out`, which must be searched before `core`.
/// Returns the folder, or None if all of `core`/locks.def are built.
pub fn choose(core: &Path, out: &Path) -> Option<PathBuf> {
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let listed = env::var(VARIABLE).unwrap_or_else(|_| "all".to_owned());
    let is_chosen = |lock: &str| {
        let feature = format!("CARGO_FEATURE_{}", lock.to_uppercase());
        let is_listed = listed == "all" || listed.split(';').any(|name| name == lock);
        NEEDED.contains(&lock) || env::var_os(feature).is_some() && is_listed
    };
    let all = fs::read_to_string(core.join("locks.def")).expect("the sources have a list of locks");
    let chosen = filter(&all, is_chosen);
    if chosen == all {
        return None;
    }
    let folder = out.join("chosen");
    fs::create_dir_all(&folder).expect("OUT_DIR is writable");
    fs::write(folder.join("locks.def"), chosen).expect("OUT_DIR is writable");
    Some(folder)
}

/// Replaces the entries of locks that are not chosen by OMITTED_LOCK(name) and
/// OMITTED_RWLOCK(name), as core/locks.def describes it.
fn filter(list: &str, is_chosen: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let mut omitted = false;
    for line in list.lines() {
        // An entry's further lines are indented.
        omitted &= line.starts_with([' ', '\t']);
        if let Some((kind, name)) = entry(line).filter(|(_, name)| !is_chosen(name)) {
            omitted = true;
            text += &format!("#define WITHOUT_{name}\nOMITTED_{kind}({name})\n");
        } else if !omitted {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// The kind and the name of the lock whose entry begins with this line.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (kind, rest) = line.split_once('(')?;
    let (name, _) = rest.split_once(',')?;
    ["LOCK", "RWLOCK"].contains(&kind).then_some((kind, name))
}
