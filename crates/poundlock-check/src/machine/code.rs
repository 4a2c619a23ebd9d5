// SPDX-License-Identifier: MIT OR Apache-2.0
//! Codes of states: equal for states that no continuation can distinguish.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::Machine;
use super::state::{Request, Status};
use crate::arena;

impl Machine {
    /// The code of the present state.
    pub fn code(&mut self) -> (u64, u64) {
        let mut code = std::mem::take(&mut self.code);
        code.clear();
        for thread in 0..self.now.threads.len() {
            self.encode_thread(thread, &mut code);
        }
        push_sparse(0, &self.now.outcomes, &mut code);
        code.push(
            (self.now.generation as u64) << 32
                | (self.now.created as u64) << 48
                | (self.now.reader as u64) << 56
                | self.now.spurious as u64,
        );
        if self.settings.moves > 0 {
            code.push(
                self.now
                    .threads
                    .iter()
                    .fold(u64::from(self.now.moves), |code, t| code << 4 | u64::from(t.cpu)),
            );
        }
        if !self.queues.is_empty() {
            self.now.arrivals.encode(self.watched(), &mut code);
        }
        if self.settings.bound.is_some() {
            let stale = self.settings.stale.map_or(0, |_| self.now.stale as u64);
            code.push(stale << 40 | (self.now.preemptions as u64) << 8 | self.now.last as u64);
        }
        if let Some(promise) = self.now.promise {
            let position = self.now.memory.position(promise.location, promise.message) as u64;
            let place = (promise.location as u64) << 32 | position << 16;
            code.push(1 << 63 | place | u64::from(promise.left) << 8 | u64::from(promise.thread));
        }
        for (address, size) in self.regions() {
            // SAFETY: no coroutine runs.
            code.push(xxh3_64(unsafe { arena::bytes(address, size) }));
        }
        let live = self.now.live();
        self.now.memory.encode(live, &mut self.coder, &mut code);
        // SAFETY: any u64 is 8 bytes.
        let bytes =
            unsafe { std::slice::from_raw_parts(code.as_ptr().cast::<u8>(), code.len() * 8) };
        let hash = xxh3_128(bytes);
        self.code = code;
        (hash as u64, (hash >> 64) as u64)
    }

    fn encode_thread(&self, thread: usize, code: &mut Vec<u64>) {
        let t = &self.now.threads[thread];
        let flags = [t.expired, t.yielded && self.settings.bound.is_some(), t.request.brief];
        let flags = flags.iter().fold(0, |flags, &flag| flags << 1 | flag as u64);
        let first = (t.status as u64) << 32 | u64::from(t.owed_by) << 8 | flags;
        if t.status == Status::Ended {
            return code.push(first);
        }
        let Request { site, address, operand, expected, deadline, .. } = t.request;
        let words = [address as u64, operand, expected, deadline as u64, t.ending];
        push_sparse(first, &words, code);
        code.extend([site as u64, t.stack as u64, (t.stack >> 64) as u64]);
    }
}

/// Appends `first`, of less than 56 bits, with the bits of the words that are not 0, at most 8; and
/// these words.
fn push_sparse(first: u64, words: &[u64], code: &mut Vec<u64>) {
    let at = code.len();
    code.push(first);
    for (bit, &word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
        code[at] |= 1 << (56 + bit);
        code.push(word);
    }
}
