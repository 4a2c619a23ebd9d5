// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mutation run: each memory order of the core is weakened, each status update, wake-up and fence dropped, and each
//! pair of neighbouring stores swapped, one at a time, and the clients must object.
//!
//! Promises: a mutant that no client objects to is reported unless tests/check/survivors.txt says why it stays; and a
//! line there that no mutant needs is reported, too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use regex::Regex;

use crate::client::Sources;

/// A change to one place of a file of the core.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// e.g. "shuffle.h"
    pub file: String,
    pub line: usize,
    /// What it changes, in the words of the survivors' list: the same as long as that line of the source is.
    pub name: String,
    text: String,
}

/// What an order can be weakened to.
const WEAKER: [(&str, &[&str]); 3] =
    [("acquire", &["relaxed"]), ("release", &["relaxed"]), ("acq_rel", &["acquire", "release"])];

/// Statements that can be left out, at the start of a line.
const STATEMENT: &str = r"(?m)^\t+((?:w_store_\w+|\(void\)w_fetch_\w+|w_unpark\w*|w_fence_\w+|node_free)\([^;]*;)";

/// The mutants of the file `name` of `core`.
fn of_file(core: &Path, name: &str) -> Result<Vec<Mutant>> {
    let path = core.join(name);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut mutants = Vec::new();
    let mut add = |start: usize, end: usize, with: &str, what: &str| {
        let mut mutated = text.clone();
        mutated.replace_range(start..end, with);
        let line = text[..start].matches('\n').count() + 1;
        let source = text.lines().nth(line - 1).unwrap_or_default().trim();
        mutants.push(Mutant { file: name.into(), line, name: format!("{name}: {source}: {what}"), text: mutated });
    };
    let order =
        Regex::new(r"\bw_(?:load|store|exchange|compare_exchange|fetch_\w+?|wait|await)_(acquire|release|acq_rel)\(")
            .expect("a constant pattern");
    for found in order.captures_iter(&text) {
        let order = found.get(1).expect("a group of the pattern");
        let (_, weaker) = WEAKER.iter().find(|(strong, _)| *strong == order.as_str()).expect("all orders are listed");
        for weak in *weaker {
            add(order.start(), order.end(), weak, &format!("{} for {}", weak, order.as_str()));
        }
    }
    let statements: Vec<_> = Regex::new(STATEMENT)
        .expect("a constant pattern")
        .captures_iter(&text)
        .map(|found| found.get(1).expect("a group of the pattern").range())
        .collect();
    for statement in &statements {
        add(statement.start, statement.end, "(void)0;", "dropped");
    }
    for pair in statements.windows(2) {
        let (first, second) = (pair[0].clone(), pair[1].clone());
        // Two relaxed stores have no order to swap.
        let ordered = [&first, &second].iter().any(|range| !text[(*range).clone()].contains("relaxed"));
        if ordered && text[first.end..second.start].trim().is_empty() {
            let between = &text[first.end..second.start];
            let swapped = format!("{}{between}{}", &text[second.clone()], &text[first.clone()]);
            add(first.start, second.end, &swapped, "swapped with the next");
        }
    }
    number_alike(&mut mutants);
    Ok(mutants)
}

/// Tells mutants of lines that read the same apart.
fn number_alike(mutants: &mut [Mutant]) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for mutant in mutants {
        let count = seen.entry(mutant.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            mutant.name += &format!(" ({count})");
        }
    }
}

/// All mutants of the core.
pub fn all(sources: &Sources) -> Result<Vec<Mutant>> {
    let mut names: Vec<String> = std::fs::read_dir(&sources.core)
        .with_context(|| format!("cannot read {}", sources.core.display()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".h"))
        .collect();
    names.sort();
    let mut mutants = Vec::new();
    for name in names {
        mutants.extend(of_file(&sources.core, &name)?);
    }
    if mutants.is_empty() {
        bail!("{} has nothing to mutate", sources.core.display());
    }
    Ok(mutants)
}

impl Mutant {
    /// A copy in `folder` of the core that `sources` have, with this change.
    pub fn core(&self, sources: &Sources, folder: &Path) -> Result<Sources> {
        let core = folder.join("core");
        copy(&sources.core, &core)?;
        std::fs::write(core.join(&self.file), &self.text)?;
        Ok(Sources { root: sources.root.clone(), core, strict: false })
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Whether `header` of the core, or what it includes, is `file`.
pub fn includes(core: &Path, header: &str, file: &str) -> bool {
    if header == file {
        return true;
    }
    let text = std::fs::read_to_string(core.join(header)).unwrap_or_default();
    let include = Regex::new(r#"(?m)^#include "([^"]+)""#).expect("a constant pattern");
    include.captures_iter(&text).any(|found| includes(core, &found[1], file))
}

/// The list of survivors that stay, each with its reason: name and reason by line, parted by " | ".
pub struct Survivors {
    path: PathBuf,
    reasons: HashMap<String, String>,
}

impl Survivors {
    /// Reads tests/check/survivors.txt.
    pub fn read(root: &Path) -> Result<Survivors> {
        let path = root.join("tests/check/survivors.txt");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut reasons = HashMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let Some((name, reason)) = line.split_once(" | ") else {
                bail!("{}:{}: not NAME | REASON", path.display(), number + 1);
            };
            reasons.insert(name.trim().to_string(), reason.trim().to_string());
        }
        Ok(Survivors { path, reasons })
    }

    /// Why the mutant of that name may survive.
    pub fn reason(&self, name: &str) -> Option<&str> {
        self.reasons.get(name).map(String::as_str)
    }

    /// The names that are not in `survived`, though their file's mutants were run.
    pub fn stale<'a>(&'a self, files: &'a [String], survived: &'a [String]) -> impl Iterator<Item = &'a str> + 'a {
        let ran = |name: &str| files.iter().any(|file| name.starts_with(&format!("{file}: ")));
        self.reasons.keys().map(String::as_str).filter(move |name| ran(name) && !survived.iter().any(|s| s == name))
    }

    /// The file of the list.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
