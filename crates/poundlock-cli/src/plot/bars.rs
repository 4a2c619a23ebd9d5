//! Horizontal bars from zero: one for each lock, with the spread of its runs and the text beside
//! it.

use super::{Area, FAILED, FAINT, GRID, INK, Result, Svg, canvas, label, round_step, tick};
use crate::runs::Spread;
use crate::text_table::shorten;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

/// The length of the axis in pixels.
const AXIS: i32 = 490;
const ROW: i32 = 40;
/// Half of the height of a bar.
const HALF: i32 = 12;
/// Space right of the axis, for each bar's text.
const RIGHT: i32 = 210;
const BOTTOM: i32 = 64;
/// The width of a character of a bar's name.
const CHARACTER: i32 = 8;
const LONGEST_NAME: usize = 46;

const BAR: RGBColor = RGBColor(86, 140, 190);
const REFERENCE_BAR: RGBColor = RGBColor(160, 168, 178);
const REFERENCE: RGBColor = RGBColor(196, 78, 54);

/// A picture of bars.
pub struct Chart {
    /// Empty: none, and no caption.
    pub title: String,
    pub caption: String,
    /// The quantity on the axis, with its unit.
    pub axis: String,
    pub bars: Vec<Bar>,
}

/// One bar. Without a spread, no run succeeded.
pub struct Bar {
    pub name: String,
    pub spread: Option<Spread>,
    /// The figure as text, right of the bar.
    pub figure: String,
    /// A second, fainter line below the figure.
    pub detail: String,
    /// A warning; empty: none.
    pub failure: String,
    /// Whether a dashed line through the other bars marks this one's median.
    pub is_reference: bool,
}

/// Draws the chart.
pub fn svg(chart: &Chart) -> Svg {
    let scale = Scale::of(&chart.bars);
    let top = if chart.title.is_empty() { 24 } else { 88 };
    let bottom = top + ROW * i32::try_from(chart.bars.len())?;
    canvas((scale.right + RIGHT, bottom + BOTTOM), |area| {
        head(area, chart)?;
        grid(area, chart, &scale, (top, bottom))?;
        for (row, bar) in (0..).zip(&chart.bars) {
            draw(area, bar, &scale, top + ROW * row + ROW / 2)?;
        }
        chart.bars.iter().try_for_each(|bar| reference(area, bar, &scale, (top, bottom)))
    })
}

/// Converts figures to horizontal positions.
struct Scale {
    left: i32,
    right: i32,
    step: f64,
    end: f64,
}

impl Scale {
    fn of(bars: &[Bar]) -> Scale {
        let largest =
            bars.iter().filter_map(|bar| bar.spread).map(|spread| spread.max).fold(0.0, f64::max);
        let step = round_step(largest, 6.0);
        let longest =
            bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0).min(LONGEST_NAME);
        let left = (CHARACTER * longest as i32 + 36).max(220);
        Scale { left, right: left + AXIS, step, end: (largest / step).ceil().max(1.0) * step }
    }

    fn x(&self, figure: f64) -> i32 {
        self.left + (f64::from(AXIS) * figure.max(0.0) / self.end).round() as i32
    }
}

fn head(area: &Area, chart: &Chart) -> Result {
    label(area, &shorten(&chart.title, 90), (24, 26), 18, &INK, HPos::Left)?;
    label(area, &shorten(&chart.caption, 130), (24, 50), 12, &FAINT, HPos::Left)
}

fn grid(area: &Area, chart: &Chart, scale: &Scale, (top, bottom): (i32, i32)) -> Result {
    let lines = (scale.end / scale.step).round() as i32;
    for line in 0..=lines {
        let figure = f64::from(line) * scale.step;
        let x = scale.x(figure);
        area.draw(&PathElement::new([(x, top), (x, bottom)], GRID))?;
        label(area, &tick(figure), (x, bottom + 14), 12, &FAINT, HPos::Center)?;
    }
    label(
        area,
        &chart.axis,
        (i32::midpoint(scale.left, scale.right), bottom + 38),
        14,
        &INK,
        HPos::Center,
    )
}

fn draw(area: &Area, bar: &Bar, scale: &Scale, middle: i32) -> Result {
    label(
        area,
        &shorten(&bar.name, LONGEST_NAME),
        (scale.left - 12, middle),
        14,
        &INK,
        HPos::Right,
    )?;
    match bar.spread {
        Some(spread) => {
            rectangle(
                area,
                spread,
                if bar.is_reference { REFERENCE_BAR } else { BAR },
                scale,
                middle,
            )?;
        }
        None => label(area, "no run succeeded", (scale.left + 8, middle), 14, &FAILED, HPos::Left)?,
    }
    label(area, &bar.figure, (scale.right + 14, middle - 8), 14, &INK, HPos::Left)?;
    label(area, &bar.detail, (scale.right + 14, middle + 9), 12, &FAINT, HPos::Left)?;
    label(area, &bar.failure, (scale.right + 90, middle), 14, &FAILED, HPos::Left)
}

/// Draws the bar up to the median and, if the runs differ, a whisker over their range.
fn rectangle(area: &Area, spread: Spread, colour: RGBColor, scale: &Scale, middle: i32) -> Result {
    let (min, median, max) = (scale.x(spread.min), scale.x(spread.median), scale.x(spread.max));
    let end = median.max(scale.left + 1);
    area.draw(&Rectangle::new(
        [(scale.left, middle - HALF), (end, middle + HALF)],
        colour.filled(),
    ))?;
    if spread.min < spread.max {
        area.draw(&PathElement::new([(min, middle), (max, middle)], INK.stroke_width(2)))?;
        for end in [min, max] {
            area.draw(&PathElement::new(
                [(end, middle - 6), (end, middle + 6)],
                INK.stroke_width(2),
            ))?;
        }
    }
    Ok(())
}

fn reference(area: &Area, bar: &Bar, scale: &Scale, (top, bottom): (i32, i32)) -> Result {
    let Some(spread) = bar.spread.filter(|_| bar.is_reference) else {
        return Ok(());
    };
    let x = scale.x(spread.median);
    area.draw(&DashedPathElement::new([(x, top), (x, bottom)], 6, 4, REFERENCE.stroke_width(2)))?;
    label(area, &bar.name, (x, top - 10), 12, &REFERENCE, HPos::Center)
}
