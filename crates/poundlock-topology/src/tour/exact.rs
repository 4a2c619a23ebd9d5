//! An optimal tour over a few points, by dynamic programming over sets of points (Held and Karp,
//! 1962).

use super::{Distances, Tour};

/// Returns the shortest tour. All paths start at the last point.
pub fn solve(distances: &Distances) -> Tour {
    let points = distances.points;
    if points < 3 {
        let order: Vec<usize> = (0..points).collect();
        let length = distances.length(&order);
        return Tour { order, length, bound: length };
    }
    let (others, start) = (points - 1, points - 1);
    // By set of visited points and last point: the length of the shortest path, and its last point
    // but one.
    let mut best = vec![(i64::MAX, usize::MAX); others << others];
    for set in 1usize..1 << others {
        for last in (0..others).filter(|last| set >> last & 1 == 1) {
            let rest = set & !(1 << last);
            best[set * others + last] = if rest == 0 {
                (distances.between(start, last), start)
            } else {
                let paths = (0..others).filter(|before| rest >> before & 1 == 1);
                let extended = paths.map(|before| {
                    (best[rest * others + before].0 + distances.between(before, last), before)
                });
                extended.min().expect("the rest is not empty")
            };
        }
    }
    let whole = (1 << others) - 1;
    let (length, mut last) = (0..others)
        .map(|last| (best[whole * others + last].0 + distances.between(last, start), last))
        .min()
        .expect("there are other points");
    let mut order = vec![start];
    let mut set = whole;
    while last != start {
        order.push(last);
        let before = best[set * others + last].1;
        set &= !(1 << last);
        last = before;
    }
    Tour { order, length, bound: length }
}
