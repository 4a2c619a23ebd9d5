//! A short closed tour over points with known distances, and a lower bound on the length of any
//! tour.
//!
//! Up to [`EXACT`] points, the tour is optimal. Beyond, it is found by local search, and the bound
//! comes from 1-trees (Held and Karp, 1970). The search has no time limit, so the same distances
//! give the same tour on every machine.

mod bound;
mod exact;
mod search;

/// Symmetric distances between points.
#[derive(Clone, Debug)]
pub struct Distances {
    points: usize,
    table: Vec<u32>,
}

impl Distances {
    /// The distances between `points` points, given by `distance` for each pair.
    pub fn new(points: usize, distance: impl Fn(usize, usize) -> u32) -> Distances {
        let mut table = vec![0; points * points];
        for a in 0..points {
            for b in 0..a {
                let length = distance(a, b);
                table[a * points + b] = length;
                table[b * points + a] = length;
            }
        }
        Distances { points, table }
    }

    /// The number of points.
    pub fn points(&self) -> usize {
        self.points
    }

    #[inline]
    fn between(&self, a: usize, b: usize) -> i64 {
        i64::from(self.table[a * self.points + b])
    }

    /// The length of the closed tour that visits the points in `order`.
    pub fn length(&self, order: &[usize]) -> i64 {
        let next = order.iter().cycle().skip(1);
        order.iter().zip(next).map(|(&a, &b)| self.between(a, b)).sum()
    }
}

/// A closed tour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tour {
    /// The points in the order of the tour.
    pub order: Vec<usize>,
    /// The tour's length.
    pub length: i64,
    /// No tour is shorter than this.
    pub bound: i64,
}

/// The largest number of points for which the tour is optimal.
pub const EXACT: usize = 12;

/// The amount of work of a search.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The number of perturbations per point.
    pub kicks_per_point: usize,
    /// The search ends at a tour that exceeds the bound by at most this many parts per million.
    pub tolerance: i64,
    /// The random seed.
    pub seed: u64,
}

impl Effort {
    /// Enough for a length close to the optimum, on which the step size of the bound's ascent
    /// depends.
    const BRIEF: Effort = Effort { kicks_per_point: 10, tolerance: 0, seed: 1 };
}

impl Default for Effort {
    /// Takes seconds for 256 points.
    fn default() -> Effort {
        Effort { kicks_per_point: 40, tolerance: 100, seed: 1 }
    }
}

/// The shortest tour over all points that `effort` finds.
pub fn shortest(distances: &Distances, effort: Effort) -> Tour {
    if distances.points <= EXACT {
        return exact::solve(distances);
    }
    let (first, nearest) = (search::greedy(distances), search::nearest(distances));
    let short = search::improve(distances, &nearest, first, Effort::BRIEF, 0);
    let ascent = bound::ascend(distances, distances.length(&short));
    let enough = ascent.bound + ascent.bound * effort.tolerance / 1_000_000;
    let order = search::improve(distances, &ascent.candidates(distances), short, effort, enough);
    Tour { length: distances.length(&order), order, bound: ascent.bound }
}

#[cfg(test)]
mod tests;
