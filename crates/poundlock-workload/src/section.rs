// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C types of `bench/workloads/section.h`, for the crates that compile and call the critical
//! sections.

use crate::Section;
use std::mem::offset_of;

/// `struct section_settings`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    kind: u32,
    words: u32,
    keys: u32,
    buckets: u32,
    writes: u32,
}

/// `enum section_kind`.
const WORDS: u32 = 1;
const MAP: u32 = 2;
const HASH: u32 = 3;

impl Settings {
    /// The offset of the last member, for checks of the layout.
    pub const LAST: usize = offset_of!(Settings, writes);
}

impl From<Section> for Settings {
    fn from(section: Section) -> Settings {
        match section {
            Section::None => Settings::default(),
            Section::Words { words } => Settings { kind: WORDS, words, ..Settings::default() },
            Section::Map { keys, writes } => {
                Settings { kind: MAP, keys, writes, ..Settings::default() }
            }
            Section::Hash { keys, buckets, writes } => {
                Settings { kind: HASH, keys, buckets, writes, words: 0 }
            }
        }
    }
}

/// `struct section_operation`: drawn before the lock is requested, performed while it is held.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// `enum section_verb`.
    pub verb: u32,
    /// The key to look up, insert, remove or move.
    pub key: u32,
    /// The key that a move ends at.
    pub to: u32,
}

/// `SECTION_LOOK`.
const LOOK: u32 = 0;

impl Operation {
    /// Whether it changes nothing, so that readers may perform it concurrently.
    pub fn reads(self) -> bool {
        self.verb == LOOK
    }
}
