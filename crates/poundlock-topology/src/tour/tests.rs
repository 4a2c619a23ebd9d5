use super::*;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Random distances; with more than one cluster, points of different clusters are far apart.
fn random(points: usize, clusters: usize, seed: u64) -> Distances {
    let mut random = SmallRng::seed_from_u64(seed);
    let noise: Vec<u32> = (0..points * points).map(|_| random.random_range(0..3000)).collect();
    Distances::new(points, |a, b| {
        noise[a * points + b] + if a % clusters == b % clusters { 2000 } else { 50_000 }
    })
}

fn is_tour(order: &[usize], points: usize) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..points)
}

/// The length of the shortest tour, by exhaustive search.
fn by_all_tours(distances: &Distances, order: &mut Vec<usize>, fixed: usize) -> i64 {
    if fixed == distances.points() {
        return distances.length(order);
    }
    let mut best = i64::MAX;
    for index in fixed..distances.points() {
        order.swap(fixed, index);
        best = best.min(by_all_tours(distances, order, fixed + 1));
        order.swap(fixed, index);
    }
    best
}

#[test]
fn few_points_have_the_shortest_tour() {
    for points in 0..=8 {
        for seed in 0..5 {
            let distances = random(points, 2, seed);
            let tour = shortest(&distances, Effort::default());
            assert!(is_tour(&tour.order, points), "{tour:?}");
            assert_eq!(tour.length, distances.length(&tour.order));
            assert_eq!(tour.bound, tour.length);
            assert_eq!(
                tour.length,
                by_all_tours(&distances, &mut (0..points).collect(), 1.min(points)),
                "{points}"
            );
        }
    }
}

/// For few points, the search finds a tour as short as the optimal one, and the bound is below it.
#[test]
fn the_search_finds_the_shortest_tour_of_few_points() {
    for seed in 0..50 {
        let distances = random(EXACT, 1 + seed as usize % 4, seed);
        let best = exact::solve(&distances).length;
        let (first, nearest) = (search::greedy(&distances), search::nearest(&distances));
        assert!(is_tour(&first, EXACT));
        let order = search::improve(&distances, &nearest, first, Effort::default(), 0);
        assert_eq!(distances.length(&order), best, "seed {seed}");
        let bound = bound::ascend(&distances, best).bound;
        assert!(bound <= best && bound > best * 9 / 10, "seed {seed}: {bound} of {best}");
    }
}

#[test]
fn tours_of_many_points_are_short_and_the_bound_below_them() {
    for (points, clusters) in [(13, 1), (40, 2), (64, 4), (101, 7)] {
        let distances = random(points, clusters, 7);
        let tour = shortest(&distances, Effort::default());
        assert!(is_tour(&tour.order, points));
        assert_eq!(tour.length, distances.length(&tour.order));
        assert!(tour.bound <= tour.length);
        let crossings = tour.order.iter().zip(tour.order.iter().cycle().skip(1));
        let crossings = crossings.filter(|(a, b)| *a % clusters != *b % clusters).count();
        assert_eq!(crossings, if clusters > 1 { clusters } else { 0 }, "{points} points");
    }
}

#[test]
fn equal_distances_are_valid() {
    let tour = shortest(&Distances::new(100, |_, _| 5), Effort::default());
    assert_eq!((tour.length, tour.bound), (500, 500));
    let tour = shortest(&Distances::new(100, |_, _| 0), Effort::default());
    assert_eq!((tour.length, tour.bound), (0, 0));
}

#[test]
fn the_same_distances_give_the_same_tour() {
    let distances = random(60, 3, 3);
    assert_eq!(shortest(&distances, Effort::default()), shortest(&distances, Effort::default()));
}
