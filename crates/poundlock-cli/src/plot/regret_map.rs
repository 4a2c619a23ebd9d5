//! A heat map of regrets: a row for each machine, a column for each load, and in each field a cell
//! for each number of threads.

use super::{Area, FAINT, INK, Result, Svg, canvas, label};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const LEFT: i32 = 130;
const TOP: i32 = 96;
const CELL: (i32, i32) = (40, 34);
/// Between two columns, and between two rows.
const GAP: i32 = 8;
const NOTHING: RGBColor = RGBColor(240, 242, 244);

/// The picture's text and its cells.
pub struct Picture {
    pub title: String,
    pub caption: String,
    pub cells: Vec<Cell>,
}

/// The regret of a machine with a load and a number of threads, if there is one.
pub struct Cell {
    pub machine: String,
    pub load: String,
    pub threads: usize,
    pub regret: Option<f64>,
}

/// Draws the map. Machines, loads and numbers of threads keep their order.
pub fn svg(picture: &Picture) -> Svg {
    let machines = distinct(picture.cells.iter().map(|cell| &cell.machine));
    let loads = distinct(picture.cells.iter().map(|cell| &cell.load));
    let field = |machine: &str, load: &str| -> Vec<&Cell> {
        picture.cells.iter().filter(|c| c.machine == machine && c.load == load).collect()
    };
    let counts = machines.iter().flat_map(|machine| loads.iter().map(|load| field(machine, load)));
    let most = i32::try_from(counts.map(|cells| cells.len()).max().unwrap_or(0))?;
    let (wide, high) = (most * CELL.0 + GAP, CELL.1 + GAP);
    let (columns, rows) = (i32::try_from(loads.len())?, i32::try_from(machines.len())?);
    let size = ((LEFT + columns * wide + 24).max(640), TOP + rows * high + 24);
    canvas(size, |area| {
        label(area, &picture.title, (24, 26), 18, &INK, HPos::Left)?;
        label(area, &picture.caption, (24, 48), 11, &FAINT, HPos::Left)?;
        for (column, load) in (0..).zip(&loads) {
            label(area, load, (LEFT + column * wide, TOP - 14), 12, &INK, HPos::Left)?;
        }
        for (row, machine) in (0..).zip(&machines) {
            let top = TOP + row * high;
            label(area, machine, (LEFT - 10, top + CELL.1 / 2), 12, &INK, HPos::Right)?;
            for (column, load) in (0..).zip(&loads) {
                for (place, cell) in (0..).zip(field(machine, load)) {
                    draw(area, cell, (LEFT + column * wide + place * CELL.0, top))?;
                }
            }
        }
        Ok(())
    })
}

/// Draws a cell: dark means a large regret.
fn draw(area: &Area, cell: &Cell, (left, top): (i32, i32)) -> Result {
    let corners = [(left, top), (left + CELL.0 - 1, top + CELL.1)];
    let regret = cell.regret.unwrap_or(0.0);
    let light = ViridisRGB.get_color_normalized(1.0 - regret as f32, 0.0, 1.0);
    let (colour, ink) = match cell.regret {
        None => (NOTHING, INK),
        Some(regret) => (light, if regret < 0.4 { INK } else { WHITE }),
    };
    area.draw(&Rectangle::new(corners, colour.filled()))?;
    let text = cell.regret.map_or("-".to_owned(), |regret| format!("{:.0} %", 100.0 * regret));
    let middle = left + CELL.0 / 2;
    label(area, &text, (middle, top + 12), 12, &ink, HPos::Center)?;
    label(area, &cell.threads.to_string(), (middle, top + 26), 9, &ink, HPos::Center)
}

/// The names, each once, in their order.
fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut found: Vec<&str> = vec![];
    for name in names {
        if !found.contains(&name.as_str()) {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_has_a_cell_with_its_regret() {
        let cell = |machine: &str, threads, regret| Cell {
            machine: machine.to_owned(),
            load: "map".to_owned(),
            threads,
            regret,
        };
        let cells = vec![
            cell("small", 4, Some(0.0)),
            cell("large", 192, Some(0.634)),
            cell("large", 256, None),
        ];
        let picture = Picture { title: "Regret".to_owned(), caption: String::new(), cells };
        let svg = svg(&picture).expect("a picture");
        assert_eq!(svg.matches("<rect").count(), 1 + 3);
        for words in ["small", "large", "map", "\n0 %\n", "\n63 %\n", "\n192\n", "\n-\n"] {
            assert!(svg.contains(words), "no {words:?} in {svg}");
        }
    }
}
