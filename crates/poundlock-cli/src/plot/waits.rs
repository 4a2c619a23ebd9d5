//! The time that was waited for each lock, as bars.

use crate::plot::{FAINT, GRID, INK, Result, label, round_step, shorten, tick};
use crate::statistics::Lock;
use crate::statistics::table::time;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::error::Error;

const WIDTH: i32 = 1000;
const ROW: i32 = 30;
const TOP: i32 = 44;
const BOTTOM: i32 = 50;
const LEFT: i32 = 360;
const RIGHT: i32 = WIDTH - 210;
const BAR: RGBColor = RGBColor(86, 140, 190);

/// The picture as SVG.
pub fn svg(locks: &[&Lock]) -> std::result::Result<String, Box<dyn Error>> {
    let bottom = TOP + ROW * i32::try_from(locks.len())?;
    let mut text = String::new();
    {
        let size = (WIDTH.unsigned_abs(), (bottom + BOTTOM).unsigned_abs());
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        let longest = locks.iter().map(|lock| milliseconds(lock)).fold(0.0, f64::max);
        let step = round_step(longest, 6.0);
        let end = (longest / step).ceil().max(1.0) * step;
        let x = |figure: f64| LEFT + (f64::from(RIGHT - LEFT) * figure / end).round() as i32;
        let mut at = 0.0;
        while at <= end * 1.001 {
            area.draw(&PathElement::new([(x(at), TOP), (x(at), bottom)], GRID))?;
            label(&area, &tick(at), (x(at), bottom + 14), 12, &FAINT, HPos::Center)?;
            at += step;
        }
        label(
            &area,
            "time waited by all threads, ms",
            (i32::midpoint(LEFT, RIGHT), bottom + 34),
            13,
            &INK,
            HPos::Center,
        )?;
        for (row, lock) in (0..).zip(locks) {
            let middle = TOP + ROW * row + ROW / 2;
            bar(&area, lock, middle, x(milliseconds(lock)))?;
        }
        area.present()?;
    }
    Ok(text)
}

fn milliseconds(lock: &Lock) -> f64 {
    lock.wait_ns as f64 / 1e6
}

fn bar(area: &crate::plot::Area<'_>, lock: &Lock, middle: i32, end: i32) -> Result {
    label(area, &shorten(&lock.label(), 46), (LEFT - 12, middle), 13, &INK, HPos::Right)?;
    area.draw(&Rectangle::new([(LEFT, middle - 9), (end.max(LEFT + 1), middle + 9)], BAR.filled()))?;
    let figures = format!("{}, longest {}", time(Some(lock.wait_ns as f64)), time(Some(lock.wait_max_ns as f64)));
    label(area, &figures, (RIGHT + 12, middle), 12, &FAINT, HPos::Left)
}
