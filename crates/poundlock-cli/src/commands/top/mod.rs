//! `poundlock top`: the locks of a running process, live.

mod change;
mod screen;

use crate::failure::{Failure, reason};
use crate::options::seconds;
use crate::output::{self, Page};
use crate::statistics::{Names, Observed, Process, file_of};
use change::{Change, Column};
use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
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
    /// Column to sort by
    #[arg(short, long, value_name = "COLUMN", default_value = "waiters")]
    pub sort: Column,
    /// Print one interval as text and exit
    #[arg(long)]
    pub once: bool,
}

/// Shows the locks of a process until the process ends or the user quits.
pub fn top(args: &TopArgs) -> Result<ExitCode, Failure> {
    let mut watch = Watch::begin(args.pid)?;
    if args.once {
        std::thread::sleep(args.interval);
        let mut change = watch.look()?;
        change.sort(args.sort);
        output::print(screen::text(&change, args.sort, Page::Stdout.width()) + "\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut terminal = ratatui::try_init().map_err(|error| {
        Failure::ours(format!(
            "cannot use the terminal: {}; --once works without one",
            reason(&error)
        ))
    })?;
    let ended = show(&mut terminal, &mut watch, args);
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
    args: &TopArgs,
) -> Result<bool, Failure> {
    let failed = |error| Failure::ours(format!("the terminal failed: {}", reason(&error)));
    let mut sorted_by = args.sort;
    while watch.is_alive() {
        let mut change = watch.look()?;
        let next_look = Instant::now() + args.interval;
        loop {
            change.sort(sorted_by);
            terminal.draw(|frame| screen::draw(frame, &change, sorted_by)).map_err(failed)?;
            match next_request(next_look).map_err(failed)? {
                None => break,
                Some(Request::Quit) => return Ok(false),
                Some(Request::Sort(column)) => sorted_by = column,
                Some(Request::Draw) => {}
            }
        }
    }
    Ok(true)
}

/// A request of the user.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    Quit,
    Sort(Column),
    /// The terminal changed.
    Draw,
}

/// Waits until `end` for a request.
fn next_request(end: Instant) -> std::io::Result<Option<Request>> {
    while event::poll(end.saturating_duration_since(Instant::now()))? {
        match event::read()? {
            Event::Key(key) => {
                if let Some(request) = request_of(key) {
                    return Ok(Some(request));
                }
            }
            _ => return Ok(Some(Request::Draw)),
        }
    }
    Ok(None)
}

fn request_of(key: KeyEvent) -> Option<Request> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => Some(Request::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Request::Quit),
        KeyCode::Char(key) => screen::column_of(key).map(Request::Sort),
        _ => None,
    }
}
