//! The settings of a lock of the watched process, and their change by keys.

use crate::control::{Item, Kind, Page, Settings};
use crate::failure::Failure;
use crate::statistics::Lock;

/// A change of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next policy.
    Policy,
    MorePatience,
    LessPatience,
    LargerBatch,
    SmallerBatch,
    MoreSpins,
    FewerSpins,
    /// Back to the settings of before all changes.
    Default,
}

/// The settings by which the next thread will wait for the lock. The error says why they cannot be
/// changed.
pub fn shown(pid: u32, lock: &Lock) -> Result<String, Failure> {
    let (_, item) = find(pid, lock)?;
    Ok(format!("{}, set by {}", settings_of(&item)?, item.set_by()))
}

/// Changes the settings of the lock.
pub fn change(pid: u32, lock: &Lock, step: Step) -> Result<(), Failure> {
    let (page, item) = find(pid, lock)?;
    let word = match step {
        Step::Default => 0,
        step => stepped(&settings_of(&item)?, step).word().map_err(Failure::ours)?,
    };
    if !page.set(&item, word) {
        return Err(Failure::ours("the lock was destroyed meanwhile"));
    }
    page.check()
}

fn settings_of(item: &Item) -> Result<Settings, Failure> {
    item.settings().map_err(Failure::ours)
}

/// The lock on the control page of the process. Both sides of a readers-writer lock are one.
fn find(pid: u32, lock: &Lock) -> Result<(Page, Item), Failure> {
    if lock.controlled().is_none() {
        return Err(Failure::ours("only pthread mutexes and readers-writer locks can be changed"));
    }
    let page = Page::find(pid)?;
    let item = page.items()?.into_iter().find(|item| Some(item.address) == lock.place);
    match item {
        Some(item) => Ok((page, item)),
        None => Err(Failure::ours("no thread has waited for this lock yet")),
    }
}

/// The settings after a step. At an end of a setting's range they stay.
fn stepped(now: &Settings, step: Step) -> Settings {
    let mut next = now.clone();
    match step {
        Step::Policy => next.policy = next_policy(now),
        Step::MorePatience => next.patience = doubled(now.patience, "patience"),
        Step::LessPatience => next.patience = now.patience / 2,
        Step::LargerBatch => next.batch = doubled(now.batch, "batch"),
        Step::SmallerBatch => next.batch = (now.batch / 2).max(setting("batch").least),
        Step::MoreSpins => next.spins = doubled(now.spins, "spins"),
        Step::FewerSpins => next.spins = now.spins / 2,
        Step::Default => {}
    }
    next
}

fn doubled(value: u32, key: &str) -> u32 {
    (value.saturating_mul(2)).clamp(1, setting(key).most)
}

/// The next policy that a running lock can have.
fn next_policy(now: &Settings) -> String {
    let all = setting("policy").choices;
    let own = all.iter().position(|policy| *policy == now.policy).unwrap_or(0);
    let following = all.iter().cycle().skip(own + 1).take(all.len());
    let with = |policy: &str| Settings { policy: policy.to_owned(), ..now.clone() };
    let mut usable = following.filter(|policy| with(policy).word().is_ok());
    usable.next().map_or(now.policy.clone(), |policy| (*policy).to_owned())
}

fn setting(key: &str) -> poundlock::Setting {
    poundlock::locks()
        .find(|lock| lock.name == Kind::Mutex.lock())
        .and_then(|lock| lock.settings.into_iter().find(|setting| setting.key == key))
        .expect("the default lock has this setting")
}

#[cfg(test)]
mod tests {
    use super::{Settings, Step, stepped};

    fn settings(patience: u32, policy: &str, batch: u32) -> Settings {
        Settings { patience, policy: policy.to_owned(), batch, spins: 1 }
    }

    #[test]
    fn steps_stay_in_the_range_of_a_setting() {
        let after = |step| stepped(&settings(4, "numa", 1024), step);
        assert_eq!(after(Step::MorePatience), settings(8, "numa", 1024));
        assert_eq!(after(Step::LessPatience), settings(2, "numa", 1024));
        assert_eq!(after(Step::LargerBatch), settings(4, "numa", 2048));
        assert_eq!(after(Step::SmallerBatch), settings(4, "numa", 512));
        assert_eq!(after(Step::MoreSpins).spins, 2);
        assert_eq!(after(Step::FewerSpins).spins, 0);
        let mut now = Settings { spins: 0, ..settings(0, "numa", 1) };
        assert_eq!(stepped(&now, Step::MoreSpins).spins, 1);
        assert_eq!(stepped(&now, Step::MorePatience).patience, 1);
        for step in [Step::LessPatience, Step::SmallerBatch, Step::FewerSpins] {
            assert_eq!(stepped(&now, step), now);
        }
        for step in [Step::MorePatience, Step::LargerBatch, Step::MoreSpins] {
            for _ in 0..40 {
                now = stepped(&now, step);
                assert!(now.word().is_ok(), "{now}");
            }
        }
    }

    #[test]
    fn the_policies_of_a_running_lock_follow_one_another() {
        let mut now = settings(4, "numa", 1024);
        let mut seen = Vec::new();
        while !seen.contains(&now.policy) {
            seen.push(now.policy.clone());
            now = stepped(&now, Step::Policy);
            assert!(now.word().is_ok(), "{now}");
        }
        assert_eq!(now.policy, "numa", "the first one again");
        assert!(seen.len() > 2 && !seen.contains(&"fair".to_owned()), "{seen:?}");
    }
}
