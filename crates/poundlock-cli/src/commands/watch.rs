//! `poundlock watch`: what a running process waits for.

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
}

/// Watches until the end, and reports.
#[cfg(feature = "watch")]
pub fn watch(args: &WatchArgs) -> Result<ExitCode, Failure> {
    use crate::output::{Page, json, write};
    let page = Page::beside([&args.json])?;
    let stop = crate::runs::interrupts()?;
    let report = crate::watch::watch(args.pid, args.limit, args.kernel, &stop)?;
    page.show(crate::watch::text(&report, args.top))?;
    if let Some(file) = &args.json {
        write(file, json(&report)?)?;
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
