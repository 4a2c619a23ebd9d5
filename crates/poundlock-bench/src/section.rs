//! The critical sections of `bench/workloads`, in C.

use poundlock_workload::Section;
use poundlock_workload::section::{Operation, Settings};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;

unsafe extern "C" {
    fn section_size(settings: *const Settings) -> usize;
    fn section_fill(settings: *const Settings, data: *mut c_void, seed: u64);
    fn section_draw(settings: *const Settings, random: *mut u64) -> Operation;
    fn section_do(settings: *const Settings, data: *mut c_void, operation: Operation) -> c_int;
    fn section_vary(length: u64, spread: f64, random: *mut u64) -> u64;
    fn section_check(
        settings: *const Settings,
        data: *const c_void,
        operations: u64,
        net: i64,
    ) -> *const c_char;
}

/// A length that is uniformly distributed over `length` ± `spread` of it.
pub(crate) fn vary(length: u64, spread: f64, random: &mut u64) -> u64 {
    // SAFETY: the state is valid for the call.
    unsafe { section_vary(length, spread, random) }
}

/// Two cache lines, which processors fetch in pairs.
#[repr(C, align(128))]
#[derive(Clone, Copy, Default)]
struct Lines([u64; 16]);

/// The data that a lock protects.
#[derive(Debug)]
pub(crate) struct Data {
    settings: Settings,
    /// Only to be accessed by a holder of the lock.
    memory: *mut Lines,
    lines: usize,
}

// SAFETY: the memory is owned, and only accessed by `perform`, whose callers hold the lock.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    /// The initial data of the section; all of it is resident.
    pub(crate) fn new(section: Section, seed: u64) -> Data {
        let settings = Settings::from(section);
        // SAFETY: the settings are valid.
        let size = unsafe { section_size(&settings) };
        let lines = size.div_ceil(size_of::<Lines>());
        let memory: *mut Lines =
            Box::into_raw(vec![Lines::default(); lines].into_boxed_slice()).cast();
        // SAFETY: the memory is zeroed, large enough, and aligned to a line.
        unsafe { section_fill(&settings, memory.cast(), seed) };
        Data { settings, memory, lines }
    }

    /// A thread's next operation.
    pub(crate) fn draw(&self, random: &mut u64) -> Operation {
        // SAFETY: both are valid for the call.
        unsafe { section_draw(&self.settings, random) }
    }

    /// Performs an operation. Returns the change of the number of entries.
    ///
    /// # Safety
    /// The caller holds the lock that protects these data; as a reader, if the operation
    /// only reads.
    pub(crate) unsafe fn perform(&self, operation: Operation) -> i32 {
        // SAFETY: access is exclusive, or all operations read, as the caller promises.
        unsafe { section_do(&self.settings, self.memory.cast(), operation) }
    }

    /// Checks the invariants after `operations` that changed the number of entries by `net`.
    pub(crate) fn check(&mut self, operations: u64, net: i64) -> Result<(), String> {
        // SAFETY: the borrow is exclusive.
        let wrong = unsafe { section_check(&self.settings, self.memory.cast(), operations, net) };
        if wrong.is_null() {
            return Ok(());
        }
        // SAFETY: a C literal.
        Err(unsafe { CStr::from_ptr(wrong) }.to_string_lossy().into_owned())
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // SAFETY: the parts of the box that `new` made.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.memory, self.lines)) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTIONS: [Section; 5] = [
        Section::None,
        Section::Words { words: 100 },
        Section::Map { keys: 200, writes: 10_000 },
        Section::Map { keys: 3, writes: 5_000 },
        Section::Hash { keys: 64, buckets: 7, writes: 5_000 },
    ];

    #[test]
    fn invariants_hold_after_every_operation() {
        for section in SECTIONS {
            let mut data = Data::new(section, 7);
            let (mut random, mut net) = (99, 0);
            assert_eq!(data.check(0, 0), Ok(()), "{section:?}");
            for done in 1..=2_000 {
                let operation = data.draw(&mut random);
                // SAFETY: there is no other thread.
                net += i64::from(unsafe { data.perform(operation) });
                assert_eq!(
                    data.check(done, net),
                    Ok(()),
                    "{section:?} after {done}, {operation:?}"
                );
            }
        }
    }

    #[test]
    fn a_map_behaves_like_a_set() {
        let mut data = Data::new(Section::Map { keys: 128, writes: 10_000 }, 3);
        let mut random = 5;
        let mut present: [Option<bool>; 128] = [None; 128];
        for _ in 0..20_000 {
            let operation = data.draw(&mut random);
            let inserts = operation.verb == 1;
            // SAFETY: there is no other thread.
            let change = unsafe { data.perform(operation) };
            let key = &mut present[operation.key as usize];
            if let Some(was) = *key {
                assert_eq!(change, i32::from(inserts) - i32::from(was), "{operation:?}");
            }
            *key = Some(inserts);
        }
        let entries = present.iter().filter(|key| key.expect("every key was drawn")).count() as i64;
        assert_eq!(data.check(0, entries - 64), Ok(()));
    }

    #[test]
    fn violated_invariants_are_reported() {
        let mut data = Data::new(Section::Map { keys: 100, writes: 0 }, 1);
        assert!(data.check(0, 1).expect_err("an entry too many").contains("number of entries"));
        let mut data = Data::new(Section::Words { words: 4 }, 1);
        assert!(data.check(1, 0).expect_err("an increment too few").contains("lost increments"));
    }

    #[test]
    fn lengths_vary_within_their_spread() {
        let mut random = 1;
        assert_eq!(vary(1000, 0.0, &mut random), 1000);
        let lengths: Vec<u64> = (0..10_000).map(|_| vary(1000, 0.15, &mut random)).collect();
        let (least, most) =
            (lengths.iter().min().expect("some"), lengths.iter().max().expect("some"));
        assert_eq!((*least, *most), (850, 1150));
        let mean = lengths.iter().sum::<u64>() as f64 / 10_000.0;
        assert!((990.0..1010.0).contains(&mean), "{mean}");
    }

    #[test]
    fn writes_have_the_specified_frequency() {
        let data = Data::new(Section::Hash { keys: 64, buckets: 8, writes: 100 }, 1);
        let mut random = 1;
        let writes = (0..100_000).filter(|_| !data.draw(&mut random).reads()).count();
        assert!((800..1_200).contains(&writes), "{writes} of 100,000");
    }
}
