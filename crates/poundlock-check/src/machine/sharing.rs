// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reachability: which nodes and stacks of a thread other threads can have a pointer to.
//!
//! Every aligned word that could be a pointer counts as one, so the answer is conservative.

use std::ops::Range;

use super::state::{State, Status, Thread};
use crate::abi::Kind;
use crate::arena;

/// A node or the stack of a thread.
struct Area {
    range: Range<usize>,
    /// Whether another thread may have, or find, a pointer to it.
    reached: bool,
    /// Whether the pointers in it have been followed.
    followed: bool,
}

impl Area {
    fn new(range: Range<usize>) -> Area {
        Area { range, reached: false, followed: false }
    }
}

/// Whether the pending operation of `thread` cannot block and is on an object of its own that no
/// other thread can reach before it: a node that is not yet published, or that all others have
/// finished with. `regions` are the client's memory outside of nodes and stacks.
pub fn is_unshared(state: &State, regions: &[(usize, usize)], thread: usize) -> bool {
    let address = state.threads[thread].request.address;
    let site = state.site(thread);
    if site.size == 0 || matches!(site.kind, Kind::Wait | Kind::Park) {
        return false;
    }
    let stack = arena::stack_base(thread)..arena::stack_top(thread);
    let nodes = (0..arena::NODES_EACH).map(|index| arena::node(thread, index));
    let mut areas: Vec<Area> = nodes.map(|node| Area::new(node..node + arena::NODE_SIZE)).collect();
    areas.push(Area::new(stack));
    let Some(mine) = areas.iter().position(|area| area.range.contains(&address)) else {
        return false;
    };
    for &(start, size) in regions {
        reach_from(start, size, &mut areas);
    }
    reach_from_others(state, thread, &mut areas);
    while let Some(from) = areas.iter().position(|area| area.reached && !area.followed) {
        areas[from].followed = true;
        let Range { start, end } = areas[from].range;
        let start =
            if arena::stack_owner(start).is_some() { state.threads[thread].frame } else { start };
        reach_from(start, end - start, &mut areas);
    }
    !areas[mine].reached
}

/// Marks the areas that pointers of other threads, and of old messages, lead to.
fn reach_from_others(state: &State, thread: usize, areas: &mut [Area]) {
    for other in 0..state.threads.len() {
        reach(state.arrivals.arrival(other), areas);
        if other == thread {
            continue;
        }
        reach_from(arena::node(other, 0), arena::NODES_EACH * arena::NODE_SIZE, areas);
        let Thread { frame, status, request, .. } = state.threads[other];
        if status != Status::Ended && frame != 0 {
            reach_from(frame, arena::stack_top(other) - frame, areas);
            let words = [request.address as u64, request.operand, request.expected];
            words.into_iter().for_each(|word| reach(word, areas));
        }
    }
    state.memory.old_values().for_each(|word| reach(word, areas));
}

/// Marks the area that `word` may point to.
fn reach(word: u64, areas: &mut [Area]) {
    if let Some(area) = areas.iter_mut().find(|area| area.range.contains(&(word as usize))) {
        area.reached = true;
    }
}

/// Marks the areas that the words in the `size` bytes at `start` may point to.
fn reach_from(start: usize, size: usize, areas: &mut [Area]) {
    // SAFETY: no coroutine runs.
    let bytes = unsafe { arena::bytes(start, size) };
    for word in bytes.chunks_exact(8) {
        let word = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
        if arena::holds(word as usize, 1) {
            reach(word, areas);
        }
    }
}
