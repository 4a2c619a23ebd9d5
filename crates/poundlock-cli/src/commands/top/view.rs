//! The view of `top`: all locks, or one of them.

use super::change::{Change, Column};
use super::detail::{self, Detail};
use super::request::Request;
use super::settings::{self, Step};
use super::{Watch, screen};
use crate::failure::Failure;
use ratatui::Frame;
use std::collections::BTreeMap;

pub struct View {
    pub change: Change,
    sorted_by: Column,
    /// The index of the selected lock in the statistics.
    selected: Option<u32>,
    /// Whether only the selected lock is shown.
    one: bool,
    /// The reason why the last change of settings failed.
    failure: Option<String>,
    /// The locks whose settings were changed and not undone: address and label.
    changed: BTreeMap<String, String>,
}

impl View {
    pub fn new(sorted_by: Column) -> View {
        View {
            change: Change::default(),
            sorted_by,
            selected: None,
            one: false,
            failure: None,
            changed: BTreeMap::new(),
        }
    }

    /// Whether one lock is shown.
    pub fn shows_one(&self) -> bool {
        self.one
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>, watch: &Watch) {
        self.change.sort(self.sorted_by);
        let lock = self.selected.filter(|_| self.one).and_then(|index| watch.lock(index));
        let Some(lock) = lock else {
            self.one = false;
            screen::draw(frame, &self.change, self.sorted_by, self.selected);
            return;
        };
        let detail = Detail {
            heading: &self.change.heading,
            lock,
            history: &watch.history,
            settings: settings::shown(watch.pid, lock).map_err(|failure| failure.message),
            failure: self.failure.as_deref(),
        };
        detail::draw(frame, &detail);
    }

    /// Serves a request, except [`Request::Quit`].
    pub fn handle(&mut self, request: Request, watch: &mut Watch) -> Result<(), Failure> {
        match request {
            Request::Sort(column) => self.sorted_by = column,
            Request::Up => self.select(|row| row.saturating_sub(1)),
            Request::Down => self.select(|row| row + 1),
            Request::Open => {
                if self.selected.is_none() {
                    self.select(|row| row);
                }
                self.one = true;
                self.failure = None;
            }
            Request::Back => self.one = false,
            Request::Change(step) => self.change_settings(step, watch)?,
            Request::Draw | Request::Quit => {}
        }
        Ok(())
    }

    /// Selects the row that `next` of the selected one returns; the first if none is selected.
    fn select(&mut self, next: impl Fn(usize) -> usize) {
        let now = self.selected.and_then(|index| self.change.position(index));
        let last = self.change.locks.len().saturating_sub(1);
        let row = now.map_or(0, |row| next(row).min(last));
        self.selected = self.change.locks.get(row).map(|lock| lock.index);
    }

    /// Changes the settings of the selected lock. The display before separates the figures.
    fn change_settings(&mut self, step: Step, watch: &mut Watch) -> Result<(), Failure> {
        self.change = watch.look()?;
        let Some(lock) = self.selected.and_then(|index| watch.lock(index)) else {
            return Ok(());
        };
        let (index, address, label) = (lock.index, lock.address.clone(), lock.label());
        match settings::change(watch.pid, lock, step) {
            Ok(()) => {
                self.failure = None;
                watch.history.changed(index);
                if step == Step::Default {
                    self.changed.remove(&address);
                } else {
                    self.changed.insert(address, label);
                }
            }
            Err(failure) => self.failure = Some(failure.message),
        }
        Ok(())
    }

    /// A line per lock with changed settings, with the command that undoes the change.
    pub fn undo(&self, pid: u32) -> Vec<String> {
        let changed = self.changed.iter();
        changed
            .map(|(address, label)| {
                format!(
                    "{label} keeps its settings; undo: poundlock control -p {pid} {address} default"
                )
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, View};
    use crate::commands::top::change::tests::three;

    #[test]
    fn a_selected_lock_stays_selected_in_another_order() {
        let mut view = View::new(Column::Waiters);
        view.change = three();
        view.change.sort(Column::Waiters);
        let mut selected = |next: fn(usize) -> usize| {
            view.select(next);
            view.selected
        };
        assert_eq!(selected(|row| row + 1), Some(1), "the first row");
        assert_eq!(selected(|row| row + 1), Some(2));
        assert_eq!(selected(|row| row + 1), Some(0));
        assert_eq!(selected(|row| row + 1), Some(0), "the last row");
        view.change.sort(Column::Acquired);
        view.select(|row| row + 1);
        assert_eq!(view.selected, Some(2), "below lock 0, which is the first now");
    }
}
