//! The file of a published figure: bench/figures/*.toml.

use crate::commands::sim::args::Domain;
use serde::{Deserialize, Serialize};

/// A published figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub name: String,
    pub about: String,
    pub source: String,
    pub machine: String,
    pub workload: String,
    pub domain: Domain,
    /// Of simulated time, in microseconds.
    pub warmup_us: u64,
    pub measured_us: u64,
    pub threads: Vec<usize>,
    pub locks: Vec<String>,
    pub fit: Option<Fit>,
    /// What a section's instructions take between memory accesses, where another figure's fit has it.
    pub step: Option<f64>,
    /// What is not as in the paper, in a sentence or two.
    #[serde(default)]
    pub differs: String,
    pub check: Vec<Check>,
    /// Figures that the paper gives in numbers: who is ahead of whom.
    #[serde(default)]
    pub published: Vec<Published>,
    /// What cannot be simulated.
    #[serde(default)]
    pub absent: Vec<Absent>,
}

/// What the paper gives in numbers for several locks or numbers of threads, in one unit: all pairs of them are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    pub what: String,
    /// A figure of bench's.
    #[serde(default = "throughput")]
    pub figure: String,
    /// Where the numbers are.
    pub source: String,
    pub values: Vec<Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    pub lock: String,
    pub threads: usize,
    pub value: f64,
}

/// A ratio of the paper's for which there is no simulation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absent {
    pub what: String,
    pub published: f64,
    pub gate: bool,
    pub why: String,
}

/// How fast a single thread was.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    pub lock: String,
    pub workload: String,
    pub per_second: f64,
}

/// What the paper states.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub what: String,
    /// A figure of bench's.
    #[serde(default = "throughput")]
    pub figure: String,
    pub of: At,
    /// What it is divided by.
    pub over: Option<At>,
    pub published: Option<f64>,
    /// How far from that it may be, in parts of it.
    pub within: Option<f64>,
    pub least: Option<f64>,
    pub most: Option<f64>,
    /// Whether it is one of the ratios that the model is held against.
    #[serde(default)]
    pub gate: bool,
    /// Why it is missed, where that is known.
    #[serde(default)]
    pub why: String,
}

fn throughput() -> String {
    "per_second".to_owned()
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    pub lock: String,
    pub threads: usize,
}

/// The figure that a file's text describes.
pub fn parse(text: &str) -> Result<Figure, String> {
    let figure: Figure = toml::from_str(text).map_err(|error| error.message().replace('\n', " "))?;
    figure.check_places()?;
    Ok(figure)
}

impl Figure {
    /// Whether all that is compared is simulated.
    fn check_places(&self) -> Result<(), String> {
        let at = |what: &str, lock: &String, threads: usize| {
            if self.locks.contains(lock) && self.threads.contains(&threads) {
                return Ok(());
            }
            Err(format!("'{what}': {lock} with {threads} threads is not simulated"))
        };
        let known = |what: &str, name: &str| {
            let known = poundlock_bench::figures::FIGURES.iter().any(|figure| figure.name == name);
            if known { Ok(()) } else { Err(format!("'{what}': there is no figure '{name}'")) }
        };
        for check in &self.check {
            known(&check.what, &check.figure)?;
            for place in [Some(&check.of), check.over.as_ref()].into_iter().flatten() {
                at(&check.what, &place.lock, place.threads)?;
            }
        }
        for published in &self.published {
            known(&published.what, &published.figure)?;
            for value in &published.values {
                at(&published.what, &value.lock, value.threads)?;
                if value.value.is_nan() || value.value <= 0.0 {
                    return Err(format!("'{}': {} is not a published value", published.what, value.value));
                }
            }
        }
        Ok(())
    }
}
