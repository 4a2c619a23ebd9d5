//! Repeated runs: measurement, outcome, medians, progress and interrupts.

mod interrupt;
mod interval;
pub mod measure;
mod metric;
mod outcome;
mod progress;
mod spread;
pub mod worker;

pub use interrupt::{INTERRUPTED, exit_code, interrupts, stop_requests};
pub use interval::Interval;
pub use metric::{Figure, Metric};
pub use outcome::{Outcome, complain, tail};
pub use progress::{ProgressForm, announce, progress};
pub use spread::{Spread, stddev};

/// The order of the choices in a repeat, counted from 0. Each repeat begins with another choice.
pub fn rotated<T>(choices: &[T], repeat: u32) -> impl Iterator<Item = &T> {
    let first = repeat as usize % choices.len();
    choices[first..].iter().chain(&choices[..first])
}
