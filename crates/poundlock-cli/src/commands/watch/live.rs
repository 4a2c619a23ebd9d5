//! The live view of `watch`: the report so far, again each second.

use crate::commands::terminal;
use crate::failure::Failure;
use crate::watch::{Report, Session, text};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Stylize;
use ratatui::widgets::{Paragraph, Wrap};
use ratatui::{DefaultTerminal, Frame};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time between two displays.
const INTERVAL: Duration = Duration::from_secs(1);

/// The lines by which Page Up and Page Down move.
const PAGE: u16 = 10;

/// Shows the report so far until the process ends, the user quits, or `stop` is set. Returns the
/// last report.
pub fn watch(mut session: Session, top: usize, stop: &AtomicBool) -> Result<Report, Failure> {
    let mut terminal = terminal::take("--for")?;
    let shown = show(&mut terminal, &mut session, top, stop);
    ratatui::restore();
    shown?;
    session.end()
}

fn show(
    terminal: &mut DefaultTerminal,
    session: &mut Session,
    top: usize,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let mut first_line = 0;
    loop {
        let text = text(&session.report()?, top);
        let next = Instant::now() + INTERVAL;
        while Instant::now() < next {
            terminal.draw(|frame| draw(frame, &text, first_line)).map_err(terminal::failed)?;
            if session.follow(next - Instant::now())? || stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            while let Some(key) = key().map_err(terminal::failed)? {
                let last = u16::try_from(text.lines().count()).unwrap_or(u16::MAX);
                match moved(key, first_line) {
                    Some(line) => first_line = line.min(last.saturating_sub(1)),
                    None if quits(key) => return Ok(()),
                    None => {}
                }
            }
        }
    }
}

fn draw(frame: &mut Frame<'_>, text: &str, first_line: u16) {
    let [body, foot] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
    let report = Paragraph::new(text).wrap(Wrap { trim: false }).scroll((first_line, 0));
    frame.render_widget(report, body);
    frame.render_widget(Paragraph::new("q: quit; up, down, page up, page down").dim(), foot);
}

/// A key that is pressed already.
fn key() -> io::Result<Option<KeyEvent>> {
    while event::poll(Duration::ZERO)? {
        if let Event::Key(key) = event::read()? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// The first line after a key that scrolls.
fn moved(key: KeyEvent, line: u16) -> Option<u16> {
    match key.code {
        KeyCode::Up => Some(line.saturating_sub(1)),
        KeyCode::Down => Some(line.saturating_add(1)),
        KeyCode::PageUp => Some(line.saturating_sub(PAGE)),
        KeyCode::PageDown => Some(line.saturating_add(PAGE)),
        _ => None,
    }
}

fn quits(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
        || control && key.code == KeyCode::Char('c')
}
