//! The counts of a process's locks at the last displays, and at a change of their settings.

use super::change::{Counts, Rates};
use crate::statistics::Process;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The number of displays that are kept.
const KEPT: usize = 61;

#[derive(Default)]
pub struct History {
    displays: VecDeque<Display>,
    /// The last change of a lock, by its index.
    changes: HashMap<u32, Changed>,
}

struct Display {
    at: Instant,
    locks: HashMap<u32, Counts>,
}

/// A change of a lock's settings.
struct Changed {
    at: Instant,
    counts: Counts,
    /// Before it, back to the change before or to the first display that was kept.
    before: Option<Window>,
}

/// The events of a lock during a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub time: Duration,
    pub rates: Rates,
}

impl Window {
    /// None if no time has passed.
    fn between(before: (Instant, Counts), now: (Instant, Counts)) -> Option<Window> {
        let time = now.0.saturating_duration_since(before.0);
        (!time.is_zero()).then(|| Window { time, rates: Rates::between(&before.1, &now.1, time) })
    }
}

impl History {
    pub fn add(&mut self, at: Instant, process: &Process) {
        let locks = process.locks.iter().map(|lock| (lock.index, Counts::of(lock))).collect();
        self.add_counts(at, locks);
    }

    fn add_counts(&mut self, at: Instant, locks: HashMap<u32, Counts>) {
        if self.displays.len() == KEPT {
            self.displays.pop_front();
        }
        self.displays.push_back(Display { at, locks });
    }

    /// Records that the settings of a lock were changed at the last display. Changes with no other
    /// display between them count as one.
    pub fn changed(&mut self, lock: u32) {
        let Some((at, counts)) = self.points(lock).last() else {
            return;
        };
        let former = self.changes.get(&lock);
        let continued = former.filter(|former| {
            self.displays.iter().filter(|display| display.at > former.at).count() <= 1
        });
        let before = continued.map_or_else(|| self.current(lock), |former| former.before);
        self.changes.insert(lock, Changed { at, counts, before });
    }

    /// The time before the last change. None if there was no change.
    pub fn before_change(&self, lock: u32) -> Option<Window> {
        self.changes.get(&lock)?.before
    }

    pub fn is_changed(&self, lock: u32) -> bool {
        self.changes.contains_key(&lock)
    }

    /// From the last change, or from the first display that is kept, to the last display.
    pub fn current(&self, lock: u32) -> Option<Window> {
        let mut points = self.points(lock);
        let first = points.next()?;
        let from = self.changes.get(&lock).map_or(first, |change| (change.at, change.counts));
        Window::between(from, points.last().unwrap_or(first))
    }

    /// Between each two displays, the oldest first.
    pub fn intervals(&self, lock: u32) -> Vec<Rates> {
        let points: Vec<_> = self.points(lock).collect();
        let windows = points.windows(2).filter_map(|pair| Window::between(pair[0], pair[1]));
        windows.map(|window| window.rates).collect()
    }

    /// The counts of a lock at each display. It has none before its first operation.
    fn points(&self, lock: u32) -> impl Iterator<Item = (Instant, Counts)> {
        self.displays
            .iter()
            .map(move |display| (display.at, display.locks.get(&lock).copied().unwrap_or_default()))
    }
}

#[cfg(test)]
pub mod tests {
    use super::{History, KEPT};
    use crate::commands::top::change::Counts;
    use std::collections::HashMap;
    use std::time::{Duration, Instant};

    /// Displays every second; lock 0 is acquired as often as given before each but the first.
    pub fn history_of(more: &[u64]) -> History {
        let mut history = History::default();
        let start = Instant::now();
        append(&mut history, start, 0, &[0]);
        append(&mut history, start, 1, more);
        history
    }

    fn append(history: &mut History, start: Instant, first: u64, more: &[u64]) {
        let mut acquisitions =
            history.points(0).last().map_or(0, |(_, counts)| counts.acquisitions);
        for (second, more) in (first..).zip(more) {
            acquisitions += more;
            let counts = Counts { acquisitions, ..Counts::default() };
            let at = start + Duration::from_secs(second);
            history.add_counts(at, HashMap::from([(0, counts)]));
        }
    }

    #[test]
    fn a_change_separates_before_from_after() {
        let mut history = history_of(&[10, 30]);
        let taken = |window: Option<super::Window>| window.map(|window| window.rates.taken);
        assert_eq!(taken(history.current(0)), Some(20.0));
        assert_eq!(taken(history.before_change(0)), None);
        history.changed(0);
        assert_eq!(taken(history.before_change(0)), Some(20.0));
        assert_eq!(taken(history.current(0)), None, "no time has passed");
        let start = history.displays[0].at;
        append(&mut history, start, 3, &[100, 200]);
        assert_eq!(taken(history.current(0)), Some(150.0));
        assert_eq!(taken(history.before_change(0)), Some(20.0));
        history.changed(0);
        assert_eq!(taken(history.before_change(0)), Some(150.0));
        append(&mut history, start, 5, &[7]);
        history.changed(0);
        assert_eq!(taken(history.before_change(0)), Some(150.0), "one change of two keys");
        assert!(history.is_changed(0) && !history.is_changed(1));
    }

    #[test]
    fn old_displays_are_forgotten() {
        let history = history_of(&[[1; KEPT], [5; KEPT]].concat());
        let intervals = history.intervals(0);
        assert_eq!(intervals.len(), KEPT - 1);
        assert!(intervals.iter().all(|rates| rates.taken == 5.0));
        assert_eq!(history.current(0).map(|window| window.rates.taken), Some(5.0));
    }
}
