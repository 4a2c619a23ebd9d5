//! Machines, workloads and published figures: by the names of those that come with poundlock, or
//! from files.

use crate::failure::{Failure, reason};
use crate::program::own_path;
use poundlock_bench::Workload;
use poundlock_topology::input;
use std::path::{Path, PathBuf};

/// A kind of file. Its folders are relative to that of this binary: installed, or in a build tree
/// (target/PROFILE/poundlock or target/TRIPLE/PROFILE/poundlock).
pub struct Kind {
    /// The noun in messages.
    name: &'static str,
    places: [&'static str; 3],
}

pub const MACHINES: Kind = Kind {
    name: "machine",
    places: ["../share/poundlock/machines", "../../machines", "../../../machines"],
};
pub const WORKLOADS: Kind = Kind {
    name: "workload",
    places: ["../share/poundlock/workloads", "../../bench/workloads", "../../../bench/workloads"],
};

pub const FIGURES: Kind = Kind {
    name: "figure",
    places: ["../share/poundlock/figures", "../../bench/figures", "../../../bench/figures"],
};

impl Kind {
    /// The names of all files of this kind.
    pub fn names(&self) -> Result<Vec<String>, Failure> {
        self.folder().map(|folder| names(&folder))
    }

    /// The file of a name. An argument with an extension or a slash is itself a path.
    pub fn find(&self, given: &str) -> Result<PathBuf, Failure> {
        if given.contains('/') || Path::new(given).extension().is_some() {
            return Ok(given.into());
        }
        let folder = self.folder()?;
        let file = folder.join(format!("{given}.toml"));
        if file.is_file() {
            return Ok(file);
        }
        let known = names(&folder).join(", ");
        Err(Failure::ours(format!("there is no {} '{given}'; known are {known}", self.name)))
    }

    fn folder(&self) -> Result<PathBuf, Failure> {
        let own = own_path()?;
        let own = own.parent().unwrap_or(Path::new("/")).to_owned();
        let found = self.places.iter().find_map(|place| own.join(place).canonicalize().ok());
        found.ok_or_else(|| {
            let (near, name) = (own.display(), self.name);
            Failure::ours(format!("no {name}s found near {near}: give a path with its extension"))
        })
    }
}

/// The names of the files in `folder`, without extension, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let mut names: Vec<String> =
        files.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// Reads the workload of a name or a file.
pub fn workload(given: &str) -> Result<Workload, Failure> {
    let file = WORKLOADS.find(given)?;
    let text = input::text(&file).map_err(|error| reason(&error));
    let workload =
        text.and_then(|text| Workload::from_toml(&text).map_err(|wrong| wrong.to_string()));
    workload.map_err(|wrong| Failure::ours(format!("'{}': {wrong}", file.display())))
}
