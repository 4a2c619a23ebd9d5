//! Finds the interpreter of a script.

use crate::failure::Failure;
use crate::program;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The kernel's limit on nested interpreters.
const DEPTH: usize = 5;
/// The kernel's limit on the length of the first line.
const LINE: u64 = 256;

/// Returns the program that the kernel runs for `file`: itself or its interpreter. Adds every
/// script on the way to `through`.
pub fn resolve(file: PathBuf, through: &mut Vec<PathBuf>) -> Result<PathBuf, Failure> {
    let Some(interpreter) = interpreter(&file)? else {
        return Ok(file);
    };
    if through.len() == DEPTH {
        return Err(Failure::ours(format!(
            "'{}': too many nested interpreters",
            through[0].display()
        )));
    }
    through.push(file);
    resolve(interpreter, through)
}

fn interpreter(file: &Path) -> Result<Option<PathBuf>, Failure> {
    let mut start = Vec::new();
    let read = File::open(file).and_then(|file| file.take(LINE).read_to_end(&mut start));
    read.map_err(|error| {
        Failure::ours(format!(
            "cannot read '{}': {}",
            file.display(),
            crate::failure::reason(&error)
        ))
    })?;
    let Some(line) = start.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words: Vec<&OsStr> = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(OsStr::from_bytes)
        .collect();
    let name = program_of(&words)
        .ok_or_else(|| Failure::ours(format!("'{}' names no interpreter", file.display())))?;
    program::find(&name).map(Some).map_err(|failure| {
        Failure::ours(format!("'{}': its interpreter: {}", file.display(), failure.message))
    })
}

/// The first word, or the program that env runs.
fn program_of(words: &[&OsStr]) -> Option<OsString> {
    let first = words.first()?;
    if Path::new(first).file_name() != Some(OsStr::new("env")) {
        return Some((*first).to_owned());
    }
    let is_program =
        |word: &&&OsStr| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'=');
    Some((*words[1..].iter().find(is_program).unwrap_or(&words[0])).to_owned())
}

#[cfg(test)]
mod tests {
    use super::program_of;
    use std::ffi::OsStr;

    fn of(line: &str) -> Option<String> {
        let words: Vec<&OsStr> = line.split_whitespace().map(OsStr::new).collect();
        program_of(&words).and_then(|program| program.into_string().ok())
    }

    #[test]
    fn env_is_resolved_to_its_program() {
        assert_eq!(of("/bin/sh -e").as_deref(), Some("/bin/sh"));
        assert_eq!(of("/usr/bin/env python3").as_deref(), Some("python3"));
        assert_eq!(of("/usr/bin/env -S A=b python3 -u").as_deref(), Some("python3"));
        assert_eq!(of("/usr/bin/env").as_deref(), Some("/usr/bin/env"));
        assert_eq!(of(""), None);
    }
}
