//! Results of simulations in a folder, found again as long as the job, the lock's sources, the
//! simulator's sources and the compiler are the same.

use super::job::{Ended, Job, Simulated};
use crate::failure::Failure;
use crate::output::{unreadable, write};
use crate::runs::Outcome;
use std::fs;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/fingerprints.rs"));

/// A folder of results.
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub fn open(folder: &Path) -> Result<Cache, Failure> {
        fs::create_dir_all(folder).map_err(|error| unreadable(folder, &error))?;
        Ok(Cache { folder: folder.to_owned() })
    }

    /// The kept result of the job. A file that cannot be read counts as none.
    pub fn find(&self, job: &Job) -> Option<Ended> {
        let text = fs::read_to_string(self.file(job)).ok()?;
        let result = serde_json::from_str(&text).ok()?;
        Some(Ended { outcome: Outcome::Ok, result: Some(result), output_tail: None })
    }

    /// Keeps a result. A failure costs only another simulation, and is ignored.
    pub fn keep(&self, job: &Job, result: &Simulated) {
        if let Ok(text) = serde_json::to_string(result) {
            let _ = write(&self.file(job), text);
        }
    }

    fn file(&self, job: &Job) -> PathBuf {
        self.folder.join(format!("{:016x}.json", key(job)))
    }
}

/// The hash of a lock's sources; of those of all locks for another name of one.
fn sources(lock: &str) -> u64 {
    let name = lock.split(',').next();
    let own = LOCKS.iter().find(|(known, _)| name == Some(known));
    let all = || LOCKS.iter().fold(0u64, |all, (_, hash)| all.rotate_left(1) ^ hash);
    own.map_or_else(all, |(_, hash)| *hash)
}

/// The hash of all that a result depends on.
fn key(job: &Job) -> u64 {
    let mut job = job.clone();
    let text = |file: &Path| fs::read_to_string(file).unwrap_or_default();
    let machine = text(&job.machine.machine);
    let matrix = job.machine.matrix.as_deref().map(text).unwrap_or_default();
    (job.machine.machine, job.machine.matrix) = (PathBuf::new(), None);
    let lock = sources(&job.lock);
    let job = serde_json::to_string(&job).expect("a job is made of numbers and text");
    let parts = [job.as_str(), &machine, &matrix, poundlock::C_COMPILER];
    let mut hash = SIMULATOR ^ lock.rotate_left(1);
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
