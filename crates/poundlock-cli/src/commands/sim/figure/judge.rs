//! Published values against simulated ones.

use super::file::{At, Check, Figure, Published, Value};
use crate::points::{Point, Run};
use crate::runs::{Outcome, Spread};
use serde::Serialize;

/// The minimum ratio of two published values whose order counts.
pub const GAP: f64 = 1.15;

/// Two published values whose ratio is at least [`GAP`], the larger one first.
#[derive(Debug, Serialize)]
pub struct Order {
    pub what: String,
    pub source: String,
    pub of: At,
    pub over: At,
    pub published: f64,
    pub simulated: Option<f64>,
    pub kept: bool,
}

#[derive(Debug, Serialize)]
pub struct Checked {
    pub what: String,
    pub simulated: Option<Spread>,
    pub met: bool,
}

/// The orders of all pairs of published values that are far enough apart.
pub fn orders(figure: &Figure, points: &[Point]) -> Vec<Order> {
    figure.published.iter().flat_map(|published| published.orders(points)).collect()
}

impl Published {
    fn orders(&self, points: &[Point]) -> Vec<Order> {
        let simulated = |value: &Value| {
            let point = points
                .iter()
                .find(|point| point.lock == value.lock && point.threads == value.threads);
            point.and_then(|point| point.figure(&self.figure)).map(|spread| spread.median)
        };
        let at = |value: &Value| At { lock: value.lock.clone(), threads: value.threads };
        let order = |(a, b): (&Value, &Value)| {
            let (of, over) = if a.value < b.value { (b, a) } else { (a, b) };
            let published = of.value / over.value;
            let simulated = simulated(of).zip(simulated(over)).map(|(of, over)| of / over);
            (published >= GAP).then(|| Order {
                what: self.what.clone(),
                source: self.source.clone(),
                of: at(of),
                over: at(over),
                published,
                simulated,
                kept: simulated.is_some_and(|ratio| ratio > 1.0),
            })
        };
        let pairs = self
            .values
            .iter()
            .enumerate()
            .flat_map(|(i, a)| self.values[..i].iter().map(move |b| (a, b)));
        pairs.filter_map(order).collect()
    }
}

pub fn checked(check: &Check, runs: &[Run]) -> Checked {
    let value = |at: &At, seed: u32| {
        let here =
            |run: &&Run| run.lock == at.lock && run.threads == at.threads && run.repeat == seed;
        let run = runs.iter().find(here).filter(|run| run.outcome == Outcome::Ok)?;
        run.figures.get(check.figure.as_str()).copied().flatten()
    };
    let of = |seed: u32| {
        let found = value(&check.of, seed)?;
        match &check.over {
            Some(over) => Some(found / value(over, seed)?),
            None => Some(found),
        }
    };
    let seeds = runs.iter().map(|run| run.repeat).max().unwrap_or(0);
    let simulated = Spread::of((1..=seeds).filter_map(of));
    let met = simulated.is_some_and(|spread| check.holds(spread.median));
    Checked { what: check.what.clone(), simulated, met }
}

impl Check {
    fn holds(&self, value: f64) -> bool {
        let near = match (self.published, self.within) {
            (Some(published), Some(within)) => (value / published - 1.0).abs() <= within,
            _ => true,
        };
        near && self.least.is_none_or(|least| value >= least)
            && self.most.is_none_or(|most| value <= most)
    }
}
