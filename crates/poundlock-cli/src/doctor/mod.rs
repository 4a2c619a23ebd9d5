//! `poundlock doctor`: whether a program's locks can be replaced, and why not.

mod functions;
mod loader;
mod script;

use crate::args::DoctorArgs;
use crate::elf::{Elf, Language};
use crate::failure::Failure;
use crate::preload::{Library, own_machine};
use crate::program;
use crate::provenance::Provenance;
use crate::text_table;
use comfy_table::Table;
use functions::{Family, Imports};
use loader::Loaded;
use serde::Serialize;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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

/// A program with all that was found out about it.
struct Patient {
    path: PathBuf,
    elf: Elf,
    /// The preload library, or why there is none.
    preload: Result<Library, String>,
    /// `None` if the program has no loader that may be asked.
    loaded: Option<Loaded>,
    preload_fault: Option<String>,
    imports: Vec<Imports>,
}

/// Examines the program, prints what was found, and returns whether its locks can be replaced.
pub fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let report = examine(args)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report).map_err(Failure::ours)?);
    } else {
        print_report(&report);
    }
    Ok(if report.works { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn examine(args: &DoctorArgs) -> Result<Report, Failure> {
    // Not found is doctor's own failure here: 127 would be the exit status of a program that was to be run.
    let found = program::find(&args.program[0]).map_err(|failure| Failure::ours(failure.message))?;
    let mut scripts = Vec::new();
    let path = script::resolve(found, &mut scripts)?;
    let path = path.canonicalize().unwrap_or(path);
    let patient = Patient::admit(path, args.preload.preload.as_deref())?;
    let obstacle = patient.obstacle();
    let compiler = patient.preload.as_ref().ok().and_then(|library| library.elf.compiler.clone());
    Ok(Report {
        schema: "poundlock.doctor/1",
        provenance: Provenance::new(compiler.unwrap_or_else(|| poundlock::C_COMPILER.to_owned())),
        command: args.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        notes: patient.notes(!scripts.is_empty()),
        scripts,
        works: obstacle.is_none(),
        verdict: obstacle.unwrap_or_else(|| "its locks can be replaced".to_owned()),
        machine_type: patient.elf.machine,
        loader: patient.elf.loader,
        needed: patient.elf.needed,
        preload: patient.preload.ok().map(|library| library.path),
        imports: patient.imports,
        program: patient.path,
    })
}

impl Patient {
    fn admit(path: PathBuf, preload: Option<&Path>) -> Result<Patient, Failure> {
        let elf = Elf::read(&path).map_err(|why| unreadable(&path, &why))?;
        let preload = Library::find(preload).map_err(|failure| failure.message);
        let exports = preload.as_ref().ok().map(|library| &library.elf);
        let mut imports = vec![Imports::of(&path, &elf, exports)];
        let (mut loaded, mut preload_fault) = (None, None);
        if let Some(loader) = elf.loader.as_deref().filter(|_| elf.machine == own_machine())
            && loader::is_ours(loader)?
        {
            let found = loader::list(loader, &path, None)?;
            for library in &found.libraries {
                let elf = Elf::read(library).map_err(|why| unreadable(library, &why))?;
                imports.push(Imports::of(library, &elf, exports));
            }
            if let Ok(library) = &preload {
                preload_fault = loader::preload_fault(loader, &path, &library.path)?;
            }
            loaded = Some(found);
        }
        Ok(Patient { path, elf, preload, loaded, preload_fault, imports })
    }

    /// The first reason why the program's locks cannot be replaced.
    fn obstacle(&self) -> Option<String> {
        self.not_loadable().or_else(|| self.preload_obstacle()).or_else(|| self.nothing_to_interpose())
    }

    /// Why the program would load no library of ours, whatever is in it.
    fn not_loadable(&self) -> Option<String> {
        if self.elf.machine != own_machine() {
            return Some(format!("a {} program: the preload library is {}", self.elf.machine, own_machine()));
        }
        let Some(loader) = &self.elf.loader else {
            return Some(match self.elf.language {
                Language::Go => "a static Go program: its locks are the Go runtime's: nothing to interpose".to_owned(),
                Language::Rust => "a static Rust program: no loader runs, nothing to interpose".to_owned(),
                Language::Other => "statically linked: no loader runs, nothing to interpose".to_owned(),
            });
        };
        if loader.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-musl")) {
            return Some("linked with musl: the preload library is made for glibc".to_owned());
        }
        is_privileged(&self.path).then(|| {
            "setuid, setgid or with capabilities of its own: the loader ignores LD_PRELOAD for this user".to_owned()
        })
    }

    fn preload_obstacle(&self) -> Option<String> {
        let fault = self.loaded.as_ref().and_then(|loaded| loaded.faults.first());
        let fault = fault.map(|fault| format!("the program itself cannot start: {fault}"));
        fault.or_else(|| self.preload.as_ref().err().cloned()).or_else(|| self.preload_fault.clone())
    }

    /// How many functions that take locks are interposed: the program's own, and those of its libraries.
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
            // What a Go program itself imports is its runtime's start.
            Language::Go if libraries == 0 => {
                Some("a Go program: its locks are the Go runtime's: nothing to interpose".to_owned())
            }
            Language::Rust if own + libraries == 0 => Some(
                "a Rust program whose locks are the standard library's, on futexes: nothing to interpose".to_owned(),
            ),
            _ if own + libraries == 0 => {
                Some("neither it nor a library that it is linked with takes a lock that can be interposed".to_owned())
            }
            _ => None,
        }
    }

    /// What else its user should know.
    fn notes(&self, is_script: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if is_script {
            notes.push(
                "a script: the programs that it starts inherit the lock, and are to be asked about by themselves"
                    .to_owned(),
            );
        }
        match self.elf.language {
            Language::Go => notes.push("only C code's locks can be replaced in a Go program".to_owned()),
            Language::Rust => notes.push("only C and C++ code's locks can be replaced in a Rust program".to_owned()),
            Language::Other => {}
        }
        if self.only_libraries_lock() {
            notes.push(
                "it takes none of these locks itself, only libraries do that it is linked with: locks of its own making, and \
                 semaphores, stay as they are"
                    .to_owned(),
            );
        }
        if self.loaded.is_none() && self.elf.loader.is_some() {
            notes.push("its loader is not this system's: its libraries were not looked at".to_owned());
        }
        if self.elf.imports.iter().any(|symbol| symbol.name == "dlopen") {
            notes.push(
                "it loads libraries while it runs: their locks are replaced too, and not counted here".to_owned(),
            );
        }
        let counted = self.imports.iter().filter(|imports| !imports.runtime && self.preload.is_ok());
        let missed: BTreeSet<&str> = counted.flat_map(Imports::missed).map(|function| function.name.as_str()).collect();
        if !missed.is_empty() {
            notes.push(format!("not interposed: {}", missed.into_iter().collect::<Vec<_>>().join(", ")));
        }
        notes
    }
}

fn unreadable(path: &Path, why: &str) -> Failure {
    Failure::ours(format!("'{}': {why}", path.display()))
}

/// Whether the kernel gives the program other rights than its caller's, so that the loader distrusts the environment.
fn is_privileged(path: &Path) -> bool {
    let (user, group) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
    let other_owner = path.metadata().is_ok_and(|file| {
        (file.mode() & libc::S_ISUID != 0 && file.uid() != user)
            || (file.mode() & libc::S_ISGID != 0 && file.gid() != group)
    });
    other_owner || (user != 0 && has_capabilities(path))
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: both names are C strings, and nothing is written: the attribute's size is asked for.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

fn print_report(report: &Report) {
    for script in &report.scripts {
        println!("script    {}", script.display());
    }
    let linking = if report.loader.is_some() { "dynamic" } else { "static" };
    println!("program   {} ({}, {linking})", report.program.display(), report.machine_type);
    if let Some(preload) = &report.preload {
        println!("preload   {}", preload.display());
    }
    if report.imports.iter().any(|imports| !imports.functions.is_empty()) {
        println!("\nLock functions imported:\n{}\n", table(&report.imports));
    }
    for note in &report.notes {
        println!("note      {note}");
    }
    println!("verdict   {}: {}", if report.works { "yes" } else { "no" }, report.verdict);
}

fn table(imports: &[Imports]) -> Table {
    let header = ["by", "mutex", "cond", "rwlock", "spin", "C11", "interposed"];
    let mut table = text_table::with_header(&header, 1..header.len());
    for imports in imports.iter().filter(|imports| !imports.functions.is_empty()) {
        let mark = if imports.runtime { " (runtime: does not count)" } else { "" };
        let mut row = vec![format!("{}{mark}", imports.file)];
        row.extend(Family::ALL.map(|family| imports.count(family).to_string()));
        row.push(imports.functions.iter().filter(|function| function.interposed).count().to_string());
        table.add_row(row);
    }
    table
}
