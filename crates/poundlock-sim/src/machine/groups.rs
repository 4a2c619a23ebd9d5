// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives the topology from a table of latencies between CPUs: which CPUs share a core, a
//! last-level cache, a socket.
//!
//! CPUs whose latencies are below a limit, and above it to all others, form a group. A limit is
//! accepted if nearly all near pairs are in one group and nearly all pairs of a group are near, and
//! if slightly larger limits give the same groups.

use super::parts::{Core, Cpu, MOST_CORES, MOST_DOMAINS};
use crate::error::{SimError, error};

/// By CPU: its group.
type Groups = Vec<usize>;

/// The fraction of pairs that must fit; every table has a few outliers.
const FITTING: f64 = 0.985;
/// The factor between successive limits, and how many of them must give the same groups.
const STEP: f64 = 1.05;
const LASTING: u32 = 3;
/// Hardware threads of a core: their latency is below this fraction of that between cores of a
/// cache, and below this many nanoseconds; and there are at most this many.
const SIBLINGS: f64 = 0.6;
const FURTHEST_SIBLING: f64 = 15.0;
const MOST_SIBLINGS: usize = 8;

/// The CPUs by number and the cores, numbered cache by cache; `table` has `count` rows and columns.
pub(crate) fn lay_out(table: &[f32], count: usize) -> Result<(Vec<Cpu>, Vec<Core>), SimError> {
    let mut levels = levels(table, count);
    let alone: Groups = (0..count).collect();
    let siblings = levels.iter().rposition(|groups| are_siblings(table, count, groups));
    let core_of =
        siblings.map_or(alone, |at| levels.drain(..=at).next_back().expect("it is there"));
    let domain_of = levels.first().cloned().unwrap_or_else(|| vec![0; count]);
    let package_of = match levels.last() {
        Some(last) => last.clone(),
        None => vec![0; count],
    };
    let (caches, most) = (groups(&domain_of), MOST_DOMAINS);
    if caches > most || groups(&core_of) > MOST_CORES {
        return error(format!(
            "{caches} groups of near CPUs; the model has room for {most} and for {MOST_CORES} cores"
        ));
    }
    // Sockets, then their caches, then their cores, in the order of their first CPU.
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|cpu| (package_of[*cpu], domain_of[*cpu], core_of[*cpu], *cpu));
    let mut cpus = vec![Cpu { core: 0, sibling: 0, domain: 0, node: 0, package: 0 }; count];
    let mut cores: Vec<Core> = vec![];
    let mut last: Option<usize> = None;
    for cpu in order {
        let same = |of: &Groups| last.is_some_and(|last| of[last] == of[cpu]);
        let before = last
            .map_or(Cpu { core: 0, sibling: 0, domain: 0, node: 0, package: 0 }, |last| cpus[last]);
        let next = |number: usize, of: &Groups| number + usize::from(last.is_some() && !same(of));
        let package = next(before.package, &package_of);
        let domain =
            if same(&package_of) { next(before.domain, &domain_of) } else { cores_end(&cores) };
        let sibling = if same(&core_of) { before.sibling + 1 } else { 0 };
        if sibling == 0 {
            cores.push(Core { domain, node: package, package, speed: 1.0 });
        }
        cpus[cpu] = Cpu { core: cores.len() - 1, sibling, domain, node: package, package };
        last = Some(cpu);
    }
    Ok((cpus, cores))
}

/// The number of the next domain.
fn cores_end(cores: &[Core]) -> usize {
    cores.last().map_or(0, |core| core.domain + 1)
}

fn groups(of: &Groups) -> usize {
    of.iter().max().map_or(0, |last| last + 1)
}

/// Whether every group is small, and its CPUs much nearer to each other than to any other.
fn are_siblings(table: &[f32], count: usize, of: &Groups) -> bool {
    let small = (0..groups(of))
        .all(|group| of.iter().filter(|other| **other == group).count() <= MOST_SIBLINGS);
    let extreme = |same: bool, start: f32, pick: fn(f32, f32) -> f32| {
        let pairs = (0..count).flat_map(|a| (0..a).map(move |b| (a, b)));
        let chosen = pairs.filter(|(a, b)| (of[*a] == of[*b]) == same);
        chosen.map(|(a, b)| table[a * count + b]).fold(start, pick)
    };
    let (inside, outside) = (extreme(true, 0.0, f32::max), extreme(false, f32::MAX, f32::min));
    small && f64::from(inside) < FURTHEST_SIBLING.min(SIBLINGS * f64::from(outside))
}

/// The accepted groupings, from fine to coarse, each nested in the next. Excludes single CPUs and
/// the whole machine.
fn levels(table: &[f32], count: usize) -> Vec<Groups> {
    let pairs = || (0..count).flat_map(|a| (0..a).map(move |b| f64::from(table[a * count + b])));
    let (least, most) = (pairs().fold(f64::MAX, f64::min), pairs().fold(0.0, f64::max));
    let mut found: Vec<Groups> = vec![];
    let (mut last, mut lasts): (Groups, u32) = (vec![], 0);
    let limits = std::iter::successors(Some(least), |limit| Some(limit * STEP))
        .take_while(|limit| *limit < most);
    for limit in limits {
        let of = near(table, count, limit);
        lasts = if of == last { lasts + 1 } else { 1 };
        last = of;
        let number = groups(&last);
        let new =
            found.last().is_none_or(|smaller| groups(smaller) > number && within(smaller, &last));
        if lasts == LASTING
            && number > 1
            && number < count
            && new
            && fits(table, count, limit, &last)
        {
            found.push(last.clone());
        }
    }
    found
}

/// Whether each of the small groups is inside one of the large ones.
fn within(small: &Groups, large: &Groups) -> bool {
    let mut home = vec![None; groups(small)];
    small.iter().zip(large).all(|(small, large)| *home[*small].get_or_insert(*large) == *large)
}

/// Adds each CPU to the first group of which most CPUs are near, or to a new group.
fn near(table: &[f32], count: usize, limit: f64) -> Groups {
    let mut members: Vec<Vec<usize>> = vec![];
    let mut of = vec![0; count];
    for cpu in 0..count {
        let close = |group: &&Vec<usize>| {
            let near = group
                .iter()
                .filter(|other| f64::from(table[cpu * count + **other]) <= limit)
                .count();
            2 * near > group.len()
        };
        let place = members.iter().position(|group| close(&group)).unwrap_or_else(|| {
            members.push(vec![]);
            members.len() - 1
        });
        members[place].push(cpu);
        of[cpu] = place;
    }
    of
}

/// Whether nearly all near pairs are in one group, and nearly all pairs of a group are near.
fn fits(table: &[f32], count: usize, limit: f64, of: &Groups) -> bool {
    let pairs = (0..count).flat_map(|a| (0..a).map(move |b| (a, b)));
    let (mut inside, mut near, mut both) = (0u32, 0u32, 0u32);
    for (a, b) in pairs {
        let (together, close) = (of[a] == of[b], f64::from(table[a * count + b]) <= limit);
        inside += u32::from(together);
        near += u32::from(close);
        both += u32::from(together && close);
    }
    f64::from(both) >= FITTING * f64::from(inside.max(near))
}
