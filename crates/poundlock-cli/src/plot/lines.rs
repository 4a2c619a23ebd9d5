//! Throughput and fairness over the number of threads: a line for each lock, or with one number of
//! threads a point for each.

use super::{Area, FAINT, GRID, INK, Result, Svg, canvas, label, round_step, tick};
use crate::points::Point;
use crate::runs::Spread;
use crate::text_table::shorten;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use poundlock_bench::NATIVE;

const WIDTH: i32 = 1160;
const TOP: i32 = 112;
const PANEL_WIDTH: i32 = 470;
const PANEL_HEIGHT: i32 = 320;
/// The left edges of the panels.
const PANELS: [i32; 2] = [80, 640];
/// Space between the panels and the legend.
const GAP: i32 = 70;
const LEGEND_ROW: i32 = 24;
const LEGEND_COLUMNS: usize = 4;

const NATIVE_COLOUR: RGBColor = RGBColor(90, 98, 108);
/// Distinguishable colours. After the last one they repeat with another mark.
const COLOURS: [RGBColor; 9] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 96, 28),
    RGBColor(44, 140, 60),
    RGBColor(196, 30, 58),
    RGBColor(128, 90, 180),
    RGBColor(140, 86, 75),
    RGBColor(210, 90, 160),
    RGBColor(150, 150, 30),
    RGBColor(20, 160, 170),
];

/// The content of the picture.
pub struct Picture<'a> {
    pub title: String,
    /// The origin of the figures.
    pub caption: String,
    pub threads: &'a [usize],
    pub locks: &'a [String],
    pub points: &'a [Point],
    /// Whether the workload has several classes of threads.
    pub classes: bool,
}

/// Draws the picture.
pub fn svg(report: &Picture) -> Svg {
    let rows = i32::try_from(report.locks.len().div_ceil(LEGEND_COLUMNS))?;
    let bottom = TOP + PANEL_HEIGHT;
    let height = bottom + GAP + rows * LEGEND_ROW + 12;
    canvas((WIDTH, height), |area| {
        head(area, report)?;
        for (left, panel) in PANELS.into_iter().zip(panels(report)) {
            panel.draw(area, left, report)?;
        }
        for (index, lock) in report.locks.iter().enumerate() {
            legend(area, report, index, lock, bottom + GAP)?;
        }
        Ok(())
    })
}

fn head(area: &Area, report: &Picture) -> Result {
    label(area, &shorten(&report.title, 100), (24, 26), 18, &INK, HPos::Left)?;
    label(area, &shorten(&report.caption, 150), (24, 50), 12, &FAINT, HPos::Left)
}

/// A panel: a figure with its scale.
struct Panel {
    heading: &'static str,
    figure: &'static str,
    /// The factor from the scale to the figure.
    unit: f64,
    from: f64,
    to: f64,
    step: f64,
}

fn panels(report: &Picture) -> [Panel; 2] {
    let most = report
        .points
        .iter()
        .filter_map(|point| point.figure("per_second"))
        .map(|spread| spread.max / 1e6);
    let most = most.fold(0.0, f64::max);
    let step = round_step(most, 6.0);
    let to = (most / step).ceil().max(1.0) * step;
    let throughput = Panel {
        heading: "million acquisitions / s",
        figure: "per_second",
        unit: 1e6,
        from: 0.0,
        to,
        step,
    };
    let fairness = if report.classes {
        let heading = "Jain's index of hold time over entitlement (1: even)";
        Panel { heading, figure: "jain_hold", unit: 1.0, from: 0.0, to: 1.0, step: 0.2 }
    } else {
        let heading = "fairness factor (0.5: even, 1: starvation)";
        Panel { heading, figure: "fairness_factor", unit: 1.0, from: 0.5, to: 1.0, step: 0.1 }
    };
    [throughput, fairness]
}

impl Panel {
    fn draw(&self, area: &Area, left: i32, report: &Picture) -> Result {
        let right = left + PANEL_WIDTH;
        label(area, self.heading, (left, TOP - 22), 14, &INK, HPos::Left)?;
        let lines = ((self.to - self.from) / self.step).round() as i32;
        for line in 0..=lines {
            let value = self.from + f64::from(line) * self.step;
            area.draw(&PathElement::new([(left, self.y(value)), (right, self.y(value))], GRID))?;
            label(area, &tick(value), (left - 8, self.y(value)), 12, &FAINT, HPos::Right)?;
        }
        let under = TOP + PANEL_HEIGHT;
        if report.threads.len() > 1 {
            for (index, threads) in report.threads.iter().enumerate() {
                label(
                    area,
                    &threads.to_string(),
                    (x(report, left, index, 0), under + 16),
                    12,
                    &FAINT,
                    HPos::Center,
                )?;
            }
            label(area, "threads", (left + PANEL_WIDTH / 2, under + 38), 13, &INK, HPos::Center)?;
        }
        for (index, lock) in report.locks.iter().enumerate() {
            self.line(area, left, report, index, lock)?;
        }
        Ok(())
    }

    fn line(&self, area: &Area, left: i32, report: &Picture, index: usize, lock: &str) -> Result {
        let found = |threads: &usize| {
            let of = |point: &&Point| point.lock == lock && point.threads == *threads;
            report.points.iter().find(of)?.figure(self.figure)
        };
        let spreads = report
            .threads
            .iter()
            .enumerate()
            .filter_map(|(turn, threads)| Some((turn, found(threads)?)));
        let points: Vec<(i32, Spread)> =
            spreads.map(|(turn, spread)| (x(report, left, turn, index), spread)).collect();
        let colour = colour(report, lock);
        let path: Vec<(i32, i32)> =
            points.iter().map(|(x, spread)| (*x, self.y(spread.median / self.unit))).collect();
        if lock == NATIVE {
            area.draw(&DashedPathElement::new(path.clone(), 6, 4, colour.stroke_width(2)))?;
        } else {
            area.draw(&PathElement::new(path.clone(), colour.stroke_width(2)))?;
        }
        for ((x, spread), at) in points.into_iter().zip(path) {
            let ends = [(x, self.y(spread.min / self.unit)), (x, self.y(spread.max / self.unit))];
            area.draw(&PathElement::new(ends, colour.stroke_width(1)))?;
            mark(area, report, lock, at)?;
        }
        Ok(())
    }

    fn y(&self, value: f64) -> i32 {
        let part = ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        TOP + PANEL_HEIGHT - (f64::from(PANEL_HEIGHT) * part).round() as i32
    }
}

/// The position of the `turn`-th number of threads, or with one number that of the `lock`-th lock.
fn x(report: &Picture, left: i32, turn: usize, lock: usize) -> i32 {
    let (place, places) = if report.threads.len() > 1 {
        (turn, report.threads.len())
    } else {
        (lock, report.locks.len())
    };
    left + (f64::from(PANEL_WIDTH) * (place as f64 + 0.5) / places as f64).round() as i32
}

/// The index of a lock among all but native.
fn number(report: &Picture, lock: &str) -> usize {
    report.locks.iter().filter(|name| *name != NATIVE).position(|name| name == lock).unwrap_or(0)
}

fn colour(report: &Picture, lock: &str) -> RGBColor {
    if lock == NATIVE { NATIVE_COLOUR } else { COLOURS[number(report, lock) % COLOURS.len()] }
}

fn mark(area: &Area, report: &Picture, lock: &str, at: (i32, i32)) -> Result {
    let style = colour(report, lock).filled();
    match number(report, lock) / COLOURS.len() % 3 {
        0 => area.draw(&Circle::new(at, 4, style))?,
        1 => area.draw(&Rectangle::new([(at.0 - 4, at.1 - 4), (at.0 + 4, at.1 + 4)], style))?,
        _ => area.draw(&TriangleMarker::new(at, 6, style))?,
    }
    Ok(())
}

fn legend(area: &Area, report: &Picture, index: usize, lock: &str, top: i32) -> Result {
    let column = i32::try_from(index % LEGEND_COLUMNS)?;
    let row = i32::try_from(index / LEGEND_COLUMNS)?;
    let at = (PANELS[0] + column * 270, top + row * LEGEND_ROW);
    mark(area, report, lock, at)?;
    label(area, &shorten(lock, 32), (at.0 + 14, at.1), 13, &INK, HPos::Left)
}
