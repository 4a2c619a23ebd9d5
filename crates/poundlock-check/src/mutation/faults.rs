// SPDX-License-Identifier: MIT OR Apache-2.0
//! The known faults: those of earlier implementations, as mutants of the core and of
//! the repository's other parts.

use anyhow::{Context, Result, bail};

use super::mutant::{self, Mutant};
use crate::sources::Sources;

/// The faults of tests/check/known_faults.txt.
pub fn known(sources: &Sources) -> Result<Vec<Mutant>> {
    let path = sources.root.join("tests/check/known_faults.txt");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut faults = Vec::new();
    for (number, part) in text.split("\nfault: ").enumerate().skip(1) {
        faults.push(
            parse(sources, part).with_context(|| format!("{}: fault {number}", path.display()))?,
        );
    }
    Ok(faults)
}

/// Parses a fault: its name; `in: FILE`; then, once or more, lines to remove after `-` and lines to
/// insert in their place after `+`.
fn parse(sources: &Sources, part: &str) -> Result<Mutant> {
    let mut lines = part.lines();
    let name = lines.next().unwrap_or_default();
    let Some(file) = lines.next().and_then(|line| line.strip_prefix("in: ")) else {
        bail!("{name}: no `in: FILE`")
    };
    let folder = if mutant::is_outside_core(file) { &sources.root } else { &sources.core };
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut places = Vec::new();
    let rest: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for change in rest.chunk_by(|one, next| !(one.starts_with('+') && next.starts_with('-'))) {
        let side = |mark: char| -> String {
            change
                .iter()
                .filter_map(|line| line.strip_prefix(mark))
                .map(|line| format!("{line}\n"))
                .collect()
        };
        let (old, new) = (side('-'), side('+'));
        let (Some(at), 1) = (text.find(&old), text.matches(&old).count()) else {
            bail!("{name}: does not occur exactly once in {file}: {old}");
        };
        places.push((at, at + old.len(), new));
    }
    places.sort();
    let Some((first, ..)) = places.first() else { bail!("{name}: changes nothing") };
    let line = text[..*first].matches('\n').count() + 1;
    let mut mutated = text;
    places.iter().rev().for_each(|(start, end, new)| mutated.replace_range(*start..*end, new));
    let name = format!("{file}: {name}");
    Ok(Mutant {
        file: file.into(),
        line,
        name,
        text: mutated,
        pairs_with_nothing: false,
        is_order: false,
        weaker: None,
    })
}
