//! Pictures as SVG. This file has what all of them share: the canvas, colours, text and round axes.

pub mod bars;
pub mod boxes;
pub mod curves;
pub mod flame_graph;
pub mod heat_map;
pub mod lines;
pub mod regret_map;

use crate::text_table::number;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

/// A finished picture, or the reason why it cannot be drawn.
pub type Svg = std::result::Result<String, Box<dyn Error>>;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Result = std::result::Result<(), Box<dyn Error>>;

const INK: RGBColor = RGBColor(34, 40, 49);
const FAINT: RGBColor = RGBColor(120, 128, 138);
const GRID: RGBColor = RGBColor(228, 231, 235);
const FAILED: RGBColor = RGBColor(196, 30, 58);

/// Draws on a white canvas of `size` pixels, width first.
fn canvas(size: (i32, i32), draw: impl FnOnce(&Area) -> Result) -> Svg {
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

/// Writes `text` so that its `side` is at `at`, vertically centred.
fn label(
    area: &Area,
    text: &str,
    at: (i32, i32),
    size: i32,
    colour: &RGBColor,
    side: HPos,
) -> Result {
    let style = ("sans-serif", size).into_font().color(colour).pos(Pos::new(side, VPos::Center));
    Ok(area.draw(&Text::new(text.to_owned(), at, style))?)
}

/// Formats a round number without trailing zeros.
fn tick(figure: f64) -> String {
    let text = number(figure);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that reaches `largest` in at most
/// `steps` steps.
fn round_step(largest: f64, steps: f64) -> f64 {
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
        for (largest, step) in [
            (0.0, 0.2),
            (1.0, 0.2),
            (6.0, 1.0),
            (6.1, 2.0),
            (59.0, 10.0),
            (600.0, 100.0),
            (0.031, 0.01),
        ] {
            assert!(
                (round_step(largest, 6.0) / step - 1.0).abs() < 1e-9,
                "{largest}: {}",
                round_step(largest, 6.0)
            );
        }
        assert_eq!(tick(round_step(1.0, 6.0)), "0.2");
    }
}
