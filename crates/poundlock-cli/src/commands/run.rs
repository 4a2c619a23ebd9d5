//! `poundlock run`: replaces itself by the program, with its locks replaced.

use crate::control::settings;
use crate::failure::Failure;
use crate::inherited;
use crate::options::{OtherLocksArgs, PreloadArgs, default_lock};
use crate::program::obstacle;
use crate::program::preload::{self, Changes, Library};
use crate::rules;
use crate::spec::{self, Choice};
use crate::statistics::source;
use clap::Args;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Lock, NAME[,KEY=VALUE...] from `poundlock list`, or native
    #[arg(short, long, value_name = "SPEC", default_value = default_lock())]
    pub lock: String,
    #[command(flatten)]
    pub others: OtherLocksArgs,
    /// Collect statistics for `top`, `stat --pid` and `stat --file`, in a file in FOLDER [default:
    /// $XDG_RUNTIME_DIR or /dev/shm]
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    pub stats: Option<Option<PathBuf>>,
    /// Let `control` change the settings of single locks, by a file in FOLDER [default:
    /// $XDG_RUNTIME_DIR or /dev/shm]
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    pub control: Option<Option<PathBuf>>,
    /// Give single locks another algorithm or settings of their own, by the rules in FILE
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Print the lock in use to stderr
    #[arg(short, long)]
    pub verbose: bool,
    #[command(flatten)]
    pub preload: PreloadArgs,
    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub program: Vec<OsString>,
}

/// Replaces this process by the program. Returns only on failure.
pub fn run(args: &RunArgs) -> Failure {
    match environment(args) {
        Ok(changes) => exec(&args.program, changes),
        Err(failure) => failure,
    }
}

fn environment(args: &RunArgs) -> Result<Changes, Failure> {
    let choice = Choice::parse(&args.lock)?;
    spec::check_others(&args.others)?;
    let rules = args.rules.as_deref().map(|file| rules::checked(file, &choice)).transpose()?;
    let control = args.control.as_ref().map(|folder| control_folder(folder.as_deref(), &choice));
    let control = control.transpose()?;
    // Native locks need the library only to be counted.
    let library = if choice == Choice::Native && args.stats.is_none() {
        None
    } else {
        Some(Library::find(args.preload.preload.as_deref())?)
    };
    if library.is_some()
        && obstacle::report(&args.program[0]).is_some_and(|obstacle| obstacle.is_harmful())
    {
        return Ok(preload::changes(&Choice::Native, &OtherLocksArgs::default(), None));
    }
    let mut changes = preload::changes(&choice, &args.others, library.as_ref());
    if let Some(folder) = &args.stats {
        let folder = source::folder_or_default(folder.as_deref(), "statistics")?;
        changes.push(("POUNDLOCK_STATS", Some(folder)));
    }
    changes.extend(control.map(|folder| ("POUNDLOCK_CONTROL", Some(folder))));
    changes.extend(rules.map(|file| ("POUNDLOCK_RULES", Some(file.into()))));
    if args.verbose {
        changes.push(("POUNDLOCK_VERBOSE", Some("1".into())));
    }
    Ok(changes)
}

/// The value of POUNDLOCK_CONTROL, if settings of single locks can change with this lock.
fn control_folder(folder: Option<&Path>, lock: &Choice) -> Result<OsString, Failure> {
    let refused = |why: &str| Failure::ours(format!("--control: {why}"));
    match lock {
        Choice::Native => return Err(refused("native locks have no settings")),
        Choice::Lock(spec) => settings::word(spec).map_err(|why| refused(&why))?,
    };
    source::folder_or_default(folder, "a control page")
}

/// Executes `program`. Keeps the signal mask, unlike [`std::os::unix::process::CommandExt::exec`].
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
    inherited::close_on_exec();
    let Err(error) = nix::unistd::execvpe(&arguments[0], &arguments, &variables);
    Failure::of_program(&program[0], &io::Error::from(error))
}

fn c_string(string: OsString) -> CString {
    CString::new(string.into_vec()).expect("arguments and environment variables contain no NUL")
}
