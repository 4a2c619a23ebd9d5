//! The structures of the JSON of `sim advise`.

use super::judge::{Load, Regret};
use crate::commands::sim::plan::Settings;
use crate::provenance::Provenance;
use serde::Serialize;

/// The document of `--json`. The same seeds give the same content.
#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    #[serde(flatten)]
    pub provenance: Provenance,
    pub simulated_machine: String,
    pub settings: Settings,
    /// The maximum fairness factor.
    pub fairness: Option<f64>,
    /// The candidates.
    pub locks: Vec<String>,
    pub interrupted: bool,
    pub loads: Vec<Load>,
    /// The lock that is recommended for all loads.
    pub choice: Option<String>,
    /// The regrets of the locks that can run all loads, the least first.
    pub regrets: Vec<Regret>,
}
