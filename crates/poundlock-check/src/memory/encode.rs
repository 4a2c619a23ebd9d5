// SPDX-License-Identifier: MIT OR Apache-2.0
//! Codes of memories: equal for memories that no continuation can distinguish.

use super::accesses::Remembered;
use super::coder::Coder;
use super::messages::NO_MESSAGE;
use super::span::slots;
use super::views::{NO_VIEW, Views};
use super::{Memory, threads_in};

impl Memory {
    /// Appends the memory's code. Call it after `collect`, with the same `live`.
    pub fn encode(&self, live: u32, coder: &mut Coder, into: &mut Vec<u64>) {
        self.rank(coder);
        coder.encode_slots(into);
        let threads = || threads_in(live, self.threads);
        threads().for_each(|thread| coder.encode_view(self.views.get(thread), into));
        if self.fences {
            for thread in threads() {
                coder.encode_view(self.views.get(self.views.acquire_fence_view(thread)), into);
                coder.encode_view(self.views.get(self.views.release_fence_view(thread)), into);
            }
            coder.encode_view(self.views.get(self.views.sc_fence_view()), into);
        }
        into.push(self.busy.len() as u64);
        self.busy.iter().for_each(|&location| self.encode_location(location as usize, coder, into));
        let dead = self.dead ^ self.objects.code_of_dead();
        into.extend([dead as u64, (dead >> 64) as u64]);
        for &Remembered { key, clock } in self.accesses.iter() {
            let size = (key.end - key.start) as u64;
            let kind = (key.access as u64) << 8 | u64::from(key.thread);
            let rank = coder.clock_rank(key.thread as usize, clock);
            into.extend([key.start as u64, size << 32 | kind << 16 | rank]);
        }
    }

    /// Gives `coder` the times and clocks of this memory.
    fn rank(&self, coder: &mut Coder) {
        coder.clear();
        for &Remembered { key, clock } in self.accesses.iter() {
            coder.add_clock(key.thread as usize, clock);
        }
        coder.add_thread_slots();
        for &location in &self.busy {
            let location = location as usize;
            for slot in slots(location, self.locations[location].parts) {
                let wrote = |&index: &u16| self.messages[index].wrote >> (slot - location) & 1 != 0;
                let written = self.messages_of(location).skip(1).filter(wrote);
                let times = written.map(|index| self.messages[index].time);
                coder.add_location_slot(Views::slot(slot), times);
            }
        }
    }

    fn encode_location(&self, location: usize, coder: &Coder, into: &mut Vec<u64>) {
        if self.locations[location].head == NO_MESSAGE {
            return into.push(u64::from(NO_MESSAGE) << 32 | location as u64);
        }
        into.push((self.messages_of(location).count() as u64) << 32 | location as u64);
        for index in self.messages_of(location) {
            let message = &self.messages[index];
            into.push(message.value);
            let kind = u64::from(message.wrote) << 8 | (message.kind as u64) << 1;
            into.push(kind | u64::from(message.view != NO_VIEW));
            if message.view != NO_VIEW {
                coder.encode_view(self.views.get(message.view as usize), into);
            }
        }
    }
}
