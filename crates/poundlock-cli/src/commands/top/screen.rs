//! The display of `top`: on a terminal, or as text.

use super::change::{Change, Column, LockChange};
use crate::statistics::table::{percent, time};
use crate::text_table::{ABSENT, fit, fitted, number, shorten, widths};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Style, Stylize};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

const COLUMNS: usize = 9;

/// The columns, with the keys that sort by them.
const HEADER: [(Column, char, &str); COLUMNS] = [
    (Column::Lock, 'l', "lock"),
    (Column::Acquired, 'a', "acquired/s"),
    (Column::Contended, 'c', "contended"),
    (Column::Waiters, 'w', "waiters"),
    (Column::Now, 'n', "now"),
    (Column::MeanWait, 'm', "mean wait"),
    (Column::Hold, 'h', "hold"),
    (Column::Parks, 'p', "parks/s"),
    (Column::Remote, 'r', "remote/s"),
];

/// The meaning of each column, for `--help`.
pub const MEANINGS: [(&str, &str); COLUMNS] = [
    ("lock", "the symbol at its address, or the functions of its first waiter, or the address"),
    ("acquired/s", "acquisitions per second"),
    ("contended", "share of the acquisitions and time-outs that found the lock held"),
    ("waiters", "mean number of waiting threads"),
    ("now", "threads that wait at the moment of the display"),
    ("mean wait", "mean wait of a contended acquisition"),
    ("hold", "mean time from acquisition to release since the start, estimated from timed holds"),
    ("parks/s", "times per second that a waiter went to sleep; unknown for native locks"),
    ("remote/s", "hand-overs per second to a waiter in another locality domain"),
];

/// The columns that a narrow terminal omits, in this order, except the one that is sorted by.
const EXPENDABLE: [usize; 7] = [8, 7, 6, 4, 2, 5, 1];

/// The number of characters between two columns on the terminal.
const GAP: usize = 2;

/// The column that `key` sorts by.
pub fn column_of(key: char) -> Option<Column> {
    HEADER.iter().find(|(_, own, _)| *own == key).map(|(column, ..)| *column)
}

fn cells(lock: &LockChange) -> [String; COLUMNS] {
    [
        lock.label.clone(),
        number(lock.rates.taken),
        percent(lock.rates.contended),
        number(lock.rates.waited),
        lock.waiting.to_string(),
        time(lock.rates.wait_mean_ns),
        time(lock.hold_mean_ns),
        lock.rates.parks.map_or(ABSENT.to_owned(), number),
        number(lock.rates.remote),
    ]
}

fn expendable(sorted_by: Column) -> Vec<usize> {
    EXPENDABLE.into_iter().filter(|column| HEADER[*column].0 != sorted_by).collect()
}

/// A table as text, for a terminal of `width` characters if that is limited.
pub fn text(change: &Change, sorted_by: Column, width: Option<usize>) -> String {
    let mut rows: Vec<_> = change.locks.iter().map(cells).collect();
    for row in &mut rows {
        row[0] = shorten(&row[0], 48);
    }
    let table = fitted(&HEADER.map(|(.., name)| name), &rows, &expendable(sorted_by), width);
    format!("{}\n{table}\n{}", change.heading, change.verdict)
}

/// Draws the display on the whole terminal, the row of the lock with index `selected` highlighted.
pub fn draw(frame: &mut Frame<'_>, change: &Change, sorted_by: Column, selected: Option<u32>) {
    let one = Constraint::Length(1);
    let [head, body, verdict, foot] =
        Layout::vertical([one, Constraint::Fill(1), one, one]).areas(frame.area());
    let rows: Vec<_> = change.locks.iter().map(cells).collect();
    let widths = widths(&HEADER.map(|(.., name)| name), &rows);
    let kept = fit(&widths, GAP, &expendable(sorted_by), body.width.into()).kept;
    let constraints = kept.iter().map(|column| match column {
        0 => Constraint::Fill(1),
        figure => Constraint::Length(u16::try_from(widths[*figure]).unwrap_or(u16::MAX)),
    });
    let header = Row::new(kept.iter().map(|column| {
        let (of, _, name) = HEADER[*column];
        let style = Style::new().bold().underlined();
        cell(*column, name.to_owned()).style(if of == sorted_by { style.reversed() } else { style })
    }));
    let rows = rows.into_iter().map(|row| {
        Row::new(kept.iter().map(|column| cell(*column, row[*column].clone())).collect::<Vec<_>>())
    });
    let table = Table::new(rows, constraints)
        .column_spacing(GAP as u16)
        .header(header)
        .row_highlight_style(Style::new().reversed());
    let selected = selected.and_then(|index| change.position(index));
    frame.render_widget(Paragraph::new(change.heading.as_str()).bold(), head);
    frame.render_stateful_widget(table, body, &mut TableState::new().with_selected(selected));
    frame.render_widget(Paragraph::new(change.verdict.as_str()), verdict);
    frame.render_widget(Paragraph::new(help()).dim(), foot);
}

/// The keys.
fn help() -> String {
    let keys: Vec<String> = HEADER.iter().map(|(_, key, name)| format!("{key} {name}")).collect();
    format!("q: quit; up, down, Enter: one lock; sort by {}", keys.join(", "))
}

/// A cell; all but those of the first column are figures.
fn cell(column: usize, text: String) -> Cell<'static> {
    if column == 0 { Cell::from(text) } else { figure(text) }
}

/// A cell aligned right.
pub fn figure(text: String) -> Cell<'static> {
    Cell::from(Text::from(text).alignment(Alignment::Right))
}

#[cfg(test)]
mod tests {
    use super::super::change::tests::three;
    use super::{COLUMNS, Column, HEADER, MEANINGS, cells, column_of, draw, text};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// The lines of the display in a terminal of `width` characters.
    fn drawn(width: u16, sorted_by: Column) -> String {
        drawn_with(width, 7, sorted_by, None)
    }

    fn drawn_with(width: u16, height: u16, sorted_by: Column, selected: Option<u32>) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, &three(), sorted_by, selected)).expect("it is drawn");
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| line(y) + "\n").collect()
    }

    #[test]
    fn each_column_has_a_meaning() {
        assert_eq!(MEANINGS.map(|(name, _)| name), HEADER.map(|(.., name)| name));
    }

    #[test]
    fn a_low_terminal_shows_the_selected_lock() {
        let (first, last) = ("1234567", "3.000");
        let screen = drawn_with(100, 5, Column::Waiters, None);
        assert!(screen.contains(first) && !screen.contains(last), "{screen}");
        let screen = drawn_with(100, 5, Column::Waiters, Some(2));
        assert!(!screen.contains(first) && screen.contains(last), "{screen}");
    }

    #[test]
    fn the_verdict_is_below_the_locks() {
        let screen = drawn_with(100, 9, Column::Waiters, None);
        assert!(
            screen.lines().nth(7).is_some_and(|line| line.starts_with("a verdict")),
            "{screen}"
        );
        assert!(text(&three(), Column::Waiters, None).ends_with("a verdict"));
    }

    #[test]
    fn a_narrow_terminal_omits_columns_and_no_digits() {
        for width in 36..140 {
            let screen = drawn(width, Column::Waiters);
            let header = screen.lines().nth(1).expect("a header");
            let shown: Vec<usize> =
                (1..COLUMNS).filter(|column| header.contains(HEADER[*column].2)).collect();
            assert!(shown.contains(&3), "waiters are always there: {screen}");
            let lines = screen.lines().skip(2);
            for (line, lock) in lines.zip(&three().locks) {
                let cells = cells(lock);
                let want: Vec<&str> =
                    shown.iter().flat_map(|column| cells[*column].split(' ')).collect();
                let found: Vec<&str> = line.split_whitespace().collect();
                assert!(found.ends_with(&want), "{width}: {screen}");
            }
        }
        assert!(drawn(140, Column::Waiters).contains("a_lock_of_a_long_name (in some_function)"));
        assert!(!drawn(60, Column::Waiters).contains("remote/s"));
    }

    #[test]
    fn the_sorted_column_is_never_omitted() {
        for (column, key, name) in HEADER {
            assert_eq!(column_of(key), Some(column));
            assert!(drawn(48, column).lines().nth(1).is_some_and(|line| line.contains(name)));
            assert!(text(&three(), column, Some(60)).contains(name));
        }
        assert_eq!(column_of('q'), None, "q quits");
    }
}
