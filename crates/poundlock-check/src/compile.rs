// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles clients against world/check and loads them: at run time, so that the checked locks are
//! those in the tree, or a mutant of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use libloading::{Library, Symbol};

use crate::abi::{Client, Engine};
use crate::machine::hooks::HOOKS;
use crate::sources::Sources;

/// GCC's thread sanitizer instruments all accesses to stack objects that other threads can reach;
/// that of clang 14 omits some.
pub const COMPILER: &str = "gcc";
/// The source of the runtime, which is linked into each library of clients, and its object.
const RUNTIME: &str = "crates/poundlock-check/csrc/runtime.c";
const RUNTIME_OBJECT: &str = "runtime.o";

/// The library of that name in `folder`.
pub fn library(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.so"))
}

/// The object of that name in `folder`, of which the library is linked.
pub fn object(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.o"))
}

/// Compiles the runtime into `folder`.
pub fn build_runtime(sources: &Sources, folder: &Path) -> Result<()> {
    compile(sources, &sources.root.join(RUNTIME), &[], &folder.join(RUNTIME_OBJECT))
}

/// Copies the runtime that was compiled into another folder.
pub fn copy_runtime(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from.join(RUNTIME_OBJECT), to.join(RUNTIME_OBJECT))
        .map(drop)
        .context("cannot copy the runtime")
}

/// Whether the objects of that name in two folders differ.
pub fn differ(one: &Path, other: &Path, name: &str) -> Result<bool> {
    let read = |folder: &Path| {
        let path = object(folder, name);
        std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    Ok(read(one)? != read(other)?)
}

/// Compiles tests/check/`file` with `defines` to a library in `folder`, which has the runtime.
pub fn build(
    sources: &Sources,
    name: &str,
    file: &str,
    defines: &[String],
    folder: &Path,
) -> Result<PathBuf> {
    let library = library(folder, name);
    let object = object(folder, name);
    let mut flags =
        vec!["-fsanitize=thread".into(), "--param=tsan-instrument-func-entry-exit=0".into()];
    flags.extend(defines.iter().map(|define| format!("-D{define}")));
    compile(sources, &sources.root.join("tests/check").join(file), &flags, &object)?;
    // Bsymbolic: memset and memcpy are those of the runtime.
    let objects = [object, folder.join(RUNTIME_OBJECT)];
    run(Command::new(COMPILER)
        .args(["-shared", "-Wl,-Bsymbolic", "-o"])
        .arg(&library)
        .args(objects))?;
    Ok(library)
}

fn compile(sources: &Sources, source: &Path, flags: &[String], object: &Path) -> Result<()> {
    let mut command = Command::new(COMPILER);
    command.args(["-std=gnu11", "-O1", "-g", "-fPIC", "-fno-omit-frame-pointer"]);
    command.args(if sources.strict { &["-Wall", "-Wextra", "-Werror"][..] } else { &["-w"] });
    command.arg("-I").arg(sources.root.join("world/check")).arg("-I").arg(&sources.core);
    // Equal code is an equal object, wherever its core/ is.
    command.arg(format!("-ffile-prefix-map={}=core", sources.core.display()));
    run(command.args(flags).arg("-c").arg(source).arg("-o").arg(object))
}

/// Runs the compiler.
pub fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {COMPILER}"))?;
    if !output.status.success() {
        bail!("{COMPILER}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Loads a library of clients, which is never unloaded, so that its objects are static.
pub fn load(path: &Path) -> Result<Vec<&'static Client>> {
    // SAFETY: `build` made the library: it has no constructors, and its symbols have the types that
    // world/check declares.
    unsafe {
        let library: &'static Library = Box::leak(Box::new(Library::new(path)?));
        if **library.get::<*const usize>(c"check_engine_size")? != size_of::<Engine>() {
            bail!(
                "struct check_engine of world/check/engine.h differs from Engine of crates/poundlock-check/src/abi.rs"
            );
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
