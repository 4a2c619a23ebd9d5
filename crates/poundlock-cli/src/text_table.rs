//! Text tables: a line under the header, figures aligned right.

use crate::runs::Spread;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use std::ops::Range;

/// The cell of an absent figure.
pub const ABSENT: &str = "-";

/// An empty table with a header. The columns `figures` are aligned right.
pub fn with_header(header: &[&str], figures: Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─')));
    table.set_header(header);
    for column in table.column_iter_mut().skip(figures.start).take(figures.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The median as a cell.
pub fn median(spread: Option<Spread>) -> String {
    spread.map_or(ABSENT.to_owned(), |spread| number(spread.median))
}

/// The range as a cell.
pub fn range(spread: Option<Spread>) -> String {
    spread.map_or(ABSENT.to_owned(), |spread| {
        format!("{} - {}", number(spread.min), number(spread.max))
    })
}

/// Formats four significant digits, and all digits before the point.
pub fn number(value: f64) -> String {
    let before_point = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = usize::try_from(4 - before_point).unwrap_or(0).min(9);
    format!("{value:.decimals$}")
}

/// Cuts `text` to `length` characters, the last of which is then an ellipsis.
pub fn shorten(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        text.to_owned()
    } else {
        text.chars().take(length - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_four_significant_digits() {
        let texts = [0.0, 0.001_234_5, 0.98, 1.0, 12.345, 1_234.5, 123_456.7].map(number);
        assert_eq!(texts, ["0.000", "0.001234", "0.9800", "1.000", "12.35", "1234", "123457"]);
    }
}
