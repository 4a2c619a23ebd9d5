//! The shortest closed tour over points whose distances are known, with a proof of how short one can be at most.
//!
//! Up to [`EXACT`] points the tour is the shortest there is. Above, it is found by local search, and a lower bound comes
//! from 1-trees (Held and Karp, 1970). The work depends on the number of points alone, not on the time that it takes.

mod bound;
mod exact;
mod search;

/// Distances between points, the same in both directions.
#[derive(Clone, Debug)]
pub struct Distances {
    points: usize,
    table: Vec<u32>,
}

impl Distances {
    /// Between `points` points, as `distance` says for each two of them.
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

    /// How many points there are.
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
    /// The points, in the tour's order.
    pub order: Vec<usize>,
    /// How long it is.
    pub length: i64,
    /// No tour is shorter than this.
    pub bound: i64,
}

/// The largest number of points for which all tours are considered.
pub const EXACT: usize = 12;

/// How much work to do.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How often the search is disturbed and goes on, for each point.
    pub kicks_per_point: usize,
    /// A tour that exceeds the bound by so many parts of a million is not improved further.
    pub tolerance: i64,
    /// Where the random choices begin.
    pub seed: u64,
}

impl Effort {
    /// What it takes to be near the shortest tour: it makes the bound's steps the right size.
    const BRIEF: Effort = Effort { kicks_per_point: 10, tolerance: 0, seed: 1 };
}

impl Default for Effort {
    /// Seconds for 256 points.
    fn default() -> Effort {
        Effort { kicks_per_point: 40, tolerance: 100, seed: 1 }
    }
}

/// A tour of all points that is as short as the effort allows.
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
