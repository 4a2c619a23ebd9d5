//! The display of one lock in `top`.

use super::change::Rates;
use super::history::{History, Window};
use super::screen::figure;
use crate::statistics::Lock;
use crate::statistics::table::{percent, time};
use crate::text_table::{ABSENT, number};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::widgets::{Paragraph, Row, Sparkline, Table};

/// The contents of the display.
pub struct Detail<'a> {
    pub heading: &'a str,
    pub lock: &'a Lock,
    pub history: &'a History,
    /// The lock's settings, or the reason why they cannot be changed.
    pub settings: Result<String, String>,
    /// The reason why the last change failed.
    pub failure: Option<&'a str>,
}

/// Formats a figure.
type Figure = fn(&Rates) -> String;

/// The figures, by their names.
const FIGURES: [(&str, Figure); 7] = [
    ("acquired/s", |rates| number(rates.taken)),
    ("contended", |rates| percent(rates.contended)),
    ("waiters", |rates| number(rates.waited)),
    ("mean wait", |rates| time(rates.wait_mean_ns)),
    ("parks/s", |rates| rates.parks.map_or(ABSENT.to_owned(), number)),
    ("hand-overs in a domain/s", |rates| number(rates.local)),
    ("hand-overs between domains/s", |rates| number(rates.remote)),
];

const KEYS: &str =
    "q: quit, Esc: back; p: policy, +/-: patience, >/<: batch, ]/[: spins, d: default";

/// Draws the display on the whole terminal.
pub fn draw(frame: &mut Frame<'_>, detail: &Detail<'_>) {
    let height = |lines: usize| Constraint::Length(u16::try_from(lines).unwrap_or(u16::MAX));
    let texts = lines(detail);
    let [head, text, figures, taken, waited, stack, foot] = Layout::vertical([
        height(1),
        height(texts.len() + 1),
        height(FIGURES.len() + 2),
        height(3),
        height(3),
        Constraint::Fill(1),
        height(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(detail.heading).bold(), head);
    frame.render_widget(Paragraph::new(texts.join("\n")), text);
    frame.render_widget(table(detail), figures);
    let intervals = detail.history.intervals(detail.lock.index);
    curve(frame, taken, "acquired/s", intervals.iter().map(|rates| rates.taken).collect());
    curve(frame, waited, "waiters", intervals.iter().map(|rates| rates.waited).collect());
    frame.render_widget(Paragraph::new(stack_lines(detail.lock).join("\n")), stack);
    frame.render_widget(Paragraph::new(KEYS).dim(), foot);
}

/// The lines about the lock as a whole.
fn lines(detail: &Detail<'_>) -> Vec<String> {
    let lock = detail.lock;
    let factor = lock.fairness_factor.map_or(ABSENT.to_owned(), number);
    let mut lines = vec![
        format!("{} at {}", lock.label(), lock.address),
        match &detail.settings {
            Ok(settings) => format!("settings: {settings}"),
            Err(why) => format!("settings cannot be changed: {why}"),
        },
        format!(
            "{} waiting now, the longest wait {}; held for {} on average",
            lock.waiting,
            time((lock.contended > 0).then_some(lock.wait_max_ns as f64)),
            time(lock.hold_mean_ns),
        ),
        format!("acquired by {} threads, fairness factor {factor}", lock.threads),
    ];
    lines.extend(detail.failure.map(|why| format!("not changed: {why}")));
    lines
}

/// The figures of the last interval, and before and since the last change.
fn table(detail: &Detail<'_>) -> Table<'static> {
    let (history, lock) = (detail.history, detail.lock.index);
    let heading = |what: &str, window: Option<Window>| {
        window.map_or(what.to_owned(), |window| {
            format!("{what} ({:.0} s)", window.time.as_secs_f64())
        })
    };
    let last = history.intervals(lock).pop();
    let (before, current) = (history.before_change(lock), history.current(lock));
    let mut columns = vec![("now".to_owned(), last)];
    if history.is_changed(lock) {
        columns.push((heading("before change", before), before.map(|window| window.rates)));
        columns.push((heading("since change", current), current.map(|window| window.rates)));
    } else {
        columns.push((heading("mean", current), current.map(|window| window.rates)));
    }
    let rows = FIGURES.map(|(name, of)| {
        let cells = columns.iter().map(|(_, rates)| rates.as_ref().map_or(ABSENT.to_owned(), of));
        Row::new([name.to_owned().into()].into_iter().chain(cells.map(figure)))
    });
    let widths = columns.iter().map(|(name, _)| name.chars().count().max(12));
    let widths: Vec<_> = [FIGURES.iter().map(|(name, _)| name.len()).max().unwrap_or(0)]
        .into_iter()
        .chain(widths)
        .map(|width| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)))
        .collect();
    let names = columns.into_iter().map(|(name, _)| figure(name));
    let header = Row::new([String::new().into()].into_iter().chain(names));
    Table::new(rows, widths).column_spacing(2).header(header.style(Style::new().bold()))
}

/// A title with the largest value, over a curve whose last values are at the right.
fn curve(frame: &mut Frame<'_>, area: Rect, title: &str, values: Vec<f64>) {
    let most = values.iter().copied().fold(0.0, f64::max);
    let [text, bars] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let title = format!("{title}, at most {}", number(most));
    frame.render_widget(Paragraph::new(title).dim(), text);
    let shown = &values[values.len().saturating_sub(bars.width.into())..];
    // Sparkline draws integers.
    const SCALE: f64 = 1000.0;
    let heights: Vec<u64> =
        shown.iter().map(|value| (value / most.max(f64::MIN_POSITIVE) * SCALE) as u64).collect();
    frame.render_widget(Sparkline::default().data(&heights).max(SCALE as u64), bars);
}

fn stack_lines(lock: &Lock) -> Vec<String> {
    if lock.stack.is_empty() {
        return Vec::new();
    }
    let frames = lock.stack.iter().map(|frame| format!("  {frame}"));
    ["first waiter:".to_owned()].into_iter().chain(frames).collect()
}

#[cfg(test)]
mod tests {
    use super::{Detail, FIGURES, History, draw};
    use crate::commands::top::history::tests::history_of;
    use crate::statistics::{Lock, Named, Side};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn lock() -> Lock {
        Lock {
            name: "cache".to_owned(),
            named_by: Named::Symbol,
            side: Side::Mutex,
            api: false,
            address: "0x1000".to_owned(),
            lives: 1,
            stack: vec!["get".to_owned(), "main".to_owned()],
            acquisitions: 9,
            contended: 3,
            contended_share: None,
            trylock_failures: 0,
            timeouts: 0,
            waiting: 5,
            wait_ns: 0,
            wait_share: None,
            wait_mean_ns: None,
            wait_max_ns: 2_000,
            queue_mean: None,
            queue_max: 0,
            holds_timed: 0,
            hold_mean_ns: Some(70.0),
            hold_max_ns: 0,
            hold_ns: None,
            handovers_local: 0,
            handovers_remote: 0,
            parks: None,
            wakeups_in_section: None,
            threads: 4,
            fairness_factor: Some(0.5),
            jain: None,
            index: 0,
            place: Some(0x1000),
        }
    }

    fn drawn(history: &History, settings: Result<&str, &str>, failure: Option<&str>) -> String {
        let detail = Detail {
            heading: "program (7)",
            lock: &lock(),
            history,
            settings: settings.map(str::to_owned).map_err(str::to_owned),
            failure,
        };
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal");
        terminal.draw(|frame| draw(frame, &detail)).expect("it is drawn");
        let buffer = terminal.backend().buffer();
        let line = |y| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..24).map(|y| line(y).trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn a_terminal_of_24_lines_has_room_for_all_figures() {
        let mut history = history_of(&[10, 30]);
        let screen = drawn(&history, Ok("patience=4,policy=numa,batch=9, set by start"), None);
        for text in [
            "program (7)",
            "cache at 0x1000",
            "settings: patience=4,policy=numa,batch=9, set by start",
            "5 waiting now, the longest wait 2.000 us; held for 70 ns on average",
            "acquired by 4 threads, fairness factor 0.5000",
            "mean (2 s)",
            "acquired/s, at most 30.00",
            "first waiter:",
            "  get",
            "Esc: back",
        ] {
            assert!(screen.contains(text), "{text}: {screen}");
        }
        assert!(FIGURES.iter().all(|(name, _)| screen.contains(name)), "{screen}");
        let figures = |screen: &str| {
            let line = screen.lines().find(|line| line.starts_with("acquired/s  "));
            let words = line.expect("a line").split_whitespace().skip(1).map(str::to_owned);
            words.collect::<Vec<_>>()
        };
        assert_eq!(figures(&screen), ["30.00", "20.00"]);
        history.changed(0);
        let screen = drawn(&history, Err("no control page"), Some("too much"));
        assert!(screen.contains("settings cannot be changed: no control page"), "{screen}");
        assert!(screen.contains("not changed: too much"), "{screen}");
        assert!(screen.contains("before change (2 s)") && screen.contains("since change"));
        assert_eq!(figures(&screen), ["30.00", "20.00", "-"]);
    }
}
