// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares an exploration's report with the client's expectations.

use crate::abi::{self, Client, words};
use crate::expected::Strategy;
use crate::explore::{Report, Verdict};

/// Returns how the report differs from what `client` expects, if it does. An exhaustive `strategy`
/// must have found all outcomes. `promises`: threads could promise stores.
pub fn judge(
    client: &Client,
    report: &Report,
    events: &[String],
    strategy: Strategy,
    promises: bool,
) -> Result<(), String> {
    let promised_fails = promises && !client.promised_fails.is_null();
    let fails = abi::text(if promised_fails { client.promised_fails } else { client.fails });
    match &report.verdict {
        Verdict::Fails(what, _) if fails.is_empty() || !what.contains(fails) => {
            return Err(what.clone());
        }
        Verdict::Fails(..) => return Ok(()),
        Verdict::Unfinished => return Err("UNFINISHED: too many states".into()),
        Verdict::Holds if !fails.is_empty() => return Err(format!("did not fail with: {fails}")),
        Verdict::Holds => {}
    }
    if report.ends == 0 {
        return Err("no execution reached its end".into());
    }
    for demand in words(client.demands) {
        let event = events.iter().position(|event| event == demand);
        if event.is_none_or(|event| report.events[event] == 0) {
            return Err(format!("the event {demand} never occurred"));
        }
    }
    if matches!(strategy, Strategy::Walks(_)) || client.allowed.is_null() {
        return Ok(());
    }
    let found: Vec<&str> = report.outcomes.iter().map(String::as_str).collect();
    let mut allowed = words(client.allowed);
    let mut forbidden = words(client.forbidden);
    if promises { &mut allowed } else { &mut forbidden }.extend(words(client.promised));
    allowed.sort_unstable();
    if let Some(bad) = forbidden.iter().find(|bad| found.contains(bad)) {
        return Err(format!("found the forbidden outcome {bad}"));
    }
    if found != allowed {
        return Err(format!("found the outcomes {}, not {}", found.join(" "), allowed.join(" ")));
    }
    Ok(())
}
