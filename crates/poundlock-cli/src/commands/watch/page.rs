//! The report of `watch` as a page.

use crate::commands::page;
use crate::failure::Failure;
use crate::output::undrawable;
use crate::plot::bars::{self, Bar, Chart};
use crate::plot::flame_graph;
use crate::provenance::Provenance;
use crate::runs::Spread;
use crate::watch::{Report, Wait, What};
use maud::{Markup, PreEscaped, html};
use std::collections::BTreeMap;

/// The page: verdict, split of thread time, locks with their stacks, flame graph of the waiters.
pub fn page(report: &Report) -> Result<Markup, Failure> {
    let title = format!("Process {} ({})", report.pid, report.command);
    let split = bars::svg(&split(report)).map_err(undrawable)?;
    let lines = folded(report);
    let flames = match lines.is_empty() {
        true => None,
        false => {
            let title = "Waits for locks, by lock and stack";
            Some(flame_graph::svg(title, "us", &lines).map_err(undrawable)?)
        }
    };
    let other = |what| report.waits.iter().filter(move |wait| wait.what == what);
    let goroutines: Vec<&Wait> =
        report.goroutines.iter().flatten().filter(|wait| wait.what == What::Lock).collect();
    let body = html! {
        p { strong { (report.verdict) } }
        h2 { (format!("{:.1} s, {:.1} s of thread time", report.seconds, report.time.total)) }
        (PreEscaped(split))
        (table("Locks", &report.locks().collect::<Vec<_>>()))
        (table("Locks for which goroutines sleep", &goroutines))
        (table("Semaphores", &other(What::Semaphore).collect::<Vec<_>>()))
        (table("Unclassified futex waits", &other(What::Unknown).collect::<Vec<_>>()))
        (table("Idle", &other(What::Idle).collect::<Vec<_>>()))
        @if let Some(flames) = &flames {
            h2 { "Waiters" }
            p { "Each lock has its waiters by time waited. The outermost functions are at the top." }
            (page::flame_graph(flames))
        }
    };
    Ok(page::page(&title, &Provenance::new("unknown".to_owned()), &body))
}

/// The split of thread time.
fn split(report: &Report) -> Chart {
    let bar = |(name, seconds): (&'static str, f64)| Bar {
        name: name.to_owned(),
        spread: Some(Spread { median: seconds, min: seconds, max: seconds }),
        figure: format!("{seconds:.3} s"),
        detail: format!("{:.1} %", seconds / report.time.total.max(f64::MIN_POSITIVE) * 100.0),
        failure: String::new(),
        is_reference: false,
    };
    Chart {
        title: String::new(),
        caption: String::new(),
        axis: "time of all threads, s".to_owned(),
        bars: report.time.parts().map(bar).collect(),
    }
}

const HEADER: [&str; 7] =
    ["lock", "taken in", "share", "time, s", "waits", "longest, ms", "holder off its CPU"];

fn table(title: &str, waits: &[&Wait]) -> Markup {
    let percent = |share: Option<f64>| {
        share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    html! {
        @if !waits.is_empty() {
            h2 { (title) }
            table {
                tr { @for name in HEADER { th { (name) } } }
                @for wait in waits {
                    tr {
                        td { (wait.label()) }
                        td { (wait.function()) }
                        td { (percent(wait.share)) }
                        td { (format!("{:.3}", wait.seconds)) }
                        td { (wait.waits) }
                        td { (format!("{:.1}", wait.longest * 1e3)) }
                        td { (percent(wait.holder_off_share)) }
                    }
                }
            }
            @for wait in waits { (stacks(wait)) }
        }
    }
}

/// The stacks of a lock's waiters, of the threads that woke them, and of running holders.
fn stacks(wait: &Wait) -> Markup {
    let waiters = wait.sites.iter().map(|it| (format!("{:.3} s", it.seconds), &it.stack));
    let releases = wait.releases.iter().map(|it| (format!("{} wake-ups", it.wakes), &it.stack));
    let holders = wait.holders.iter().map(|it| (format!("{} samples", it.samples), &it.stack));
    html! {
        details {
            summary { "Stacks of " (wait.label()) }
            @for (title, stacks) in [
                ("Waiters", waiters.collect::<Vec<_>>()),
                ("Wake-ups", releases.collect()),
                ("Running holders", holders.collect()),
            ] {
                @for (weight, stack) in stacks {
                    p { (title) ": " (weight) }
                    @for function in stack { code { (function) } br; }
                }
            }
        }
    }
}

/// The stacks of waiters, with the lock as the outermost frame and the time in microseconds.
fn folded(report: &Report) -> Vec<String> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let locks = report.locks().chain(report.goroutines.iter().flatten());
    for wait in locks.filter(|wait| wait.what == What::Lock) {
        for site in &wait.sites {
            let mut frames = vec![wait.label()];
            frames.extend(site.stack.iter().rev().cloned());
            let line = frames.iter().map(|name| name.replace(';', ":")).collect::<Vec<_>>();
            *lines.entry(line.join(";")).or_default() += (site.seconds * 1e6).ceil() as u64;
        }
    }
    lines.into_iter().map(|(line, weight)| format!("{line} {weight}")).collect()
}
