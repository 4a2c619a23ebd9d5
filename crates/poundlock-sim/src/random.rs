// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pseudo-random numbers: the same sequence for the same seed on every host.

/// xorshift64* (Vigna, TOMS 2016).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A generator for `purpose`; different seeds and purposes give different sequences.
    pub fn new(seed: u64, purpose: u64) -> Random {
        let mixed = (seed ^ purpose.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mut random = Random(mixed ^ mixed >> 31 | 1);
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(2_685_821_657_736_338_717)
    }

    /// A number from 0 to 1, excluding 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
