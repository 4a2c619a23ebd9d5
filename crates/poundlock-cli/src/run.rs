//! `poundlock run`: becomes the program, with its locks replaced.

use crate::args::RunArgs;
use crate::elf;
use crate::failure::Failure;
use crate::preload::{self, Changes, Library};
use crate::program;
use crate::spec::{self, Choice};
use crate::stats::source;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;

/// Runs the program in place of this process. Returns only if it could not.
pub fn run(args: &RunArgs) -> Failure {
    match environment(args) {
        Ok(changes) => exec(&args.program, changes),
        Err(failure) => failure,
    }
}

fn environment(args: &RunArgs) -> Result<Changes, Failure> {
    let choice = Choice::parse(&args.lock)?;
    spec::check_others(&args.others)?;
    let library = match choice {
        Choice::Native => None,
        Choice::Lock(_) => Some(Library::find(args.preload.preload.as_deref())?),
    };
    if library.is_some() {
        say_if_static(&args.program[0]);
    }
    let mut changes = preload::changes(&choice, &args.others, library.as_ref());
    if let Some(folder) = &args.stats {
        if choice == Choice::Native {
            return Err(Failure::ours("native locks are not observed: name another with --lock"));
        }
        changes.push(("POUNDLOCK_STATS", Some(source::folder_or_default(folder.as_deref())?)));
    }
    if args.verbose {
        changes.push(("POUNDLOCK_VERBOSE", Some("1".into())));
    }
    Ok(changes)
}

/// A program without a loader runs as well as ever, but not under our locks.
fn say_if_static(program: &OsStr) {
    if program::find(program).is_ok_and(|path| elf::is_static(&path)) {
        let name = program.to_string_lossy();
        eprintln!("poundlock: '{name}' is statically linked: it runs with its own locks");
    }
}

/// Becomes `program`. Unlike [`std::os::unix::process::CommandExt::exec`] it leaves the signal mask as it was found.
fn exec(program: &[OsString], changes: Changes) -> Failure {
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in changes {
        match value {
            Some(value) => variables.insert(name.into(), value),
            None => variables.remove(OsStr::new(name)),
        };
    }
    let variables = variables.into_iter().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name
    });
    let arguments: Vec<CString> = program.iter().cloned().map(c_string).collect();
    let variables: Vec<CString> = variables.map(c_string).collect();
    let Err(error) = nix::unistd::execvpe(&arguments[0], &arguments, &variables);
    Failure::of_program(&program[0], &io::Error::from(error))
}

fn c_string(string: OsString) -> CString {
    CString::new(string.into_vec()).expect("what came as an argument or a variable has no NUL")
}
