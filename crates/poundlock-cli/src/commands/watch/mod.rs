//! `poundlock watch`: what a running process waits for.

#[cfg(feature = "watch")]
mod live;
#[cfg(feature = "watch")]
mod page;

use crate::failure::Failure;
use crate::options::duration;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Process ID
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
    /// Stop after a time such as 500ms, 10s or 2m [default: at Ctrl-C, or when the process ends]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub limit: Option<Duration>,
    /// Number of locks, and of other waits of each kind, to show
    #[arg(long, value_name = "N", default_value = "5")]
    pub top: usize,
    /// Also count waits for locks of the kernel
    #[arg(long)]
    pub kernel: bool,
    /// Write the report with all stacks to FILE as JSON (-: stdout; the text then goes to stderr)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as a page to FILE (HTML)
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// Watches until the end, and reports.
#[cfg(feature = "watch")]
pub fn watch(args: &WatchArgs) -> Result<ExitCode, Failure> {
    use crate::output::{Page, json, note, write};
    use crate::watch::Session;
    use std::io::{IsTerminal, stdin, stdout};
    let page = Page::beside([&args.json, &args.report])?;
    let stop = crate::runs::interrupts()?;
    let session = Session::begin(args.pid, args.kernel)?;
    let is_live = args.limit.is_none()
        && args.json.is_none()
        && args.report.is_none()
        && stdin().is_terminal()
        && stdout().is_terminal();
    let report = if is_live {
        live::watch(session, args.top, &stop)?
    } else {
        crate::watch::watch(session, args.limit, &stop)?
    };
    page.show(crate::watch::text(&report, args.top))?;
    if let Some(file) = &args.json {
        write(file, json(&report)?)?;
    }
    if let Some(file) = &args.report {
        write(file, page::page(&report)?.into_string())?;
        note(format_args!("report written to {}", file.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails: this build has no BPF program.
#[cfg(not(feature = "watch"))]
pub fn watch(_: &WatchArgs) -> Result<ExitCode, Failure> {
    Err(Failure::ours(
        "this poundlock was built without watch: build it with clang and cargo's feature `watch`",
    ))
}
