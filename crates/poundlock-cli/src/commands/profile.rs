//! `poundlock profile`: the call stacks of waiters and of the holders that they wait for.

use crate::failure::Failure;
use crate::options::SourceArgs;
use crate::output::{Page, note, write};
use crate::statistics::Profile;
use crate::statistics::table::time;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct ProfileArgs {
    /// Output file of the flame graph (SVG)
    #[arg(short, long, value_name = "FILE", default_value = "poundlock-profile.svg")]
    pub output: PathBuf,
    /// Write the stacks to FILE as text, one per line, followed by microseconds
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// Number of stacks to print
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub rows: usize,
    #[command(flatten)]
    pub source: SourceArgs,
}

/// Collects the profile, prints its heaviest stacks and writes the flame graph.
pub fn profile(args: &ProfileArgs) -> Result<ExitCode, Failure> {
    Page::beside([&Some(args.output.clone()), &args.folded])?;
    let profile = Profile::get(&args.source)?;
    let mut heaviest: Vec<(&String, &u64)> = profile.lines.iter().collect();
    heaviest.sort_by_key(|(_, weight)| std::cmp::Reverse(**weight));
    for (line, weight) in heaviest.into_iter().take(args.rows) {
        let line = line.replace(';', " > ");
        Page::Stderr.show(format_args!("{:>10}  {line}", time(Some(*weight as f64 * 1e3))))?;
    }
    if let Some(file) = &args.folded {
        write(file, profile.folded().join("\n") + "\n")?;
    }
    match profile.flame_graph()? {
        Some(svg) => {
            write(&args.output, svg)?;
            note(format_args!("flame graph written to {}", args.output.display()));
        }
        None => note("no thread waited for a lock: there is nothing to draw"),
    }
    Ok(ExitCode::from(profile.source.exit_code()))
}
