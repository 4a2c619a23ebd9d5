//! The file of rules, with its evidence in comments.

use super::report::{Evidence, ratio};
use super::setup::{Named, Setup, Target};
use super::step::Tuned;
use crate::control::Kind;
use std::fmt::Write;

/// The longest comment.
const LONGEST: usize = 1000;

/// The rules of a setup.
pub fn rules(setup: &Setup, targets: &[Target]) -> String {
    setup
        .settings
        .iter()
        .fold(String::new(), |text, (target, spec)| text + &rule(&targets[*target], spec))
}

/// A rule; empty if none can name the target.
fn rule(target: &Target, spec: &str) -> String {
    target.place.as_ref().map_or(String::new(), |place| {
        let (key, name) = place.parts();
        let lock = match target.kind {
            Kind::Mutex => "lock",
            Kind::ReadersWriter => "rwlock",
        };
        // Settings of the present algorithm are those of its kind's lock.
        let spec = match spec.strip_prefix(target.kind.lock()) {
            Some(settings) => format!("{}{settings}", target.lock),
            None => spec.to_owned(),
        };
        format!("[[rule]]\n{key} = \"{name}\"\n{lock} = \"{spec}\"\n\n")
    })
}

/// The whole file: the new rules before the `present` ones, as the first that applies counts.
pub fn file(tuned: &Tuned, evidence: &Evidence, present: &str) -> String {
    let mut text = String::new();
    for line in &evidence.lines {
        comment(&mut text, line);
    }
    text.push('\n');
    for (target, step) in tuned.steps.iter().enumerate() {
        let Some(spec) = tuned.kept.settings.get(&target) else {
            continue;
        };
        if let Some(confirmation) = &step.confirmation {
            let name = Named(&confirmation.setup, &tuned.targets).to_string();
            let figures = ratio(confirmation.interval, confirmation.differences.len());
            comment(&mut text, &format!("{name}: {figures}, confirmed"));
        }
        for trial in &step.trials {
            let name = Named(&trial.setup, &tuned.targets).to_string();
            let figures = ratio(trial.interval, trial.differences.len());
            comment(&mut text, &format!("  tried {name}: {figures}"));
        }
        text += &rule(&tuned.targets[target], spec);
    }
    if !present.is_empty() {
        comment(&mut text, "The rules that applied before.");
        text += present;
    }
    text
}

/// Adds one line of a comment. A command line may have any characters.
fn comment(text: &mut String, line: &str) {
    let line: String = line
        .chars()
        .take(LONGEST)
        .map(|letter| if letter.is_control() { '?' } else { letter })
        .collect();
    let _ = writeln!(text, "# {}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::super::report::Evidence;
    use super::super::search::{Confirmation, Fate, Step, Trial};
    use super::super::setup::{Place, Setup, Target};
    use super::super::step::Tuned;
    use super::file;
    use crate::control::{Kind, Settings};
    use crate::rules;
    use crate::runs::Interval;

    #[test]
    fn the_file_is_accepted_and_has_the_new_rules_first() {
        let target = |kind, label: &str, place| Target {
            kind,
            label: label.to_owned(),
            place,
            lock: match kind {
                Kind::Mutex => "shfl_mutex",
                Kind::ReadersWriter => "bravo_shfl_rw,inhibit=7",
            }
            .to_owned(),
            addresses: vec![1],
            present: Settings { patience: 4, policy: "numa".to_owned(), batch: 1024, spins: 1 },
            others: Vec::new(),
            is_controlled: false,
            wait_ns: 1,
        };
        let cache = "shfl_mutex,patience=0,policy=numa,batch=1024,spins=1";
        let setup = Setup::default().with(0, cache).with(1, "shfl_rw,policy=fifo").with(2, cache);
        let interval = Interval { estimate: 0.1, low: 0.05, high: 0.2 };
        let step = || Step {
            trials: vec![Trial {
                setup: setup.clone(),
                differences: vec![0.1; 9],
                interval: Some(Interval { low: f64::NEG_INFINITY, ..interval }),
                fate: Fate::Best,
            }],
            confirmation: Some(Confirmation {
                setup: setup.clone(),
                differences: vec![0.1; 8],
                interval: Some(interval),
                failed: None,
            }),
        };
        let tuned = Tuned {
            targets: vec![
                target(Kind::Mutex, "cache", Some(Place::Symbol("cache+0x0".to_owned()))),
                target(
                    Kind::ReadersWriter,
                    "queue",
                    Some(Place::Site("_ZN5queue4initEv".to_owned())),
                ),
                target(Kind::Mutex, "0x1234", None),
            ],
            steps: vec![step(), step(), step()],
            kept: setup.clone(),
            ..Tuned::default()
        };
        let lines = vec!["Command: ./a \"b\\n\" 'x\ny\u{7f}\u{1b}' ü".to_owned(), "z".repeat(5000)];
        let present = "[[rule]]\nsymbol = \"cache*\"\nlock = \"shfl_mutex,patience=9\"\n";
        let text = file(&tuned, &Evidence { lines }, present);
        assert_eq!(rules::check(text.as_bytes(), "shfl_mutex"), Ok(()), "{text}");
        assert_eq!(text.matches("[[rule]]").count(), 3, "no rule names an address: {text}");
        let bravo = "\nrwlock = \"bravo_shfl_rw,inhibit=7,policy=fifo\"\n";
        assert!(text.contains(bravo), "{text}");
        assert!(text.find("cache+0x0\"") < text.find("cache*\""), "{text}");
        assert!(text.contains("1.105 times (1.051 to 1.221, 8 rounds), confirmed"), "{text}");
        assert!(text.contains("9 rounds, no interval"), "{text}");
    }
}
