//! Programs: finding them, reading them, and preloading the library into them.

pub mod elf;
pub mod mapped;
pub mod obstacle;
pub mod preload;
pub mod script;

use crate::failure::{Failure, reason};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The file that exec would run for `program`: the path itself if it has a slash, else the first
/// executable file of that name in PATH.
pub fn find(program: &OsStr) -> Result<PathBuf, Failure> {
    if program.as_bytes().contains(&b'/') {
        return match executable(Path::new(program)) {
            Ok(()) => Ok(PathBuf::from(program)),
            Err(error) => Err(Failure::of_program(program, &error)),
        };
    }
    let mut best = io::Error::from_raw_os_error(libc::ENOENT);
    for directory in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
        let candidate = directory.join(program);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => best = error,
            Err(_) => {}
        }
    }
    Err(Failure::of_program(program, &best))
}

/// The path of this binary.
pub fn own_path() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::ours(format!("cannot find this binary: {}", reason(&error))))
}

fn executable(path: &Path) -> io::Result<()> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    Ok(nix::unistd::access(path, nix::unistd::AccessFlags::X_OK)?)
}
