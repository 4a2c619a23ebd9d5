//! Tables as every command prints them: a line under the header, figures to the right.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use std::ops::Range;

/// An empty table with this header, whose columns `figures` are aligned to the right.
pub fn with_header(header: &[&str], figures: Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─')));
    table.set_header(header);
    for column in table.column_iter_mut().skip(figures.start).take(figures.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
