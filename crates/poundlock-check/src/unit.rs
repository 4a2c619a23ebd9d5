// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks' unit tests, built natively with a mutant's core and run. They ask what clients of the checker do not: shares,
//! counted time, what a certain interleaving leaves behind. Their threads take turns, so that they tell nothing of orders.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use regex::Regex;

use crate::client::{self, Sources};

/// How long a test may go on with a mutant, in seconds: a thousand times what it takes.
const MOST_SECONDS: &str = "600";

/// A unit test of locks: one that includes headers of the core and, of others, only that of its world.
pub struct Test {
    /// e.g. "unit/cfl"
    pub name: String,
    source: PathBuf,
    /// The folder of its world in tests/unit.
    world: &'static str,
    /// What its world needs beside it.
    script: Option<PathBuf>,
    /// The headers of the core that it includes.
    pub headers: Vec<String>,
}

/// The unit tests of locks, by name.
pub fn tests(sources: &Sources) -> Result<Vec<Test>> {
    let folder = sources.root.join("tests/unit");
    let mut tests = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "c") {
            tests.extend(test(sources, path)?);
        }
    }
    tests.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tests)
}

fn test(sources: &Sources, source: PathBuf) -> Result<Option<Test>> {
    let text = std::fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
    let include = Regex::new(r#"(?m)^#include "([^"]+)""#).expect("a constant pattern");
    let included = include.captures_iter(&text).map(|found| found[1].to_string());
    let (headers, others): (Vec<_>, Vec<_>) = included.partition(|header| sources.core.join(header).is_file());
    let folder = source.parent().expect("a file lies in a folder");
    let (world, script) = match &others.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["turns.h"] => ("turns", None),
        ["unit.h"] => ("world", Some(folder.join("script.c"))),
        _ => return Ok(None),
    };
    if headers.is_empty() {
        return Ok(None);
    }
    let stem = source.file_stem().expect("a source has a name").to_string_lossy();
    Ok(Some(Test { name: format!("unit/{stem}"), world, script, headers, source: source.clone() }))
}

impl Test {
    /// What the test objects to in the core of `sources`. `folder` is for what the compiler makes.
    pub fn objection(&self, sources: &Sources, folder: &Path) -> Result<Option<String>> {
        let program = folder.join(self.name.replace('/', "-"));
        self.build(sources, &program)?;
        let output = Command::new("timeout").arg(MOST_SECONDS).arg(&program).output();
        let output = output.with_context(|| format!("cannot run {}", program.display()))?;
        if output.status.success() {
            return Ok(None);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let root = format!("{}/", sources.root.display());
        let first = said.lines().next().map(|line| line.replace(&root, ""));
        Ok(Some(first.unwrap_or_else(|| format!("ends with {}", output.status))))
    }

    fn build(&self, sources: &Sources, program: &Path) -> Result<()> {
        let (root, world) = (&sources.root, sources.root.join("world/user"));
        let mut command = Command::new(client::COMPILER);
        command.args(["-std=gnu11", "-O1", "-g", "-w", "-fno-strict-aliasing", "-pthread"]);
        let unit = root.join("tests/unit").join(self.world);
        for include in [&unit, &world, &sources.core, &root.join("lib")] {
            command.arg("-I").arg(include);
        }
        let parts = ["futex.c", "route.c", "shares.c", "thread.c", "topology.c"].map(|part| world.join(part));
        command.arg(&self.source).args(&self.script).args(parts);
        client::run(command.arg("-o").arg(program))
    }
}
