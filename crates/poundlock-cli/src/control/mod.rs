//! The control page of a process, by which the settings of its locks are changed
//! (docs/control.md).

mod layout;
mod page;
pub mod settings;

#[cfg(test)]
pub use layout::VERSION;
pub use page::{Item, Page, Replaced, is_file_of_page, read};
#[cfg(test)]
pub use page::{MAGIC, parse};
pub use settings::{Kind, Settings};
