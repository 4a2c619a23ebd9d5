//! Metrics of fairness. docs/benchmarks.md has the formulas.

/// The share of the better half of the threads (CNA section 7.1.1, ShflLock section 6.3): 0.5 is
/// even, 1 means that half of the threads have nothing. With an odd number of threads, which the
/// papers leave open, half of the middle one counts to each side. None if the sum is 0.
pub fn fairness_factor(shares: &[f64]) -> Option<f64> {
    let total = total(shares)?;
    let mut sorted = shares.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (half, odd) = (sorted.len() / 2, sorted.len() % 2 == 1);
    let middle = if odd { sorted[half] / 2.0 } else { 0.0 };
    Some((sorted[..half].iter().sum::<f64>() + middle) / total)
}

/// Jain's index (CFL section 4.6.2): 1 is even, 1 / threads means that one thread has all.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let total = total(shares)?;
    // Divided first: squares of large counts would lose precision.
    let squares: f64 = shares.iter().map(|share| (share / total).powi(2)).sum();
    Some((1.0 / (shares.len() as f64 * squares)).min(1.0))
}

/// The coefficient of variation (RON section 6.2.2): the population standard deviation over the
/// mean. 0 is even.
pub fn variation(shares: &[f64]) -> Option<f64> {
    let mean = total(shares)? / shares.len() as f64;
    let variance =
        shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / shares.len() as f64;
    Some(variance.sqrt() / mean)
}

/// The smallest share over the largest (CFL figure 8 with two sets of threads): 1 is even.
pub fn evenness(shares: &[f64]) -> Option<f64> {
    total(shares)?;
    let largest = shares.iter().copied().fold(0.0, f64::max);
    Some(shares.iter().copied().fold(f64::INFINITY, f64::min) / largest)
}

fn total(shares: &[f64]) -> Option<f64> {
    Some(shares.iter().sum()).filter(|total| *total > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        assert!(
            found.is_some_and(|found| (found - expected).abs() < 1e-12),
            "{found:?}, not {expected}"
        );
    }

    #[test]
    fn even_shares_are_even() {
        for threads in 1..=7 {
            let shares = vec![300.0; threads];
            near(fairness_factor(&shares), 0.5);
            near(jain(&shares), 1.0);
            near(variation(&shares), 0.0);
            near(evenness(&shares), 1.0);
        }
    }

    #[test]
    fn one_thread_with_everything_is_the_other_end() {
        let shares = [0.0, 0.0, 500.0, 0.0];
        near(fairness_factor(&shares), 1.0);
        near(jain(&shares), 0.25);
        near(variation(&shares), 3f64.sqrt());
        near(evenness(&shares), 0.0);
    }

    #[test]
    fn uneven_shares() {
        let shares = [10.0, 40.0, 30.0, 20.0];
        near(fairness_factor(&shares), 0.7);
        near(jain(&shares), 10_000.0 / (4.0 * 3_000.0));
        near(variation(&shares), 125f64.sqrt() / 25.0);
        near(evenness(&shares), 0.25);
        near(fairness_factor(&[10.0, 60.0, 30.0]), 0.75);
    }

    #[test]
    fn nothing_has_no_figures() {
        for shares in [&[][..], &[0.0, 0.0]] {
            assert_eq!((fairness_factor(shares), jain(shares)), (None, None));
            assert_eq!((variation(shares), evenness(shares)), (None, None));
        }
    }
}
