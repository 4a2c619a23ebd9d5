//! A report as text.

use super::report::{Report, Wait};
use super::sites::What;
use crate::text_table::shorten;
use std::fmt::Write;

/// The number of functions of a stack, and of stacks of a lock.
const FRAMES: usize = 8;
const STACKS: usize = 3;

/// Names of functions are cut to this length.
const NAME: usize = 90;

/// The report, with the `top` locks and as many other waits.
pub fn text(report: &Report, top: usize) -> String {
    let mut out = String::new();
    let time = &report.time;
    let threads = if report.threads == 1 { "thread" } else { "threads" };
    let _ = writeln!(
        out,
        "Process {} ({}), {:.1} s: {} {threads}, {} ended; {:.1} s of thread time{}",
        report.pid,
        shorten(&report.command, 60),
        report.seconds,
        report.threads,
        report.threads_ended,
        time.total,
        if report.ended { "; the process has ended" } else { "" },
    );
    out.push('\n');
    for (name, seconds) in time.parts() {
        let share = if time.total > 0.0 { seconds / time.total * 100.0 } else { 0.0 };
        let _ = writeln!(out, "  {name:<26}{share:5.1} %  {seconds:10.3} s");
    }
    section(&mut out, "Locks", report.waits.iter(), What::Lock, top);
    let goroutines = report.goroutines.iter().flatten();
    section(&mut out, "Locks for which goroutines sleep", goroutines, What::Lock, top);
    section(&mut out, "Semaphores", report.waits.iter(), What::Semaphore, top);
    section(&mut out, "Unclassified futex waits", report.waits.iter(), What::Unknown, top);
    section(&mut out, "Idle", report.waits.iter(), What::Idle, top.min(STACKS));
    if !report.system_calls.is_empty() {
        out.push_str("\nOther sleep\n");
    }
    for call in report.system_calls.iter().take(top) {
        let _ = writeln!(out, "  {:<26}{:13.3} s  {:9} times", call.name, call.seconds, call.waits);
    }
    kernel_locks(&mut out, report, top);
    lost(&mut out, report);
    let _ = write!(out, "\n{}", report.verdict);
    out
}

/// The first functions of `counts`, with their shares of the sum.
fn shares<'a>(out: &mut String, counts: impl Iterator<Item = (u64, &'a str)> + Clone, what: &str) {
    let all: u64 = counts.clone().map(|(count, _)| count).sum();
    for (count, function) in counts.take(STACKS) {
        let share = count as f64 / all as f64 * 100.0;
        let _ = writeln!(out, "    {share:5.1} % of {all} {what} {}", shorten(function, NAME));
    }
}

fn section<'a>(
    out: &mut String,
    title: &str,
    waits: impl Iterator<Item = &'a Wait>,
    what: What,
    top: usize,
) {
    let waits: Vec<&Wait> = waits.filter(|wait| wait.what == what).collect();
    if waits.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for wait in waits.iter().take(top) {
        entry(out, wait);
    }
    if waits.len() > top {
        let rest: f64 = waits[top..].iter().map(|wait| wait.seconds).sum();
        let _ = writeln!(out, "  and {} more: {rest:.3} s", waits.len() - top);
    }
}

fn entry(out: &mut String, wait: &Wait) {
    let share = wait.share.map(|share| format!("{:.1} %, ", share * 100.0)).unwrap_or_default();
    let _ = writeln!(
        out,
        "  {}: {share}{:.3} s in {} waits, longest {:.1} ms",
        wait.label(),
        wait.seconds,
        wait.waits,
        wait.longest * 1e3,
    );
    if wait.what == What::Idle {
        if let Some(site) = wait.sites.first() {
            let _ = writeln!(out, "      in {}", shorten(&site.function, NAME));
        }
        return;
    }
    for site in wait.sites.iter().take(STACKS) {
        let share = site.seconds / wait.seconds.max(f64::MIN_POSITIVE) * 100.0;
        let _ = writeln!(out, "    {share:5.1} % waits in {}", shorten(&site.function, NAME));
        for name in site.stack.iter().take(FRAMES) {
            let _ = writeln!(out, "            {}", shorten(name, NAME));
        }
        if site.stack.is_empty() {
            out.push_str("            (no stack was copied)\n");
        }
    }
    if wait.what != What::Lock {
        return;
    }
    let releases = wait.releases.iter().map(|release| (release.wakes, &*release.function));
    shares(out, releases, "wake-ups from");
    let holders = wait.holders.iter().map(|holder| (holder.samples, &*holder.function));
    shares(out, holders, "samples of the running holder in");
    if let Some(share) = wait.holder_off_share {
        let _ = writeln!(
            out,
            "    the holder was off its CPU in at least {:.0} % of the waiting time",
            share * 100.0
        );
    }
}

fn kernel_locks(out: &mut String, report: &Report, top: usize) {
    let Some(locks) = &report.kernel_locks else { return };
    out.push_str("\nLocks of the kernel\n");
    if locks.is_empty() {
        out.push_str("  none was waited for\n");
    }
    for lock in locks.iter().take(top) {
        let _ = writeln!(
            out,
            "  {}: {:.3} s in {} waits, longest {:.1} ms",
            lock.kind,
            lock.seconds,
            lock.waits,
            lock.longest * 1e3,
        );
        for name in lock.stack.iter().take(FRAMES) {
            let _ = writeln!(out, "            {}", shorten(name, NAME));
        }
    }
}

fn lost(out: &mut String, report: &Report) {
    let lost = &report.lost;
    let parts = [
        (lost.threads, "thread switches"),
        (lost.waits, "waits"),
        (lost.releases, "wake-ups"),
        (lost.stacks, "stacks"),
        (lost.goroutines, "sleeps of goroutines"),
    ];
    let texts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    if !texts.is_empty() {
        let _ = writeln!(out, "\nNot recorded, for want of room: {}", texts.join(", "));
    }
}
