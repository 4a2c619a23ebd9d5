// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses each client's strategy: as the client or the command line specifies, else completely if
//! that ends within limits, else under the largest bound that does.

use crate::abi::{self, Client, words};
use crate::catalogue::Entry;
use crate::expected::{Record, Strategy};
use crate::explore::{self, Report, Verdict, Walk};
use crate::machine::Settings;

/// The most states of `./dev check` without a bound, and with a bound that can be lowered: seconds.
const STATES: [u64; 2] = [2_000_000, 600_000];
/// The same of `./dev check --deep`: a minute.
const DEEP_STATES: [u64; 2] = [15_000_000, 15_000_000];
/// The lowest bounds on preemptions: with up to three threads, and with more.
const LEAST_BOUNDS: [u32; 2] = [3, 2];
/// The most states under the lowest bounds.
const MOST_STATES: u64 = 20_000_000;
/// The most states without a bound if the client asks for it: minutes, and 4 GB.
const COMPLETE_STATES: u64 = 100_000_000;
/// A recorded strategy may visit four times the recorded states and this number more. Beyond that
/// the client has changed and needs a review.
const MORE_STATES: u64 = 100_000;
/// The first limit of stale reads and inserted stores, used if the lowest bound on preemptions is
/// not enough.
const MOST_STALE: u32 = 2;
/// The number of walks of `--deep` per usual walk.
const DEEP_WALKS: u64 = 10;

/// Options of the command line that override the clients' own parameters.
#[derive(Clone, Copy, Default)]
pub struct Overrides {
    pub strategy: Option<Strategy>,
    pub spurious: Option<u32>,
    pub sc: bool,
    pub promises: bool,
    /// Whether executions that differ only in the order of independent steps are all explored.
    pub unreduced: bool,
    /// Whether the threads of all clients sleep by the specification of sleeping.
    pub composed: bool,
    pub seed: u64,
    /// The most states.
    pub states: Option<u64>,
    pub deep: bool,
    /// The most steps of an execution in an exhaustive search.
    pub longest: Option<u32>,
}

impl Overrides {
    /// The options for `entry`.
    pub fn of(&self, entry: &Entry) -> Overrides {
        Overrides { promises: self.promises || entry.promises, ..*self }
    }

    /// Whether clients are explored with their own parameters.
    pub fn are_none(&self) -> bool {
        self.strategy.is_none()
            && self.spurious.is_none()
            && !self.sc
            && !self.promises
            && !self.unreduced
            && !self.composed
            && self.states.is_none()
    }
}

/// The strategies for `client`, the best first, with the most states of each.
fn strategies(client: &Client, overrides: &Overrides) -> Vec<(Strategy, u64)> {
    if client.walks > 0 {
        let walks = u64::from(client.walks) * if overrides.deep { DEEP_WALKS } else { 1 };
        return vec![(Strategy::Walks(walks), 0)];
    }
    let least = LEAST_BOUNDS[usize::from(client.threads > 3)];
    let (first, last) = match client.bound {
        0 => (least + 1, least),
        bound => (bound + u32::from(overrides.deep), bound),
    };
    let [states, bounded] = if overrides.deep { DEEP_STATES } else { STATES };
    let complete = client.flags & abi::CLIENT_COMPLETE != 0;
    let states = if complete { COMPLETE_STATES } else { states };
    let complete = (client.bound == 0).then_some((Strategy::Complete, states));
    let bounds = (last..=first).rev().map(Strategy::Bound);
    let stale = (1..=MOST_STALE).rev().map(|stale| Strategy::Bounds(last, stale));
    let bounds = bounds.chain(stale).map(|strategy| (strategy, bounded));
    let mut strategies: Vec<_> = complete.into_iter().chain(bounds).collect();
    strategies.last_mut().expect("there is a bound").1 = MOST_STATES;
    strategies
}

/// Whether `strategy` is still one of the client's, e.g. with the same number of walks.
pub fn fits(strategy: Strategy, client: &Client, overrides: &Overrides) -> bool {
    strategies(client, overrides).iter().any(|&(known, _)| known == strategy)
}

/// The machine's settings for `client`.
pub fn settings(client: &Client, strategy: Strategy, overrides: &Overrides) -> Settings {
    let domains = if client.domains == 0 { 2 } else { client.domains };
    let (bound, stale) = match strategy {
        Strategy::Bound(bound) => (Some(bound), None),
        Strategy::Bounds(bound, stale) => (Some(bound), Some(stale)),
        Strategy::Complete | Strategy::Walks(_) => (None, None),
    };
    let cpus = if client.cpus == 0 { client.threads } else { client.cpus };
    let spurious = overrides.spurious.unwrap_or(client.spurious);
    let exhaustive = !matches!(strategy, Strategy::Walks(_));
    let weak = !overrides.sc && client.flags & abi::CLIENT_ORDER == 0;
    let promises = weak && overrides.promises;
    let asked = overrides.composed || client.flags & abi::CLIENT_COMPOSED != 0;
    let composed = asked && strategy == Strategy::Complete && !promises;
    let longest = overrides.longest.unwrap_or(explore::LONGEST);
    Settings {
        domains,
        cpus,
        moves: client.moves,
        spurious,
        bound,
        stale,
        weak,
        promises,
        exhaustive,
        reduced: !overrides.unreduced,
        composed,
        longest,
    }
}

/// An exploration that ended.
pub struct Explored {
    pub strategy: Strategy,
    pub report: Report,
    /// Its CPU time, without that of other strategies that were tried before.
    pub seconds: f64,
}

/// The CPU time of this process. On a busy machine, elapsed time is meaningless.
fn cpu_seconds() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Explores `client` with the strategy of the command line, or the recorded one, or the first that
/// ends within its limit.
pub fn explore(client: &'static Client, record: Option<Record>, overrides: &Overrides) -> Explored {
    let recorded = record.map(|record| (record.strategy, MORE_STATES + record.states * 4));
    let most =
        |strategy| if strategy == Strategy::Complete { COMPLETE_STATES } else { MOST_STATES };
    let candidates = match overrides.strategy.map(|only| (only, most(only))).or(recorded) {
        Some(only) => vec![only],
        None => strategies(client, overrides),
    };
    let (&last, others) = candidates.split_last().expect("there is a strategy");
    let run = |(strategy, states)| {
        let start = cpu_seconds();
        let states = overrides.states.unwrap_or(states);
        let report = explore_with(client, strategy, overrides, states);
        let seconds = ((cpu_seconds() - start) * 100.0).round() / 100.0;
        Explored { strategy, report, seconds }
    };
    let mut tried = others.iter().map(|&candidate| run(candidate));
    tried
        .find(|explored| explored.report.verdict != Verdict::Unfinished)
        .unwrap_or_else(|| run(last))
}

/// Explores `client` with one strategy, up to `states` states.
pub fn explore_with(
    client: &'static Client,
    strategy: Strategy,
    overrides: &Overrides,
    states: u64,
) -> Report {
    let width = words(client.allowed).iter().map(|outcome| outcome.len()).max().unwrap_or(0);
    let settings = settings(client, strategy, overrides);
    let Strategy::Walks(count) = strategy else {
        return explore::all(client, settings, states, width);
    };
    let mut report = explore::walks(client, settings, Walk::Random, count, overrides.seed);
    if report.verdict == Verdict::Holds {
        report.add(explore::walks(client, settings, Walk::Priorities, count, overrides.seed));
    }
    report
}
