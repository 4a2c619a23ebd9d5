//! A figure's result on the terminal, and the pieces that its page shares.

use super::file::Check;
use super::judge::{Checked, GAP};
use super::report::{Drawn, Report};
use crate::text_table::{self, ABSENT, number};
use std::fmt::Write;

impl Check {
    /// The published value with its tolerance and bounds.
    fn expected(&self) -> String {
        let mut bounds = vec![];
        if let Some(published) = self.published {
            let within =
                self.within.map_or(String::new(), |within| format!(" ± {:.0} %", within * 100.0));
            bounds.push(format!("{}{within}", short(published)));
        }
        bounds.extend(self.least.map(|least| format!("at least {}", short(least))));
        bounds.extend(self.most.map(|most| format!("at most {}", short(most))));
        bounds.join(", ")
    }
}

/// Formats a value: two decimals for ratios, none for nanoseconds.
pub fn short(value: f64) -> String {
    if value < 20.0 { format!("{value:.2}") } else { number(value) }
}

pub fn cells(check: &Check, result: &Checked) -> [String; 5] {
    let simulated = result.simulated.map_or(ABSENT.to_owned(), |spread| short(spread.median));
    let range = result.simulated.map_or(ABSENT.to_owned(), |spread| {
        format!("{} - {}", short(spread.min), short(spread.max))
    });
    let off = match (check.published, result.simulated) {
        (Some(published), Some(spread)) => {
            format!("{:+.0} %", (spread.median / published - 1.0) * 100.0)
        }
        _ => ABSENT.to_owned(),
    };
    [check.expected(), simulated, range, off, if result.met { "met" } else { "MISSED" }.to_owned()]
}

pub fn render(drawn: &Drawn) -> String {
    let figure = &drawn.figure;
    let mut table =
        text_table::with_header(&["", "published", "simulated", "min - max", "off", ""], 1..5);
    for (check, result) in figure.check.iter().zip(&drawn.results) {
        let mut row = vec![gated(check.gate, &check.what)];
        row.extend(cells(check, result));
        table.add_row(row);
    }
    for absent in &figure.absent {
        table.add_row([gated(absent.gate, &absent.what), short(absent.published)]);
    }
    let reversed = drawn.orders.iter().filter(|order| !order.kept);
    let reversed = reversed.fold(String::new(), |mut text, order| {
        let (of, over) = (&order.of, &order.over);
        let simulated = order.simulated.map_or(ABSENT.to_owned(), short);
        let _ = writeln!(
            text,
            "Order not reproduced, {}: {} with {} threads over {} with {}: {} published, {simulated} simulated",
            order.what,
            of.lock,
            of.threads,
            over.lock,
            over.threads,
            short(order.published)
        );
        text
    });
    format!(
        "{}: {}\n{}, step {:.2} ns\n{table}\n{reversed}",
        figure.name, figure.about, drawn.simulated_machine, drawn.step
    )
}

fn gated(gate: bool, what: &str) -> String {
    format!("{}{what}", if gate { "* " } else { "" })
}

/// The numbers of met and of all ratios: of the reference ratios, and of the others.
pub fn counts(report: &Report) -> [(usize, usize); 2] {
    [true, false].map(|gate| {
        let all =
            report.figures.iter().flat_map(|drawn| drawn.figure.check.iter().zip(&drawn.results));
        let simulated = all.filter(|(check, _)| check.gate == gate).map(|(_, result)| result.met);
        let absent = report
            .figures
            .iter()
            .flat_map(|drawn| &drawn.figure.absent)
            .filter(|absent| absent.gate == gate);
        let ours: Vec<bool> = simulated.chain(absent.map(|_| false)).collect();
        (ours.iter().filter(|met| **met).count(), ours.len())
    })
}

/// The numbers of reproduced and of all published orders.
fn kept(report: &Report) -> (usize, usize) {
    let all = || report.figures.iter().flat_map(|drawn| &drawn.orders);
    (all().filter(|order| order.kept).count(), all().count())
}

/// The sentence on the published orders; empty without any.
pub fn order_line(report: &Report) -> String {
    let (kept, all) = kept(report);
    if all == 0 {
        return String::new();
    }
    let percent = 100.0 * kept as f64 / all as f64;
    format!(
        "The simulation reproduces the order of {kept} of {all} pairs of published values ({percent:.0} %) that differ by {:.0} % or more.",
        100.0 * (GAP - 1.0)
    )
}

pub fn summary(report: &Report) -> String {
    let [(gates, of_gates), (others, of_others)] = counts(report);
    let order = order_line(report);
    format!(
        "\nMedians of {} seeds. The model reproduces {gates} of {of_gates} reference ratios (*) and {others} of \
         {of_others} other statements. {order}",
        report.seeds
    )
}
