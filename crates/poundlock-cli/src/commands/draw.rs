//! `poundlock draw`: the pictures that bench/picture.py and bench/scenario.py describe.

use crate::failure::Failure;
use crate::output;
use crate::plot::curves::{self, Picture};
use std::process::ExitCode;

/// Prints the picture that the JSON `description` specifies, as SVG.
pub fn draw(description: &str) -> Result<ExitCode, Failure> {
    let picture: Picture = serde_json::from_str(description).map_err(Failure::ours)?;
    output::print(curves::svg(&picture).map_err(Failure::ours)?)?;
    Ok(ExitCode::SUCCESS)
}
