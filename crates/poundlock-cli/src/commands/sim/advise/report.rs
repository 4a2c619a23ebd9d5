//! What `sim advise` found: the structures of its JSON.

use super::judge::{Load, Regret};
use crate::commands::sim::plan::Settings;
use crate::provenance::Provenance;
use serde::Serialize;

/// Everything that was found: with the same seeds, always the same.
#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    #[serde(flatten)]
    pub provenance: Provenance,
    pub simulated_machine: String,
    pub settings: Settings,
    /// The fairness factor that a lock may have at most.
    pub fairness: Option<f64>,
    /// Those to choose from.
    pub locks: Vec<String>,
    pub interrupted: bool,
    pub loads: Vec<Load>,
    /// The lock for all loads.
    pub choice: Option<String>,
    /// Of each lock that can serve all loads, the least first.
    pub regrets: Vec<Regret>,
}
