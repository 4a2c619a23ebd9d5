//! The page docs/fidelity.md.

use super::file::At;
use super::report::Report;
use super::text::{cells, counts, order_line, short};
use crate::text_table::ABSENT;
use std::fmt::Write;

/// Writes the page.
pub fn markdown(report: &Report) -> String {
    let [(gates, of_gates), (others, of_others)] = counts(report);
    let mut text = format!(
        "# Fidelity of the simulator\n\n<!-- written by ./dev fidelity -->\n\n\
         The papers' figures on [simulated machines](simulator.md), with the shipped locks: published against simulated, medians \
         of {} seeds with their range. One number per workload is fitted, its step, so that a single thread is as fast as \
         published; nothing is fitted to a lock. Values that the papers only draw are not compared.\n\n\
         The model reproduces **{gates} of {of_gates}** reference ratios and {others} of {of_others} other statements. \
         Missed:\n\n",
        report.seeds
    );
    for drawn in &report.figures {
        for (check, result) in
            drawn.figure.check.iter().zip(&drawn.results).filter(|(_, result)| !result.met)
        {
            let [published, simulated, ..] = cells(check, result);
            let why = if check.why.is_empty() { "The reason is unknown." } else { &check.why };
            let _ = writeln!(
                text,
                "- {}, {}: {published} published, {simulated} simulated. {why}",
                drawn.figure.name, check.what
            );
        }
    }
    for drawn in &report.figures {
        for absent in &drawn.figure.absent {
            let (name, what) = (&drawn.figure.name, &absent.what);
            let _ = writeln!(
                text,
                "- {name}, {what}: {} published, not simulated. {}",
                short(absent.published),
                absent.why
            );
        }
    }
    text += &order_section(report);
    for drawn in &report.figures {
        let figure = &drawn.figure;
        let _ = write!(
            text,
            "\n## {}\n\n{}. {}. Machine `{}`, workload `{}`, step {:.2} ns, domain {:?}.",
            figure.name,
            figure.about,
            figure.source,
            figure.machine,
            figure.workload,
            drawn.step,
            figure.domain
        );
        if !figure.differs.is_empty() {
            let _ = write!(text, " {}", figure.differs);
        }
        text += "\n\n| | published | simulated | min - max | off | |\n|---|---|---|---|---|---|\n";
        for (check, result) in figure.check.iter().zip(&drawn.results) {
            let gate = if check.gate { "**gate** " } else { "" };
            let _ =
                writeln!(text, "| {gate}{} | {} |", check.what, cells(check, result).join(" | "));
        }
        text += "\nMillion acquisitions a second:\n\n| threads |";
        for lock in &figure.locks {
            let _ = write!(text, " `{lock}` |");
        }
        let _ = writeln!(text, "\n|---|{}", "---|".repeat(figure.locks.len()));
        for threads in &figure.threads {
            let _ = write!(text, "| {threads} |");
            for lock in &figure.locks {
                let point = drawn
                    .points
                    .iter()
                    .find(|point| point.threads == *threads && point.lock == *lock);
                let rate = point.and_then(|point| point.figure("per_second"));
                let _ = write!(
                    text,
                    " {} |",
                    rate.map_or(ABSENT.to_owned(), |rate| short(rate.median / 1e6))
                );
            }
            text.push('\n');
        }
    }
    text
}

/// The section on the order of published values.
fn order_section(report: &Report) -> String {
    let line = order_line(report);
    if line.is_empty() {
        return line;
    }
    let mut text = format!(
        "\n## Order\n\n{line} The ratios are of the first to the second.\n\n\
         | figure | what | first | second | published | simulated | |\n|---|---|---|---|---|---|---|\n"
    );
    for drawn in &report.figures {
        for order in &drawn.orders {
            let at = |at: &At| format!("`{}`, {}", at.lock, at.threads);
            let simulated = order.simulated.map_or(ABSENT.to_owned(), short);
            let kept = if order.kept { "reproduced" } else { "REVERSED" };
            let (name, what, source) = (&drawn.figure.name, &order.what, &order.source);
            let _ = writeln!(
                text,
                "| {name} | {what} ({source}) | {} | {} | {} | {simulated} | {kept} |",
                at(&order.of),
                at(&order.over),
                short(order.published)
            );
        }
    }
    text
}
