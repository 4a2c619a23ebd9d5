//! The locks to tune, and the settings to try.

use crate::control::{Kind, Settings};
use crate::spec::Choice;
use crate::statistics::{demangle, without_arguments};
use poundlock_topology::machine::{self, Machine, SYSFS};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::Path;

/// The lock of the process, and the settings of single locks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    /// Another lock for the whole process. None: its present one.
    pub lock: Option<Choice>,
    /// Specifications by the index of the target. Others keep their present settings.
    pub settings: BTreeMap<usize, String>,
}

impl Setup {
    /// This setup with other settings of one target.
    pub fn with(&self, target: usize, spec: &str) -> Setup {
        let mut setup = self.clone();
        setup.settings.insert(target, spec.to_owned());
        setup
    }

    /// Another lock for the whole process, which has no settings of single locks.
    pub fn of(lock: Choice) -> Setup {
        Setup { lock: Some(lock), settings: BTreeMap::new() }
    }
}

/// The name by which a rule finds locks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The linker's name of an object, maybe with an offset.
    Symbol(String),
    /// The linker's name of the function that initialises the locks.
    Site(String),
}

impl Place {
    /// The key of a rule, and its value.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Place::Symbol(name) => ("symbol", name),
            Place::Site(name) => ("site", name),
        }
    }
}

/// The use of one lock.
#[derive(Clone, Debug)]
pub struct Use {
    pub kind: Kind,
    pub address: u64,
    /// Its indexes in the statistics: two of a readers-writer lock.
    pub indexes: Vec<u32>,
    /// The name in the statistics.
    pub label: String,
    pub wait_ns: u64,
    /// The object and the offset in it, by the linker.
    pub object: Option<(String, u64)>,
    /// The function that initialised it, by the linker.
    pub site: Option<String>,
    /// The name of its algorithm. None if no thread has waited.
    pub lock: Option<String>,
    /// The settings by which a thread would wait. None if no thread has waited.
    pub settings: Option<Settings>,
    /// Whether `poundlock control` has made them.
    pub is_controlled: bool,
}

/// Locks that get the same settings.
#[derive(Clone, Debug)]
pub struct Target {
    pub kind: Kind,
    pub label: String,
    /// None if no rule can name them.
    pub place: Option<Place>,
    /// The present algorithm, with the keys that are not among `present`: a rule that keeps it
    /// begins with them.
    pub lock: String,
    /// Of a running process.
    pub addresses: Vec<u64>,
    pub present: Settings,
    /// Other algorithms that a rule gives them.
    pub others: Vec<String>,
    /// Whether `poundlock control` has made them.
    pub is_controlled: bool,
    pub wait_ns: u64,
}

impl Target {
    /// The locks, as `poundlock control` names them.
    pub fn name(&self) -> String {
        match (&self.addresses[..], &self.place) {
            ([address], _) | ([address, ..], None) => format!("{address:#x}"),
            (_, Some(Place::Symbol(name))) => demangle(name),
            (_, Some(Place::Site(name))) => without_arguments(&demangle(name)).to_owned(),
            ([], None) => String::new(),
        }
    }

    /// The settings by which `poundlock control` restores the present ones.
    pub fn undo(&self) -> String {
        if self.is_controlled { self.present.to_string() } else { "default".to_owned() }
    }
}

/// The number of locks in an object up to which each of them is tuned by itself.
const FEW: usize = 2;

/// The share of all waiting below which a target is not tuned.
const COLD: f64 = 0.05;

/// The targets, those with the longest waits first.
pub fn targets(uses: &[Use]) -> Vec<Target> {
    let mut groups: BTreeMap<(Option<Place>, Kind, u64), Vec<&Use>> = BTreeMap::new();
    for used in uses {
        let place = place(used, uses);
        // Locks that no rule can name stay single.
        let single = if place.is_none() { used.address } else { 0 };
        groups.entry((place, used.kind, single)).or_default().push(used);
    }
    let all: u64 = uses.iter().map(|used| used.wait_ns).sum();
    let mut targets: Vec<Target> =
        groups.into_iter().filter_map(|((place, ..), group)| target(place, &group)).collect();
    targets.retain(|target| target.wait_ns as f64 > COLD * all as f64);
    targets.sort_by_key(|target| std::cmp::Reverse(target.wait_ns));
    targets
}

/// None if no thread has waited for any of the locks, or their settings cannot change.
fn target(place: Option<Place>, group: &[&Use]) -> Option<Target> {
    let longest =
        group.iter().filter(|used| used.settings.is_some()).max_by_key(|used| used.wait_ns)?;
    let label = match &place {
        Some(Place::Site(name)) => format!("locks of {}", without_arguments(&demangle(name))),
        Some(Place::Symbol(name)) if group.len() > 1 => demangle(name),
        _ => longest.label.clone(),
    };
    Some(Target {
        kind: longest.kind,
        label,
        place,
        lock: longest.lock.clone().unwrap_or_else(|| longest.kind.lock().to_owned()),
        addresses: group.iter().map(|used| used.address).collect(),
        present: longest.settings.clone()?,
        others: Vec::new(),
        is_controlled: longest.is_controlled,
        wait_ns: group.iter().map(|used| used.wait_ns).sum(),
    })
}

/// The place that names the lock in a rule: its object as a whole, if that has many locks.
fn place(used: &Use, all: &[Use]) -> Option<Place> {
    let Some((object, offset)) = &used.object else {
        return used.site.clone().map(Place::Site);
    };
    let is_in = |other: &&Use| other.object.as_ref().is_some_and(|(name, _)| name == object);
    let count = all.iter().filter(is_in).count();
    Some(Place::Symbol(match count {
        1 if *offset == 0 => object.clone(),
        count if count <= FEW => format!("{object}+{offset:#x}"),
        _ => object.clone(),
    }))
}

/// The algorithm `lock`, with those keys of the specification `given` that no [`Settings`] have, if
/// that names it.
pub fn with_other_keys(lock: &str, given: &str, present: &Settings) -> String {
    let present = present.to_string();
    let is_own = |pair: &&str| {
        let key = pair.split('=').next().unwrap_or_default();
        !present.split(',').any(|own| own.split('=').next() == Some(key)) && key != "wait"
    };
    let mut pairs = given.split(',');
    if pairs.next() != Some(lock) {
        return lock.to_owned();
    }
    pairs.filter(is_own).fold(lock.to_owned(), |text, pair| format!("{text},{pair}"))
}

/// Algorithms to try for single locks of a kind, where a rule can give them.
pub fn algorithms(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Mutex => &["cfl_mutex"],
        Kind::ReadersWriter => &[],
    }
}

/// Whether the locks of the target for which threads have waited had the algorithm.
pub fn has_algorithm(target: &Target, uses: &[Use], algorithm: &str) -> bool {
    let own = uses.iter().filter(|used| used.kind == target.kind);
    let own = own.filter(|used| place(used, uses) == target.place);
    let mut locks = own.filter_map(|used| used.lock.as_deref()).peekable();
    locks.peek().is_some() && locks.all(|lock| lock == algorithm)
}

/// Specifications to try for a target, the most promising ones first.
pub fn candidates(target: &Target, has_domains: bool) -> Vec<String> {
    let present = &target.present;
    let with = |change: &dyn Fn(&mut Settings)| {
        let mut settings = present.clone();
        change(&mut settings);
        settings
    };
    let fifo = |settings: &mut Settings| settings.policy = "fifo".to_owned();
    let first = [
        with(&|settings| settings.patience = 0),
        with(&|settings| settings.patience = 64),
        with(&fifo),
        with(&|settings| {
            settings.patience = 0;
            fifo(settings);
        }),
    ];
    let mut second = vec![
        with(&|settings| settings.patience = 4),
        with(&|settings| settings.spins = 8),
        with(&|settings| settings.spins = 0),
        with(&|settings| settings.spins = 1),
    ];
    if has_domains {
        second.push(with(&|settings| settings.policy = "numa".to_owned()));
        second.push(with(&|settings| settings.batch = 16));
        second.push(with(&|settings| settings.policy = "route".to_owned()));
    }
    let spec = |settings: &Settings| settings.spec(target.kind);
    let is_other = |settings: &&Settings| *settings != present && settings.word().is_ok();
    let first = first.iter().filter(is_other).map(spec);
    let second = second.iter().filter(is_other).map(spec);
    let mut specs: Vec<String> = Vec::new();
    for spec in first.chain(target.others.iter().cloned()).chain(second) {
        if !specs.contains(&spec) {
            specs.push(spec);
        }
    }
    specs
}

/// Whether the machine has several domains by which a policy could sort.
pub fn has_domains() -> bool {
    Machine::read(Path::new(SYSFS)).is_ok_and(|found| {
        [machine::Kind::Node, machine::Kind::L3]
            .into_iter()
            .any(|kind| found.groups(kind).len() > 1)
    })
}

/// A specification against the present settings: only what differs.
pub fn difference(spec: &str, present: &Settings) -> String {
    let old = present.to_string();
    let old: Vec<&str> = old.split(',').collect();
    let Some(pairs) = Kind::of(spec).and_then(|kind| spec.strip_prefix(kind.lock())) else {
        return spec.to_owned();
    };
    let new = pairs.split(',').filter(|pair| !pair.is_empty() && !old.contains(pair));
    new.collect::<Vec<_>>().join(",")
}

/// The setup in words, with the names of the targets.
pub struct Named<'a>(pub &'a Setup, pub &'a [Target]);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Named(setup, targets) = self;
        if let Some(lock) = &setup.lock {
            return match lock {
                Choice::Native => f.write_str("native locks"),
                Choice::Lock(spec) => write!(f, "all locks: {spec}"),
            };
        }
        let mut first = true;
        for (index, spec) in &setup.settings {
            let target = &targets[*index];
            let gap = if first { "" } else { "; " };
            write!(f, "{gap}{}: {}", target.label, difference(spec, &target.present))?;
            first = false;
        }
        if first { f.write_str("present settings") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Named, Place, Settings, Setup, Target, Use};
    use super::{algorithms, candidates, difference, has_algorithm, targets, with_other_keys};

    fn present() -> Settings {
        Settings { patience: 4, policy: "numa".to_owned(), batch: 1024, spins: 1 }
    }

    fn used(address: u64, wait_ns: u64, object: Option<(&str, u64)>, site: Option<&str>) -> Use {
        Use {
            kind: Kind::Mutex,
            address,
            indexes: Vec::new(),
            label: format!("mutex {address}"),
            wait_ns,
            object: object.map(|(name, offset)| (name.to_owned(), offset)),
            site: site.map(str::to_owned),
            lock: Some(Kind::Mutex.lock().to_owned()),
            settings: Some(present()),
            is_controlled: false,
        }
    }

    #[test]
    fn mutexes_are_grouped_by_what_a_rule_can_name() {
        let uses = [
            used(1, 500, Some(("cache", 0)), None),
            used(2, 300, Some(("pair", 0)), None),
            used(3, 200, Some(("pair", 40)), Some("init")),
            used(4, 30, Some(("shards", 0)), None),
            used(5, 30, Some(("shards", 64)), None),
            used(6, 40, Some(("shards", 128)), None),
            used(7, 50, None, Some("queue_init")),
            used(8, 60, None, Some("queue_init")),
            used(9, 80, None, None),
            used(10, 1, Some(("cold", 0)), None),
        ];
        let found = targets(&uses);
        let places: Vec<Option<Place>> = found.iter().map(|target| target.place.clone()).collect();
        let symbol = |name: &str| Some(Place::Symbol(name.to_owned()));
        let expected = [
            symbol("cache"),
            symbol("pair+0x0"),
            symbol("pair+0x28"),
            Some(Place::Site("queue_init".to_owned())),
            symbol("shards"),
            None,
        ];
        assert_eq!(places, expected);
        assert_eq!(found[3].addresses, [7, 8]);
        assert_eq!(found[4].label, "shards");
    }

    #[test]
    fn candidates_are_valid_and_differ_from_the_present_settings() {
        let target = |kind, patience| Target {
            present: Settings { patience, ..present() },
            kind,
            ..targets(&[used(1, 500, Some(("cache", 0)), None)]).remove(0)
        };
        for kind in Kind::ALL {
            for (patience, has_domains) in [(0, false), (4, false), (64, true)] {
                let target = target(kind, patience);
                let all = candidates(&target, has_domains);
                assert!(all.len() >= 3, "{all:?}");
                for spec in &all {
                    assert_eq!(Kind::of(spec), Some(kind), "{spec}");
                    assert!(crate::control::settings::word(spec).is_ok(), "{spec}");
                    assert!(!difference(spec, &target.present).is_empty(), "{spec}");
                }
            }
        }
        let mutex = target(Kind::Mutex, 4);
        let expected = "shfl_mutex,patience=0,policy=numa,batch=1024,spins=1";
        assert_eq!(candidates(&mutex, false)[0], expected);
        let with_cfl = Target { others: vec!["cfl_mutex".to_owned()], ..mutex };
        assert!(candidates(&with_cfl, false).contains(&"cfl_mutex".to_owned()));
        assert_eq!(difference("cfl_mutex", &present()), "cfl_mutex");
    }

    #[test]
    fn keys_that_do_not_change_are_kept_with_their_algorithm() {
        let keys = |given| with_other_keys("bravo_shfl_rw", given, &present());
        assert_eq!(keys("bravo_shfl_rw,patience=9,inhibit=7"), "bravo_shfl_rw,inhibit=7");
        assert_eq!(keys("bravo_shfl_rw"), "bravo_shfl_rw");
        assert_eq!(keys("bravo_fair_rw,inhibit=7"), "bravo_shfl_rw");
    }

    #[test]
    fn an_algorithm_is_tried_only_where_the_locks_have_it() {
        let with = |lock: Option<&str>, kind| {
            let lock = lock.map(str::to_owned);
            Use { lock, kind, ..used(1, 500, Some(("cache", 0)), None) }
        };
        let target = targets(&[with(Some("shfl_mutex"), Kind::Mutex)]).remove(0);
        let cfl = algorithms(Kind::Mutex)[0];
        let has = |uses: &[Use]| has_algorithm(&target, uses, cfl);
        assert!(has(&[with(Some(cfl), Kind::Mutex)]));
        assert!(!has(&[with(Some("shfl_mutex"), Kind::Mutex)]));
        assert!(!has(&[with(None, Kind::Mutex)]) && !has(&[]));
        assert!(!has(&[with(Some(cfl), Kind::ReadersWriter)]));
    }

    #[test]
    fn a_mutex_and_a_readers_writer_lock_are_two_targets() {
        let readers = Use { kind: Kind::ReadersWriter, ..used(2, 400, None, Some("init")) };
        let found = targets(&[used(1, 500, None, Some("init")), readers]);
        assert_eq!(found.iter().map(|target| target.kind).collect::<Vec<_>>(), Kind::ALL);
    }

    #[test]
    fn a_setup_is_named_by_what_differs() {
        let uses = [used(1, 500, Some(("cache", 0)), None)];
        let targets = targets(&uses);
        let setup =
            Setup::default().with(0, "shfl_mutex,patience=0,policy=numa,batch=1024,spins=1");
        assert_eq!(Named(&setup, &targets).to_string(), "mutex 1: patience=0");
        assert_eq!(Named(&Setup::default(), &targets).to_string(), "present settings");
    }
}
