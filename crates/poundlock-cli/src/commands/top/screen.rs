//! The display of `top`: on a terminal, or as text.

use super::change::{Change, LockChange};
use crate::statistics::table::{percent, time};
use crate::text_table::{number, shorten, with_header};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Style, Stylize};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Paragraph, Row, Table};

const HEADER: [&str; 9] = [
    "lock",
    "acquired/s",
    "contended",
    "waiters",
    "now",
    "mean wait",
    "hold",
    "parks/s",
    "remote/s",
];

fn cells(lock: &LockChange) -> [String; 9] {
    [
        lock.label.clone(),
        number(lock.taken),
        percent(lock.contended),
        number(lock.waited),
        lock.waiting.to_string(),
        time(lock.wait_mean_ns),
        time(lock.hold_mean_ns),
        number(lock.parks),
        number(lock.remote),
    ]
}

/// A table as text.
pub fn text(change: &Change) -> String {
    let mut table = with_header(&HEADER, 1..HEADER.len());
    for lock in &change.locks {
        let mut cells = cells(lock);
        cells[0] = shorten(&cells[0], 48);
        table.add_row(cells);
    }
    format!("{}\n{table}", change.heading)
}

/// Draws the display on the whole terminal.
pub fn draw(frame: &mut Frame<'_>, change: &Change) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)])
            .areas(frame.area());
    let rows = change.locks.iter().map(|lock| row(cells(lock)));
    let figures = HEADER[1..].iter().map(|_| Constraint::Length(10));
    let table = Table::new(rows, [Constraint::Fill(1)].into_iter().chain(figures))
        .header(row(HEADER.map(str::to_owned)).style(Style::new().bold().underlined()));
    frame.render_widget(Paragraph::new(change.heading.as_str()).bold(), head);
    frame.render_widget(table, body);
    frame.render_widget(Paragraph::new("q: quit").dim(), foot);
}

fn row(cells: [String; 9]) -> Row<'static> {
    Row::new(cells.into_iter().enumerate().map(|(column, cell)| {
        Cell::from(Text::from(cell).alignment(if column == 0 {
            Alignment::Left
        } else {
            Alignment::Right
        }))
    }))
}
