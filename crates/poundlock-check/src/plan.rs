// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a client is explored: as it asks for, completely if that ends soon enough, else under the largest bound that does.

use crate::abi::{self, Client};
use crate::client::words;
use crate::expected::{How, Kept};
use crate::explore::{self, Report, Verdict, Walk};
use crate::machine::Settings;

/// The most states that ./dev check visits of a client without a bound, and with one that can be lowered: seconds.
const STATES: [u64; 2] = [1_500_000, 600_000];
/// The same of ./dev check --deep: a minute.
const DEEP_STATES: [u64; 2] = [15_000_000, 15_000_000];
/// The least bounds: with up to three threads, and with more.
const LEAST_BOUNDS: [u32; 2] = [3, 2];
/// The most where nothing can be lowered.
const MOST_STATES: u64 = 20_000_000;
/// More than a few states more than were kept, and four times as many, are something new to look at.
const MUCH_MORE: u64 = 100_000;
/// Where that does not end either, reads of another message than the newest and stores before it are bounded, first to:
const MOST_STALE: u32 = 2;
/// A deep run makes so many walks for one of the usual.
const DEEP_WALKS: u64 = 10;

/// What a person wants otherwise than clients ask for.
#[derive(Default)]
pub struct Wishes {
    pub how: Option<How>,
    pub spurious: Option<u32>,
    pub sc: bool,
    pub seed: u64,
    /// The most states.
    pub states: Option<u64>,
    pub deep: bool,
    /// The most steps of an execution in an exploration of all states.
    pub longest: Option<u32>,
}

impl Wishes {
    /// Whether clients are explored as they ask for.
    pub fn are_none(&self) -> bool {
        self.how.is_none() && self.spurious.is_none() && !self.sc && self.states.is_none()
    }
}

/// The ways to explore `client`, the best first, and the most states to visit in each.
fn ladder(client: &Client, wishes: &Wishes) -> Vec<(How, u64)> {
    if client.walks > 0 {
        let walks = u64::from(client.walks) * if wishes.deep { DEEP_WALKS } else { 1 };
        return vec![(How::Walks(walks), 0)];
    }
    let least = LEAST_BOUNDS[usize::from(client.threads > 3)];
    let (first, last) = match client.bound {
        0 => (least + 1, least),
        bound => (bound + u32::from(wishes.deep), bound),
    };
    let [states, bounded] = if wishes.deep { DEEP_STATES } else { STATES };
    let complete = (client.bound == 0).then_some((How::Complete, states));
    let bounds = (last..=first).rev().map(How::Bound);
    let stale = (1..=MOST_STALE).rev().map(|stale| How::Bounds(last, stale));
    let mut rungs: Vec<_> = complete.into_iter().chain(bounds.chain(stale).map(|how| (how, bounded))).collect();
    rungs.last_mut().expect("there is a bound").1 = MOST_STATES;
    rungs
}

/// Whether `client` can still be explored like that: walks are as many as it asks for now.
pub fn fits(how: How, client: &Client, wishes: &Wishes) -> bool {
    ladder(client, wishes).iter().any(|&(rung, _)| rung == how)
}

/// What `client` runs in.
pub fn settings(client: &Client, how: How, wishes: &Wishes) -> Settings {
    let domains = if client.domains == 0 { 2 } else { client.domains };
    let (bound, stale) = match how {
        How::Bound(bound) => (Some(bound), None),
        How::Bounds(bound, stale) => (Some(bound), Some(stale)),
        How::Complete | How::Walks(_) => (None, None),
    };
    let cpus = if client.cpus == 0 { client.threads } else { client.cpus };
    let spurious = wishes.spurious.unwrap_or(client.spurious);
    let told_apart = !matches!(how, How::Walks(_));
    let weak = !wishes.sc && client.flags & abi::CLIENT_ORDER == 0;
    let longest = wishes.longest.unwrap_or(explore::LONGEST);
    Settings { domains, cpus, moves: client.moves, spurious, bound, stale, weak, told_apart, longest }
}

/// Explores `client` in the way that is wished for, or that is kept, or else that turns out to be right.
pub fn explore(client: &'static Client, kept: Option<Kept>, wishes: &Wishes) -> (How, Report) {
    let kept = kept.map(|kept| (kept.how, MUCH_MORE + kept.states * 4));
    let rungs = match wishes.how.map(|how| (how, MOST_STATES)).or(kept) {
        Some(only) => vec![only],
        None => ladder(client, wishes),
    };
    let (&last, others) = rungs.split_last().expect("there is one way at least");
    let run = |(how, states)| (how, explore_like(client, how, wishes, wishes.states.unwrap_or(states)));
    let tried = others.iter().map(|&rung| run(rung));
    tried.into_iter().find(|(_, report)| report.verdict != Verdict::Unfinished).unwrap_or_else(|| run(last))
}

/// Explores `client` in one way, up to so many states.
pub fn explore_like(client: &'static Client, how: How, wishes: &Wishes, states: u64) -> Report {
    let width = words(client.allowed).iter().map(|outcome| outcome.len()).max().unwrap_or(0);
    let settings = settings(client, how, wishes);
    let How::Walks(count) = how else {
        return explore::all(client, settings, states, width);
    };
    let mut report = explore::walks(client, settings, Walk::Random, count, wishes.seed);
    if report.verdict == Verdict::Holds {
        report.add(explore::walks(client, settings, Walk::Priorities, count, wishes.seed));
    }
    report
}
