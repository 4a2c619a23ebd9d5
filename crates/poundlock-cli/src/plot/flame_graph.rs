//! Flame graphs of stacks.

use super::Svg;
use inferno::flamegraph::{self, Options};

/// Draws folded stacks: on each line the frames from the outermost on, separated by semicolons,
/// then the weight in `unit`.
pub fn svg(title: &str, unit: &str, lines: &[String]) -> Svg {
    let mut options = Options::default();
    options.title = title.to_owned();
    options.count_name = unit.to_owned();
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)?;
    Ok(String::from_utf8(svg)?)
}
