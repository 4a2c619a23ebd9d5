//! Latencies as text: by distance, and for few CPUs as a matrix.

use crate::runs::Spread;
use crate::text_table;
use poundlock_topology::latency::{Measurements, Pair};
use poundlock_topology::machine::{Kind, Machine};

/// The maximum number of CPUs whose matrix is readable as text.
const READABLE: usize = 16;

/// The tables.
pub fn render(measurements: &Measurements, machine: &Machine) -> String {
    let mut text = by_distance(measurements, machine);
    if measurements.cpus.len() <= READABLE {
        text = format!("{}\n\n{text}", matrix(measurements));
    }
    text
}

/// One row per kind of distance, the nearest first.
fn by_distance(measurements: &Measurements, machine: &Machine) -> String {
    let mut table =
        text_table::with_header(&["shared", "pairs", "median", "least", "most", "spread"], 1..6);
    let kinds = Kind::ALL.into_iter().rev().map(Some).chain([None]);
    for kind in kinds {
        let pairs: Vec<&Pair> = measurements
            .pairs
            .iter()
            .filter(|pair| machine.shared(pair.a, pair.b) == kind)
            .collect();
        let Some(medians) = Spread::of(pairs.iter().map(|pair| pair.median)) else {
            continue;
        };
        let spread = Spread::of(pairs.iter().map(|pair| pair.upper_quartile - pair.lower_quartile));
        table.add_row([
            kind.map_or("nothing", |kind| kind.names().0).to_owned(),
            pairs.len().to_string(),
            number(medians.median),
            number(medians.min),
            number(medians.max),
            spread.map_or(String::new(), |spread| number(spread.median)),
        ]);
    }
    format!(
        "{table}\nspread: the interquartile range of a pair's samples, as the median over the pairs."
    )
}

fn matrix(measurements: &Measurements) -> String {
    let numbers: Vec<String> = measurements.cpus.iter().map(usize::to_string).collect();
    let header: Vec<&str> =
        std::iter::once("CPU").chain(numbers.iter().map(String::as_str)).collect();
    let mut table = text_table::with_header(&header, 0..header.len());
    for (row, &a) in measurements.cpus.iter().enumerate() {
        let cell = |&b: &usize| {
            let pair = measurements.pairs.iter().find(|pair| (pair.a, pair.b) == (b, a));
            pair.map_or(String::new(), |pair| number(pair.median))
        };
        table.add_row(
            std::iter::once(numbers[row].clone()).chain(measurements.cpus.iter().map(cell)),
        );
    }
    table.to_string()
}

fn number(nanoseconds: f64) -> String {
    format!("{nanoseconds:.1}")
}
