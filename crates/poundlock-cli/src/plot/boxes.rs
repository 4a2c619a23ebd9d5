//! A machine as a picture: boxes in boxes, down to the cores with their CPUs.

use crate::commands::topo::{Group, core};
use crate::plot::{self, Area, FAINT, INK, label};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::error::Error;

const MARGIN: i32 = 24;
const HEAD: i32 = 76;
/// Between a box and what is in it, and between boxes.
const GAP: i32 = 8;
const NAME: i32 = 22;
const CORE_HEIGHT: i32 = 26;
/// A letter's width in the core's and the name's size.
const CORE_LETTER: i32 = 8;
const NAME_LETTER: i32 = 7;

const FILLS: [RGBColor; 4] =
    [RGBColor(246, 247, 249), RGBColor(233, 238, 244), RGBColor(214, 225, 237), RGBColor(193, 210, 229)];
const CORE: RGBColor = RGBColor(86, 140, 190);
const UNUSABLE: RGBColor = RGBColor(160, 168, 178);

/// A box with its place in the box around it.
struct Placed<'a> {
    group: &'a Group,
    at: (i32, i32),
    size: (i32, i32),
    parts: Vec<Placed<'a>>,
}

/// The picture as SVG.
pub fn svg(title: &str, summary: &str, groups: &[Group], usable: &[usize]) -> Result<String, Box<dyn Error>> {
    let (placed, size) = arrange(groups);
    let width = (size.0 + 2 * MARGIN).max(NAME_LETTER * i32::try_from(title.len().max(summary.len()))? + 2 * MARGIN);
    let height = HEAD + size.1 + MARGIN;
    plot::svg((width, height), |area| {
        label(area, title, (MARGIN, 26), 16, &INK, HPos::Left)?;
        label(area, summary, (MARGIN, 50), 12, &FAINT, HPos::Left)?;
        for part in &placed {
            draw(area, part, (MARGIN, HEAD), 0, usable)?;
        }
        Ok(())
    })
}

fn place(group: &Group) -> Placed<'_> {
    if group.parts.is_empty() {
        let letters = i32::try_from(core(group).len()).expect("a core has few CPUs").max(3);
        return Placed { group, at: (0, 0), size: (letters * CORE_LETTER + 10, CORE_HEIGHT), parts: Vec::new() };
    }
    let (mut parts, inner) = arrange(&group.parts);
    for part in &mut parts {
        part.at = (part.at.0 + GAP, part.at.1 + NAME);
    }
    let name = i32::try_from(group.name.len()).expect("a name is short") * NAME_LETTER;
    Placed { group, at: (0, 0), size: (inner.0.max(name) + 2 * GAP, inner.1 + NAME + GAP), parts }
}

/// The boxes of `groups` in rows, so that the whole is about as wide as twice its height; and the whole's size.
fn arrange(groups: &[Group]) -> (Vec<Placed<'_>>, (i32, i32)) {
    let mut placed: Vec<Placed> = groups.iter().map(place).collect();
    let widest = placed.iter().map(|part| part.size.0).max().unwrap_or(0);
    let highest = placed.iter().map(|part| part.size.1).max().unwrap_or(0);
    if placed.iter().all(|part| part.parts.is_empty()) {
        placed.iter_mut().for_each(|core| core.size.0 = widest);
    }
    let squared = 2.0 * f64::from(highest + GAP) * placed.len() as f64 / f64::from((widest + GAP).max(1));
    let about = (squared.sqrt().round() as usize).clamp(1, placed.len().max(1));
    // Full rows, if that is not much wider.
    let full = (about..=2 * about).find(|&columns| placed.len().is_multiple_of(columns));
    let columns = full.unwrap_or(about);
    let (mut top, mut size) = (0, (0, 0));
    for row in placed.chunks_mut(columns) {
        let mut left = 0;
        for part in row.iter_mut() {
            part.at = (left, top);
            left += widest + GAP;
            size = (size.0.max(part.at.0 + part.size.0), size.1.max(part.at.1 + part.size.1));
        }
        top += row.iter().map(|part| part.size.1).max().unwrap_or(0) + GAP;
    }
    (placed, size)
}

fn draw(area: &Area, part: &Placed, from: (i32, i32), depth: usize, usable: &[usize]) -> plot::Result {
    let (left, top) = (from.0 + part.at.0, from.1 + part.at.1);
    let corners = [(left, top), (left + part.size.0, top + part.size.1)];
    if part.parts.is_empty() {
        let free = part.group.cpus.iter().any(|cpu| usable.binary_search(cpu).is_ok());
        area.draw(&Rectangle::new(corners, if free { CORE } else { UNUSABLE }.filled()))?;
        let middle = (left + part.size.0 / 2, top + part.size.1 / 2);
        return label(area, &core(part.group), middle, 13, &WHITE, HPos::Center);
    }
    area.draw(&Rectangle::new(corners, FILLS[depth.min(FILLS.len() - 1)].filled()))?;
    area.draw(&Rectangle::new(corners, FAINT))?;
    label(area, &part.group.name, (left + GAP, top + NAME / 2), 12, &INK, HPos::Left)?;
    part.parts.iter().try_for_each(|inner| draw(area, inner, (left, top), depth + 1, usable))
}
