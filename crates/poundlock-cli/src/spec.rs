//! Parses the locks that the command line names.

use crate::failure::Failure;
use crate::options::OtherLocksArgs;
use poundlock::{check_rw_spec, check_spec};
use std::fmt;

const NATIVE: &str = "native";

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
        (family.check)(spec)
            .map_err(|wrong| Failure::ours(format!("{wrong}{}", family.hint(spec))))?;
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
        check_rw_spec(spec).map_err(Failure::ours)?;
    }
    if let Some(spec) = given(&others.spinlock) {
        let name = spec.split(',').next().unwrap_or_default();
        if name != SPINLOCK {
            return Err(Failure::ours(format!("there is no spin lock '{name}'")));
        }
        check_spec(spec).map_err(Failure::ours)?;
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
    /// A hint for a spec whose name is not in the family, or nothing.
    fn hint(&self, spec: &str) -> String {
        let name = spec.split(',').next().unwrap_or_default();
        if self.names.contains(&name) {
            return String::new();
        }
        let is_rwlock = check_rw_spec(name).is_ok();
        if is_rwlock && self.rwlock_option {
            return format!(": {name} is a readers-writer lock (--rwlock, in bench --rw)");
        }
        let closest = self.names.iter().map(|known| (distance(name, known), known)).min();
        let near = closest.filter(|(distance, known)| *distance <= 2 && *distance < known.len());
        near.map_or(String::new(), |(_, known)| format!("; did you mean '{known}'?"))
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

/// The edit distance of two names: insertions, deletions and replacements.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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
    use super::{Choice, distance, split};

    #[test]
    fn an_unknown_lock_has_a_hint() {
        assert_eq!(
            [distance("mcs", "mcs"), distance("mcz", "mcs"), distance("", "mcs")],
            [0, 1, 3]
        );
        let message = |spec| Choice::parse(spec).expect_err("no such lock").message;
        assert_eq!(message("mcsx,wait=spin"), "there is no lock 'mcsx'; did you mean 'mcs'?");
        assert_eq!(
            message("bravo"),
            "there is no lock 'bravo': bravo is a readers-writer lock (--rwlock, in bench --rw)"
        );
        assert_eq!(message("pthread"), "there is no lock 'pthread'");
        assert!(!message("mcs,colour=red").contains("did you mean"));
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
