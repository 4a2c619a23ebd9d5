//! What the commands' pictures have in common: colours, words and round numbers.

pub mod bars;
pub mod boxes;
pub mod heat_map;
pub mod lines;
pub mod waits;

use crate::text_table::number;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub type Result = std::result::Result<(), Box<dyn Error>>;

pub const INK: RGBColor = RGBColor(34, 40, 49);
pub const FAINT: RGBColor = RGBColor(120, 128, 138);
pub const GRID: RGBColor = RGBColor(228, 231, 235);
pub const FAILED: RGBColor = RGBColor(196, 30, 58);

/// A picture of so many pixels as SVG, on white.
pub fn svg(size: (i32, i32), draw: impl FnOnce(&Area) -> Result) -> std::result::Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let size = (size.0.unsigned_abs(), size.1.unsigned_abs());
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        draw(&area)?;
        area.present()?;
    }
    Ok(text)
}

/// Writes at a place, on the side of it that is named.
pub fn label(area: &Area, text: &str, at: (i32, i32), size: i32, colour: &RGBColor, side: HPos) -> Result {
    let style = ("sans-serif", size).into_font().color(colour).pos(Pos::new(side, VPos::Center));
    Ok(area.draw(&Text::new(text.to_owned(), at, style))?)
}

/// At most so many letters of a text.
pub fn shorten(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        text.to_owned()
    } else {
        text.chars().take(length - 1).chain(['…']).collect()
    }
}

/// A round number without the zeros that its arithmetic leaves.
pub fn tick(figure: f64) -> String {
    let text = number(figure);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The smallest of 1, 2, 5, 10, ... and their parts that needs at most so many steps to `largest`.
pub fn round_step(largest: f64, steps: f64) -> f64 {
    let largest = if largest > 0.0 { largest } else { 1.0 };
    let magnitude = 10f64.powf((largest / steps).log10().floor());
    let round = [1.0, 2.0, 5.0].map(|factor| factor * magnitude);
    round.into_iter().find(|step| largest / step <= steps).unwrap_or(10.0 * magnitude)
}

#[cfg(test)]
mod tests {
    use super::{round_step, tick};

    #[test]
    fn steps_are_round_and_few() {
        for (largest, step) in
            [(0.0, 0.2), (1.0, 0.2), (6.0, 1.0), (6.1, 2.0), (59.0, 10.0), (600.0, 100.0), (0.031, 0.01)]
        {
            assert!((round_step(largest, 6.0) / step - 1.0).abs() < 1e-9, "{largest}: {}", round_step(largest, 6.0));
        }
        assert_eq!(tick(round_step(1.0, 6.0)), "0.2");
    }
}
