//! Finds the best of several setups by measurements, and confirms it on further ones.
//!
//! All setups are measured in rounds, in random order within a round, and compared with the present
//! setup in the same round. The search halves the candidates again and again (sequential halving:
//! Karnin et al., ICML 2013); each half of its time goes to fewer of them. The best one is then
//! measured against the present setup alone, in new rounds, so that the luck by which it won has no
//! part in its figures. Only that confirmation decides.
//!
//! An interval may be looked at several times: look k has the k(k+1)-th part of the permitted
//! probability of error, which sums to all of it over any number of looks.

use super::setup::Setup;
use crate::failure::Failure;
use crate::runs::Interval;
use fastrand::Rng;

/// The probability that anything at all is kept that is not better.
pub const ERROR: f64 = 0.05;

/// The number of rounds before a candidate can be dropped.
pub const LEAST_ROUNDS: usize = 3;

/// The number of rounds of a confirmation before the first look; each further look doubles it.
pub const FIRST_LOOK: usize = 8;

/// A confirmation ends when the gain is known to be smaller than this logarithm, about 1 %.
const SMALL: f64 = 0.01;

/// A measurement of a setup.
#[derive(Clone, Debug, PartialEq)]
pub enum Sample {
    /// A logarithm; the larger the better.
    Figure(f64),
    /// Nothing happened in that time.
    Nothing,
    /// The program fails with this setup.
    Failed(String),
}

/// The reason for an early end.
#[derive(Debug)]
pub enum Stop {
    Interrupted,
    Failed(Failure),
}

/// A program or a process that can be measured with different setups.
pub trait Subject {
    fn measure(&mut self, setup: &Setup) -> Result<Sample, Stop>;

    /// The used share of the time or of the runs: 1 when they are over.
    fn used(&self) -> f64;

    /// Whether each round is measured in one order and then in the reverse, which cancels drift.
    fn mirrored(&self) -> bool;
}

/// The part of a candidate in the search.
#[derive(Clone, Debug)]
pub struct Trial {
    pub setup: Setup,
    /// Logarithms of ratios to the present setup in the same round.
    pub differences: Vec<f64>,
    pub interval: Option<Interval>,
    pub fate: Fate,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// The best candidate at the end of the search.
    Best,
    /// Another candidate was better.
    Dropped,
    /// Worse than the present setup.
    Worse,
    Failed(String),
}

/// The comparison of the best candidate with the present setup.
#[derive(Clone, Debug)]
pub struct Confirmation {
    pub setup: Setup,
    pub differences: Vec<f64>,
    pub interval: Option<Interval>,
    pub failed: Option<String>,
}

impl Confirmation {
    /// Whether the candidate is better, with the required confidence.
    pub fn is_better(&self) -> bool {
        self.failed.is_none() && self.interval.is_some_and(|interval| interval.low > 0.0)
    }
}

/// A search and its confirmation.
#[derive(Debug, Default)]
pub struct Step {
    pub trials: Vec<Trial>,
    pub confirmation: Option<Confirmation>,
}

/// Runs a step between these shares of the budget; `error` is the permitted probability of error.
/// The part that was done before a stop is in `step`.
pub fn run(
    subject: &mut impl Subject,
    present: &Setup,
    candidates: Vec<Setup>,
    until: f64,
    error: f64,
    random: &mut Rng,
    step: &mut Step,
) -> Result<(), Stop> {
    let half = f64::midpoint(subject.used(), until);
    step.trials = candidates.into_iter().map(Trial::new).collect();
    let mut rounds = Rounds { subject, present, random };
    let best = search(&mut rounds, &mut step.trials, half, error)?;
    let Some(best) = best.map(|best| step.trials[best].setup.clone()) else {
        return Ok(());
    };
    let confirmation = step.confirmation.insert(Confirmation::new(best));
    confirm(&mut rounds, confirmation, until, error)
}

impl Trial {
    fn new(setup: Setup) -> Trial {
        Trial { setup, differences: Vec::new(), interval: None, fate: Fate::Best }
    }

    fn estimate(&self) -> f64 {
        self.interval.map_or(f64::NEG_INFINITY, |interval| interval.estimate)
    }
}

impl Confirmation {
    fn new(setup: Setup) -> Confirmation {
        Confirmation { setup, differences: Vec::new(), interval: None, failed: None }
    }
}

/// Measures candidates against the present setup.
struct Rounds<'a, S> {
    subject: &'a mut S,
    present: &'a Setup,
    random: &'a mut Rng,
}

impl<S: Subject> Rounds<'_, S> {
    /// Measures each candidate once. Figures are logarithms of ratios to the present setup.
    fn round(&mut self, candidates: &[&Setup]) -> Result<Vec<Sample>, Stop> {
        let setups: Vec<&Setup> =
            [self.present].into_iter().chain(candidates.iter().copied()).collect();
        let mut order: Vec<usize> = (0..setups.len()).collect();
        self.random.shuffle(&mut order);
        if self.subject.mirrored() {
            order.extend_from_within(..);
            order[setups.len()..].reverse();
        }
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); setups.len()];
        for index in order {
            let sample = self.subject.measure(setups[index])?;
            samples[index].push(sample);
        }
        let mut means = samples.into_iter().map(mean);
        let present = match means.next() {
            Some(Sample::Failed(why)) => {
                let message = format!("the program failed with its present settings: {why}");
                return Err(Stop::Failed(Failure::ours(message)));
            }
            Some(Sample::Figure(figure)) => Some(figure),
            _ => None,
        };
        Ok(means
            .map(|sample| match (sample, present) {
                (Sample::Figure(figure), Some(present)) => Sample::Figure(figure - present),
                (Sample::Figure(_), None) => Sample::Nothing,
                (other, _) => other,
            })
            .collect())
    }
}

fn mean(samples: Vec<Sample>) -> Sample {
    let count = samples.len() as f64;
    let mut sum = 0.0;
    for sample in samples {
        match sample {
            Sample::Figure(figure) => sum += figure / count,
            other => return other,
        }
    }
    Sample::Figure(sum)
}

/// Drops candidates until one is left, or all look worse than the present setup. Returns its index.
fn search(
    rounds: &mut Rounds<'_, impl Subject>,
    trials: &mut [Trial],
    until: f64,
    error: f64,
) -> Result<Option<usize>, Stop> {
    let begin = rounds.subject.used();
    let stages = trials.len().next_power_of_two().ilog2().max(1);
    let mut looks = Looks { error: error / trials.len() as f64, done: 0 };
    for stage in 1..=stages {
        let end = begin + (until - begin) * f64::from(stage) / f64::from(stages);
        if stage > 1 && alive(trials).len() < 2 {
            break;
        }
        let mut done = 0;
        while (done < LEAST_ROUNDS || rounds.subject.used() < end)
            && rounds.subject.used() < 1.0
            && !alive(trials).is_empty()
            && !(done >= FIRST_LOOK && done.is_power_of_two() && looks.settle(trials))
        {
            measure_alive(rounds, trials)?;
            done += 1;
        }
        looks.take(trials);
        halve(trials);
    }
    Ok(alive(trials).first().copied())
}

/// Measures a round of the candidates that are left.
fn measure_alive(rounds: &mut Rounds<'_, impl Subject>, trials: &mut [Trial]) -> Result<(), Stop> {
    let alive = alive(trials);
    let setups: Vec<&Setup> = alive.iter().map(|index| &trials[*index].setup).collect();
    let samples = rounds.round(&setups)?;
    for (index, sample) in alive.into_iter().zip(samples) {
        match sample {
            Sample::Figure(figure) => trials[index].differences.push(figure),
            Sample::Nothing => {}
            Sample::Failed(why) => trials[index].fate = Fate::Failed(why),
        }
    }
    Ok(())
}

fn alive(trials: &[Trial]) -> Vec<usize> {
    (0..trials.len()).filter(|index| trials[*index].fate == Fate::Best).collect()
}

/// The looks at the intervals of all candidates.
struct Looks {
    /// The permitted probability of error per candidate.
    error: f64,
    done: u32,
}

impl Looks {
    /// Computes the intervals, and drops the candidates that are worse than the present setup.
    fn take(&mut self, trials: &mut [Trial]) {
        self.done += 1;
        let error = self.error / f64::from(self.done) / f64::from(self.done + 1);
        for index in alive(trials) {
            let trial = &mut trials[index];
            trial.interval = Interval::of(&trial.differences, error);
            if trial.interval.is_some_and(|interval| interval.high < 0.0) {
                trial.fate = Fate::Worse;
            }
        }
    }

    /// Takes a look. Returns whether further rounds would change nothing: all differences are
    /// known, or one candidate, which alone is left then, is better than all others.
    fn settle(&mut self, trials: &mut [Trial]) -> bool {
        self.take(trials);
        let alive = alive(trials);
        let of = |index: &usize| trials[*index].interval;
        let Some(intervals) = alive.iter().map(of).collect::<Option<Vec<Interval>>>() else {
            return false;
        };
        let beats_all =
            |best: &Interval| intervals.iter().filter(|other| other.high >= best.low).count() == 1;
        if let Some(best) = intervals.iter().position(beats_all) {
            for (_, index) in alive.iter().enumerate().filter(|(at, _)| *at != best) {
                trials[*index].fate = Fate::Dropped;
            }
            // A single candidate still has to be compared with the present setup.
            if intervals.len() > 1 || intervals[0].low > 0.0 {
                return true;
            }
        }
        intervals.iter().all(|interval| interval.high - interval.low < 2.0 * SMALL)
    }
}

/// Drops the worse half, and the last candidate if the present setup looks better.
fn halve(trials: &mut [Trial]) {
    let mut left = alive(trials);
    left.sort_by(|a, b| trials[*b].estimate().total_cmp(&trials[*a].estimate()));
    let kept = left.len().div_ceil(2);
    for index in left.into_iter().skip(kept) {
        trials[index].fate = Fate::Dropped;
    }
    if let [last] = alive(trials)[..]
        && trials[last].estimate() <= 0.0
    {
        trials[last].fate = Fate::Dropped;
    }
}

/// Measures the candidate in new rounds, until its interval decides or the budget is used.
fn confirm(
    rounds: &mut Rounds<'_, impl Subject>,
    confirmation: &mut Confirmation,
    until: f64,
    error: f64,
) -> Result<(), Stop> {
    let mut next = FIRST_LOOK;
    for look in 1_u32.. {
        while confirmation.differences.len() < next && rounds.subject.used() < until {
            match rounds.round(&[&confirmation.setup])?.pop() {
                Some(Sample::Figure(figure)) => confirmation.differences.push(figure),
                Some(Sample::Failed(why)) => {
                    confirmation.failed = Some(why);
                    return Ok(());
                }
                Some(Sample::Nothing) | None => {}
            }
        }
        let part = f64::from(look) * f64::from(look + 1);
        confirmation.interval = Interval::of(&confirmation.differences, error / part);
        let decided = confirmation
            .interval
            .is_some_and(|interval| interval.low > 0.0 || interval.high < SMALL);
        if decided || rounds.subject.used() >= until {
            break;
        }
        next *= 2;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Confirmation, ERROR, Fate, Sample, Setup, Step, Stop, Subject, run};
    use fastrand::Rng;

    /// A program whose figures are known distributions.
    struct Simulated {
        /// The true logarithm of the gain by the target's setting: "0", "1", ...
        gains: Vec<f64>,
        noise: fn(&mut Rng) -> f64,
        /// Added per measurement.
        drift: f64,
        mirrored: bool,
        done: u32,
        most: u32,
        random: Rng,
    }

    impl Subject for Simulated {
        fn measure(&mut self, setup: &Setup) -> Result<Sample, Stop> {
            self.done += 1;
            let gain = setup
                .settings
                .get(&0)
                .map_or(0.0, |spec| self.gains[spec.parse::<usize>().expect("a number")]);
            let drift = self.drift * f64::from(self.done);
            Ok(Sample::Figure(gain + drift + (self.noise)(&mut self.random)))
        }

        fn used(&self) -> f64 {
            f64::from(self.done) / f64::from(self.most)
        }

        fn mirrored(&self) -> bool {
            self.mirrored
        }
    }

    fn gaussian(random: &mut Rng) -> f64 {
        // Box and Muller.
        let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.f64()).cos()
    }

    fn cauchy(random: &mut Rng) -> f64 {
        (std::f64::consts::PI * (random.f64() - 0.5)).tan()
    }

    /// Runs are now and then much slower, never faster.
    fn skewed(random: &mut Rng) -> f64 {
        0.03 * random.f64().max(1e-9).ln()
    }

    fn steps(
        seeds: std::ops::Range<u64>,
        gains: &[f64],
        noise: fn(&mut Rng) -> f64,
        drift: f64,
        mirrored: bool,
    ) -> Vec<Step> {
        seeds
            .map(|seed| {
                let mut random = Rng::with_seed(seed);
                let mut subject = Simulated {
                    gains: gains.to_vec(),
                    noise,
                    drift,
                    mirrored,
                    done: 0,
                    most: 200,
                    random: random.fork(),
                };
                let setup = |index: usize| Setup::default().with(0, &index.to_string());
                let candidates = (0..gains.len()).map(setup).collect();
                let present = Setup::default();
                let mut step = Step::default();
                run(&mut subject, &present, candidates, 1.0, ERROR, &mut random, &mut step)
                    .expect("no stop");
                assert!(subject.used() < 1.2, "{}", subject.used());
                step
            })
            .collect()
    }

    fn kept(step: &Step) -> bool {
        step.confirmation.as_ref().is_some_and(Confirmation::is_better)
    }

    #[test]
    fn what_does_not_help_is_kept_in_at_most_5_of_100_trials() {
        type Noise = fn(&mut Rng) -> f64;
        let noises: [(&str, Noise); 3] = [
            ("Gaussian", |random| 0.05 * gaussian(random)),
            ("Cauchy", cauchy),
            ("skewed", skewed),
        ];
        for (name, noise) in noises {
            for (drift, mirrored) in [(0.0, false), (-0.01, false), (0.02, true)] {
                let wrong = steps(0..400, &[0.0; 6], noise, drift, mirrored);
                let wrong = wrong.iter().filter(|step| kept(step)).count();
                assert!(wrong <= 400 * 5 / 100, "{name}, drift {drift}: {wrong} of 400");
            }
        }
    }

    #[test]
    fn what_is_worse_is_never_kept() {
        let all = steps(0..100, &[-0.1, -0.2, -0.05], |random| 0.05 * gaussian(random), 0.0, false);
        assert_eq!(all.iter().filter(|step| kept(step)).count(), 0);
    }

    #[test]
    fn a_real_gain_is_found_and_stated_without_the_luck_of_the_search() {
        let gains = [0.0, 0.02, 0.1, -0.1, 0.0];
        let all = steps(0..200, &gains, |random| 0.04 * gaussian(random), 0.0, false);
        let right = |step: &&Step| {
            kept(step)
                && step
                    .confirmation
                    .as_ref()
                    .is_some_and(|confirmation| confirmation.setup == Setup::default().with(0, "2"))
        };
        let found: Vec<&Step> = all.iter().filter(right).collect();
        assert!(found.len() >= 190, "{} of 200", found.len());
        let intervals = found.iter().filter_map(|step| step.confirmation.as_ref()?.interval);
        let covered = intervals.clone().filter(|found| found.low <= 0.1 && 0.1 <= found.high);
        assert!(covered.count() >= found.len() * 95 / 100);
        let mean = intervals.map(|found| found.estimate).sum::<f64>() / found.len() as f64;
        assert!((mean - 0.1).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_figure_without_noise_decides_at_the_first_look() {
        let all = steps(0..10, &[0.0, 0.3], |_| 0.0, 0.0, false);
        for step in &all {
            let confirmation = step.confirmation.as_ref().expect("a candidate");
            assert!(kept(step) && confirmation.differences.len() == super::FIRST_LOOK);
        }
        let same = steps(0..10, &[0.0, 0.0], |_| 0.0, 0.0, false);
        assert!(same.iter().all(|step| step.confirmation.is_none()), "nothing looks better");
    }

    #[test]
    fn a_candidate_that_fails_is_dropped_and_the_present_setup_must_not_fail() {
        struct Failing {
            present: bool,
            done: u32,
        }
        impl Subject for Failing {
            fn measure(&mut self, setup: &Setup) -> Result<Sample, Stop> {
                self.done += 1;
                let fails = setup.settings.is_empty() == self.present;
                Ok(if fails { Sample::Failed("why".to_owned()) } else { Sample::Figure(0.0) })
            }
            fn used(&self) -> f64 {
                f64::from(self.done) / 100.0
            }
            fn mirrored(&self) -> bool {
                false
            }
        }
        let tried = |present| {
            let (mut step, mut random) = (Step::default(), Rng::with_seed(1));
            let mut subject = Failing { present, done: 0 };
            let candidates = vec![Setup::default().with(0, "0"), Setup::default().with(0, "1")];
            let none = Setup::default();
            let ended = run(&mut subject, &none, candidates, 1.0, ERROR, &mut random, &mut step);
            (ended, step)
        };
        let (ended, step) = tried(false);
        assert!(ended.is_ok() && step.confirmation.is_none());
        assert!(step.trials.iter().all(|trial| trial.fate == Fate::Failed("why".to_owned())));
        let (ended, _) = tried(true);
        let Err(Stop::Failed(failure)) = ended else { panic!("{ended:?}") };
        assert_eq!(failure.message, "the program failed with its present settings: why");
    }
}
