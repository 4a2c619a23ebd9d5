//! A profile: the statistics of a program's locks with the stacks of waiters and holders.

use super::folded::folded;
use super::names::Names;
use super::source::Source;
use super::summary::Process;
use crate::failure::Failure;
use crate::options::SourceArgs;
use crate::output::undrawable;
use crate::plot::flame_graph;
use std::collections::BTreeMap;

/// The statistics of all processes, and their stacks.
pub struct Profile {
    pub source: Source,
    pub processes: Vec<Process>,
    /// Microseconds by folded stack, see [`folded`].
    pub lines: BTreeMap<String, u64>,
}

impl Profile {
    /// Collects the profile from the source that `args` name.
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

    /// The flame graph as SVG; None if no thread waited.
    pub fn flame_graph(&self) -> Result<Option<String>, Failure> {
        if self.lines.is_empty() {
            return Ok(None);
        }
        let title = "Waits for locks, and the holds that were waited for";
        flame_graph::svg(title, "us", &self.folded()).map(Some).map_err(undrawable)
    }

    /// The stacks as text: a line each, with its weight at the end.
    pub fn folded(&self) -> Vec<String> {
        self.lines.iter().map(|(line, weight)| format!("{line} {weight}")).collect()
    }
}
