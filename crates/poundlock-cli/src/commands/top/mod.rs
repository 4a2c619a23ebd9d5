//! `poundlock top`: the locks of a running process, live.

mod change;
mod screen;

use crate::failure::{Failure, reason};
use crate::options::seconds;
use crate::output;
use crate::statistics::{Names, Observed, Process, file_of};
use change::Change;
use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    /// Process ID
    #[arg(short, long, value_name = "PID")]
    pub pid: u32,
    /// Time between displays
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub interval: Duration,
    /// Print one interval as text and exit
    #[arg(long)]
    pub once: bool,
}

/// Shows the locks of a process until the process ends or the user quits.
pub fn top(args: &TopArgs) -> Result<ExitCode, Failure> {
    let mut watch = Watch::begin(args.pid)?;
    if args.once {
        std::thread::sleep(args.interval);
        output::print(screen::text(&watch.look()?) + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut terminal = ratatui::try_init().map_err(|error| {
        Failure::ours(format!(
            "cannot use the terminal: {}; --once works without one",
            reason(&error)
        ))
    })?;
    let ended = show(&mut terminal, &mut watch, args.interval);
    ratatui::restore();
    if ended? {
        output::note(format_args!("process {} has ended", args.pid));
    }
    Ok(ExitCode::SUCCESS)
}

/// A process, with its statistics at the previous display.
struct Watch {
    pid: u32,
    file: std::path::PathBuf,
    names: Names,
    before: Process,
    at: Instant,
}

impl Watch {
    fn begin(pid: u32) -> Result<Watch, Failure> {
        let file = file_of(pid)?;
        let mut names = Names::default();
        let before = Process::of(&Observed::read(&file)?, &mut names);
        Ok(Watch { pid, file, names, before, at: Instant::now() })
    }

    /// Returns the change since the previous display.
    fn look(&mut self) -> Result<Change, Failure> {
        let now = Process::of(&Observed::read(&self.file)?, &mut self.names);
        let change = Change::between(&self.before, &now, self.at.elapsed());
        self.before = now;
        self.at = Instant::now();
        Ok(change)
    }

    fn is_alive(&self) -> bool {
        Path::new(&format!("/proc/{}/maps", self.pid)).exists()
            && file_of(self.pid).is_ok_and(|file| file == self.file)
    }
}

/// Draws until the process has ended (returns true) or the user quits (returns false).
fn show(
    terminal: &mut ratatui::DefaultTerminal,
    watch: &mut Watch,
    interval: Duration,
) -> Result<bool, Failure> {
    let failed = |error| Failure::ours(format!("the terminal failed: {}", reason(&error)));
    loop {
        let change = watch.look()?;
        terminal.draw(|frame| screen::draw(frame, &change)).map_err(failed)?;
        if wants_to_quit(interval).map_err(failed)? {
            return Ok(false);
        }
        if !watch.is_alive() {
            return Ok(true);
        }
    }
}

/// Waits for `time`, or until the user quits (returns true) or the terminal changes.
fn wants_to_quit(time: Duration) -> std::io::Result<bool> {
    let end = Instant::now() + time;
    while event::poll(end.saturating_duration_since(Instant::now()))? {
        let Event::Key(key) = event::read()? else {
            return Ok(false); // resized: draw again
        };
        let control_c =
            key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
            return Ok(true);
        }
    }
    Ok(false)
}
