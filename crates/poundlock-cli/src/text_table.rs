//! Text tables: a line under the header, figures aligned right.

use crate::runs::Spread;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use std::ops::Range;

/// The number of characters that the first column keeps; other columns are dropped first.
const LABEL: usize = 24;

/// The number of characters between two columns of a text table.
const GAP: usize = 3;

/// The number of characters before the first column and after the last.
const MARGINS: usize = 4;

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

/// The part of a table that fits into a terminal.
#[derive(Debug, PartialEq, Eq)]
pub struct Fit {
    /// The columns to show, in their order.
    pub kept: Vec<usize>,
    /// The width of the first column.
    pub label: usize,
}

/// Fits columns of `widths`, which are `gap` apart, into `room`. Shortens the first one to
/// [`LABEL`] characters, then drops columns in the order of `expendable`. Figures are never cut.
pub fn fit(widths: &[usize], gap: usize, expendable: &[usize], room: usize) -> Fit {
    let least = widths[0].min(LABEL);
    let mut kept: Vec<usize> = (0..widths.len()).collect();
    let mut expendable = expendable.iter();
    loop {
        let figures: usize = kept[1..].iter().map(|column| widths[*column] + gap).sum();
        let left = room.saturating_sub(figures);
        if left >= least {
            return Fit { kept, label: left.min(widths[0]) };
        }
        let Some(dropped) = expendable.next() else {
            return Fit { kept, label: least };
        };
        kept.retain(|column| column != dropped);
    }
}

/// The width of each column, in characters.
pub fn widths<const N: usize>(header: &[impl AsRef<str>; N], rows: &[[String; N]]) -> [usize; N] {
    std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].as_str());
        cells
            .chain([header[column].as_ref()])
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    })
}

/// A table of a label and figures per row that fits into `width`, if that is limited: drops columns
/// in the order of `expendable`, and names them in a line below.
pub fn fitted<const N: usize>(
    header: &[impl AsRef<str>; N],
    rows: &[[String; N]],
    expendable: &[usize],
    width: Option<usize>,
) -> String {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(MARGINS));
    let fit = fit(&widths(header, rows), GAP, expendable, room);
    let names: Vec<&str> = fit.kept.iter().map(|column| header[*column].as_ref()).collect();
    let mut table = with_header(&names, 1..names.len());
    for row in rows {
        let figures = fit.kept[1..].iter().map(|column| row[*column].clone());
        table.add_row([shorten(&row[0], fit.label)].into_iter().chain(figures));
    }
    let dropped: Vec<&str> = (0..N)
        .filter(|column| !fit.kept.contains(column))
        .map(|column| header[column].as_ref())
        .collect();
    if dropped.is_empty() {
        table.to_string()
    } else {
        format!("{table}\nNot shown in {} columns: {}", width.unwrap_or(0), dropped.join(", "))
    }
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
    use super::{Fit, fit, fitted, number};

    #[test]
    fn the_label_shrinks_before_columns_are_dropped() {
        let widths = [40, 10, 8, 6];
        let of = |room| fit(&widths, 3, &[2, 1], room);
        assert_eq!(of(100), Fit { kept: vec![0, 1, 2, 3], label: 40 });
        assert_eq!(of(57), Fit { kept: vec![0, 1, 2, 3], label: 24 });
        assert_eq!(of(56), Fit { kept: vec![0, 1, 3], label: 34 });
        assert_eq!(of(30), Fit { kept: vec![0, 3], label: 24 }, "no column is left to drop");
    }

    #[test]
    fn a_fitted_table_is_no_wider_and_keeps_its_digits() {
        let rows =
            [["a lock of a long name, in some function".into(), "123456".into(), "789".into()]];
        for width in 37..90 {
            let text = fitted(&["lock", "taken", "waits"], &rows, &[1], Some(width));
            let table = text.lines().filter(|line| !line.starts_with("Not shown"));
            assert!(table.clone().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert!(text.contains("789"), "{text}");
            assert_eq!(text.contains("123456"), !text.contains("Not shown"), "{width}: {text}");
        }
        assert!(fitted(&["lock", "taken", "waits"], &rows, &[1], None).contains(&rows[0][0]));
    }

    #[test]
    fn numbers_have_four_significant_digits() {
        let texts = [0.0, 0.001_234_5, 0.98, 1.0, 12.345, 1_234.5, 123_456.7].map(number);
        assert_eq!(texts, ["0.000", "0.001234", "0.9800", "1.000", "12.35", "1234", "123457"]);
    }
}
