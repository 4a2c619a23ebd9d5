//! A lower bound on the length of a tour, by Held and Karp's subgradient ascent.
//!
//! A 1-tree is a spanning tree of all points but one, plus two edges at that point. A tour is a
//! 1-tree in which every point has two edges, so no tour is shorter than the shortest 1-tree. A
//! price on a point is added to each of its edges. Prices change the length of all tours by the
//! same amount, but change which 1-tree is the shortest: prices that bring the shortest 1-tree
//! closer to a tour raise the bound. All numbers are integers, so the bound has no rounding error.
//!
//! The prices also give candidates for a tour's edges: those that lengthen the shortest 1-tree
//! least (Helsgaun's alpha).

use super::Distances;

/// The approximate number of edges examined in all rounds.
const WORK: usize = 1_300_000_000;
const MOST_ROUNDS: usize = 20_000;
const FEWEST_ROUNDS: usize = 50;
/// After this number of rounds without a better bound, steps are multiplied by `DECAY`.
const PATIENCE: usize = 100;
const DECAY: f64 = 0.8;
/// The weight of the previous round's excess in a step.
const MOMENTUM: f64 = 0.3;
/// The largest number of candidates per point.
const CANDIDATES: usize = 10;

/// The result of the ascent.
pub struct Ascent {
    /// No tour is shorter.
    pub bound: i64,
    prices: Vec<i64>,
}

/// A 1-tree under prices.
struct OneTree {
    /// Its length without the prices, which is a lower bound.
    bound: i64,
    /// By point: its number of edges, minus two.
    excess: Vec<i64>,
    /// The points in the order in which they joined the tree; and, by point, its neighbour that
    /// joined before it.
    joined: Vec<usize>,
    parent: Vec<usize>,
}

fn priced(distances: &Distances, prices: &[i64], a: usize, b: usize) -> i64 {
    distances.between(a, b) + prices[a] + prices[b]
}

/// The shortest 1-tree: Prim's spanning tree of the points from 1 on, plus the two shortest edges
/// of point 0.
fn one_tree(distances: &Distances, prices: &[i64]) -> OneTree {
    let points = distances.points;
    let mut parent = vec![1; points];
    let mut nearest: Vec<i64> =
        (0..points).map(|point| priced(distances, prices, 1, point)).collect();
    let mut waiting: Vec<usize> = (2..points).collect();
    let mut joined = vec![1];
    let mut excess = vec![-2; points];
    let mut length = 0;
    while let Some(index) = (0..waiting.len()).min_by_key(|&index| nearest[waiting[index]]) {
        let point = waiting.swap_remove(index);
        length += nearest[point];
        excess[point] += 1;
        excess[parent[point]] += 1;
        joined.push(point);
        for &other in &waiting {
            let distance = priced(distances, prices, point, other);
            if distance < nearest[other] {
                (nearest[other], parent[other]) = (distance, point);
            }
        }
    }
    let mut edges: Vec<(i64, usize)> =
        (1..points).map(|point| (priced(distances, prices, 0, point), point)).collect();
    edges.select_nth_unstable(1);
    for &(edge, point) in &edges[..2] {
        length += edge;
        excess[0] += 1;
        excess[point] += 1;
    }
    joined.push(0);
    parent[0] = edges[0].1;
    OneTree { bound: length - 2 * prices.iter().sum::<i64>(), excess, joined, parent }
}

/// Searches for prices that give a high bound. `length` is the length of some tour.
pub fn ascend(distances: &Distances, length: i64) -> Ascent {
    let points = distances.points;
    let rounds = (WORK / (points * points)).clamp(FEWEST_ROUNDS, MOST_ROUNDS);
    let mut prices = vec![0; points];
    let mut best = Ascent { bound: i64::MIN, prices: prices.clone() };
    let mut before = vec![0; points];
    let (mut boldness, mut waited) = (2.0, 0);
    for _ in 0..rounds {
        let tree = one_tree(distances, &prices);
        if tree.bound > best.bound {
            best = Ascent { bound: tree.bound, prices: prices.clone() };
            waited = 0;
        } else {
            waited += 1;
        }
        if waited == PATIENCE {
            (boldness, waited) = (boldness * DECAY, 0);
        }
        let squares: i64 = tree.excess.iter().map(|excess| excess * excess).sum();
        if squares == 0 {
            break; // a tour
        }
        let step = boldness * (length - tree.bound) as f64 / squares as f64;
        if step < 0.5 {
            break;
        }
        for point in 0..points {
            let direction =
                (1.0 - MOMENTUM) * tree.excess[point] as f64 + MOMENTUM * before[point] as f64;
            prices[point] += (step * direction).round() as i64;
        }
        before = tree.excess;
    }
    best
}

impl Ascent {
    /// By point: its likely neighbours in a short tour, the likeliest first.
    pub fn candidates(&self, distances: &Distances) -> Vec<Vec<usize>> {
        let points = distances.points;
        let tree = one_tree(distances, &self.prices);
        (0..points)
            .map(|point| {
                let longest = longest_on_path(distances, &self.prices, &tree, point);
                let mut others: Vec<(i64, i64, usize)> = (0..points)
                    .filter(|&other| other != point)
                    .map(|other| {
                        let distance = priced(distances, &self.prices, point, other);
                        (distance - longest[other], distance, other)
                    })
                    .collect();
                others.sort_unstable();
                others.into_iter().take(CANDIDATES).map(|(_, _, other)| other).collect()
            })
            .collect()
    }
}

/// By point: the longest edge on the tree's path to it from `from`, which a direct edge would
/// replace.
fn longest_on_path(distances: &Distances, prices: &[i64], tree: &OneTree, from: usize) -> Vec<i64> {
    let edge = |point: usize| priced(distances, prices, point, tree.parent[point]);
    let mut longest = vec![i64::MIN; tree.parent.len()];
    let mut known = vec![false; tree.parent.len()];
    known[from] = true;
    // First up to the root, then down in the order of joining.
    let mut point = from;
    while point != tree.joined[0] {
        let parent = tree.parent[point];
        longest[parent] = longest[point].max(edge(point));
        known[parent] = true;
        point = parent;
    }
    for &point in &tree.joined[1..] {
        if !known[point] {
            longest[point] = longest[tree.parent[point]].max(edge(point));
            known[point] = true;
        }
    }
    longest
}
