//! Checks files of rules by the code of the preload library, lib/rule.h.

use crate::failure::{Failure, reason, text_from_c};
use crate::output::unreadable;
use crate::spec::Choice;
use std::ffi::{CString, c_char};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

mod c {
    include!(concat!(env!("OUT_DIR"), "/rules_numbers.rs"));
}

/// One byte more than the library reads, which then reports that the file is too long.
const MOST_BYTES: u64 = c::LONGEST_FILE as u64 + 1;

unsafe extern "C" {
    fn rules_check(
        text: *const c_char,
        length: usize,
        spec: *const c_char,
        error: *mut c_char,
        size: usize,
    ) -> bool;
}

/// The absolute path of `file`, if it has rules for a process with this lock.
pub fn checked(file: &Path, lock: &Choice) -> Result<PathBuf, Failure> {
    let refused = |why: &str| Failure::ours(format!("rules in '{}': {why}", file.display()));
    let Choice::Lock(lock) = lock else {
        return Err(refused("native locks have no settings"));
    };
    let unread = |error: io::Error| refused(&reason(&error));
    let path = file.canonicalize().map_err(unread)?;
    if !path.is_file() {
        return Err(refused("it is not a regular file"));
    }
    let text = read(&path).map_err(unread)?;
    check(&text, lock).map_err(|why| refused(&why))?;
    Ok(path)
}

/// The text of a file that [`checked`] has accepted.
pub fn text(file: &Path) -> Result<String, Failure> {
    let text = read(file).map_err(|error| unreadable(file, &error))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// Checks the text of a file. The error is one line.
pub fn check(text: &[u8], lock: &str) -> Result<(), String> {
    /// `rules_check` keeps the rules in static memory.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock();
    let lock = CString::new(lock).map_err(|_| "a lock's name cannot contain NUL".to_owned())?;
    let mut line = [0; 1024];
    // SAFETY: the text and the buffer have these sizes, and the lock is a C string.
    let right = unsafe {
        rules_check(
            text.as_ptr().cast(),
            text.len(),
            lock.as_ptr(),
            line.as_mut_ptr().cast(),
            line.len(),
        )
    };
    if right {
        return Ok(());
    }
    Err(text_from_c(&line))
}
