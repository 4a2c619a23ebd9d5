// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source tree: the locks, and the lists of locks and events.

use std::path::PathBuf;

use anyhow::{Context, Result};
use regex::Regex;

/// The source tree.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The repository.
    pub root: PathBuf,
    /// The locks: core/ of the repository, or a mutant of it.
    pub core: PathBuf,
    /// Whether compiler warnings are errors. A mutant may have unused code.
    pub strict: bool,
}

/// A lock of core/locks.def.
#[derive(Clone, Debug)]
pub struct Lock {
    pub name: String,
    /// BARE or NODE.
    pub kind: String,
}

impl Sources {
    fn definitions(&self, file: &str, pattern: &str) -> Result<Vec<Vec<String>>> {
        let path = self.core.join(file);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let pattern = Regex::new(pattern).expect("a constant pattern");
        let groups = |found: regex::Captures| {
            found.iter().flatten().skip(1).map(|m| m.as_str().into()).collect()
        };
        Ok(pattern.captures_iter(&text).map(groups).collect())
    }

    /// The mutual-exclusion locks of core/locks.def.
    pub fn locks(&self) -> Result<Vec<Lock>> {
        let lines = self.definitions("locks.def", r"(?m)^LOCK\((\w+), (\w+),")?;
        Ok(lines
            .into_iter()
            .map(|line| Lock { name: line[0].clone(), kind: line[1].clone() })
            .collect())
    }

    /// The names of the readers-writer locks of core/locks.def.
    pub fn rw_locks(&self) -> Result<Vec<String>> {
        Ok(self
            .definitions("locks.def", r"(?m)^RWLOCK\((\w+),")?
            .into_iter()
            .map(|line| line[0].clone())
            .collect())
    }

    /// The names of the events of core/events.def, in order.
    pub fn events(&self) -> Result<Vec<String>> {
        Ok(self
            .definitions("events.def", r"(?m)^EVENT\((\w+),")?
            .into_iter()
            .map(|line| line[0].clone())
            .collect())
    }

    /// Whether `header` of the core is `file` or includes it, directly or not.
    pub fn includes(&self, header: &str, file: &str) -> bool {
        if header == file {
            return true;
        }
        let text = std::fs::read_to_string(self.core.join(header)).unwrap_or_default();
        let include = Regex::new(r#"(?m)^#include "([^"]+)""#).expect("a constant pattern");
        include.captures_iter(&text).any(|found| self.includes(&found[1], file))
    }
}
