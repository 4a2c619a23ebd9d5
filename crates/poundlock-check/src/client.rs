// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients: C files compiled against world/check and loaded. They are compiled at run time, so that the core that is
//! checked is the one in the tree, or a mutant of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use libloading::{Library, Symbol};
use regex::Regex;

use crate::abi::{self, Client, Engine};
use crate::machine::HOOKS;

/// Where the sources are.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The repository.
    pub root: PathBuf,
    /// The locks: core/ of the repository, or a mutant of it.
    pub core: PathBuf,
    /// Whether the compiler's warnings are errors; not in a mutant, where something may have become useless.
    pub strict: bool,
}

/// A line of core/locks.def.
#[derive(Clone, Debug)]
pub struct Lock {
    pub name: String,
    /// BARE or NODE.
    pub kind: String,
}

impl Sources {
    fn definitions(&self, file: &str, pattern: &str) -> Result<Vec<Vec<String>>> {
        let path = self.core.join(file);
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let pattern = Regex::new(pattern).expect("a constant pattern");
        let groups = |found: regex::Captures| found.iter().flatten().skip(1).map(|m| m.as_str().into()).collect();
        Ok(pattern.captures_iter(&text).map(groups).collect())
    }

    /// The locks of core/locks.def.
    pub fn locks(&self) -> Result<Vec<Lock>> {
        let lines = self.definitions("locks.def", r"(?m)^LOCK\((\w+), (\w+),")?;
        Ok(lines.into_iter().map(|line| Lock { name: line[0].clone(), kind: line[1].clone() }).collect())
    }

    /// The names of the readers-writer locks of core/locks.def.
    pub fn rw_locks(&self) -> Result<Vec<String>> {
        Ok(self.definitions("locks.def", r"(?m)^RWLOCK\((\w+),")?.into_iter().map(|line| line[0].clone()).collect())
    }

    /// The names of core/events.def, in order.
    pub fn events(&self) -> Result<Vec<String>> {
        Ok(self.definitions("events.def", r"(?m)^EVENT\((\w+),")?.into_iter().map(|line| line[0].clone()).collect())
    }

    /// Where `build` leaves the library of that name.
    pub fn library(folder: &Path, name: &str) -> PathBuf {
        folder.join(format!("{name}.so"))
    }

    /// Compiles what is linked to all clients.
    pub fn build_glue(&self, folder: &Path) -> Result<()> {
        self.compile(&self.root.join("crates/poundlock-check/csrc/runtime.c"), &[], &folder.join(GLUE))
    }

    /// Takes the glue that was built in another folder.
    pub fn copy_glue(from: &Path, to: &Path) -> Result<()> {
        std::fs::copy(from.join(GLUE), to.join(GLUE)).map(drop).context("cannot copy the glue")
    }

    /// Compiles tests/check/`file` with `defines`. `folder`, where the glue has been built, is for what the compiler makes.
    pub fn build(&self, name: &str, file: &str, defines: &[String], folder: &Path) -> Result<PathBuf> {
        let library = Sources::library(folder, name);
        let object = folder.join(format!("{name}.o"));
        let mut flags = vec!["-fsanitize=thread".into(), "--param=tsan-instrument-func-entry-exit=0".into()];
        flags.extend(defines.iter().map(|define| format!("-D{define}")));
        self.compile(&self.root.join("tests/check").join(file), &flags, &object)?;
        // Bsymbolic: memset and memcpy are the glue's.
        let objects = [object, folder.join(GLUE)];
        run(Command::new(COMPILER).args(["-shared", "-Wl,-Bsymbolic", "-o"]).arg(&library).args(objects))?;
        Ok(library)
    }

    fn compile(&self, source: &Path, flags: &[String], object: &Path) -> Result<()> {
        let mut command = Command::new(COMPILER);
        command.args(["-std=gnu11", "-O1", "-g", "-fPIC", "-fno-omit-frame-pointer"]);
        command.args(if self.strict { &["-Wall", "-Wextra", "-Werror"][..] } else { &["-w"] });
        command.arg("-I").arg(self.root.join("world/check")).arg("-I").arg(&self.core);
        run(command.args(flags).arg("-c").arg(source).arg("-o").arg(object))
    }
}

/// Its thread sanitizer tells of all accesses to an object on the stack that others can reach; clang 14's leaves some out.
pub const COMPILER: &str = "gcc";
const GLUE: &str = "glue.o";

/// Runs the compiler.
pub fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {COMPILER}"))?;
    if !output.status.success() {
        bail!("{COMPILER}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Loads a library of clients, for good: what it tells is used as if it were static.
pub fn load(path: &Path) -> Result<Vec<&'static Client>> {
    // SAFETY: the library is ours: it has no constructors, and its symbols have the types of world/check/check.h.
    unsafe {
        let library: &'static Library = Box::leak(Box::new(Library::new(path)?));
        if **library.get::<*const usize>(c"check_engine_size")? != size_of::<Engine>() {
            bail!("world/check/engine.h and abi.rs differ");
        }
        let bind: Symbol<extern "C" fn(*const Engine)> = library.get(c"check_bind")?;
        bind(&HOOKS);
        let mut client: *const Client = *library.get::<*const Client>(c"check_clients")?;
        let mut clients = Vec::new();
        while !(*client).name.is_null() {
            clients.push(&*client);
            client = client.add(1);
        }
        if clients.is_empty() {
            bail!("{} has no clients", path.display());
        }
        Ok(clients)
    }
}

/// The words of a client's text.
pub fn words(text: *const std::ffi::c_char) -> Vec<&'static str> {
    abi::text(text).split_whitespace().collect()
}
