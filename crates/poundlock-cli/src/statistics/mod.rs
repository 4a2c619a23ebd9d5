//! Statistics of a process's locks: the file that the preload library writes (docs/statistics.md),
//! its summary, and the names of addresses.

mod debug_file;
mod file;
mod find;
pub mod folded;
pub mod layout;
mod names;
mod profile;
pub mod source;
mod summary;
pub mod table;
mod time;
mod verdict;

pub use file::Module;
pub use file::{Observed, open_regular};
pub use find::{file_of, files_in};
pub use names::{Names, WRAPPERS_OF_CXX, demangle, without_arguments};
pub use profile::Profile;
pub use summary::{Lock, Process};
#[cfg(test)]
pub use summary::{Named, Side};
pub use verdict::NEGLIGIBLE;
