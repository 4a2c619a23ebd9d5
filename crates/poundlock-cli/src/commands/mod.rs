//! The subcommands, each in a module of its name.

pub mod bench;
pub mod compare;
pub mod doctor;
pub mod latency;
pub mod list;
pub mod profile;
pub mod report;
pub mod route;
pub mod run;
pub mod sim;
pub mod stat;
pub mod top;
pub mod topo;
