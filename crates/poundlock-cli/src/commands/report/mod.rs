//! `poundlock report`: a self-contained page about a program's locks.

use crate::failure::Failure;
use crate::options::SourceArgs;
use crate::output::{Page, note, undrawable, write};
use crate::plot::bars::{self, Bar, Chart};
use crate::provenance::Provenance;
use crate::runs::Spread;
use crate::statistics::Profile;
use crate::statistics::table::{HEADER, MEANINGS, heading, notes, row, time};
use crate::statistics::{Lock, Process};
use clap::Args;
use maud::{Markup, PreEscaped, html};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// Output file (HTML)
    #[arg(short, long, value_name = "FILE", default_value = "poundlock-report.html")]
    pub output: PathBuf,
    /// Number of locks to show per process
    #[arg(short = 'n', long, value_name = "N", default_value_t = 30)]
    pub rows: usize,
    #[command(flatten)]
    pub source: SourceArgs,
}

/// Collects the profile and writes the page.
pub fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    Page::beside([&Some(args.output.clone())])?;
    let profile = Profile::get(&args.source)?;
    let compiler = profile.source.compiler.clone().unwrap_or_else(|| "unknown".to_owned());
    let command: Vec<_> = args.source.program.iter().map(|word| word.to_string_lossy()).collect();
    let page = page(&profile, &command.join(" "), &Provenance::new(compiler), args.rows)?;
    write(&args.output, page.into_string())?;
    note(format_args!("report written to {}", args.output.display()));
    Ok(ExitCode::from(profile.source.exit_code()))
}

fn page(
    profile: &Profile,
    command: &str,
    provenance: &Provenance,
    rows: usize,
) -> Result<Markup, Failure> {
    let title = if command.is_empty() { "Locks".to_owned() } else { format!("Locks of {command}") };
    let flames = profile.flame_graph()?;
    let processes =
        profile.processes.iter().map(|of| process(of, rows)).collect::<Result<Vec<_>, _>>()?;
    let body = html! {
        @if processes.is_empty() { p { "No process acquired a lock that is counted." } }
        @for process in &processes { (process) }
        @if !processes.is_empty() {
            details {
                summary { "Columns" }
                dl { @for (name, meaning) in MEANINGS { dt { (name) } dd { (meaning) } } }
            }
        }
        @if let Some(flames) = &flames {
            h2 { "Waiters and holders" }
            p { "Each lock has its waiters by time waited, and its holders by the time of the holds that delayed
                a waiter. The outermost functions are at the bottom." }
            (super::page::flame_graph(flames))
        }
    };
    Ok(super::page::page(&title, provenance, &body))
}

fn process(process: &Process, rows: usize) -> Result<Markup, Failure> {
    let shown: Vec<&Lock> = process.locks.iter().take(rows).collect();
    let waited: Vec<&Lock> = shown.iter().copied().filter(|lock| lock.contended > 0).collect();
    let plot = if waited.is_empty() {
        None
    } else {
        Some(bars::svg(&waits(&waited)).map_err(undrawable)?)
    };
    Ok(html! {
        h2 { (heading(process)) }
        @if let Some(plot) = &plot { (PreEscaped(plot)) }
        table {
            tr { @for name in HEADER { th { (name) } } }
            @for lock in &shown { tr { @for cell in row(lock) { td { (cell) } } } }
        }
        @if process.locks.len() > rows { p.faint { "and " (process.locks.len() - rows) " more" } }
        @for note in notes(process) { p { (note) } }
        p { strong { (process.verdict) } }
        @for lock in waited.iter().filter(|lock| !lock.stack.is_empty()) {
            details {
                summary { "First waiter of " (lock.label()) }
                @for function in &lock.stack { code { (function) } br; }
            }
        }
    })
}

/// The time that threads waited for each lock.
fn waits(locks: &[&Lock]) -> Chart {
    let bar = |lock: &&Lock| {
        let waited = lock.wait_ns as f64 / 1e6;
        Bar {
            name: lock.label(),
            spread: Some(Spread { median: waited, min: waited, max: waited }),
            figure: time(Some(lock.wait_ns as f64)),
            detail: format!("longest {}", time(Some(lock.wait_max_ns as f64))),
            failure: String::new(),
            is_reference: false,
        }
    };
    Chart {
        title: String::new(),
        caption: String::new(),
        axis: "time waited by all threads, ms".to_owned(),
        bars: locks.iter().map(bar).collect(),
    }
}
