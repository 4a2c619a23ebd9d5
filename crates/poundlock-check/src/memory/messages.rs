// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages: the stores to atomic locations that some thread may still read.

use std::ops::{Index, IndexMut};

/// Ends a list of messages.
pub const NO_MESSAGE: u16 = u16::MAX;

/// The kind of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Store,
    /// A read-modify-write. No store can come between it and the message that it read.
    Update,
}

/// A store to a location.
#[derive(Clone, Copy)]
pub struct Message {
    pub value: u64,
    /// The thread, or NO_THREAD for the value after the client's setup.
    pub writer: u8,
    /// The execution's step that made it; 0 for a plain write.
    pub step: u32,
    /// Timestamp in the location's modification order.
    pub time: u32,
    /// The next message in modification order.
    pub next: u16,
    /// The view that an acquiring reader joins.
    pub view: u16,
    pub kind: Kind,
    /// The bits of the location's parts that it wrote.
    pub wrote: u8,
}

/// Storage of messages, by index, with reuse.
#[derive(Clone, Default)]
pub struct Messages {
    list: Vec<Message>,
    free: Vec<u16>,
}

impl Messages {
    /// Copies `source` into the existing allocations.
    pub fn copy_from(&mut self, source: &Messages) {
        self.list.clone_from(&source.list);
        self.free.clone_from(&source.free);
    }

    /// Stores the message. Returns its index.
    pub fn add(&mut self, message: Message) -> u16 {
        if let Some(index) = self.free.pop() {
            self.list[index as usize] = message;
            return index;
        }
        self.list.push(message);
        (self.list.len() - 1) as u16
    }

    /// Frees the message, but not its view.
    pub fn free(&mut self, index: u16) {
        self.free.push(index);
    }

    /// The indices of the messages from `head` on, in modification order.
    pub fn list_from(&self, head: u16) -> impl Iterator<Item = u16> + '_ {
        let mut next = head;
        std::iter::from_fn(move || {
            let index = next;
            if index == NO_MESSAGE {
                return None;
            }
            next = self.list[index as usize].next;
            Some(index)
        })
    }

    /// Whether the message is the newest of its location.
    pub fn is_newest(&self, index: u16) -> bool {
        self[index].next == NO_MESSAGE
    }
}

impl Index<u16> for Messages {
    type Output = Message;

    fn index(&self, index: u16) -> &Message {
        &self.list[index as usize]
    }
}

impl IndexMut<u16> for Messages {
    fn index_mut(&mut self, index: u16) -> &mut Message {
        &mut self.list[index as usize]
    }
}
