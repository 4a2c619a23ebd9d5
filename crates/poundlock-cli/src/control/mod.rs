//! The control page of a process, by which the settings of its mutexes are changed
//! (docs/control.md).

mod layout;
mod page;
pub mod settings;

#[cfg(test)]
pub use layout::VERSION;
#[cfg(test)]
pub use page::{MAGIC, parse};
pub use page::{Mutex, Page, Replaced, is_file_of_page, read};
pub use settings::{LOCK, Settings};
