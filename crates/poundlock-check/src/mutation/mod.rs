// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutation testing: the clients and the locks' unit tests must detect small changes to the locks,
//! and the faults of earlier implementations.

mod attribute;
mod attribution;
mod detect;
mod faults;
mod lists;
mod mutant;
mod orders;
mod run;
mod unit;

pub use attribute::attribute;
pub use run::run;
