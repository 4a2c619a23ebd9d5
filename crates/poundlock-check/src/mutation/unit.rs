// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks' unit tests, compiled natively with a mutated core. They test what clients of the
//! checker do not: shares, accounted time, the state after a particular interleaving. Their threads
//! take turns, so they cannot detect a missing memory order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use regex::Regex;

use crate::compile;
use crate::sources::Sources;

/// The time limit of a test in seconds: a thousand times its usual duration.
const TIMEOUT: &str = "600";

/// A unit test of locks: it includes headers of the core, and one other, its world's.
pub struct Test {
    /// e.g. "unit/cfl"
    pub name: String,
    source: PathBuf,
    /// The world's folder in tests/unit.
    world: &'static str,
    /// A source that its world needs.
    script: Option<PathBuf>,
    /// The headers of the core that it includes.
    pub headers: Vec<String>,
    /// The functions that it replaces: for each `name` of them it defines `__wrap_name`.
    wrapped: BTreeSet<String>,
}

/// All unit tests of locks, by name.
pub fn tests(sources: &Sources) -> Result<Vec<Test>> {
    let folder = sources.root.join("tests/unit");
    let mut tests = Vec::new();
    for entry in
        std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            tests.extend(test(sources, path)?);
        }
    }
    tests.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tests)
}

fn test(sources: &Sources, source: PathBuf) -> Result<Option<Test>> {
    let text = std::fs::read_to_string(&source)
        .with_context(|| format!("cannot read {}", source.display()))?;
    let include = Regex::new(r#"(?m)^#include "([^"]+)""#).expect("a constant pattern");
    let included = include
        .captures_iter(&text)
        .map(|found| found[1].to_string())
        .filter(|header| header != "world.h");
    let (headers, others): (Vec<_>, Vec<_>) =
        included.partition(|header| sources.core.join(header).is_file());
    let folder = source.parent().expect("a file is in a folder");
    let (world, script) = match &others.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["turns.h"] => ("turns", None),
        ["unit.h"] => ("world", Some(folder.join("script.c"))),
        _ => return Ok(None),
    };
    if headers.is_empty() {
        return Ok(None);
    }
    let stem = source.file_stem().expect("a source has a name").to_string_lossy();
    Ok(Some(Test {
        name: format!("unit/{stem}"),
        world,
        script,
        headers,
        wrapped: wrapped(&text),
        source: source.clone(),
    }))
}

fn wrapped(text: &str) -> BTreeSet<String> {
    let defined = Regex::new(r"\b__wrap_(\w+)").expect("a constant pattern");
    defined.captures_iter(text).map(|found| found[1].to_string()).collect()
}

impl Test {
    /// Builds the test in `folder` with the core of `sources` and runs it. Returns how it fails, if
    /// it does.
    pub fn failure(&self, sources: &Sources, folder: &Path) -> Result<Option<String>> {
        let program = folder.join(self.name.replace('/', "-"));
        self.build(sources, &program)?;
        let output = Command::new("timeout").arg(TIMEOUT).arg(&program).output();
        let output = output.with_context(|| format!("cannot run {}", program.display()))?;
        if output.status.success() {
            return Ok(None);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let root = format!("{}/", sources.root.display());
        let first = errors.lines().next().map(|line| line.replace(&root, ""));
        Ok(Some(first.unwrap_or_else(|| format!("exits with {}", output.status))))
    }

    fn build(&self, sources: &Sources, program: &Path) -> Result<()> {
        let (root, world) = (&sources.root, sources.root.join("world/user"));
        let mut command = Command::new(compile::COMPILER);
        command.args(["-std=gnu11", "-O1", "-g", "-w", "-fno-strict-aliasing", "-pthread"]);
        let unit = root.join("tests/unit").join(self.world);
        for include in [&unit, &world, &sources.core, &root.join("lib")] {
            command.arg("-I").arg(include);
        }
        let parts = ["futex.c", "route.c", "shares.c", "thread.c", "topology.c"]
            .map(|part| world.join(part));
        command.arg(&self.source).args(&self.script).args(parts);
        command.args(self.wrapped.iter().map(|name| format!("-Wl,--wrap={name}")));
        compile::run(command.arg("-o").arg(program))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_says_what_it_replaces() {
        let text = "void __wrap_w_yield(void);\nvoid __wrap_w_yield(void) {}\nint __wrap_f(int);";
        assert_eq!(super::wrapped(text).into_iter().collect::<Vec<_>>(), ["f", "w_yield"]);
        assert!(super::wrapped("void wrap_it(void);").is_empty());
    }
}
