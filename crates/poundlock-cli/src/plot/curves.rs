//! Throughput over the number of threads or over time, in panels side by side; each curve is named
//! at its end.

use super::{Area, FAINT, GRID, INK, Result, Svg, canvas, label, round_step, tick};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use serde::Deserialize;

const HEIGHT: i32 = 400;
const TOP: i32 = 84;
const BOTTOM: i32 = 340;
/// Left of each panel, for the scale.
const MARGIN: i32 = 40;
/// Between the end of a curve and its name, and between two names.
const GAP: i32 = 10;
const NAME_HEIGHT: i32 = 15;
/// The width of a name's letter, roughly.
const LETTER: i32 = 7;

/// The panels, from left to right.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    panels: Vec<Panel>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Panel {
    title: String,
    /// The origin of the figures.
    about: String,
    unit: String,
    /// Width in pixels, without scale and names.
    width: i32,
    #[serde(default)]
    axis: Axis,
    curves: Vec<Curve>,
}

/// The quantity on the horizontal axis.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Axis {
    /// On a logarithmic scale.
    #[default]
    Threads,
    /// On a linear scale.
    Seconds,
}

/// The distance of the marks on the axis of time.
const SECONDS: u32 = 5;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Curve {
    name: String,
    /// Red, green and blue.
    colour: (u8, u8, u8),
    /// Numbers of threads, or seconds, with their figures. All curves of a panel have the same
    /// numbers.
    points: Vec<(u32, f64)>,
}

/// Draws the picture.
pub fn svg(picture: &Picture) -> Svg {
    let width = picture.panels.iter().map(Panel::whole_width).sum();
    canvas((width, HEIGHT), |area| {
        let mut left = MARGIN;
        for panel in &picture.panels {
            panel.draw(area, left)?;
            left += panel.whole_width();
        }
        Ok(())
    })
}

impl Panel {
    fn whole_width(&self) -> i32 {
        let letters = self.curves.iter().map(|curve| curve.name.chars().count()).max();
        MARGIN + self.width + 2 * GAP + LETTER * letters.unwrap_or(0) as i32
    }

    fn draw(&self, area: &Area, left: i32) -> Result {
        label(area, &self.title, (left, 22), 21, &INK, HPos::Left)?;
        label(area, &self.about, (left, 43), 15, &FAINT, HPos::Left)?;
        label(area, &self.unit, (left, 66), 15, &FAINT, HPos::Left)?;
        self.scale(area, left)?;
        self.axis(area, left)?;
        let mut curves: Vec<&Curve> = self.curves.iter().collect();
        curves.sort_by(|one, other| other.end().total_cmp(&one.end()));
        let ends: Vec<i32> = curves.iter().map(|curve| self.y(curve.end())).collect();
        for (curve, height) in curves.into_iter().zip(apart(&ends)) {
            self.curve(area, left, curve)?;
            let at = (left + self.width + GAP, height);
            label(area, &curve.name, at, 16, &curve.colour(), HPos::Left)?;
        }
        Ok(())
    }

    fn scale(&self, area: &Area, left: i32) -> Result {
        let (step, to) = self.steps();
        for line in 0..=(to / step).round() as i32 {
            let value = f64::from(line) * step;
            let ends = [(left, self.y(value)), (left + self.width, self.y(value))];
            area.draw(&PathElement::new(ends, GRID))?;
            label(area, &tick(value), (left - 8, self.y(value)), 15, &FAINT, HPos::Right)?;
        }
        Ok(())
    }

    fn axis(&self, area: &Area, left: i32) -> Result {
        let points = self.curves.first().map_or(&[][..], |curve| &curve.points);
        for (number, _) in points.iter().filter(|(number, _)| self.axis.is_marked(*number)) {
            let at = (left + self.x(*number), BOTTOM + 16);
            label(area, &number.to_string(), at, 15, &FAINT, HPos::Center)?;
        }
        let at = (left + self.width / 2, BOTTOM + 38);
        label(area, self.axis.name(), at, 16, &INK, HPos::Center)
    }

    fn curve(&self, area: &Area, left: i32, curve: &Curve) -> Result {
        let place = |(number, figure): &(u32, f64)| (left + self.x(*number), self.y(*figure));
        let path: Vec<(i32, i32)> = curve.points.iter().map(place).collect();
        area.draw(&PathElement::new(path.clone(), curve.colour().stroke_width(2)))?;
        for at in path {
            area.draw(&Circle::new(at, 4, curve.colour().filled()))?;
        }
        Ok(())
    }

    /// The step of the scale, and its end.
    fn steps(&self) -> (f64, f64) {
        let figures = self.curves.iter().flat_map(|curve| &curve.points).map(|(_, figure)| *figure);
        let most = figures.fold(0.0, f64::max);
        let step = round_step(most, 6.0);
        (step, (most / step).ceil().max(1.0) * step)
    }

    /// The distance of a number on the axis from the panel's left edge.
    fn x(&self, number: u32) -> i32 {
        let points = &self.curves[0].points;
        let at = |number| self.axis.scale(number);
        let (first, last) = (at(points[0].0), at(points[points.len() - 1].0));
        let part = if last > first { (at(number) - first) / (last - first) } else { 0.5 };
        (f64::from(self.width) * part).round() as i32
    }

    fn y(&self, figure: f64) -> i32 {
        BOTTOM - (f64::from(BOTTOM - TOP) * figure / self.steps().1).round() as i32
    }
}

impl Axis {
    fn name(self) -> &'static str {
        match self {
            Axis::Threads => "threads",
            Axis::Seconds => "seconds",
        }
    }

    fn scale(self, number: u32) -> f64 {
        match self {
            Axis::Threads => f64::from(number).log2(),
            Axis::Seconds => number.into(),
        }
    }

    fn is_marked(self, number: u32) -> bool {
        match self {
            Axis::Threads => true,
            Axis::Seconds => number.is_multiple_of(SECONDS),
        }
    }
}

impl Curve {
    fn colour(&self) -> RGBColor {
        RGBColor(self.colour.0, self.colour.1, self.colour.2)
    }

    fn end(&self) -> f64 {
        self.points.last().map_or(0.0, |(_, figure)| *figure)
    }
}

/// The same heights in their order, moved down until a name fits between two of them.
fn apart(heights: &[i32]) -> Vec<i32> {
    let mut moved: Vec<i32> = Vec::new();
    for height in heights {
        let least = moved.last().map_or(i32::MIN, |last| last + NAME_HEIGHT);
        moved.push((*height).max(least));
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::{Picture, apart, svg};

    #[test]
    fn names_do_not_overlap() {
        assert_eq!(apart(&[10, 12, 40]), [10, 25, 40]);
    }

    #[test]
    fn each_curve_has_its_name_and_a_mark_for_each_point() {
        let picture: Picture = serde_json::from_str(
            r#"{"panels": [{"title": "T", "about": "A", "unit": "U", "width": 100, "curves": [
                {"name": "one", "colour": [1, 2, 3], "points": [[1, 2.5], [4, 1.0]]},
                {"name": "two", "colour": [4, 5, 6], "points": [[1, 0.5], [4, 1.0]]}]}]}"#,
        )
        .expect("it is a picture");
        let drawn = svg(&picture).expect("it can be drawn");
        for words in ["T", "A", "U", "one", "two", "threads"] {
            assert!(drawn.lines().any(|line| line.trim() == words), "no {words} in {drawn}");
        }
        assert_eq!(drawn.matches("<circle").count(), 4, "{drawn}");
    }

    #[test]
    fn time_is_linear_and_marked_every_five_seconds() {
        let picture: Picture = serde_json::from_str(
            r#"{"panels": [{"title": "T", "about": "A", "unit": "U", "width": 100,
                "axis": "seconds", "curves": [
                {"name": "one", "colour": [1, 2, 3], "points": [[0, 1], [5, 2], [9, 3], [10, 4]]}]}]}"#,
        )
        .expect("it is a picture");
        assert_eq!([0, 5, 10].map(|second| picture.panels[0].x(second)), [0, 50, 100]);
        let drawn = svg(&picture).expect("it can be drawn");
        let has = |words: &str| drawn.lines().any(|line| line.trim() == words);
        assert!(has("seconds") && has("5") && has("10") && !has("9"), "{drawn}");
    }
}
