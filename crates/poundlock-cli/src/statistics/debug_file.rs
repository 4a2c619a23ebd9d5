//! Debug information that is kept apart from a program or library: files of the system's debug
//! packages, and of the servers that $DEBUGINFOD_URLS names.

use crate::output::note;
use object::{Object, ReadCache};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;

/// The files that name a program's functions.
pub struct DebugFile {
    pub path: PathBuf,
    /// A file that several debug files share.
    pub supplement: Option<PathBuf>,
}

/// The debug file of a program or library without debug information of its own. None: there is
/// none, or none is needed.
pub fn of(path: &Path) -> Option<DebugFile> {
    let data = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&data).ok()?;
    if file.section_by_name(".debug_info").is_some() {
        return None;
    }
    let path = find(file.build_id().ok()??)?;
    let data = ReadCache::new(File::open(&path).ok()?);
    let file = object::File::parse(&data).ok()?;
    let supplement = file.gnu_debugaltlink().ok().flatten().and_then(|(name, id)| {
        let beside = path.parent()?.join(OsStr::from_bytes(name));
        if beside.exists() { Some(beside) } else { find(id) }
    });
    Some(DebugFile { path, supplement })
}

/// The debug file with this build ID.
fn find(build_id: &[u8]) -> Option<PathBuf> {
    let mut id = String::new();
    for byte in build_id {
        let _ = write!(id, "{byte:02x}");
    }
    let (folder, rest) = id.split_at_checked(2)?;
    let installed = PathBuf::from(format!("/usr/lib/debug/.build-id/{folder}/{rest}.debug"));
    if installed.exists() { Some(installed) } else { fetch(&id) }
}

/// Asks the configured servers by their own client, which keeps a cache and heeds its variables for
/// time-outs and sizes.
fn fetch(id: &str) -> Option<PathBuf> {
    static MISSING: Once = Once::new();
    std::env::var_os("DEBUGINFOD_URLS").filter(|urls| !urls.is_empty())?;
    let mut client = Command::new("debuginfod-find");
    client.args(["debuginfo", id]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = match client.output() {
        Ok(output) => output,
        Err(error) => {
            MISSING.call_once(|| {
                note(format_args!(
                    "DEBUGINFOD_URLS is set, but debuginfod-find cannot be run: {error}"
                ));
            });
            return None;
        }
    };
    let path = PathBuf::from(OsStr::from_bytes(output.stdout.trim_ascii_end()));
    (output.status.success() && path.is_absolute()).then_some(path)
}
