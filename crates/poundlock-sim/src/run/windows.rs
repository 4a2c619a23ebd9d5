// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a run: a warm-up, then measured parts, of which the last one counts.
//!
//! A run of fixed length has one measured part. Otherwise each part is twice as long as the one
//! before, and the run ends with the first part that is steady: its throughput and those of the two
//! parts before it are within [`TOLERANCE`]. The run ends in any case before a part that would end
//! after the limit.

use super::Point;
use crate::time::{Time, ns};

/// How far the smallest of three throughputs may be below the largest.
const TOLERANCE: f64 = 0.05;
/// A part with fewer acquisitions is not steady.
const LEAST: u64 = 100;

/// The current part of a run.
pub(super) struct Windows {
    pub begin: Time,
    pub end: Time,
    /// Whether the last part has ended.
    pub over: bool,
    /// Whether it was steady; false if the length was fixed.
    pub steady: bool,
    length: Time,
    most: Option<Time>,
    /// The throughputs of the measured parts.
    rates: Vec<f64>,
    warms_up: bool,
}

impl Windows {
    pub fn new<M>(point: &Point<M>) -> Windows {
        Windows {
            begin: 0,
            end: ns(point.warmup * 1e9),
            over: false,
            steady: false,
            length: ns(point.measured * 1e9),
            most: point.most.map(|most| ns(most * 1e9)),
            rates: vec![],
            warms_up: true,
        }
    }

    /// Ends the part, in which there were `acquisitions`, and begins the next one if there is one.
    pub fn next(&mut self, acquisitions: u64) {
        if !std::mem::take(&mut self.warms_up) {
            self.judge(acquisitions);
        }
        if !self.over {
            (self.begin, self.end) = (self.end, self.end + self.length);
        }
    }

    fn judge(&mut self, acquisitions: u64) {
        let Some(most) = self.most else {
            self.over = true;
            return;
        };
        let enough = acquisitions >= LEAST;
        self.rates.push(if enough { acquisitions as f64 / self.length as f64 } else { 0.0 });
        self.steady = self.rates.last_chunk::<3>().is_some_and(is_steady);
        self.length *= 2;
        self.over = self.steady || self.end + self.length > most;
    }
}

fn is_steady(rates: &[f64; 3]) -> bool {
    let (least, most) = rates
        .iter()
        .fold((f64::MAX, 0.0f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
    least > 0.0 && least >= (1.0 - TOLERANCE) * most
}

#[cfg(test)]
mod tests {
    use super::Windows;

    /// The parts of a run with these throughputs, by their ends, and whether the last is steady.
    fn parts(most: Option<u64>, rates: &[u64]) -> (Vec<u64>, bool) {
        let mut windows = Windows {
            begin: 0,
            end: 1000,
            over: false,
            steady: false,
            length: 1000,
            most,
            rates: vec![],
            warms_up: true,
        };
        windows.next(7);
        let mut ends = vec![];
        for rate in rates {
            ends.push(windows.end);
            windows.next(rate * (windows.end - windows.begin) / 1000);
            if windows.over {
                break;
            }
        }
        (ends, windows.steady)
    }

    #[test]
    fn a_run_ends_when_three_parts_agree() {
        assert_eq!(parts(Some(99_000), &[500, 480, 490, 1]), (vec![2000, 4000, 8000], true));
        assert_eq!(
            parts(Some(99_000), &[200, 300, 500, 490, 495]),
            (vec![2000, 4000, 8000, 16_000, 32_000], true)
        );
    }

    #[test]
    fn a_run_that_is_never_steady_ends_at_its_limit() {
        assert_eq!(parts(Some(16_000), &[100, 200, 300, 400, 500]).0, [2000, 4000, 8000, 16_000]);
        assert!(!parts(Some(16_000), &[100, 200, 300, 400, 500]).1);
        assert!(!parts(Some(8_000), &[1, 1, 1]).1, "too few acquisitions say nothing");
    }

    #[test]
    fn a_fixed_length_is_one_part() {
        assert_eq!(parts(None, &[500, 500, 500]), (vec![2000], false));
    }
}
