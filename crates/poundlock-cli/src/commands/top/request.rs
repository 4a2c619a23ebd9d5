//! The requests of the user of `top`, and their keys.

use super::change::Column;
use super::screen::column_of;
use super::settings::Step;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Quit,
    Sort(Column),
    /// Select the row above or below.
    Up,
    Down,
    /// Show one lock.
    Open,
    /// Back to all locks.
    Back,
    Change(Step),
    /// The terminal changed.
    Draw,
}

impl Request {
    /// The request of a key, while one lock or all are shown.
    pub fn of(key: KeyEvent, one_lock: bool) -> Option<Request> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => Some(Request::Quit),
            KeyCode::Char('q') => Some(Request::Quit),
            KeyCode::Esc if one_lock => Some(Request::Back),
            KeyCode::Esc => Some(Request::Quit),
            KeyCode::Char(key) if one_lock => step_of(key).map(Request::Change),
            KeyCode::Char(key) => column_of(key).map(Request::Sort),
            KeyCode::Up if !one_lock => Some(Request::Up),
            KeyCode::Down if !one_lock => Some(Request::Down),
            KeyCode::Enter if !one_lock => Some(Request::Open),
            _ => None,
        }
    }
}

fn step_of(key: char) -> Option<Step> {
    match key {
        'p' => Some(Step::Policy),
        '+' => Some(Step::MorePatience),
        '-' => Some(Step::LessPatience),
        '>' => Some(Step::LargerBatch),
        '<' => Some(Step::SmallerBatch),
        ']' => Some(Step::MoreSpins),
        '[' => Some(Step::FewerSpins),
        'd' => Some(Step::Default),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, Request, Step};
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    #[test]
    fn keys_depend_on_what_is_shown() {
        let of = |code, one| Request::of(KeyEvent::new(code, KeyModifiers::NONE), one);
        for (code, all, one) in [
            (KeyCode::Char('q'), Some(Request::Quit), Some(Request::Quit)),
            (KeyCode::Esc, Some(Request::Quit), Some(Request::Back)),
            (KeyCode::Enter, Some(Request::Open), None),
            (
                KeyCode::Char('p'),
                Some(Request::Sort(Column::Parks)),
                Some(Request::Change(Step::Policy)),
            ),
            (KeyCode::Char('+'), None, Some(Request::Change(Step::MorePatience))),
            (KeyCode::Char('['), None, Some(Request::Change(Step::FewerSpins))),
        ] {
            assert_eq!((of(code, false), of(code, true)), (all, one), "{code:?}");
        }
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(Request::of(interrupt, false), Some(Request::Quit));
    }
}
