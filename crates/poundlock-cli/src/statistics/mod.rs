//! What the preload library saw of a process's locks: the file it leaves (docs/statistics.md), what that amounts to, and
//! the names of what is in it.

mod file;
mod find;
pub mod folded;
pub mod layout;
mod names;
mod profile;
pub mod source;
mod summary;
pub mod table;

pub use file::Observed;
pub use find::file_of;
pub use names::Names;
pub use profile::Profile;
pub use summary::{Lock, Process};
