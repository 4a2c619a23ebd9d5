//! Tunes one target after the other, the hottest first. Each keeps what was confirmed before.

use super::search::{self, ERROR, FIRST_LOOK, LEAST_ROUNDS, Step, Stop, Subject};
use super::setup::{Setup, Target, candidates, has_domains};
use crate::failure::Failure;
use crate::spec::Choice;
use fastrand::Rng;

/// The measurements for which there is time.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub measurements: usize,
    /// Of each setup in a round.
    pub per_round: usize,
}

impl Budget {
    /// The number of measurements without which nothing can be decided, with one per round.
    pub const LEAST: usize = needed(1);

    fn allows(&self, targets: usize, candidates: usize) -> bool {
        self.measurements / targets >= self.per_round * needed(candidates)
    }
}

/// The number of measurements with which a step can decide.
const fn needed(candidates: usize) -> usize {
    let mut left = candidates;
    let mut search = LEAST_ROUNDS * (left + 1);
    while left > 2 {
        left = left.div_ceil(2);
        search += LEAST_ROUNDS * (left + 1);
    }
    search + 2 * FIRST_LOOK
}

/// The candidates of each target.
pub struct Plan {
    pub targets: Vec<Target>,
    /// Of each target: specifications of single locks.
    specs: Vec<Vec<String>>,
    /// Other locks for the whole process, tried with the first target.
    others: Vec<Choice>,
    /// Candidates and locks for which there is no time, in words.
    pub untried: Vec<String>,
}

impl Plan {
    /// As much as the budget allows. None if that is nothing.
    pub fn of(targets: Vec<Target>, others: Vec<Choice>, budget: Budget) -> Option<Plan> {
        let domains = has_domains();
        let specs = targets.iter().map(|target| candidates(target, domains)).collect();
        Plan { targets, specs, others, untried: Vec::new() }.fitted(budget)
    }

    /// The number of candidates of a target.
    fn count(&self, target: usize) -> usize {
        self.specs[target].len() + if target == 0 { self.others.len() } else { 0 }
    }

    fn fitted(mut self, budget: Budget) -> Option<Plan> {
        let fits = |count: &usize| (0..*count).all(|at| budget.allows(*count, self.count(at)));
        let count = (1..=self.targets.len()).rev().find(fits).unwrap_or(1);
        for left_out in self.targets.drain(count..) {
            self.untried.push(left_out.label);
        }
        self.specs.truncate(count);
        while !budget.allows(count, self.count(0)) {
            if let Some(spec) = (self.specs[0].len() > 1).then(|| self.specs[0].pop()).flatten() {
                self.untried.push(format!("{}: {spec}", self.targets[0].label));
            } else {
                self.untried.push(format!("all locks: {}", self.others.pop()?));
            }
        }
        Some(self)
    }

    fn setups(&self, target: usize, present: &Setup) -> Vec<Setup> {
        let others = self.others.iter().filter(|_| target == 0).cloned().map(Setup::of);
        let specs = self.specs[target].iter().map(|spec| present.with(target, spec));
        specs.chain(others).collect()
    }

    /// Tunes the targets. `about` describes their waits.
    pub fn run(self, subject: &mut impl Subject, about: String) -> Result<Tuned, Failure> {
        let mut random = Rng::new();
        let count = self.targets.len();
        let mut tuned = Tuned { about, ..Tuned::default() };
        for target in 0..count {
            if tuned.kept.lock.is_some() {
                break; // settings of single locks do not apply to another lock
            }
            let left = 1.0 - subject.used();
            let until = subject.used() + left / (count - target) as f64;
            let present = tuned.kept.clone();
            let setups = self.setups(target, &present);
            let mut step = Step::default();
            let error = ERROR / count as f64;
            let ended =
                search::run(subject, &present, setups, until, error, &mut random, &mut step);
            if let Some(better) = step.confirmation.as_ref().filter(|found| found.is_better()) {
                tuned.kept = better.setup.clone();
            }
            tuned.steps.push(step);
            match ended {
                Ok(()) => {}
                Err(Stop::Interrupted) => {
                    tuned.interrupted = true;
                    break;
                }
                Err(Stop::Failed(failure)) => return Err(failure),
            }
        }
        tuned.targets = self.targets;
        tuned.untried = self.untried;
        Ok(tuned)
    }
}

/// The result.
#[derive(Debug, Default)]
pub struct Tuned {
    /// The waits of the process, in words.
    pub about: String,
    pub targets: Vec<Target>,
    /// Of the targets, in their order; fewer if there was an interrupt.
    pub steps: Vec<Step>,
    /// The present setup with all that is better.
    pub kept: Setup,
    pub untried: Vec<String>,
    pub interrupted: bool,
}

impl Tuned {
    /// There is nothing to tune, for the reason in `about`.
    pub fn nothing(about: String) -> Tuned {
        Tuned { about, ..Tuned::default() }
    }

    /// The command was interrupted before it tried anything.
    pub fn interrupted() -> Tuned {
        Tuned { interrupted: true, ..Tuned::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::setup::{Place, Target};
    use super::{Budget, Plan, needed};
    use crate::control::{Kind, Settings};
    use crate::spec::Choice;

    fn plan(targets: usize, measurements: usize) -> Option<Plan> {
        let target = |at: usize| Target {
            kind: Kind::Mutex,
            label: format!("mutex {at}"),
            place: Some(Place::Symbol(format!("mutex_{at}"))),
            lock: "shfl_mutex".to_owned(),
            addresses: Vec::new(),
            present: Settings { patience: 4, policy: "numa".to_owned(), batch: 1024, spins: 1 },
            others: Vec::new(),
            is_controlled: false,
            wait_ns: 1,
        };
        let budget = Budget { measurements, per_round: 1 };
        Plan::of((0..targets).map(target).collect(), vec![Choice::Native], budget)
    }

    #[test]
    fn a_plan_fits_its_budget() {
        assert!(plan(3, Budget::LEAST - 1).is_none());
        let least = plan(3, Budget::LEAST).expect("a plan");
        assert_eq!((least.targets.len(), least.count(0)), (1, 1));
        assert!(least.others.is_empty() && least.untried.len() > 3, "{:?}", least.untried);
        let full = plan(3, 10_000).expect("a plan");
        assert_eq!((full.targets.len(), full.untried.len()), (3, 0));
        assert_eq!(full.count(0), full.count(1) + 1, "native locks are tried once");
        assert_eq!(needed(4), 3 * 5 + 3 * 3 + 16);
    }
}
