//! Fits the one free number of a workload: the time of its instructions between memory accesses.

use super::file::Fit;
use crate::commands::sim::data;
use crate::commands::sim::job::{self, Ended, Job};
use crate::failure::Failure;
use std::sync::atomic::AtomicBool;

/// Returns the step with which one thread is as fast as published. The time of an operation is
/// linear in it.
pub fn fitted(
    base: &Job,
    fit: &Fit,
    at_once: usize,
    interrupted: &AtomicBool,
) -> Result<f64, Failure> {
    const STEPS: [f64; 2] = [0.0, 8.0];
    let workload = data::workload(&fit.workload)?;
    let job =
        |step| Job { lock: fit.lock.clone(), step, workload: workload.clone(), ..base.clone() };
    let jobs = STEPS.map(job);
    let ended = job::run_all(&jobs, at_once, None, interrupted)?;
    let time = |ended: Option<&Ended>| -> Option<f64> {
        let counts = &ended?.result.as_ref()?.counts;
        let acquisitions: u64 = counts.threads.iter().map(|thread| thread.acquisitions).sum();
        Some(counts.elapsed_ns as f64 / acquisitions as f64)
    };
    let (Some(short), Some(long)) =
        (ended.first().and_then(|e| time(e.as_ref())), ended.get(1).and_then(|e| time(e.as_ref())))
    else {
        return Err(Failure::ours(
            "cannot simulate the single thread to which the workload is fitted",
        ));
    };
    let slope = (long - short) / (STEPS[1] - STEPS[0]);
    Ok(((1e9 / fit.per_second - short) / slope).max(0.0))
}
