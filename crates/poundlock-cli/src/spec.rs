//! Which locks the command line names.

use crate::failure::Failure;
use crate::options::OtherLocksArgs;
use poundlock::{check_rw_spec, check_spec};
use std::fmt;

const NATIVE: &str = "native";

/// What a program's locks are to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Its own.
    Native,
    /// What a checked spec, NAME[,KEY=VALUE...], names.
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
    /// The one choice that `spec` names.
    pub fn parse(spec: &str) -> Result<Choice, Failure> {
        Choice::parse_of(spec, &Family::mutexes())
    }

    fn parse_of(spec: &str, family: &Family) -> Result<Choice, Failure> {
        if spec == NATIVE && family.native {
            return Ok(Choice::Native);
        }
        (family.check)(spec).map_err(Failure::ours)?;
        Ok(Choice::Lock(spec.to_owned()))
    }
}

/// The lock of [`poundlock::locks`] that fits a `pthread_spinlock_t` and leaves two bits of it alone.
const SPINLOCK: &str = "qspin";

/// Whether the specs that there are name a readers-writer lock and a spin lock of the preload library's, or native ones.
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

/// Locks that can take each other's place.
pub struct Family {
    names: Vec<&'static str>,
    /// Whether the C library has one.
    native: bool,
    /// Whether a spec is right, else what is wrong.
    check: fn(&str) -> Result<(), String>,
}

impl Family {
    /// Those of one holder at a time.
    pub fn mutexes() -> Family {
        let check = |spec: &str| check_spec(spec).map_err(|wrong| wrong.to_string());
        Family { names: poundlock::locks().map(|info| info.name).collect(), native: true, check }
    }

    /// Those that know readers.
    pub fn rwlocks() -> Family {
        let check = |spec: &str| poundlock_bench::check_rwlock(spec).map_err(|wrong| wrong.to_string());
        Family { names: poundlock_bench::rwlocks().collect(), native: true, check }
    }

    /// Those of the simulator, which know readers or not.
    pub fn simulated(readers: bool) -> Family {
        let check =
            if readers { |spec: &str| simulated_of(true, spec) } else { |spec: &str| simulated_of(false, spec) };
        Family { names: poundlock_sim::lock_names(readers), native: false, check }
    }

    /// All of the simulator's, for what is not one workload.
    pub fn simulated_all() -> Family {
        let names = [false, true].into_iter().flat_map(poundlock_sim::lock_names).collect();
        Family { names, native: false, check: |spec| simulated(spec).map(|_| ()) }
    }
}

fn simulated(spec: &str) -> Result<poundlock_sim::LockSpec, String> {
    poundlock_sim::LockSpec::parse(spec).map_err(|wrong| wrong.to_string())
}

fn simulated_of(readers: bool, spec: &str) -> Result<(), String> {
    match (readers, simulated(spec)?.has_readers()) {
        (true, false) => Err(format!("'{spec}': the workload takes a readers-writer lock")),
        (false, true) => Err(format!("'{spec}': the workload takes no readers-writer lock")),
        _ => Ok(()),
    }
}

/// The locks that `lists` name, of those of one holder at a time. All of them if there are no lists.
pub fn parse_lists(lists: &[String]) -> Result<Vec<Choice>, Failure> {
    parse_lists_of(lists, &Family::mutexes())
}

/// The locks of a family that `lists` name: each is comma-separated, and KEY=VALUE belongs to the lock before it. All of
/// the family if there are no lists.
pub fn parse_lists_of(lists: &[String], family: &Family) -> Result<Vec<Choice>, Failure> {
    if lists.is_empty() {
        return Ok(family.names.iter().map(|name| Choice::Lock((*name).to_owned())).collect());
    }
    let mut choices = Vec::new();
    for spec in lists.iter().map(|list| split(list)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        let choice = Choice::parse_of(&spec, family)?;
        if choice == Choice::Native {
            return Err(Failure::ours("native is compared anyway: it needs no naming among the locks"));
        }
        if choices.contains(&choice) {
            return Err(Failure::ours(format!("lock '{spec}' is named twice")));
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
                return Err(Failure::ours(format!("setting '{token}' has no lock before it in '{list}'")));
            }
            _ if token.is_empty() => return Err(Failure::ours(format!("a lock's name is empty in '{list}'"))),
            _ => specs.push(token.to_owned()),
        }
    }
    Ok(specs)
}

#[cfg(test)]
mod tests {
    use super::split;

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
