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
    /// Simulated time in microseconds.
    pub warmup_us: u64,
    pub measured_us: u64,
    pub threads: Vec<usize>,
    pub locks: Vec<String>,
    pub fit: Option<Fit>,
    /// The time of instructions between memory accesses in nanoseconds, taken from the fit of
    /// another figure.
    pub step: Option<f64>,
    /// Differences from the paper, in a sentence or two.
    #[serde(default)]
    pub differs: String,
    pub check: Vec<Check>,
    /// Published numbers whose order is compared.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Published ratios that cannot be simulated.
    #[serde(default)]
    pub absent: Vec<Absent>,
}

/// Published numbers in one unit for several locks or numbers of threads. All pairs are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    pub what: String,
    /// The name of a figure of bench.
    #[serde(default = "throughput")]
    pub figure: String,
    /// The place in the paper.
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

/// A published ratio without a simulation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absent {
    pub what: String,
    pub published: f64,
    pub gate: bool,
    pub why: String,
}

/// The published speed of a single thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    pub lock: String,
    pub workload: String,
    pub per_second: f64,
}

/// A statement of the paper.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub what: String,
    /// The name of a figure of bench.
    #[serde(default = "throughput")]
    pub figure: String,
    pub of: At,
    /// The divisor, if the value is a ratio.
    pub over: Option<At>,
    pub published: Option<f64>,
    /// The tolerance relative to the published value.
    pub within: Option<f64>,
    pub least: Option<f64>,
    pub most: Option<f64>,
    /// Whether it is a reference ratio, which the model should reproduce.
    #[serde(default)]
    pub gate: bool,
    /// The reason why it is missed, if known.
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

/// Parses and checks the file of a figure.
pub fn parse(text: &str) -> Result<Figure, String> {
    let figure: Figure =
        toml::from_str(text).map_err(|error| error.message().replace('\n', " "))?;
    figure.check_places()?;
    Ok(figure)
}

impl Figure {
    /// Checks that every compared value is simulated.
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
                    return Err(format!(
                        "'{}': {} is not a published value",
                        published.what, value.value
                    ));
                }
            }
        }
        Ok(())
    }
}
