//! Where a command's figures go: a table for the reader, JSON and a picture for files.

use crate::args::OutputArgs;
use crate::failure::{Failure, reason};
use serde::Serialize;
use std::error::Error;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

impl OutputArgs {
    /// Whether the files can be written: hours of runs must not end in one that cannot.
    pub fn check(&self) -> Result<(), Failure> {
        for file in [&self.json, &self.svg].into_iter().flatten().filter(|file| *file != Path::new("-")) {
            std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(file)
                .map_err(|error| unwritable(file, &error))?;
        }
        Ok(())
    }

    /// Prints the table, and writes the document and its picture where they are wanted.
    pub fn publish(
        &self,
        table: &str,
        document: &impl Serialize,
        svg: impl FnOnce() -> Result<String, Box<dyn Error>>,
    ) -> Result<(), Failure> {
        let json_to_stdout = self.json.as_deref() == Some(Path::new("-"));
        if json_to_stdout {
            eprintln!("{table}");
        } else {
            println!("{table}");
        }
        if let Some(file) = &self.json {
            let json = serde_json::to_string_pretty(document).map_err(Failure::ours)? + "\n";
            if json_to_stdout {
                print!("{json}");
            } else {
                std::fs::write(file, json).map_err(|error| unwritable(file, &error))?;
            }
        }
        if let Some(file) = &self.svg {
            let svg = svg().map_err(|error| Failure::ours(format!("cannot draw: {error}")))?;
            std::fs::write(file, svg).map_err(|error| unwritable(file, &error))?;
        }
        Ok(())
    }
}

/// Writes a file that others may read, so that it is always whole: the old one or the new one.
pub fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(text.as_bytes())?;
        new.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        new.persist(file).map_err(|error| error.error)
    };
    write().map(|_| ()).map_err(|error| unwritable(file, &error))
}

/// That a file cannot be read.
pub fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::ours(format!("cannot read '{}': {}", file.display(), reason(error)))
}

/// That a file cannot be written.
pub fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::ours(format!("cannot write '{}': {}", file.display(), reason(error)))
}
