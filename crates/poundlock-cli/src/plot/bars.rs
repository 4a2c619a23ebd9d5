//! A comparison as a picture: a bar for each lock's median, a whisker for its spread, native as the line to beat.

use crate::commands::compare::summary::Comparison;
use crate::commands::compare::table::heading;
use crate::plot::{self, Area, FAILED, FAINT, GRID, INK, Result, label, round_step, shorten, tick};
use crate::runs::Spread;
use crate::text_table::number;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::error::Error;

const WIDTH: i32 = 900;
const ROW: i32 = 44;
const TOP: i32 = 88;
const BOTTOM: i32 = 64;
/// Where the bars begin and the longest may end; names are left of them, figures right.
const LEFT: i32 = 220;
const RIGHT: i32 = WIDTH - 190;

const BAR: RGBColor = RGBColor(86, 140, 190);
const NATIVE_BAR: RGBColor = RGBColor(160, 168, 178);
const REFERENCE: RGBColor = RGBColor(196, 78, 54);
/// The picture as SVG. `native` names the lock that is the reference.
pub fn svg(comparison: &Comparison, native: &str) -> std::result::Result<String, Box<dyn Error>> {
    let height = TOP + ROW * i32::try_from(comparison.locks.len())? + BOTTOM;
    plot::svg((WIDTH, height), |area| {
        let scale = Scale::of(comparison);
        head(area, comparison)?;
        grid(area, &scale, height - BOTTOM)?;
        label(area, &heading(comparison), (i32::midpoint(LEFT, RIGHT), height - 26), 14, &INK, HPos::Center)?;
        for (index, lock) in comparison.locks.iter().enumerate() {
            let middle = TOP + ROW * i32::try_from(index)? + ROW / 2;
            label(area, &shorten(&lock.lock, 27), (LEFT - 12, middle), 15, &INK, HPos::Right)?;
            match lock.figure {
                Some(figure) => bar(area, &scale, figure, middle, if lock.lock == native { NATIVE_BAR } else { BAR })?,
                None => label(area, "no run succeeded", (LEFT + 8, middle), 14, &FAILED, HPos::Left)?,
            }
            let ratio = lock.ratio.map_or(String::new(), |ratio| format!("× {}", number(ratio.median)));
            let failed = if lock.failed == 0 { String::new() } else { format!("{} failed", lock.failed) };
            label(
                area,
                &lock.figure.map_or(String::new(), |figure| number(figure.median)),
                (RIGHT + 14, middle - 8),
                14,
                &INK,
                HPos::Left,
            )?;
            label(area, &ratio, (RIGHT + 14, middle + 9), 12, &FAINT, HPos::Left)?;
            label(area, &failed, (RIGHT + 90, middle), 14, &FAILED, HPos::Left)?;
        }
        reference(area, &scale, comparison, native, height - BOTTOM)?;
        Ok(())
    })
}

/// From figures to the bars' pixels.
struct Scale {
    step: f64,
    end: f64,
}

impl Scale {
    fn of(comparison: &Comparison) -> Scale {
        let largest =
            comparison.locks.iter().filter_map(|lock| lock.figure).map(|figure| figure.max).fold(0.0, f64::max);
        let step = round_step(largest, 6.0);
        Scale { step, end: (largest / step).ceil() * step }
    }

    fn x(&self, figure: f64) -> i32 {
        LEFT + (f64::from(RIGHT - LEFT) * figure.max(0.0) / self.end).round() as i32
    }
}

fn head(area: &Area, comparison: &Comparison) -> Result {
    let command = shorten(&comparison.command.join(" "), 90);
    label(area, &command, (24, 26), 18, &INK, HPos::Left)?;
    let better = comparison.figure.better;
    let line = format!(
        "{}; median and spread of {} runs, {better} is better",
        comparison.provenance.machine_line(),
        comparison.settings.repeats
    );
    label(area, &shorten(&line, 130), (24, 50), 12, &FAINT, HPos::Left)
}

fn grid(area: &Area, scale: &Scale, bottom: i32) -> Result {
    let lines = (scale.end / scale.step).round() as i32;
    for line in 0..=lines {
        let figure = f64::from(line) * scale.step;
        let x = scale.x(figure);
        area.draw(&PathElement::new([(x, TOP), (x, bottom)], GRID))?;
        label(area, &tick(figure), (x, bottom + 14), 12, &FAINT, HPos::Center)?;
    }
    Ok(())
}

fn bar(area: &Area, scale: &Scale, figure: Spread, middle: i32, colour: RGBColor) -> Result {
    let (min, median, max) = (scale.x(figure.min), scale.x(figure.median), scale.x(figure.max));
    area.draw(&Rectangle::new([(LEFT, middle - 13), (median, middle + 13)], colour.filled()))?;
    area.draw(&PathElement::new([(min, middle), (max, middle)], INK.stroke_width(2)))?;
    for end in [min, max] {
        area.draw(&PathElement::new([(end, middle - 6), (end, middle + 6)], INK.stroke_width(2)))?;
    }
    Ok(())
}

fn reference(area: &Area, scale: &Scale, comparison: &Comparison, native: &str, bottom: i32) -> Result {
    let Some(figure) = comparison.locks.iter().find(|lock| lock.lock == native).and_then(|lock| lock.figure) else {
        return Ok(());
    };
    let x = scale.x(figure.median);
    area.draw(&DashedPathElement::new([(x, TOP), (x, bottom)], 6, 4, REFERENCE.stroke_width(2)))?;
    label(area, native, (x, TOP - 10), 12, &REFERENCE, HPos::Center)
}
