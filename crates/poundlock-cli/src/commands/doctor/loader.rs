//! Lists the libraries of a program with the system's loader in its listing mode, which maps the
//! libraries and executes nothing of them.

use crate::failure::Failure;
use crate::program::elf::Elf;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The result of a listing.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The paths of all libraries that the loader found.
    pub libraries: Vec<PathBuf>,
    /// Reasons why the program cannot start.
    pub faults: Vec<String>,
}

/// Whether `loader` is the one that loaded this process. `doctor` never executes a foreign loader:
/// the author of the program chose it.
pub fn is_ours(loader: &Path) -> Result<bool, Failure> {
    let own = Elf::head(Path::new("/proc/self/exe"))
        .map_err(|why| Failure::ours(format!("cannot read this binary: {why}")))?;
    let real = |path: &Path| path.canonicalize().ok();
    Ok(own.loader.as_deref().and_then(real).is_some_and(|own| real(loader) == Some(own)))
}

/// Lists what `loader`, which must be ours, would load for `program`, with `preload` if given.
pub fn list(loader: &Path, program: &Path, preload: Option<&Path>) -> Result<Loaded, Failure> {
    let mut command = Command::new(loader);
    command.arg("--list").arg(program);
    for variable in ["LD_PRELOAD", "LD_AUDIT", "LD_DEBUG"] {
        command.env_remove(variable);
    }
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    let output =
        command.output().map_err(|error| Failure::of_program(loader.as_os_str(), &error))?;
    let mut loaded = Loaded::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        sort_line(line.trim(), &mut loaded);
    }
    loaded.faults.extend(String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned));
    Ok(loaded)
}

/// Returns why `loader` would not load `library` into `program`, which loads without it.
pub fn preload_fault(
    loader: &Path,
    program: &Path,
    library: &Path,
) -> Result<Option<String>, Failure> {
    let loaded = list(loader, program, Some(library))?;
    let absent = || {
        (!loaded.libraries.iter().any(|path| path == library))
            .then(|| "it is not loaded".to_owned())
    };
    let fault = loaded.faults.first().cloned().or_else(absent);
    Ok(fault
        .map(|fault| format!("preload library '{}' cannot be used: {fault}", library.display())))
}

/// Parses a line: `NAME => PATH (ADDRESS)`, `PATH (ADDRESS)` or `NAME => not found`.
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
        assert_eq!(
            loaded.libraries,
            ["/lib/x y/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from)
        );
        assert_eq!(loaded.faults, ["libgone.so => not found"]);
    }
}
