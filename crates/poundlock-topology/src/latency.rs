//! Measured latencies of a cache line's transfer between two CPUs.
//!
//! Two threads, each bound to one CPU, pass a word back and forth by compare-and-swap. A latency is
//! half of a round trip. A sample is the mean over many round trips. The median and quartiles of
//! many samples are kept, so that occasional interrupts do not affect the result.

use crate::Error;
use serde::{Deserialize, Serialize};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

/// The schema of [`Measurements`].
pub const SCHEMA: &str = "poundlock.latency/1";

/// The amount of measurement per pair of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Samples per pair of CPUs.
    pub samples: u32,
    /// Round trips per sample.
    pub round_trips: u32,
}

/// Two CPUs and the latency between them in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names describe the fields")]
pub struct Pair {
    pub a: usize,
    pub b: usize,
    pub median: f64,
    pub lower_quartile: f64,
    pub upper_quartile: f64,
}

/// The requested pairs of CPUs, and the results so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurements {
    /// [`SCHEMA`].
    pub schema: String,
    /// The kernel's list of the CPUs that are present.
    pub present: String,
    /// The CPUs whose pairs are measured, in ascending order.
    pub cpus: Vec<usize>,
    /// The amount of measurement per pair.
    pub settings: Settings,
    /// Whether all pairs have been measured.
    pub complete: bool,
    /// The measured pairs, in order of measurement.
    pub pairs: Vec<Pair>,
}

impl Measurements {
    /// Measurements of `cpus` without any result yet.
    pub fn new(present: String, cpus: Vec<usize>, settings: Settings) -> Measurements {
        let complete = cpus.len() < 2;
        Measurements {
            schema: SCHEMA.to_owned(),
            present,
            cpus,
            settings,
            complete,
            pairs: Vec::new(),
        }
    }

    /// Parses and validates the text of a file.
    ///
    /// # Errors
    ///
    /// If the text is not JSON of [`SCHEMA`], or its CPUs are not in order.
    pub fn parse(text: &str) -> Result<Measurements, Error> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_str(text).map_err(Error::new)?;
        if head.schema != SCHEMA {
            return Err(Error::new(format!(
                "has the schema '{}', not '{SCHEMA}'",
                head.schema.escape_default()
            )));
        }
        let measurements: Measurements = serde_json::from_str(text).map_err(Error::new)?;
        if !measurements.cpus.is_sorted_by(|a, b| a < b)
            || measurements.cpus.iter().any(|&cpu| cpu >= crate::MOST_CPUS)
        {
            return Err(Error::new("has CPUs that are not in order"));
        }
        Ok(measurements)
    }

    /// The pairs of CPUs that have not been measured yet.
    pub fn missing(&self) -> Vec<(usize, usize)> {
        let mut measured: Vec<(usize, usize)> =
            self.pairs.iter().map(|pair| (pair.a, pair.b)).collect();
        measured.sort_unstable();
        let all = self
            .cpus
            .iter()
            .enumerate()
            .flat_map(|(index, &b)| self.cpus[..index].iter().map(move |&a| (a, b)));
        all.filter(|pair| measured.binary_search(pair).is_err()).collect()
    }

    /// The number of pairs, measured or not.
    pub fn count(&self) -> usize {
        self.cpus.len() * self.cpus.len().saturating_sub(1) / 2
    }

    /// Adds the result of a missing pair.
    pub fn add(&mut self, pair: Pair) {
        self.pairs.push(pair);
        self.complete = self.pairs.len() == self.count();
    }

    /// The same measurements with the CPUs renumbered from 0, without gaps.
    #[must_use]
    pub fn among_themselves(mut self) -> Measurements {
        let place = |cpu: usize| self.cpus.binary_search(&cpu).unwrap_or_default();
        for pair in &mut self.pairs {
            (pair.a, pair.b) = (place(pair.a), place(pair.b));
        }
        self.cpus = (0..self.cpus.len()).collect();
        self
    }

    /// The table that [`crate::matrix`] reads: rows and columns are CPU numbers, and the lower
    /// triangle is filled.
    pub fn csv(&self) -> String {
        let size = self.cpus.last().map_or(0, |last| last + 1);
        let mut cells = vec![String::new(); size * size];
        for pair in &self.pairs {
            cells[pair.a.max(pair.b) * size + pair.a.min(pair.b)] = pair.median.to_string();
        }
        cells.chunks(size.max(1)).map(|row| row.join(",") + "\n").collect()
    }
}

/// A cache line without other data. Also covers the adjacent line, which some processors prefetch.
#[repr(align(256))]
struct Line(AtomicU32);

const PING: u32 = 0;
const PONG: u32 = 1;
/// The number of failed attempts after which a thread checks for a stop request and yields: the
/// other thread may not be running.
const IMPATIENCE: u32 = 1 << 16;

/// Waits until the word is `from`, and sets it to `to`. Returns false if stopped.
fn pass(line: &Line, from: u32, to: u32, stop: &AtomicBool) -> bool {
    let mut failures = 0;
    // acq_rel: the measured operation is a hand-over
    while line.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        failures += 1;
        if failures % IMPATIENCE == 0 {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            thread::yield_now();
        }
    }
    true
}

/// Binds the calling thread to a CPU.
fn bind(cpu: usize) -> Result<(), Error> {
    const BITS: usize = libc::c_ulong::BITS as usize;
    let mut mask = [0 as libc::c_ulong; crate::MOST_CPUS / BITS];
    mask[cpu / BITS] |= 1 << (cpu % BITS);
    // SAFETY: the mask has the size that is passed.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
    if result == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Error::new(format!("cannot run on CPU {cpu}: {}", error.kind())))
}

/// Measures the latency between two different CPUs. Returns None if stopped.
///
/// # Errors
///
/// If the process cannot run on one of them.
pub fn measure(
    a: usize,
    b: usize,
    settings: Settings,
    stop: &AtomicBool,
) -> Result<Option<Pair>, Error> {
    let line = Line(AtomicU32::new(PING));
    let both = Barrier::new(2);
    let failed = AtomicBool::new(false);
    let begin = |cpu| {
        let bound = bind(cpu);
        failed.fetch_or(bound.is_err(), Ordering::Relaxed);
        both.wait();
        bound.map(|()| !failed.load(Ordering::Relaxed))
    };
    // The first sample is a warm-up and is dropped.
    let samples = 0..=settings.samples;
    let answer = || -> Result<(), Error> {
        let mut passes = samples.clone().flat_map(|_| 0..settings.round_trips);
        let _ = begin(b)? && passes.all(|_| pass(&line, PONG, PING, stop));
        Ok(())
    };
    let time = || -> Result<Vec<f64>, Error> {
        let mut times = Vec::new();
        if begin(a)? {
            for _ in samples.clone() {
                let start = Instant::now();
                if !(0..settings.round_trips).all(|_| pass(&line, PING, PONG, stop)) {
                    break;
                }
                times.push(
                    start.elapsed().as_nanos() as f64 / f64::from(settings.round_trips) / 2.0,
                );
            }
        }
        Ok(times)
    };
    let (answered, times) = thread::scope(|scope| {
        let (answering, timing) = (scope.spawn(answer), scope.spawn(time));
        (answering.join().expect("it does not panic"), timing.join().expect("it does not panic"))
    });
    answered?;
    let times = times?;
    Ok((times.len() as u32 == settings.samples + 1).then(|| summary(a, b, times[1..].to_vec())))
}

fn summary(a: usize, b: usize, mut times: Vec<f64>) -> Pair {
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[(part * (times.len() - 1) as f64).round() as usize];
    Pair { a, b, median: at(0.5), lower_quartile: at(0.25), upper_quartile: at(0.75) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Settings = Settings { samples: 3, round_trips: 10 };

    fn measurements(cpus: &[usize]) -> Measurements {
        Measurements::new("0-7".to_owned(), cpus.to_vec(), FEW)
    }

    fn pair(a: usize, b: usize, median: f64) -> Pair {
        Pair { a, b, median, lower_quartile: median, upper_quartile: median }
    }

    #[test]
    fn added_pairs_are_no_longer_missing() {
        let mut some = measurements(&[0, 2, 5]);
        assert_eq!((some.missing(), some.complete), (vec![(0, 2), (0, 5), (2, 5)], false));
        some.add(pair(0, 5, 1.0));
        assert_eq!(some.missing(), [(0, 2), (2, 5)]);
        let again =
            Measurements::parse(&serde_json::to_string(&some).expect("JSON")).expect("its own");
        assert_eq!(again, some);
        some.add(pair(0, 2, 2.0));
        some.add(pair(2, 5, 3.5));
        assert!(some.complete && some.missing().is_empty());
        assert_eq!(some.csv(), ",,,,,\n,,,,,\n2,,,,,\n,,,,,\n,,,,,\n1,,3.5,,,\n");
        assert!(measurements(&[3]).complete);
    }

    #[test]
    fn quartiles_leave_outliers_out() {
        let pair = summary(0, 1, vec![9.0, 1000.0, 10.0, 8.0, 11.0]);
        assert_eq!((pair.lower_quartile, pair.median, pair.upper_quartile), (9.0, 10.0, 11.0));
    }

    #[test]
    fn a_missing_cpu_is_named_and_not_waited_for() {
        let stop = AtomicBool::new(false);
        for (a, b) in [(0, 4095), (4095, 0)] {
            let error = measure(a, b, FEW, &stop).expect_err("there is no such CPU").to_string();
            assert!(error.contains("CPU 4095"), "{error}");
        }
    }

    #[test]
    fn a_stopped_pass_ends() {
        let line = Line(AtomicU32::new(PING));
        assert!(!pass(&line, PONG, PING, &AtomicBool::new(true)));
        assert!(pass(&line, PING, PONG, &AtomicBool::new(true)));
    }
}
