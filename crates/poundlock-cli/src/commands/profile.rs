//! `poundlock profile`: the stacks of those who wait for locks, and of those whom they wait for.

use crate::failure::Failure;
use crate::options::{ProfileArgs, SourceArgs};
use crate::output::{Page, note, write};
use crate::statistics::source::Source;
use crate::statistics::table::time;
use crate::statistics::{Names, Process, folded};
use inferno::flamegraph::{self, Options};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// A profile: what each lock did, and the stacks.
pub struct Profile {
    pub source: Source,
    pub processes: Vec<Process>,
    /// Microseconds by line of functions, see [`folded`].
    pub lines: BTreeMap<String, u64>,
}

impl Profile {
    /// Gets it from where `args` say.
    pub fn get(args: &SourceArgs) -> Result<Profile, Failure> {
        let source = Source::get(args, true)?;
        if let Some(without) = source.observed.iter().find(|observed| !observed.profile) {
            let file = without.path.display();
            return Err(Failure::ours(format!(
                "'{file}' has no stacks: its process was started without POUNDLOCK_PROFILE=1"
            )));
        }
        let mut names = Names::default();
        let several = source.observed.len() > 1;
        let (mut processes, mut lines) = (Vec::new(), BTreeMap::new());
        for observed in &source.observed {
            let process = Process::of(observed, &mut names);
            lines.extend(folded(observed, &process, several, &mut names));
            processes.push(process);
        }
        Ok(Profile { source, processes, lines })
    }

    /// The flame graph as SVG; None if nobody waited.
    pub fn flame_graph(&self) -> Result<Option<String>, Failure> {
        if self.lines.is_empty() {
            return Ok(None);
        }
        let mut options = Options::default();
        options.title = "Waits for locks, and the holds that were waited for".to_owned();
        options.count_name = "us".to_owned();
        let lines: Vec<String> = self.folded();
        let mut svg = Vec::new();
        flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
            .map_err(|error| Failure::ours(format!("cannot draw: {error}")))?;
        Ok(Some(String::from_utf8_lossy(&svg).into_owned()))
    }

    fn folded(&self) -> Vec<String> {
        self.lines.iter().map(|(line, weight)| format!("{line} {weight}")).collect()
    }
}

/// Draws the stacks of a program's waiters and holders.
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
            note(format_args!("the flame graph is in {}", args.output.display()));
        }
        None => note("nobody waited for a lock: there is nothing to draw"),
    }
    Ok(ExitCode::from(profile.source.exit_code()))
}
