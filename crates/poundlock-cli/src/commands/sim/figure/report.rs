//! The structures of the JSON of `sim figure`.

use super::file::Figure;
use super::judge::{Checked, Order};
use crate::points::{Point, Run};
use crate::provenance::Provenance;
use serde::Serialize;

/// A figure as it came out.
#[derive(Debug, Serialize)]
pub struct Drawn {
    pub figure: Figure,
    pub simulated_machine: String,
    pub step: f64,
    pub points: Vec<Point>,
    pub runs: Vec<Run>,
    pub results: Vec<Checked>,
    pub orders: Vec<Order>,
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    #[serde(flatten)]
    pub provenance: Provenance,
    pub seed: u64,
    pub seeds: u32,
    pub interrupted: bool,
    pub figures: Vec<Drawn>,
}
