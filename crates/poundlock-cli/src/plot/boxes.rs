//! Nested boxes, such as the sockets, caches and cores of a machine.

use super::{Area, FAINT, INK, Result, Svg, canvas, label};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const MARGIN: i32 = 24;
const HEAD: i32 = 76;
/// Space between a box and its parts, and between boxes.
const GAP: i32 = 8;
/// The height of the line with the name of a box.
const NAME: i32 = 22;
const LEAF_HEIGHT: i32 = 26;
/// The width of a character of the name of a leaf, and of another box.
const LEAF_CHARACTER: i32 = 8;
const NAME_CHARACTER: i32 = 7;

/// Colours by depth; the last one serves all deeper boxes.
const FILLS: [RGBColor; 4] = [
    RGBColor(246, 247, 249),
    RGBColor(233, 238, 244),
    RGBColor(214, 225, 237),
    RGBColor(193, 210, 229),
];
const LEAF: RGBColor = RGBColor(86, 140, 190);
const DISABLED: RGBColor = RGBColor(160, 168, 178);

/// A box. Without parts it is a leaf, drawn as its name on a coloured ground.
pub struct Block {
    pub name: String,
    /// Whether a leaf is grey.
    pub disabled: bool,
    pub parts: Vec<Block>,
}

/// A box with its position in the box around it.
struct Placed<'a> {
    block: &'a Block,
    at: (i32, i32),
    size: (i32, i32),
    parts: Vec<Placed<'a>>,
}

/// Draws the boxes under a title and a caption.
pub fn svg(title: &str, caption: &str, blocks: &[Block]) -> Svg {
    let (placed, size) = arrange(blocks);
    let text = NAME_CHARACTER * i32::try_from(title.len().max(caption.len()))?;
    let (width, height) = (size.0.max(text) + 2 * MARGIN, HEAD + size.1 + MARGIN);
    canvas((width, height), |area| {
        label(area, title, (MARGIN, 26), 16, &INK, HPos::Left)?;
        label(area, caption, (MARGIN, 50), 12, &FAINT, HPos::Left)?;
        placed.iter().try_for_each(|part| draw(area, part, (MARGIN, HEAD), 0))
    })
}

/// Sizes a box by its parts and its name.
fn place(block: &Block) -> Placed<'_> {
    let characters = i32::try_from(block.name.len()).expect("a name is short");
    if block.parts.is_empty() {
        let size = (characters.max(3) * LEAF_CHARACTER + 10, LEAF_HEIGHT);
        return Placed { block, at: (0, 0), size, parts: Vec::new() };
    }
    let (mut parts, inner) = arrange(&block.parts);
    for part in &mut parts {
        part.at = (part.at.0 + GAP, part.at.1 + NAME);
    }
    let width = inner.0.max(characters * NAME_CHARACTER) + 2 * GAP;
    Placed { block, at: (0, 0), size: (width, inner.1 + NAME + GAP), parts }
}

/// Arranges boxes in rows so that the whole is about twice as wide as high. Returns them and the
/// size of the whole.
fn arrange(blocks: &[Block]) -> (Vec<Placed<'_>>, (i32, i32)) {
    let mut placed: Vec<Placed> = blocks.iter().map(place).collect();
    let widest = placed.iter().map(|part| part.size.0).max().unwrap_or(0);
    let highest = placed.iter().map(|part| part.size.1).max().unwrap_or(0);
    if placed.iter().all(|part| part.parts.is_empty()) {
        placed.iter_mut().for_each(|leaf| leaf.size.0 = widest);
    }
    let squared =
        2.0 * f64::from(highest + GAP) * placed.len() as f64 / f64::from((widest + GAP).max(1));
    let about = (squared.sqrt().round() as usize).clamp(1, placed.len().max(1));
    // Full rows are preferred if they are not much wider.
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

fn draw(area: &Area, part: &Placed, origin: (i32, i32), depth: usize) -> Result {
    let (left, top) = (origin.0 + part.at.0, origin.1 + part.at.1);
    let corners = [(left, top), (left + part.size.0, top + part.size.1)];
    if part.parts.is_empty() {
        let fill = if part.block.disabled { DISABLED } else { LEAF };
        area.draw(&Rectangle::new(corners, fill.filled()))?;
        let middle = (left + part.size.0 / 2, top + part.size.1 / 2);
        return label(area, &part.block.name, middle, 13, &WHITE, HPos::Center);
    }
    area.draw(&Rectangle::new(corners, FILLS[depth.min(FILLS.len() - 1)].filled()))?;
    area.draw(&Rectangle::new(corners, FAINT))?;
    label(area, &part.block.name, (left + GAP, top + NAME / 2), 12, &INK, HPos::Left)?;
    part.parts.iter().try_for_each(|inner| draw(area, inner, (left, top), depth + 1))
}
