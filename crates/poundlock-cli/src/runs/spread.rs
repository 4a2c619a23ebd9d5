//! Medians and ranges.

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

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn medians_of_odd_and_even_counts() {
        let of = |figures: &[f64]| Spread::of(figures.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(of(&[]), None);
    }
}
