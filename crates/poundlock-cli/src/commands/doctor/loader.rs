//! What the system's loader would load for a program, asked of the loader itself in its listing mode: it maps the
//! libraries and runs nothing of them.

use crate::failure::Failure;
use crate::program::elf::Elf;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What would be loaded.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Every library, as the loader found it.
    pub libraries: Vec<PathBuf>,
    /// What keeps the program from starting.
    pub faults: Vec<String>,
}

/// Whether `loader` is this system's own, which this process itself was loaded by. Another one is whatever the program's
/// author wanted it to be, and is not run.
pub fn is_ours(loader: &Path) -> Result<bool, Failure> {
    let own =
        Elf::head(Path::new("/proc/self/exe")).map_err(|why| Failure::ours(format!("cannot read myself: {why}")))?;
    let real = |path: &Path| path.canonicalize().ok();
    Ok(own.loader.as_deref().and_then(real).is_some_and(|own| real(loader) == Some(own)))
}

/// Asks `loader`, which must be ours, what it would load for `program`, with `preload` or without.
pub fn list(loader: &Path, program: &Path, preload: Option<&Path>) -> Result<Loaded, Failure> {
    let mut command = Command::new(loader);
    command.arg("--list").arg(program);
    for variable in ["LD_PRELOAD", "LD_AUDIT", "LD_DEBUG"] {
        command.env_remove(variable);
    }
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    let output = command.output().map_err(|error| Failure::of_program(loader.as_os_str(), &error))?;
    let mut loaded = Loaded::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        sort_line(line.trim(), &mut loaded);
    }
    loaded.faults.extend(String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned));
    Ok(loaded)
}

/// Why `loader` would not load `library` into `program`, which is fine by itself.
pub fn preload_fault(loader: &Path, program: &Path, library: &Path) -> Result<Option<String>, Failure> {
    let loaded = list(loader, program, Some(library))?;
    let absent = || (!loaded.libraries.iter().any(|path| path == library)).then(|| "it is not loaded".to_owned());
    let fault = loaded.faults.first().cloned().or_else(absent);
    Ok(fault.map(|fault| format!("preload library '{}' cannot be used: {fault}", library.display())))
}

/// A line is `NAME => PATH (ADDRESS)`, `PATH (ADDRESS)` or `NAME => not found`.
fn sort_line(line: &str, loaded: &mut Loaded) {
    if line.contains("not found") {
        return loaded.faults.push(line.to_owned());
    }
    let place = line.split_once(" => ").map_or(line, |(_, place)| place);
    let path = Path::new(place.rsplit_once(" (0x").map_or(place, |(path, _)| path));
    if path.is_absolute() {
        loaded.libraries.push(path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::{Loaded, sort_line};
    use std::path::PathBuf;

    #[test]
    fn lines_are_libraries_or_faults() {
        let mut loaded = Loaded::default();
        for line in [
            "linux-vdso.so.1 (0x00007fff)",
            "libc.so.6 => /lib/x y/libc.so.6 (0x00007f)",
            "/lib64/ld-linux-x86-64.so.2 (0x00007f)",
            "libgone.so => not found",
        ] {
            sort_line(line, &mut loaded);
        }
        assert_eq!(loaded.libraries, ["/lib/x y/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from));
        assert_eq!(loaded.faults, ["libgone.so => not found"]);
    }
}
