//! Chained Lin-Kernighan local search: chains of flips over candidate edges, repeatedly perturbed
//! by a local double bridge (Martin, Otto and Felten). A perturbation is undone if it leads to a
//! longer tour.

use super::{Distances, Effort};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The number of continuations that a chain tries, by its length so far.
const BREADTH: [usize; 3] = [5, 3, 2];
/// The number of nearest points that are candidates before the bound provides better ones.
const CANDIDATES: usize = 10;
/// The longest segment of the tour that a double bridge moves.
const LONGEST_PART: usize = 50;

/// A greedy tour: takes edges in ascending order of length, except those that exclude a tour.
pub fn greedy(distances: &Distances) -> Vec<usize> {
    let points = distances.points;
    let mut edges: Vec<(i64, usize, usize)> = (0..points)
        .flat_map(|a| (0..a).map(move |b| (a, b)))
        .map(|(a, b)| (distances.between(a, b), a, b))
        .collect();
    edges.sort_unstable();
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); points];
    let mut ends: Vec<usize> = (0..points).collect(); // by end of a path, its other end
    let mut join = |a: usize, b: usize| {
        if neighbours[a].len() < 2 && neighbours[b].len() < 2 && ends[a] != b {
            neighbours[a].push(b);
            neighbours[b].push(a);
            let (end_a, end_b) = (ends[a], ends[b]);
            ends[end_a] = end_b;
            ends[end_b] = end_a;
        }
    };
    for (_, a, b) in edges {
        join(a, b);
    }
    let start = (0..points)
        .find(|&point| neighbours[point].len() < 2)
        .expect("it is a path, not yet closed");
    let mut order = vec![start];
    let mut before = start;
    while let Some(&next) = neighbours[order[order.len() - 1]].iter().find(|&&next| next != before)
    {
        before = order[order.len() - 1];
        order.push(next);
    }
    order
}

/// By point: its nearest points.
pub fn nearest(distances: &Distances) -> Vec<Vec<usize>> {
    let points = distances.points;
    let nearest = |point: usize| {
        let mut others: Vec<usize> = (0..points).filter(|&other| other != point).collect();
        others.sort_by_key(|&other| distances.between(point, other));
        others.truncate(CANDIDATES);
        others
    };
    (0..points).map(nearest).collect()
}

/// Shortens the tour `order` until its length is at most `enough` or the effort is spent. Chains
/// add only edges of `candidates`.
pub fn improve(
    distances: &Distances,
    candidates: &[Vec<usize>],
    order: Vec<usize>,
    effort: Effort,
    enough: i64,
) -> Vec<usize> {
    let points = distances.points;
    let mut random = SmallRng::seed_from_u64(effort.seed);
    let mut search = Search::new(distances, candidates, order);
    search.settle((0..points).collect());
    let mut best = search.array.clone();
    let mut length = distances.length(&best.order);
    for _ in 0..effort.kicks_per_point * points {
        if length <= enough {
            break;
        }
        let (lengthened, disturbed) = search.kick(&mut random);
        let gain = search.settle(disturbed) - lengthened;
        if gain >= 0 {
            length -= gain;
            best.clone_from(&search.array);
        } else {
            search.array.clone_from(&best);
        }
    }
    best.order
}

/// A tour as an array, and the position of each point in it.
#[derive(Clone)]
struct TourArray {
    order: Vec<usize>,
    place: Vec<usize>,
}

impl TourArray {
    fn next(&self, point: usize, forward: bool) -> usize {
        let (place, points) = (self.place[point], self.order.len());
        self.order[match forward {
            true if place + 1 == points => 0,
            true => place + 1,
            false if place == 0 => points - 1,
            false => place - 1,
        }]
    }

    fn put(&mut self, place: usize, point: usize) {
        self.order[place] = point;
        self.place[point] = place;
    }

    /// Reverses the segment from `first` to `last`, or its complement if that is shorter: the
    /// result is the same tour, in the opposite direction.
    fn reverse(&mut self, first: usize, last: usize) {
        let points = self.order.len();
        let (mut a, mut b) = (self.place[first], self.place[last]);
        let mut length = (b + points - a) % points + 1;
        if 2 * length > points {
            (a, b) = ((b + 1) % points, (a + points - 1) % points);
            length = points - length;
        }
        for _ in 0..length / 2 {
            let (from_a, from_b) = (self.order[a], self.order[b]);
            self.put(a, from_b);
            self.put(b, from_a);
            a = if a + 1 == points { 0 } else { a + 1 };
            b = if b == 0 { points - 1 } else { b - 1 };
        }
    }
}

struct Search<'a> {
    distances: &'a Distances,
    candidates: &'a [Vec<usize>],
    array: TourArray,
    /// Points at which a chain may start.
    waiting: Vec<usize>,
    is_waiting: Vec<bool>,
}

impl<'a> Search<'a> {
    fn new(
        distances: &'a Distances,
        candidates: &'a [Vec<usize>],
        order: Vec<usize>,
    ) -> Search<'a> {
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(index, &point)| place[point] = index);
        let is_waiting = vec![false; order.len()];
        Search {
            distances,
            candidates,
            array: TourArray { order, place },
            waiting: Vec::new(),
            is_waiting,
        }
    }

    fn wait(&mut self, point: usize) {
        if !std::mem::replace(&mut self.is_waiting[point], true) {
            self.waiting.push(point);
        }
    }

    /// Shortens the tour by chains from the `disturbed` points, and from all points that these
    /// chains change. Returns by how much.
    fn settle(&mut self, disturbed: Vec<usize>) -> i64 {
        let mut gain = 0;
        disturbed.into_iter().for_each(|point| self.wait(point));
        while let Some(point) = self.waiting.pop() {
            self.is_waiting[point] = false;
            let neighbours = [true, false].map(|forward| self.array.next(point, forward));
            if let Some(gained) =
                neighbours.into_iter().find_map(|next| self.chain(point, next, 0, 0))
            {
                gain += gained;
                self.wait(point);
            }
        }
        gain
    }

    /// Continues a chain whose flips have gained `gain` so far: replaces the edge from `start` to
    /// `last` by one from `last` to a candidate. Returns the total gain if the tour became shorter;
    /// otherwise leaves the tour unchanged.
    fn chain(&mut self, start: usize, last: usize, gain: i64, length: usize) -> Option<i64> {
        let open = gain + self.distances.between(start, last);
        let (count, choices) = self.choices(start, last, open, BREADTH[length]);
        for &(_, to, end) in &choices[..count] {
            let closed = open - self.distances.between(last, to) + self.distances.between(end, to)
                - self.distances.between(start, end);
            self.flip(start, last, end);
            let gained = if closed > 0 {
                Some(closed)
            } else if length + 1 < BREADTH.len() {
                self.chain(start, end, closed, length + 1)
            } else {
                None
            };
            if gained.is_some() {
                [last, to, end].into_iter().for_each(|point| self.wait(point));
                return gained;
            }
            self.flip(start, end, last);
        }
        None
    }

    /// The best `breadth` continuations, with their number. Each is the length saved by its two
    /// edges, the candidate, and the candidate's neighbour whose edge to it is removed.
    fn choices(
        &self,
        start: usize,
        last: usize,
        open: i64,
        breadth: usize,
    ) -> (usize, [(i64, usize, usize); BREADTH[0]]) {
        let forward = self.array.next(start, true) == last;
        let mut choices = [(i64::MIN, 0, 0); BREADTH[0]];
        let mut count = 0;
        for &to in &self.candidates[last] {
            let added = self.distances.between(last, to);
            let end = self.array.next(to, !forward);
            if added >= open || to == start || end == last {
                continue;
            }
            let choice = (self.distances.between(end, to) - added, to, end);
            let worse =
                choices[..count].iter().position(|other| other.0 < choice.0).unwrap_or(count);
            if worse < breadth {
                count = (count + 1).min(breadth);
                choices[worse..count].rotate_right(1);
                choices[worse] = choice;
            }
        }
        (count, choices)
    }

    /// Reverses the segment from `first`, a neighbour of `start`, to `last`.
    fn flip(&mut self, start: usize, first: usize, last: usize) {
        if self.array.next(start, true) == first {
            self.array.reverse(first, last);
        } else {
            self.array.reverse(last, first);
        }
    }

    /// Exchanges two adjacent segments of the tour. Returns by how much the tour became longer, and
    /// the points whose edges changed.
    fn kick(&mut self, random: &mut SmallRng) -> (i64, Vec<usize>) {
        let points = self.array.order.len();
        let longest = LONGEST_PART.min((points - 2) / 2);
        let (first, second) = (random.random_range(1..=longest), random.random_range(1..=longest));
        let start = random.random_range(0..points);
        let at = |offset: usize| self.array.order[(start + offset) % points];
        let ends =
            [at(0), at(1), at(first), at(first + 1), at(first + second), at(first + second + 1)];
        let moved: Vec<usize> = (first + 1..=first + second).chain(1..=first).map(at).collect();
        for (offset, point) in moved.into_iter().enumerate() {
            self.array.put((start + 1 + offset) % points, point);
        }
        let [before, a, a_end, b, b_end, after] = ends;
        let length = |a, b| self.distances.between(a, b);
        let lengthened = length(before, b) + length(b_end, a) + length(a_end, after)
            - length(before, a)
            - length(a_end, b)
            - length(b_end, after);
        (lengthened, ends.to_vec())
    }
}
