//! Medians, ranges and standard deviations.

use serde::Serialize;

/// The median and the range of figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Returns None without figures.
    pub fn of(figures: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = if figures.len().is_multiple_of(2) {
            f64::midpoint(figures[middle - 1], figures[middle])
        } else {
            figures[middle]
        };
        Some(Spread { median, min, max })
    }
}

/// The standard deviation of a sample. None for fewer than two figures.
pub fn stddev(figures: &[f64]) -> Option<f64> {
    if figures.len() < 2 {
        return None;
    }
    let mean = figures.iter().sum::<f64>() / figures.len() as f64;
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    Some((squares / (figures.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::{Spread, stddev};

    #[test]
    fn a_deviation_needs_two_figures() {
        assert_eq!(stddev(&[2.0, 4.0, 4.0, 4.0, 6.0]), Some(2.0_f64.sqrt()));
        assert_eq!([stddev(&[1.0]), stddev(&[])], [None, None]);
    }

    #[test]
    fn medians_of_odd_and_even_counts() {
        let of = |figures: &[f64]| Spread::of(figures.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(of(&[]), None);
    }
}
