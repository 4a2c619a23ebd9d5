// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mutation run: each memory order and fence of the core is weakened, each status update, wake-up and fence dropped, and each
//! pair of neighbouring stores swapped, one at a time, and the clients must object.
//!
//! A mutant that no client objects to is reported unless tests/check/survivors.txt says why it stays; and a line there that
//! no mutant needs is reported, too. tests/check/known_faults.txt has more of them: faults of earlier implementations.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use regex::Regex;

use crate::client::Sources;

/// A change to one place of a file of the core.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// e.g. "part/shuffle.h"
    pub file: String,
    pub line: usize,
    /// What it changes, in the words of the survivors' list: the same as long as that line of the source is.
    pub name: String,
    text: String,
    /// Whether the place's label says that the order pairs with nothing: it is there because waits have one form.
    pub pairs_with_nothing: bool,
    /// Whether it changes only how operations of several threads are ordered: a test whose threads take turns cannot see it.
    pub is_order: bool,
}

/// What an order can be weakened to.
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

/// Statements that can be left out, at the start of a line.
const STATEMENT: &str = r"(?m)^\t+((?:w_store_\w+|\(void\)w_fetch_\w+|w_unpark\w*|w_fence_\w+|node_free)\([^;]*;)";

/// What can change places with the next: these, and plain stores to fields.
const STORE: &str =
    r"(?m)^\t+((?:w_store_\w+|\(void\)w_fetch_\w+|w_unpark\w*|w_fence_\w+|node_free)\([^;]*;|\w+(?:->\w+)+ = [^;]*;)";

/// Where the group of `pattern` is found.
fn matches(pattern: &str, text: &str) -> Vec<Range<usize>> {
    let pattern = Regex::new(pattern).expect("a constant pattern");
    pattern.captures_iter(text).map(|found| found.get(1).expect("a group of the pattern").range()).collect()
}

/// Whether a store, wake-up or fence is more than relaxed or plain.
fn is_ordered(statement: &str) -> bool {
    let call = statement.trim_start_matches("(void)").split('(').next().unwrap_or_default();
    !call.contains(" = ") && !call.contains("relaxed")
}

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
        let name_of_it = format!("{name}: {source}: {what}");
        let comment = text[..start].rfind("/*").map_or("", |at| &text[at..start]);
        let pairs_with_nothing = what == "relaxed for acquire" && comment.contains("acquire: pairs with nothing");
        let is_order = what != "dropped";
        mutants.push(Mutant { file: name.into(), line, name: name_of_it, text: mutated, pairs_with_nothing, is_order });
    };
    let order = Regex::new(ORDER).expect("a constant pattern");
    for found in order.captures_iter(&text) {
        let order = found.get(1).expect("a group of the pattern");
        let (_, weaker) = WEAKER.iter().find(|(strong, _)| *strong == order.as_str()).expect("all orders are listed");
        for weak in *weaker {
            add(order.start(), order.end(), weak, &format!("{} for {}", weak, order.as_str()));
        }
    }
    for statement in matches(STATEMENT, &text) {
        add(statement.start, statement.end, "(void)0;", "dropped");
    }
    let stores = matches(STORE, &text);
    let comment = Regex::new(r"(?s)/\*.*?\*/").expect("a constant pattern");
    for pair in stores.windows(2) {
        let (first, second) = (pair[0].clone(), pair[1].clone());
        let between = &text[first.end..second.start];
        // Two stores without an order have none to swap.
        let ordered = [&first, &second].iter().any(|range| is_ordered(&text[(*range).clone()]));
        if ordered && comment.replace_all(between, "").trim().is_empty() {
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

/// The headers in `folder` of `core`, and in the folders there, by their paths from `core`.
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
        bail!("{} has nothing to mutate", sources.core.display());
    }
    Ok(mutants)
}

/// The faults of tests/check/known_faults.txt, put into the core.
pub fn known_faults(sources: &Sources) -> Result<Vec<Mutant>> {
    let path = sources.root.join("tests/check/known_faults.txt");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut faults = Vec::new();
    for (number, part) in text.split("\nfault: ").enumerate().skip(1) {
        faults.push(fault(sources, part).with_context(|| format!("{}: fault {number}", path.display()))?);
    }
    Ok(faults)
}

/// The fault that `part` tells: its name; `in: FILE`; then, once or more, lines to take out after `-` and lines to put in
/// their place after `+`.
fn fault(sources: &Sources, part: &str) -> Result<Mutant> {
    let mut lines = part.lines();
    let name = lines.next().unwrap_or_default();
    let Some(file) = lines.next().and_then(|line| line.strip_prefix("in: ")) else { bail!("{name}: no `in: FILE`") };
    let core = sources.core.join(file);
    let text = std::fs::read_to_string(&core).with_context(|| format!("cannot read {}", core.display()))?;
    let mut places = Vec::new();
    let rest: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for change in rest.chunk_by(|one, next| !(one.starts_with('+') && next.starts_with('-'))) {
        let side = |mark: char| -> String {
            change.iter().filter_map(|line| line.strip_prefix(mark)).map(|line| format!("{line}\n")).collect()
        };
        let (old, new) = (side('-'), side('+'));
        let (Some(at), 1) = (text.find(&old), text.matches(&old).count()) else {
            bail!("{name}: not once in {file}: {old}");
        };
        places.push((at, at + old.len(), new));
    }
    places.sort();
    let Some((first, ..)) = places.first() else { bail!("{name}: changes nothing") };
    let line = text[..*first].matches('\n').count() + 1;
    let mut mutated = text;
    places.iter().rev().for_each(|(start, end, new)| mutated.replace_range(*start..*end, new));
    let name = format!("{file}: {name}");
    Ok(Mutant { file: file.into(), line, name, text: mutated, pairs_with_nothing: false, is_order: false })
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

/// Which client or unit test objected to which mutant when that was last found out: it is asked first. By mutant the name,
/// in tests/check/killers.txt.
pub struct Killers {
    path: PathBuf,
    known: BTreeMap<String, String>,
}

const KILLERS_HEADER: &str = "\
# Mutants of the core, and the client, or unit test (unit/NAME), that objects to each: MUTANT | CLIENT.
# Written by `./dev check --mutants --accept`.
";

impl Killers {
    /// Reads tests/check/killers.txt.
    pub fn read(root: &Path) -> Result<Killers> {
        let path = root.join("tests/check/killers.txt");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut known = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let Some((name, client)) = line.rsplit_once(" | ") else {
                bail!("{}:{}: not MUTANT | CLIENT", path.display(), number + 1);
            };
            known.insert(name.to_string(), client.to_string());
        }
        Ok(Killers { path, known })
    }

    /// The client that objected to the mutant of that name.
    pub fn get(&self, mutant: &str) -> Option<&str> {
        self.known.get(mutant).map(String::as_str)
    }

    /// The clients that objected to mutants of `file`.
    pub fn of_file(&self, file: &str) -> impl Iterator<Item = &str> {
        let of_file = move |name: &str| name.split(':').next() == Some(file);
        self.known.iter().filter(move |(name, _)| of_file(name)).map(|(_, client)| client.as_str())
    }

    /// Keeps that `client` objects to the mutant, or that none does.
    pub fn accept(&mut self, mutant: &str, client: Option<&str>) -> Result<()> {
        match client {
            Some(client) => self.known.insert(mutant.into(), client.into()),
            None => self.known.remove(mutant),
        };
        self.write()
    }

    /// Forgets mutants that there are no more.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) -> Result<()> {
        self.known.retain(|name, _| is_there(name));
        self.write()
    }

    fn write(&self) -> Result<()> {
        let lines = self.known.iter().map(|(name, client)| format!("{name} | {client}\n"));
        let text = KILLERS_HEADER.to_string() + &lines.collect::<String>();
        std::fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
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
            let Some((name, reason)) = line.rsplit_once(" | ") else {
                bail!("{}:{}: not NAME | REASON", path.display(), number + 1);
            };
            reasons.insert(name.trim().to_string(), reason.trim().to_string());
        }
        Ok(Survivors { path, reasons })
    }

    /// Why the mutant may survive.
    pub fn reason(&self, mutant: &Mutant) -> Option<&str> {
        let listed = self.reasons.get(&mutant.name).map(String::as_str);
        listed.or(mutant.pairs_with_nothing.then_some("its label says so: it pairs with nothing"))
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.reasons.keys().map(String::as_str)
    }

    /// The file of the list.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
