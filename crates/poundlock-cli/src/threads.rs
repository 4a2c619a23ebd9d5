//! Numbers of threads on the command line.

use crate::failure::Failure;
use poundlock_bench::Workload;

/// The maximum number of threads, limited by the memory for their stacks.
const MOST: usize = 16_384;

/// A list of numbers of threads, absolute or per CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Threads(Vec<Number>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    count: usize,
    per_cpu: bool,
}

impl Threads {
    /// Parses `N,...`, or `N..M` for N, 2N, 4N, ... up to M. The suffix `x` means per CPU.
    pub fn parse(text: &str) -> Result<Threads, String> {
        let numbers: Vec<Number> = match text.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (Number::parse(first)?, Number::parse(last)?);
                if first.per_cpu != last.per_cpu {
                    return Err(format!("'{text}': one end is per CPU and the other is not"));
                }
                let doubled =
                    std::iter::successors(Some(first.count), |count: &usize| count.checked_mul(2));
                let counts = doubled.take_while(|count| *count < last.count).chain([last.count]);
                counts.map(|count| Number { count, ..last }).collect()
            }
            None => text.split(',').map(Number::parse).collect::<Result<_, _>>()?,
        };
        Ok(Threads(numbers))
    }

    /// The numbers for a machine with `cpus` CPUs.
    pub fn on(&self, cpus: usize) -> Result<Vec<usize>, Failure> {
        let numbers: Vec<usize> = self.0.iter().map(|number| number.on(cpus)).collect();
        for (index, threads) in numbers.iter().enumerate() {
            if numbers[..index].contains(threads) {
                return Err(Failure::ours(format!("--threads: {threads} is given twice")));
            }
            if *threads > MOST {
                return Err(Failure::ours(format!(
                    "--threads: {threads} exceeds the maximum of {MOST}"
                )));
            }
        }
        Ok(numbers)
    }

    /// The given numbers, or else those of the workload, if it has any.
    pub fn given_or_meant(
        given: Option<&Threads>,
        workload: &Workload,
        cpus: usize,
    ) -> Result<Option<Vec<usize>>, Failure> {
        let meant = || {
            let numbers =
                workload.threads_per_cpu.iter().map(|&count| Number { count, per_cpu: true });
            (!workload.threads_per_cpu.is_empty()).then(|| Threads(numbers.collect()))
        };
        given.cloned().or_else(meant).map(|threads| threads.on(cpus)).transpose()
    }
}

impl Number {
    fn parse(text: &str) -> Result<Number, String> {
        let (digits, per_cpu) =
            text.strip_suffix('x').map_or((text, false), |digits| (digits, true));
        let count = digits.parse().ok().filter(|count| (1..=MOST).contains(count));
        count
            .map(|count| Number { count, per_cpu })
            .ok_or(format!("'{text}' is not a number of threads"))
    }

    fn on(self, cpus: usize) -> usize {
        if self.per_cpu { self.count * cpus } else { self.count }
    }
}

#[cfg(test)]
mod tests {
    use super::Threads;

    #[test]
    fn numbers_of_threads_are_lists_or_doubled_and_may_be_by_cpu() {
        let of = |text: &str| {
            Threads::parse(text).map(|threads| threads.on(12).expect("different ones"))
        };
        assert_eq!(of("1,7,3"), Ok(vec![1, 7, 3]));
        assert_eq!(of("1..72"), Ok(vec![1, 2, 4, 8, 16, 32, 64, 72]));
        assert_eq!(of("3..6"), Ok(vec![3, 6]));
        assert_eq!(of("4..4"), Ok(vec![4]));
        assert_eq!(of("5,2x"), Ok(vec![5, 24]));
        assert_eq!(of("1x..16x"), Ok(vec![12, 24, 48, 96, 192]));
        for wrong in ["", "0", "1,,2", "1..", "..3", "x..3", "1-3", "x", "0x", "1..2x"] {
            assert!(Threads::parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["2,2", "12,1x", "1x..10000x"] {
            assert!(Threads::parse(wrong).is_ok_and(|threads| threads.on(12).is_err()), "{wrong}");
        }
    }
}
