//! Lists of CPUs in the kernel's format: `0-3,8,10-11`.

use crate::{Error, MOST_CPUS};
use std::fmt::Write;

/// Parses `list`. Returns its CPUs in ascending order, without duplicates.
///
/// # Errors
///
/// If `list` does not have the kernel's format, or contains a CPU from [`MOST_CPUS`] on.
pub fn parse(list: &str) -> Result<Vec<usize>, Error> {
    let wrong = || Error::new(format!("'{list}' is not a list of CPUs such as 0-3,8"));
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|&cpu: &usize| digits && cpu < MOST_CPUS).ok_or_else(wrong)
    };
    let mut cpus = Vec::new();
    for range in list.trim().split(',').filter(|_| !list.trim().is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Formats `cpus`, which must be in ascending order.
pub fn format(cpus: &[usize]) -> String {
    let mut list = String::new();
    for range in cpus.chunk_by(|before, after| before + 1 == *after) {
        let comma = if list.is_empty() { "" } else { "," };
        let (first, last) = (range[0], range[range.len() - 1]);
        let written = if first == last {
            write!(list, "{comma}{first}")
        } else {
            write!(list, "{comma}{first}-{last}")
        };
        written.expect("writing to a string cannot fail");
    }
    list
}

/// The CPUs in the calling thread's affinity mask, in ascending order; all up to [`MOST_CPUS`] if
/// the system call fails.
pub fn usable() -> Vec<usize> {
    // The kernel rejects a mask that is shorter than its configured maximum of CPUs.
    let mut mask = [0u8; 8192 / 8];
    // SAFETY: the mask has the size that is passed.
    let failed = unsafe { libc::sched_getaffinity(0, mask.len(), mask.as_mut_ptr().cast()) } != 0;
    (0..MOST_CPUS).filter(|&cpu| failed || mask[cpu / 8] >> (cpu % 8) & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for list in ["", "0", "0-3,8,10-11", "4095"] {
            assert_eq!(format(&parse(list).expect(list)), list);
        }
        assert_eq!(parse("3,1-2,2\n").expect("a list"), [1, 2, 3]);
    }

    #[test]
    fn an_invalid_list_is_named() {
        for list in ["x", "1,", ",", "3-1", "-1", "1-", "+1", "4096", "99999999999999999999", "1 2"]
        {
            assert!(parse(list).expect_err(list).to_string().contains(list), "{list}");
        }
    }
}
