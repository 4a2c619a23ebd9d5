//! `poundlock top`: the locks of a running process, live.

mod change;
mod detail;
mod history;
mod request;
mod screen;
mod settings;
mod view;

use super::terminal;
use crate::failure::Failure;
use crate::options::seconds;
use crate::output::{self, Page};
use crate::statistics::table::legend;
use crate::statistics::{Lock, Names, Observed, Process, file_of};
use change::{Change, Column};
use clap::Args;
use crossterm::event::{self, Event};
use history::History;
use request::Request;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use view::View;

/// The columns and the verdict, for `--help`.
fn columns() -> String {
    legend(&screen::MEANINGS)
        + "\n\nEach figure but `hold` is of the time since the previous display. The line below the \
           locks is a verdict on the time since the start: whether threads wait, and for which lock."
}

#[derive(Args, Debug)]
#[command(after_long_help = columns())]
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
    let mut terminal = terminal::take("--once")?;
    let mut view = View::new(args.sort);
    let ended = show(&mut terminal, &mut watch, &mut view, args.interval);
    ratatui::restore();
    if matches!(ended, Ok(true)) {
        output::note(format_args!("process {} has ended", args.pid));
    } else {
        for undo in view.undo(args.pid) {
            output::note(format_args!("{undo}"));
        }
    }
    ended.map(|_| ExitCode::SUCCESS)
}

/// A process, with its statistics at the last display.
struct Watch {
    pid: u32,
    file: std::path::PathBuf,
    names: Names,
    last: Process,
    at: Instant,
    history: History,
}

impl Watch {
    fn begin(pid: u32) -> Result<Watch, Failure> {
        let file = file_of(pid)?;
        let mut names = Names::default();
        let last = Process::of(&Observed::read(&file)?, &mut names);
        let mut watch =
            Watch { pid, file, names, last, at: Instant::now(), history: History::default() };
        watch.history.add(watch.at, &watch.last);
        Ok(watch)
    }

    /// Returns the change since the last display.
    fn look(&mut self) -> Result<Change, Failure> {
        let now = Process::of(&Observed::read(&self.file)?, &mut self.names);
        let at = Instant::now();
        let change = Change::between(&self.last, &now, at - self.at);
        self.history.add(at, &now);
        self.last = now;
        self.at = at;
        Ok(change)
    }

    fn lock(&self, index: u32) -> Option<&Lock> {
        self.last.locks.iter().find(|lock| lock.index == index)
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
    view: &mut View,
    interval: Duration,
) -> Result<bool, Failure> {
    while watch.is_alive() {
        view.change = watch.look()?;
        let next_look = Instant::now() + interval;
        loop {
            terminal.draw(|frame| view.draw(frame, watch)).map_err(terminal::failed)?;
            match next_request(next_look, view.shows_one()).map_err(terminal::failed)? {
                None => break,
                Some(Request::Quit) => return Ok(false),
                Some(request) => view.handle(request, watch)?,
            }
        }
    }
    Ok(true)
}

/// Waits until `end` for a request.
fn next_request(end: Instant, one_lock: bool) -> std::io::Result<Option<Request>> {
    while event::poll(end.saturating_duration_since(Instant::now()))? {
        match event::read()? {
            Event::Key(key) => {
                if let Some(request) = Request::of(key, one_lock) {
                    return Ok(Some(request));
                }
            }
            _ => return Ok(Some(Request::Draw)),
        }
    }
    Ok(None)
}
