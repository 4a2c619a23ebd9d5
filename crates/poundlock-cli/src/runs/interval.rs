//! Confidence intervals of a median, by Wilcoxon's signed ranks.
//!
//! They assume that the values are independent and symmetric about the median, and nothing else
//! about their distribution. The logarithms of ratios between two measurements in random order are
//! symmetric about 0 if what is measured does not differ.

/// An estimate with its confidence interval. The bounds are infinite if there are too few values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// More values than this are averaged in groups of neighbours.
const MOST: usize = 200;

impl Interval {
    /// The Hodges-Lehmann estimate of the median of `values`, and an interval that excludes the
    /// median with probability `error` at most. None without values.
    pub fn of(values: &[f64], error: f64) -> Option<Interval> {
        let values = grouped(values);
        let mut means: Vec<f64> = (0..values.len())
            .flat_map(|at| values[at..].iter().map(move |other| (at, *other)))
            .map(|(at, other)| f64::midpoint(values[at], other))
            .collect();
        means.sort_by(f64::total_cmp);
        let (first, last) = (means.len().checked_sub(1)? / 2, means.len() / 2);
        let estimate = f64::midpoint(means[first], means[last]);
        Some(match excluded(values.len(), error / 2.0) {
            0 => Interval { estimate, low: f64::NEG_INFINITY, high: f64::INFINITY },
            count => Interval { estimate, low: means[count - 1], high: means[means.len() - count] },
        })
    }
}

fn grouped(values: &[f64]) -> Vec<f64> {
    let size = values.len().div_ceil(MOST).max(1);
    values.chunks_exact(size).map(|group| group.iter().sum::<f64>() / size as f64).collect()
}

/// The number of sums of ranks, from 0 up, that together have probability `error` at most if each
/// of `count` ranks counts with probability 1/2.
fn excluded(count: usize, error: f64) -> usize {
    let mut probability = vec![0.0; count * (count + 1) / 2 + 1];
    probability[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..probability.len()).rev() {
            let with = if sum >= rank { probability[sum - rank] } else { 0.0 };
            probability[sum] = f64::midpoint(probability[sum], with);
        }
    }
    let mut total = 0.0;
    let within = |of: &&f64| {
        total += **of;
        total <= error
    };
    probability.iter().take_while(within).count()
}

#[cfg(test)]
mod tests {
    use super::{Interval, excluded};

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // The largest sums of ranks at which the two-sided test rejects, plus one.
        for (count, error, value) in
            [(6, 0.05, 1), (8, 0.05, 4), (10, 0.05, 9), (20, 0.05, 53), (10, 0.01, 4)]
        {
            assert_eq!(excluded(count, error / 2.0), value, "{count} values, {error}");
        }
        assert_eq!(excluded(5, 0.025), 0, "five values never suffice for 95 %");
    }

    #[test]
    fn intervals_are_order_statistics_of_the_means() {
        assert_eq!(Interval::of(&[], 0.05), None);
        let few = Interval::of(&[1.0, 3.0], 0.05).expect("values");
        assert_eq!((few.estimate, few.low), (2.0, f64::NEG_INFINITY));
        let six = Interval::of(&[6.0, 2.0, 1.0, 4.0, 5.0, 3.0], 0.05).expect("values");
        assert_eq!(six, Interval { estimate: 3.5, low: 1.0, high: 6.0 });
        let same = Interval::of(&[0.5; 8], 0.05).expect("values");
        assert_eq!(same, Interval { estimate: 0.5, low: 0.5, high: 0.5 });
    }

    #[test]
    fn intervals_cover_the_median_of_any_symmetric_distribution() {
        let mut random = fastrand::Rng::with_seed(1);
        type Draw = fn(&mut fastrand::Rng) -> f64;
        let distributions: [(&str, Draw); 3] = [
            ("uniform", |random| random.f64() - 0.5),
            ("two values", |random| if random.bool() { 1.0 } else { -1.0 }),
            // Without a mean.
            ("Cauchy", |random| (std::f64::consts::PI * (random.f64() - 0.5)).tan()),
        ];
        for (name, draw) in distributions {
            let excludes = |_: &u32| {
                let values: Vec<f64> = (0..12).map(|_| draw(&mut random)).collect();
                let interval = Interval::of(&values, 0.05).expect("values");
                interval.low > 0.0 || interval.high < 0.0
            };
            let wrong = (0..4000).filter(excludes).count();
            assert!(wrong <= 4000 * 5 / 100, "{name}: {wrong} of 4000");
        }
    }

    #[test]
    fn many_values_are_grouped() {
        let mut random = fastrand::Rng::with_seed(2);
        let values: Vec<f64> = (0..3000).map(|_| 1.0 + random.f64() - 0.5).collect();
        let interval = Interval::of(&values, 0.05).expect("values");
        assert!(interval.low > 0.97 && interval.high < 1.03, "{interval:?}");
        assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
    }
}
