// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which clients there are: those of the checker itself, those of the threads' records, lock.c once a lock, and what
//! only that is asked, and rw.c once a readers-writer lock.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use crate::abi::{self, Client};
use crate::client::{Sources, load};
use crate::pool;

/// A file of clients, and what it is compiled with.
pub struct File {
    pub name: String,
    path: String,
    defines: Vec<String>,
    /// The header of the lock that it is about.
    pub header: Option<String>,
}

/// All files of clients.
pub fn files(sources: &Sources) -> Result<Vec<File>> {
    let own = |name: &str, path: &str| File { name: name.into(), path: path.into(), defines: Vec::new(), header: None };
    let mut files = vec![own("litmus", "litmus.c"), own("seeded", "seeded.c"), own("records", "records.c")];
    for lock in sources.locks()? {
        let header = format!("{}.h", lock.name);
        let include = format!("LOCK_HEADER=\"{header}\"");
        let traits = format!("LOCK_TRAITS=\"locks/{header}\"");
        let defines = vec![format!("LOCK={}", lock.name), include, traits, format!("LOCK_{}", lock.kind)];
        let extra = format!("locks/{}.c", lock.name);
        if sources.root.join("tests/check").join(&extra).exists() {
            let name = format!("{}+", lock.name);
            files.push(File { name, path: extra, defines: defines.clone(), header: Some(header.clone()) });
        }
        files.push(File { name: lock.name, path: "lock.c".into(), defines, header: Some(header) });
    }
    for name in sources.rw_locks()? {
        let header = format!("rw/{name}.h");
        let defines = vec![format!("LOCK={name}"), format!("LOCK_HEADER=\"{header}\"")];
        files.push(File { name, path: "rw.c".into(), defines, header: Some(header) });
    }
    Ok(files)
}

/// A client, and its full name.
#[derive(Clone)]
pub struct Entry {
    pub name: String,
    pub client: &'static Client,
}

impl File {
    /// Its clients. What the compiler makes stays in `folder` while they are used.
    pub fn clients(&self, sources: &Sources, folder: &Path) -> Result<Vec<Entry>> {
        self.load(&sources.build(&self.name, &self.path, &self.defines, folder)?)
    }

    fn load(&self, library: &Path) -> Result<Vec<Entry>> {
        let named =
            |client: &'static Client| Entry { name: format!("{}/{}", self.name, abi::text(client.name)), client };
        Ok(load(library)?.into_iter().map(named).collect())
    }
}

/// The clients of `files`, compiled several at a time.
pub fn all(files: &[&File], sources: &Sources, folder: &Path) -> Result<Vec<Entry>> {
    sources.build_glue(folder)?;
    let next = AtomicUsize::new(0);
    let build = || -> Result<()> {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            sources.build(&file.name, &file.path, &file.defines, folder)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let builders: Vec<_> = (0..pool::workers()).map(|_| scope.spawn(build)).collect();
        builders.into_iter().try_for_each(|builder| builder.join().expect("builders do not panic"))
    })?;
    let loaded = files.iter().map(|file| file.load(&Sources::library(folder, &file.name)));
    Ok(loaded.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}
