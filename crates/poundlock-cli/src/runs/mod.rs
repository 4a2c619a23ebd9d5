//! Repeated runs: measuring one, how it ended, medians, progress and interrupts.

mod interrupt;
pub mod measure;
mod outcome;
mod progress;
mod spread;
pub mod worker;

pub use interrupt::{exit_code, interrupts};
pub use outcome::{Outcome, complain, tail};
pub use progress::{ProgressForm, announce, progress};
pub use spread::Spread;

/// The choices in the order of measuring in a repeat, which is counted from 0: each begins with another, so that none
/// always follows the same.
pub fn rotated<T>(choices: &[T], repeat: u32) -> impl Iterator<Item = &T> {
    let first = repeat as usize % choices.len();
    choices[first..].iter().chain(&choices[..first])
}
