//! `poundlock doctor`: checks whether a program's locks can be replaced.

mod functions;
mod loader;

use crate::failure::Failure;
use crate::options::PreloadArgs;
use crate::output;
use crate::program::elf::{Elf, Language};
use crate::program::obstacle::Obstacle;
use crate::program::preload::{Library, own_machine};
use crate::program::{self, script};
use crate::provenance::Provenance;
use crate::text_table;
use clap::Args;
use comfy_table::Table;
use functions::{Family, Imports};
use loader::Loaded;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub preload: PreloadArgs,
    /// Program; its arguments are ignored
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub program: Vec<OsString>,
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    #[serde(flatten)]
    provenance: Provenance,
    command: Vec<String>,
    scripts: Vec<PathBuf>,
    program: PathBuf,
    machine_type: String,
    loader: Option<PathBuf>,
    needed: Vec<String>,
    preload: Option<PathBuf>,
    imports: Vec<Imports>,
    notes: Vec<String>,
    works: bool,
    verdict: String,
}

/// A program with the findings about it.
struct Patient {
    path: PathBuf,
    elf: Elf,
    /// The preload library, or the reason why it cannot be used.
    preload: Result<(Library, Elf), String>,
    /// None if the program has no loader that may be executed.
    loaded: Option<Loaded>,
    preload_fault: Option<String>,
    imports: Vec<Imports>,
}

/// Examines the program and prints the findings. The exit status is 0 if its locks can be replaced.
pub fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let report = examine(args)?;
    if args.json {
        output::print(output::json(&report)?)?;
    } else {
        output::print(text(&report))?;
    }
    Ok(if report.works { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn examine(args: &DoctorArgs) -> Result<Report, Failure> {
    // A program that is not found is a failure of doctor itself, which runs no program.
    let found =
        program::find(&args.program[0]).map_err(|failure| Failure::ours(failure.message))?;
    let mut scripts = Vec::new();
    let path = script::resolve(found, &mut scripts)?;
    let path = path.canonicalize().unwrap_or(path);
    let patient = Patient::admit(path, args.preload.preload.as_deref())?;
    let obstacle = patient.obstacle();
    let compiler = patient.preload.as_ref().ok().and_then(|(_, elf)| elf.compiler.clone());
    Ok(Report {
        schema: "poundlock.doctor/1",
        provenance: Provenance::new(compiler.unwrap_or_else(|| poundlock::C_COMPILER.to_owned())),
        command: args.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        notes: patient.notes(!scripts.is_empty()),
        scripts,
        works: obstacle.is_none(),
        verdict: obstacle.unwrap_or_else(|| "its locks can be replaced".to_owned()),
        machine_type: patient.elf.head.machine,
        loader: patient.elf.head.loader,
        needed: patient.elf.needed,
        preload: patient.preload.ok().map(|(library, _)| library.path),
        imports: patient.imports,
        program: patient.path,
    })
}

impl Patient {
    fn admit(path: PathBuf, preload: Option<&Path>) -> Result<Patient, Failure> {
        let elf = Elf::read(&path).map_err(|why| unreadable(&path, &why))?;
        let found =
            Library::find(preload).and_then(|library| library.elf().map(|elf| (library, elf)));
        let preload = found.map_err(|failure| failure.message);
        let exports = preload.as_ref().ok().map(|(_, elf)| elf);
        let mut imports = vec![Imports::of(&path, &elf, exports)];
        let (mut loaded, mut preload_fault) = (None, None);
        if let Some(loader) =
            elf.head.loader.as_deref().filter(|_| elf.head.machine == own_machine())
            && loader::is_ours(loader)?
        {
            let found = loader::list(loader, &path, None)?;
            for library in &found.libraries {
                let elf = Elf::read(library).map_err(|why| unreadable(library, &why))?;
                imports.push(Imports::of(library, &elf, exports));
            }
            if let Ok((library, _)) = &preload {
                preload_fault = loader::preload_fault(loader, &path, &library.path)?;
            }
            loaded = Some(found);
        }
        Ok(Patient { path, elf, preload, loaded, preload_fault, imports })
    }

    /// The first reason why the program's locks cannot be replaced.
    fn obstacle(&self) -> Option<String> {
        self.not_loadable()
            .or_else(|| self.preload_obstacle())
            .or_else(|| self.nothing_to_interpose())
    }

    /// The reason why the program cannot load the preload library.
    fn not_loadable(&self) -> Option<String> {
        let obstacle = Obstacle::of(&self.path, &self.elf.head)?;
        Some(match (&obstacle, self.elf.language) {
            (Obstacle::Static, Language::Go) => {
                "a static Go program: its locks belong to the Go runtime and cannot be replaced"
                    .to_owned()
            }
            (Obstacle::Static, Language::Rust) => {
                "a static Rust program: no loader runs, so its locks cannot be replaced".to_owned()
            }
            (Obstacle::Static, Language::Other) => {
                format!("it {obstacle}: no loader runs, so its locks cannot be replaced")
            }
            _ => format!("it {obstacle}"),
        })
    }

    fn preload_obstacle(&self) -> Option<String> {
        let fault = self.loaded.as_ref().and_then(|loaded| loaded.faults.first());
        let fault = fault.map(|fault| format!("the program itself cannot start: {fault}"));
        fault
            .or_else(|| self.preload.as_ref().err().cloned())
            .or_else(|| self.preload_fault.clone())
    }

    /// The numbers of interposed functions that acquire locks: of the program itself, and of its
    /// libraries.
    fn interposed(&self) -> (usize, usize) {
        let own = self.imports.first().map_or(0, Imports::interposed);
        (own, self.imports.iter().skip(1).map(Imports::interposed).sum())
    }

    fn only_libraries_lock(&self) -> bool {
        let (own, libraries) = self.interposed();
        own == 0 && libraries > 0
    }

    fn nothing_to_interpose(&self) -> Option<String> {
        let (own, libraries) = self.interposed();
        match self.elf.language {
            // The imports of a Go program itself belong to the start of its runtime.
            Language::Go if libraries == 0 => {
                Some("a Go program: its locks belong to the Go runtime and cannot be replaced".to_owned())
            }
            Language::Rust if own + libraries == 0 => Some(
                "a Rust program: the locks of its standard library use futexes directly and cannot be replaced"
                    .to_owned(),
            ),
            _ if own + libraries == 0 && self.elf.uses_api => {
                Some("it already uses Poundlock's own locks: there is nothing to replace".to_owned())
            }
            _ if own + libraries == 0 => Some(
                "neither the program nor a library that it is linked with acquires a lock that can be replaced"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// Further findings for the user.
    fn notes(&self, is_script: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if is_script {
            notes.push(
                "a script: the programs that it starts inherit the lock; check them separately"
                    .to_owned(),
            );
        }
        match self.elf.language {
            Language::Go => {
                notes.push("in a Go program only the locks of C code can be replaced".to_owned())
            }
            Language::Rust => notes.push(
                "in a Rust program only the locks of C and C++ code can be replaced".to_owned(),
            ),
            Language::Other => {}
        }
        if self.elf.uses_api {
            notes.push(
                "it uses Poundlock's API: those locks keep the program's choice; stat counts them, except uncontended \
                 operations on a pound_mutex_t"
                    .to_owned(),
            );
        }
        if self.only_libraries_lock() {
            notes.push(
                "only its libraries acquire these locks, not the program itself: semaphores and locks that a program \
                 implements itself are not replaced"
                    .to_owned(),
            );
        }
        if self.loaded.is_none() && self.elf.head.loader.is_some() {
            notes.push(
                "its loader is not that of this system: its libraries were not examined".to_owned(),
            );
        }
        if self.elf.imports.iter().any(|symbol| symbol.name == "dlopen") {
            notes.push(
                "it can load libraries at run time: their locks are also replaced, but not listed here".to_owned(),
            );
        }
        let counted =
            self.imports.iter().filter(|imports| !imports.runtime && self.preload.is_ok());
        let missed: BTreeSet<&str> =
            counted.flat_map(Imports::missed).map(|function| function.name.as_str()).collect();
        if !missed.is_empty() {
            notes.push(format!(
                "not interposed: {}",
                missed.into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
        notes
    }
}

fn unreadable(path: &Path, why: &str) -> Failure {
    Failure::ours(format!("'{}': {why}", path.display()))
}

fn text(report: &Report) -> String {
    let mut lines = Vec::new();
    for script in &report.scripts {
        lines.push(format!("script    {}", script.display()));
    }
    let linking = if report.loader.is_some() { "dynamic" } else { "static" };
    lines.push(format!(
        "program   {} ({}, {linking})",
        report.program.display(),
        report.machine_type
    ));
    if let Some(preload) = &report.preload {
        lines.push(format!("preload   {}", preload.display()));
    }
    if report.imports.iter().any(|imports| !imports.functions.is_empty()) {
        lines.push(format!("\nLock functions imported:\n{}\n", table(&report.imports)));
    }
    lines.extend(report.notes.iter().map(|note| format!("note      {note}")));
    lines.push(format!(
        "verdict   {}: {}\n",
        if report.works { "yes" } else { "no" },
        report.verdict
    ));
    lines.join("\n")
}

fn table(imports: &[Imports]) -> Table {
    let header = ["by", "mutex", "cond", "rwlock", "spin", "C11", "interposed"];
    let mut table = text_table::with_header(&header, 1..header.len());
    for imports in imports.iter().filter(|imports| !imports.functions.is_empty()) {
        let mark = if imports.runtime { " (runtime: not counted)" } else { "" };
        let mut row = vec![format!("{}{mark}", imports.file)];
        row.extend(Family::ALL.map(|family| imports.count(family).to_string()));
        row.push(
            imports.functions.iter().filter(|function| function.interposed).count().to_string(),
        );
        table.add_row(row);
    }
    table
}
