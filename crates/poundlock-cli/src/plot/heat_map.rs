//! A heat map of latencies: a square for each pair of CPUs, and a colour scale.

use super::{Area, FAINT, INK, Result, Svg, canvas, label};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use poundlock_topology::latency::Measurements;

/// The approximate size of the map, and the limits of a square.
const SIZE: i32 = 760;
const SQUARE: (i32, i32) = (3, 44);
const LEFT: i32 = 64;
const TOP: i32 = 84;
const RIGHT: i32 = 130;
const BOTTOM: i32 = 32;
/// The minimum distance of two labels of an axis in pixels.
const BETWEEN_LABELS: i32 = 22;
/// The minimum size of a square with a figure in it.
const READABLE: i32 = 30;
/// The number of colours. Adjacent squares of one colour become one rectangle.
const COLOURS: f64 = 48.0;

const NOTHING: RGBColor = RGBColor(240, 242, 244);

/// Converts latencies from 0 to the maximum to colours.
struct Scale {
    most: f64,
}

impl Scale {
    fn step(&self, latency: f64) -> f64 {
        (latency / self.most * COLOURS).round() / COLOURS
    }

    /// Dark means near.
    fn colour(step: f64) -> RGBColor {
        ViridisRGB.get_color_normalized(step as f32, 0.0, 1.0)
    }
}

/// Draws the map.
pub fn svg(measurements: &Measurements, machine: &str) -> Svg {
    let count = i32::try_from(measurements.cpus.len())?;
    let square = (SIZE / count).clamp(SQUARE.0, SQUARE.1);
    let side = square * count;
    let (width, height) = ((LEFT + side + RIGHT).max(520), TOP + side.max(240) + BOTTOM);
    let most = measurements.pairs.iter().map(|pair| pair.median).fold(0.0, f64::max);
    let scale = Scale { most: if most > 0.0 { most } else { 1.0 } };
    canvas((width, height), |area| {
        label(area, "Core-to-core latency", (24, 26), 18, &INK, HPos::Left)?;
        let settings = measurements.settings;
        let line =
            format!("{machine}; medians of {} samples, one way, nanoseconds", settings.samples);
        label(area, &line, (24, 48), 11, &FAINT, HPos::Left)?;
        squares(area, measurements, square, &scale)?;
        axes(area, &measurements.cpus, square)?;
        legend(area, LEFT + side + 28, &scale)?;
        Ok(())
    })
}

fn squares(area: &Area, measurements: &Measurements, square: i32, scale: &Scale) -> Result {
    let count = measurements.cpus.len();
    let place = |cpu| measurements.cpus.binary_search(&cpu).expect("a pair is of two of the CPUs");
    let mut latencies = vec![None; count * count];
    for pair in &measurements.pairs {
        let (a, b) = (place(pair.a), place(pair.b));
        latencies[a * count + b] = Some(pair.median);
        latencies[b * count + a] = Some(pair.median);
    }
    let corner =
        |row: usize, column: usize| (LEFT + square * column as i32, TOP + square * row as i32);
    for (row, cells) in latencies.chunks(count).enumerate() {
        let steps: Vec<Option<f64>> =
            cells.iter().map(|cell| cell.map(|latency| scale.step(latency))).collect();
        let mut column = 0;
        for run in steps.chunk_by(|left, right| left == right) {
            let corners = [corner(row, column), corner(row + 1, column + run.len())];
            area.draw(&Rectangle::new(corners, run[0].map_or(NOTHING, Scale::colour).filled()))?;
            column += run.len();
        }
        for (column, latency) in cells.iter().enumerate().filter(|_| square >= READABLE) {
            let Some(latency) = latency else { continue };
            let (left, top) = corner(row, column);
            let ink = if scale.step(*latency) > 0.6 { INK } else { WHITE };
            let middle = (left + square / 2, top + square / 2);
            label(area, &format!("{latency:.0}"), middle, 12, &ink, HPos::Center)?;
        }
    }
    Ok(())
}

fn axes(area: &Area, cpus: &[usize], square: i32) -> Result {
    let every = (BETWEEN_LABELS.unsigned_abs().div_ceil(square.unsigned_abs()).next_power_of_two())
        as usize;
    for (index, cpu) in cpus.iter().enumerate().step_by(every) {
        let middle = square * index as i32 + square / 2;
        label(area, &cpu.to_string(), (LEFT + middle, TOP - 12), 11, &INK, HPos::Center)?;
        label(area, &cpu.to_string(), (LEFT - 10, TOP + middle), 11, &INK, HPos::Right)?;
    }
    Ok(())
}

fn legend(area: &Area, left: i32, scale: &Scale) -> Result {
    const HEIGHT: i32 = 4;
    let steps = COLOURS as i32;
    for step in 0..=steps {
        let top = TOP + HEIGHT * (steps - step);
        let colour = Scale::colour(f64::from(step) / COLOURS);
        area.draw(&Rectangle::new([(left, top), (left + 16, top + HEIGHT)], colour.filled()))?;
        if step % (steps / 4) == 0 {
            let latency = scale.most * f64::from(step) / COLOURS;
            label(
                area,
                &format!("{latency:.0}"),
                (left + 24, top + HEIGHT / 2),
                11,
                &INK,
                HPos::Left,
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use poundlock_topology::latency::{Pair, Settings};

    /// Two sockets of interleaved CPUs.
    fn measurements(count: usize) -> Measurements {
        let settings = Settings { samples: 1, round_trips: 1 };
        let mut measurements =
            Measurements::new("0".to_owned(), (0..count).map(|cpu| 3 * cpu).collect(), settings);
        for (a, b) in measurements.missing() {
            let median = if a % 2 == b % 2 { 40.0 } else { 120.0 } + (a * b % 5) as f64;
            measurements.add(Pair { a, b, median, lower_quartile: median, upper_quartile: median });
        }
        measurements
    }

    /// The rectangles of the map, without those of the scale and the ground.
    fn rectangles(svg: &str) -> usize {
        svg.matches("<rect").count() - COLOURS as usize - 2
    }

    #[test]
    fn each_two_cpus_have_a_square_and_few_have_figures() {
        let svg = svg(&measurements(4), "machine").expect("a picture");
        assert_eq!(rectangles(&svg), 16);
        for words in ["machine", "\n9\n", "\n120\n", "\n124\n"] {
            assert!(svg.contains(words), "no {words:?} in {svg}");
        }
    }

    #[test]
    fn many_cpus_make_a_picture_of_bounded_size() {
        let svg = svg(&measurements(256), "machine").expect("a picture");
        assert!(rectangles(&svg) > 256 && svg.len() < 10_000_000, "{}", svg.len());
        assert!(!svg.contains("NaN") && !svg.contains("\n121\n"));
    }

    #[test]
    fn unmeasured_cells_are_blank() {
        let mut some = measurements(4);
        some.pairs.clear();
        assert_eq!(rectangles(&svg(&some, "machine").expect("a picture")), 4);
    }
}
