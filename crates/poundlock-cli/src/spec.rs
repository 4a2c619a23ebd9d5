//! Parses the locks that the command line names.

use crate::failure::Failure;
use crate::options::OtherLocksArgs;
use poundlock::{check_rw_spec, check_spec};
use poundlock_bench::NATIVE;
use std::fmt;
use strsim::osa_distance;

/// The greatest edit distance of a suggestion.
const MAX_DISTANCE: usize = 2;

/// A choice of lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The program's own locks.
    Native,
    /// A checked spec, NAME[,KEY=VALUE...].
    Lock(String),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Choice::Native => NATIVE,
            Choice::Lock(spec) => spec,
        })
    }
}

impl Choice {
    /// Parses a single lock or native.
    pub fn parse(spec: &str) -> Result<Choice, Failure> {
        Choice::parse_of(spec, &Family::mutexes())
    }

    fn parse_of(spec: &str, family: &Family) -> Result<Choice, Failure> {
        if spec == NATIVE && family.native {
            return Ok(Choice::Native);
        }
        family.checked(spec)?;
        Ok(Choice::Lock(spec.to_owned()))
    }
}

/// The lock of [`poundlock::locks`] that fits into a `pthread_spinlock_t`.
const SPINLOCK: &str = "qspin";

/// Checks that the specs name a readers-writer lock and a spin lock of the preload library, or
/// native.
pub fn check_others(others: &OtherLocksArgs) -> Result<(), Failure> {
    fn given(spec: &Option<String>) -> Option<&str> {
        spec.as_deref().filter(|spec| *spec != NATIVE)
    }
    if let Some(spec) = given(&others.rwlock) {
        Family::preloaded_rwlocks().checked(spec)?;
    }
    if let Some(spec) = given(&others.spinlock) {
        let name = spec.split(',').next().unwrap_or_default();
        if name != SPINLOCK {
            return Err(Failure::ours(format!(
                "there is no spin lock '{name}'; --spinlock takes {SPINLOCK} or {NATIVE}"
            )));
        }
        Family::mutexes().checked(spec)?;
    }
    Ok(())
}

/// Locks that can replace each other.
pub struct Family {
    names: Vec<&'static str>,
    /// Whether the C library has such a lock.
    native: bool,
    /// Whether commands with this family have --rwlock for readers-writer locks.
    rwlock_option: bool,
    /// Checks a spec. The error is one line.
    check: fn(&str) -> Result<(), String>,
}

impl Family {
    /// Checks a spec. The error has a hint, if there is one.
    fn checked(&self, spec: &str) -> Result<(), Failure> {
        (self.check)(spec).map_err(|wrong| Failure::ours(format!("{wrong}{}", self.hint(spec))))
    }

    /// A hint for a wrong spec, or nothing.
    fn hint(&self, spec: &str) -> String {
        let (name, pairs) = spec.split_once(',').unwrap_or((spec, ""));
        if (self.check)(name).is_ok() {
            return self.key_hint(name, pairs);
        }
        if self.rwlock_option && check_rw_spec(name).is_ok() {
            return format!(": {name} is a readers-writer lock (--rwlock, in bench --rw)");
        }
        if !self.rwlock_option && self.native && check_spec(name).is_ok() {
            return format!(": {name} is a mutual-exclusion lock");
        }
        did_you_mean(name, self.names.iter().copied()).unwrap_or_default()
    }

    /// A hint for the first wrong setting of the lock `name`, or nothing.
    fn key_hint(&self, name: &str, pairs: &str) -> String {
        let wrong = pairs.split(',').find(|pair| (self.check)(&format!("{name},{pair}")).is_err());
        let keys = poundlock::locks().chain(poundlock::rw_locks()).find(|info| info.name == name);
        let (Some((key, _)), Some(keys)) = (wrong.and_then(|pair| pair.split_once('=')), keys)
        else {
            return String::new();
        };
        let keys: Vec<&str> = keys.keys.split(',').collect();
        if keys.contains(&key) {
            return String::new(); // the value is wrong, and the error names the range
        }
        did_you_mean(key, keys.iter().copied())
            .unwrap_or_else(|| format!("; its keys are {}", keys.join(", ")))
    }

    /// Mutual-exclusion locks.
    pub fn mutexes() -> Family {
        let check = |spec: &str| check_spec(spec).map_err(|wrong| wrong.to_string());
        Family {
            names: poundlock::locks().map(|info| info.name).collect(),
            native: true,
            rwlock_option: true,
            check,
        }
    }

    /// Readers-writer locks.
    pub fn rwlocks() -> Family {
        let check =
            |spec: &str| poundlock_bench::check_rwlock(spec).map_err(|wrong| wrong.to_string());
        Family {
            names: poundlock_bench::rwlocks().collect(),
            native: true,
            rwlock_option: false,
            check,
        }
    }

    /// Readers-writer locks of the preload library.
    fn preloaded_rwlocks() -> Family {
        Family {
            names: poundlock::rw_locks().map(|info| info.name).collect(),
            native: true,
            rwlock_option: false,
            check: |spec| check_rw_spec(spec).map_err(|wrong| wrong.to_string()),
        }
    }

    /// Locks in the simulator, of either family.
    pub fn simulated(readers: bool) -> Family {
        let check = if readers {
            |spec: &str| simulated_of(true, spec)
        } else {
            |spec: &str| simulated_of(false, spec)
        };
        Family {
            names: poundlock_sim::lock_names(readers),
            native: false,
            rwlock_option: false,
            check,
        }
    }

    /// All locks in the simulator.
    pub fn simulated_all() -> Family {
        let names = [false, true].into_iter().flat_map(poundlock_sim::lock_names).collect();
        Family {
            names,
            native: false,
            rwlock_option: false,
            check: |spec| simulated(spec).map(|_| ()),
        }
    }
}

/// The error that `name` is the name of no lock, of either kind, as other commands report it.
pub fn no_such_lock(name: &str) -> Failure {
    let infos = poundlock::locks().chain(poundlock::rw_locks());
    let family = Family {
        names: infos.map(|info| info.name).collect(),
        native: false,
        rwlock_option: false,
        check: |spec| {
            check_rw_spec(spec).or_else(|_| check_spec(spec)).map_err(|wrong| wrong.to_string())
        },
    };
    let settings = || Failure::ours(format!("'{name}' is not a name: give it without settings"));
    family.checked(name).map_or_else(|wrong| wrong, |()| settings())
}

/// A hint with the closest of the `known` words, if one is close enough.
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let (distance, closest) = known.map(|known| (osa_distance(word, known), known)).min()?;
    let near = distance <= MAX_DISTANCE && distance < closest.len();
    near.then(|| format!("; did you mean '{closest}'?"))
}

fn simulated(spec: &str) -> Result<poundlock_sim::LockSpec, String> {
    poundlock_sim::LockSpec::parse(spec).map_err(|wrong| wrong.to_string())
}

fn simulated_of(readers: bool, spec: &str) -> Result<(), String> {
    match (readers, simulated(spec)?.has_readers()) {
        (true, false) => Err(format!("'{spec}': the workload needs a readers-writer lock")),
        (false, true) => Err(format!("'{spec}': the workload needs a mutual-exclusion lock")),
        _ => Ok(()),
    }
}

/// Parses lists of mutual-exclusion locks. Without lists, returns all of them.
pub fn parse_lists(lists: &[String]) -> Result<Vec<Choice>, Failure> {
    parse_lists_of(lists, &Family::mutexes())
}

/// Parses lists of locks of a family: comma-separated, KEY=VALUE belongs to the lock before it.
/// Without lists, returns the whole family.
pub fn parse_lists_of(lists: &[String], family: &Family) -> Result<Vec<Choice>, Failure> {
    if lists.is_empty() {
        return Ok(family.names.iter().map(|name| Choice::Lock((*name).to_owned())).collect());
    }
    let mut choices = Vec::new();
    for spec in
        lists.iter().map(|list| split(list)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten()
    {
        let choice = Choice::parse_of(&spec, family)?;
        if choice == Choice::Native {
            return Err(Failure::ours("native is always included; --no-native omits it"));
        }
        if choices.contains(&choice) {
            return Err(Failure::ours(format!("lock '{spec}' is given twice")));
        }
        choices.push(choice);
    }
    Ok(choices)
}

fn split(list: &str) -> Result<Vec<String>, Failure> {
    let mut specs: Vec<String> = Vec::new();
    for token in list.split(',') {
        match specs.last_mut() {
            Some(spec) if token.contains('=') => {
                spec.push(',');
                spec.push_str(token);
            }
            None if token.contains('=') => {
                return Err(Failure::ours(format!(
                    "setting '{token}' has no lock before it in '{list}'"
                )));
            }
            _ if token.is_empty() => {
                return Err(Failure::ours(format!("a lock name is empty in '{list}'")));
            }
            _ => specs.push(token.to_owned()),
        }
    }
    Ok(specs)
}

#[cfg(test)]
mod tests {
    use super::{Choice, check_others, no_such_lock, split};
    use crate::options::OtherLocksArgs;

    #[test]
    fn an_unknown_lock_has_a_hint() {
        let message = |spec| Choice::parse(spec).expect_err("no such lock").message;
        assert_eq!(message("msc"), "there is no lock 'msc'; did you mean 'mcs'?");
        assert_eq!(message("mcsx,wait=spin"), "there is no lock 'mcsx'; did you mean 'mcs'?");
        assert_eq!(
            message("bravo"),
            "there is no lock 'bravo': bravo is a readers-writer lock (--rwlock, in bench --rw)"
        );
        assert_eq!(message("pthread"), "there is no lock 'pthread'");
        for name in ["mcsx", "pthread", "mcs,nosuch=1"] {
            assert_eq!(no_such_lock(name).message, message(name));
        }
        assert_eq!(
            no_such_lock("fair_rx").message,
            "there is no lock 'fair_rx'; did you mean 'fair_rw'?"
        );
        assert_eq!(
            no_such_lock("mcs,wait=spin").message,
            "'mcs,wait=spin' is not a name: give it without settings"
        );
    }

    #[test]
    fn an_unknown_setting_has_a_hint() {
        let message = |spec| Choice::parse(spec).expect_err("no such setting").message;
        assert_eq!(
            message("cna,wait=spin,thrshld=8"),
            "lock cna has no key 'thrshld'; did you mean 'threshold'?"
        );
        assert_eq!(
            message("cna,colour=red"),
            "lock cna has no key 'colour'; its keys are wait, threshold, reduction"
        );
        assert_eq!(message("mcs,wait=sipn"), "wait=sipn: not one of spin, yield, park");
        assert_eq!(
            message("cna,threshold=x,thrshld=8"),
            message("cna,threshold=x"),
            "the hint is about the error"
        );
    }

    #[test]
    fn the_other_locks_have_hints() {
        let message = |rwlock: Option<&str>, spinlock: Option<&str>| {
            let [rwlock, spinlock] = [rwlock, spinlock].map(|spec| spec.map(str::to_owned));
            check_others(&OtherLocksArgs { rwlock, spinlock }).expect_err("a wrong lock").message
        };
        assert_eq!(
            message(Some("shfl_rv"), None),
            "there is no readers-writer lock 'shfl_rv'; did you mean 'shfl_rw'?"
        );
        assert_eq!(
            message(Some("mcs"), None),
            "there is no readers-writer lock 'mcs': mcs is a mutual-exclusion lock"
        );
        assert_eq!(
            message(None, Some("mcs")),
            "there is no spin lock 'mcs'; --spinlock takes qspin or native"
        );
        assert_eq!(
            message(None, Some("qspin,waitt=spin")),
            "lock qspin has no key 'waitt'; did you mean 'wait'?"
        );
    }

    #[test]
    fn settings_belong_to_the_lock_before_them() {
        assert_eq!(
            split("mcs,wait=spin,cna,threshold=8,wait=park,ttas").expect("a list"),
            ["mcs,wait=spin", "cna,threshold=8,wait=park", "ttas"]
        );
    }

    #[test]
    fn a_setting_without_a_lock_is_named() {
        assert!(split("wait=spin,mcs").expect_err("no lock").message.contains("'wait=spin'"));
        assert!(split("mcs,,cna").expect_err("no name").message.contains("empty"));
        assert!(split("").expect_err("no name").message.contains("empty"));
    }
}
