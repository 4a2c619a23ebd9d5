// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutants of the core: each memory order and fence weakened, each status update, wake-up and fence
//! dropped, and each pair of neighbouring stores swapped, one at a time.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, bail};
use regex::Regex;

use crate::sources::Sources;

/// A change to one place of a file of the core, or of another part of the repository.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// e.g. "part/shuffle.h", or "world/user/records.h"
    pub file: String,
    pub line: usize,
    /// File, source line and change. It changes only if that line does.
    pub name: String,
    /// The mutated file.
    pub text: String,
    /// Whether the label says that the acquire pairs with nothing: waits have no relaxed form.
    pub pairs_with_nothing: bool,
    /// Whether it changes only how operations of different threads are ordered. Unit tests whose
    /// threads take turns cannot detect that.
    pub is_order: bool,
    /// The weaker memory order, if it weakens one.
    pub weaker: Option<Weaker>,
}

/// A memory order that replaces a stronger one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weaker {
    /// The place of the stronger one in the file.
    at: Range<usize>,
    order: String,
}

/// The weaker orders of each order.
const WEAKER: [(&str, &[&str]); 4] = [
    ("acquire", &["relaxed"]),
    ("release", &["relaxed"]),
    ("acq_rel", &["acquire", "release"]),
    ("seq_cst", &["acq_rel"]),
];

/// An order that can be weakened.
const ORDER: &str = concat!(
    r"\bw_(?:load|store|exchange|compare_exchange|fetch_\w+?|wait|await|fence)",
    r"_(acquire|release|acq_rel|seq_cst)\("
);

/// A statement that can be dropped, at the start of a line.
const STATEMENT: &str =
    r"(?m)^\t+((?:w_store_\w+|\(void\)w_fetch_\w+|w_unpark\w*|w_fence_\w+|node_free)\([^;]*;)";

/// A statement that can be swapped with the next: these, and plain stores to fields.
const STORE: &str = r"(?m)^\t+((?:w_store_\w+|\(void\)w_fetch_\w+|w_unpark\w*|w_fence_\w+|node_free)\([^;]*;|\w+(?:->\w+)+ = [^;]*;)";

/// The ranges of the group of `pattern`.
fn matches(pattern: &str, text: &str) -> Vec<Range<usize>> {
    let pattern = Regex::new(pattern).expect("a constant pattern");
    pattern
        .captures_iter(text)
        .map(|found| found.get(1).expect("a group of the pattern").range())
        .collect()
}

/// `text` with spaces in place of its comments.
fn without_comments(text: &str) -> String {
    let comment = Regex::new(r"(?s)/\*.*?\*/").expect("a constant pattern");
    let blank = |found: &regex::Captures| {
        found[0].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect::<String>()
    };
    comment.replace_all(text, blank).into_owned()
}

/// Whether a store, wake-up or fence is neither relaxed nor plain.
fn is_ordered(statement: &str) -> bool {
    let call = statement.trim_start_matches("(void)").split('(').next().unwrap_or_default();
    !call.contains(" = ") && !call.contains("relaxed")
}

/// Makes mutants of one file.
struct Mutator<'a> {
    file: &'a str,
    text: &'a str,
    /// The text with blank comments, of the same length.
    code: String,
    mutants: Vec<Mutant>,
}

impl Mutator<'_> {
    /// Adds the mutant with `with` in place of `range`; `change` describes it.
    fn add(&mut self, range: Range<usize>, with: &str, change: &str) {
        let mut mutated = self.text.to_string();
        mutated.replace_range(range.clone(), with);
        let before = &self.text[..range.start];
        let line = before.matches('\n').count() + 1;
        let source = self.text.lines().nth(line - 1).unwrap_or_default().trim();
        let comment = before.rfind("/*").map_or("", |at| &before[at..]);
        let weaker = change.contains(" for ").then(|| Weaker { at: range, order: with.into() });
        self.mutants.push(Mutant {
            file: self.file.into(),
            line,
            name: format!("{}: {source}: {change}", self.file),
            text: mutated,
            pairs_with_nothing: change == "relaxed for acquire"
                && comment.contains("acquire: pairs with nothing"),
            is_order: change != "dropped",
            weaker,
        });
    }

    fn weaken_orders(&mut self) {
        for range in matches(ORDER, &self.code) {
            let order = &self.text[range.clone()];
            let listed = WEAKER.iter().find(|(strong, _)| *strong == order);
            let (_, weaker) = listed.expect("all orders are listed");
            for weak in *weaker {
                self.add(range.clone(), weak, &format!("{weak} for {order}"));
            }
        }
    }

    fn drop_statements(&mut self) {
        for statement in matches(STATEMENT, &self.code) {
            self.add(statement, "(void)0;", "dropped");
        }
    }

    fn swap_stores(&mut self) {
        let stores = matches(STORE, &self.code);
        for pair in stores.windows(2) {
            let (first, second) = (pair[0].clone(), pair[1].clone());
            let between = &self.text[first.end..second.start];
            // To swap two unordered stores changes nothing.
            let ordered =
                [&first, &second].iter().any(|range| is_ordered(&self.text[(*range).clone()]));
            if ordered && self.code[first.end..second.start].trim().is_empty() {
                let swapped =
                    format!("{}{between}{}", &self.text[second.clone()], &self.text[first.clone()]);
                self.add(first.start..second.end, &swapped, "swapped with the next");
            }
        }
    }

    /// Numbers the mutants of equal lines.
    fn number_equal(&mut self) {
        let mut seen: HashMap<String, usize> = HashMap::new();
        for mutant in &mut self.mutants {
            let count = seen.entry(mutant.name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                mutant.name += &format!(" ({count})");
            }
        }
    }
}

/// The mutants of the file `name` of `core`.
fn of_file(core: &Path, name: &str) -> Result<Vec<Mutant>> {
    let path = core.join(name);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut mutator =
        Mutator { file: name, text: &text, code: without_comments(&text), mutants: Vec::new() };
    mutator.weaken_orders();
    mutator.drop_statements();
    mutator.swap_stores();
    mutator.number_equal();
    Ok(mutator.mutants)
}

/// The headers in `folder` of `core` and in its folders, by their paths from `core`.
fn headers(core: &Path, folder: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let at = core.join(folder);
    for entry in std::fs::read_dir(&at).with_context(|| format!("cannot read {}", at.display()))? {
        let entry = entry?;
        let name = format!("{folder}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            names.extend(headers(core, &format!("{name}/"))?);
        } else if name.ends_with(".h") {
            names.push(name);
        }
    }
    Ok(names)
}

/// All mutants of the core.
pub fn all(sources: &Sources) -> Result<Vec<Mutant>> {
    let mut names = headers(&sources.core, "")?;
    names.sort();
    let mut mutants = Vec::new();
    for name in names {
        mutants.extend(of_file(&sources.core, &name)?);
    }
    if mutants.is_empty() {
        bail!("no mutants: {} has no memory orders", sources.core.display());
    }
    Ok(mutants)
}

/// The folders of the repository that compile with a mutant outside of the core: its clients
/// include it by a relative path.
const OUTSIDE_CORE: [&str; 6] =
    ["tests/check", "world", "kernel/overlay", "kernel/hook", "lib", "preload"];

impl Mutant {
    /// Copies the core of `sources` into `folder`, and more for a file of another part, with this
    /// change.
    pub fn sources(&self, sources: &Sources, folder: &Path) -> Result<Sources> {
        let core = folder.join("core");
        copy(&sources.core, &core)?;
        if !is_outside_core(&self.file) {
            std::fs::write(core.join(&self.file), &self.text)?;
            return Ok(Sources { root: sources.root.clone(), core, strict: false });
        }
        for part in OUTSIDE_CORE {
            copy(&sources.root.join(part), &folder.join(part))?;
        }
        std::fs::write(folder.join(&self.file), &self.text)?;
        Ok(Sources { root: folder.into(), core, strict: false })
    }
}

/// Copies the core of `sources` into `folder`, with all orders of `mutants` weakened: each allows
/// only executions that all together allow. The mutants weaken orders of the core.
pub fn weakened(mutants: &[&Mutant], sources: &Sources, folder: &Path) -> Result<Sources> {
    let core = folder.join("core");
    copy(&sources.core, &core)?;
    let mut edits: BTreeMap<(&str, usize), Weaker> = BTreeMap::new();
    for mutant in mutants {
        let weaker = mutant.weaker.as_ref().expect("it weakens an order");
        let edit = edits.entry((&mutant.file, weaker.at.start)).or_insert_with(|| weaker.clone());
        if edit != weaker {
            edit.order = "relaxed".into(); // acquire and release in place of acq_rel
        }
    }
    for ((file, _), Weaker { at, order }) in edits.into_iter().rev() {
        let path = core.join(file);
        let mut text = std::fs::read_to_string(&path)?;
        text.replace_range(at, &order);
        std::fs::write(&path, text)?;
    }
    Ok(Sources { root: sources.root.clone(), core, strict: false })
}

/// Whether `file` is one of the repository's other parts and not of the core.
pub fn is_outside_core(file: &str) -> bool {
    ["world/", "kernel/", "lib/", "preload/"].iter().any(|part| file.starts_with(part))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_have_no_mutants() {
        let text =
            "/* w_load_acquire(p), \u{2500} */\n\tw_store_release(p, 1); /* w_fence_seq_cst() */\n";
        let code = without_comments(text);
        let mut mutator = Mutator { file: "a.h", text, code, mutants: Vec::new() };
        mutator.weaken_orders();
        mutator.drop_statements();
        let names: Vec<_> =
            mutator.mutants.iter().map(|mutant| mutant.name.rsplit(": ").next().unwrap()).collect();
        assert_eq!(names, ["relaxed for release", "dropped"]);
    }

    #[test]
    fn orders_are_weakened_together() {
        let text = "\tw_exchange_acq_rel(p, 1);\n\tw_load_acquire(p);\n\tw_store_release(p, 1);\n";
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a.h"), text).unwrap();
        let mutants = of_file(root.path(), "a.h").unwrap();
        let orders: Vec<&Mutant> =
            mutants.iter().filter(|mutant| mutant.weaker.is_some()).collect();
        let sources = Sources { root: root.path().into(), core: root.path().into(), strict: false };
        let weaken = |mutants: &[&Mutant]| {
            let folder = tempfile::tempdir().unwrap();
            let weaker = weakened(mutants, &sources, folder.path()).unwrap();
            std::fs::read_to_string(weaker.core.join("a.h")).unwrap()
        };
        let all = "\tw_exchange_relaxed(p, 1);\n\tw_load_relaxed(p);\n\tw_store_relaxed(p, 1);\n";
        assert_eq!(weaken(&orders), all);
        for mutant in orders {
            assert_eq!(weaken(&[mutant]), mutant.text);
        }
    }
}
