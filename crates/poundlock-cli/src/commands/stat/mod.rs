//! `poundlock stat`: the contention, hold times and fairness of each lock of a program.

mod spreadsheet;

use crate::failure::Failure;
use crate::options::SourceArgs;
use crate::output::{Page, json, note, write};
use crate::provenance::{Provenance, environment};
use crate::statistics::source::Source;
use crate::statistics::{Names, Process, table};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// The columns of the table, for `--help`.
fn columns() -> String {
    table::legend(&table::MEANINGS)
        + "\n\nThe last line is a verdict: whether threads wait for locks, and for which."
}

#[derive(Args, Debug)]
#[command(after_long_help = columns())]
pub(crate) struct StatArgs {
    /// Number of locks to print per process
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
    /// Write all locks to FILE as JSON (-: stdout)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write all locks to FILE as CSV (-: stdout)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    #[command(flatten)]
    pub source: SourceArgs,
}

/// Collects the statistics and prints them.
pub fn stat(args: &StatArgs) -> Result<ExitCode, Failure> {
    Page::beside([&args.json, &args.csv])?;
    let source = Source::get(&args.source, false)?;
    let mut names = Names::default();
    let processes: Vec<Process> =
        source.observed.iter().map(|observed| Process::of(observed, &mut names)).collect();
    if processes.is_empty() {
        note(
            "no process acquired a lock that is counted: `poundlock doctor` checks whether the program's locks can be \
             replaced. A pound_mutex_t counts only when a thread waits for it",
        );
    }
    for process in &processes {
        Page::Stderr
            .show(format_args!("\n{}", table::table(process, args.rows, Page::Stderr.width())))?;
    }
    if let Some(file) = &args.csv {
        write(file, spreadsheet::csv(&processes).map_err(Failure::ours)?)?;
    }
    if let Some(file) = &args.json {
        write(file, json(&Document::of(args, &source, &processes))?)?;
    }
    Ok(ExitCode::from(source.exit_code()))
}

/// The document of `--json`; docs/cli.md describes it.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    provenance: Provenance,
    command: Vec<String>,
    environment: std::collections::BTreeMap<String, String>,
    exit_status: Option<u8>,
    processes: &'a [Process],
}

impl<'a> Document<'a> {
    fn of(args: &StatArgs, source: &Source, processes: &'a [Process]) -> Document<'a> {
        Document {
            schema: "poundlock.stat/1",
            provenance: Provenance::new(
                source.compiler.clone().unwrap_or_else(|| "unknown".to_owned()),
            ),
            command: args
                .source
                .program
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            environment: environment(),
            exit_status: source.status.is_some().then(|| source.exit_code()),
            processes,
        }
    }
}
