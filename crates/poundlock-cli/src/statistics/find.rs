//! Finds the files of statistics that processes leave or have mapped.

use super::file::Observed;
use crate::failure::Failure;
use crate::output::unreadable;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Reads the statistics files in a folder, in the order in which their processes began. Others may
/// write to the folder: only the caller's own files are read, or as root all. Damaged files are
/// skipped.
pub fn files_in(folder: &Path) -> Result<Vec<Observed>, Failure> {
    let user = nix::unistd::geteuid().as_raw();
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    let is_trusted = |entry: &std::fs::DirEntry| {
        // The metadata of the entry itself, not of the target of a link.
        entry.metadata().is_ok_and(|file| file.is_file() && (user == 0 || file.uid() == user))
    };
    let paths =
        entries.flatten().filter(is_trusted).map(|entry| entry.path()).filter(|path| is_ours(path));
    let mut found: Vec<Observed> = paths.filter_map(|path| Observed::read(&path).ok()).collect();
    found.sort_by_key(|observed| (observed.start_ns, observed.pid));
    Ok(found)
}

fn is_ours(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("poundlock.") && name.ends_with(".stats")
}

/// Whether the process of a file runs and still writes to it.
pub fn is_live(observed: &Observed) -> bool {
    let same = |path: PathBuf| {
        path.canonicalize().ok().is_some_and(|path| observed.path.canonicalize().ok() == Some(path))
    };
    file_of(observed.pid).is_ok_and(same)
}

/// The statistics file that a running process has mapped. It must belong to the process's user.
pub fn file_of(pid: u32) -> Result<PathBuf, Failure> {
    let maps = PathBuf::from(format!("/proc/{pid}/maps"));
    let text = std::fs::read_to_string(&maps).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::ours(format!("there is no process {pid}")),
        _ => unreadable(&maps, &error),
    })?;
    let path =
        text.lines().filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])));
    let owner = |path: &Path| path.symlink_metadata().map(|file| file.uid()).ok();
    let process = PathBuf::from(format!("/proc/{pid}"));
    let is_its = |path: &&Path| is_ours(path) && owner(path) == owner(&process);
    path.into_iter().find(is_its).map(Path::to_path_buf).ok_or_else(|| {
        Failure::ours(format!(
            "process {pid} has no statistics: start it with `poundlock run --stats` or POUNDLOCK_STATS=1"
        ))
    })
}
