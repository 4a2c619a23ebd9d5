//! `poundlock control`: the settings of the locks of a running process, shown and changed.

use crate::control::{Item, Kind, Page, settings};
use crate::failure::Failure;
use crate::options::duration;
use crate::output;
use crate::program::mapped::{Files, mappings};
use crate::statistics::table::{percent, time};
use crate::statistics::{Lock, Module, Names, Observed, Process, file_of, without_arguments};
use crate::text_table::{ABSENT, fitted, shorten};
use clap::Args;
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

/// SETTINGS that undo a change.
const DEFAULT: &str = "default";
/// LOCK: all locks without settings of their own.
const ALL: &str = "all";
const NAME: usize = 48;

#[derive(Args, Debug)]
pub(crate) struct ControlArgs {
    /// Process ID
    #[arg(short, long, value_name = "PID")]
    pub pid: u32,
    /// Number of locks to print
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
    /// Count waits, acquisitions and times for that time, such as 5s, after the change [default:
    /// since the start of the process]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Symbol (cache, cache+0x40), function that initialised them, or address (0x...). `all`: those
    /// that have no settings of their own, later ones included [default: list all locks]
    #[arg(value_name = "LOCK")]
    pub lock: Option<String>,
    /// KEY=VALUE[,...]: patience, policy, batch, spins; keys that are not given get their defaults.
    /// After shfl_mutex, shfl_ron or shfl_rw and a comma only for mutexes, or readers-writer locks.
    /// `default`: back to the settings of before
    #[arg(value_name = "SETTINGS")]
    pub settings: Option<String>,
}

/// Changes settings, if requested, and prints a table of the locks.
pub fn control(args: &ControlArgs) -> Result<ExitCode, Failure> {
    let wish = args.settings.as_deref().map(parse).transpose()?;
    let page = Page::find(args.pid)?;
    let mut target = Target::of(args.pid)?;
    let wanted = args.lock.as_deref().filter(|lock| *lock != ALL);
    let chosen = target.chosen(wanted, page.items()?)?;
    match wish {
        None => {}
        Some(wish) if wanted.is_none() => {
            Kind::ALL.into_iter().filter(|kind| wish.is_for(*kind)).for_each(|kind| {
                page.set_all(kind, wish.word);
            });
            page.check()?;
        }
        Some(wish) => change(&page, &chosen, wish)?,
    }
    let before = match args.time {
        None => None,
        Some(time) => {
            let before = Figures::now(args.pid, &page)?;
            std::thread::sleep(time);
            Some(before)
        }
    };
    let now = Figures::now(args.pid, &page)?;
    page.check()?;
    let rows = rows(&mut target, &chosen, before.as_ref(), &now);
    let of_all: String = Kind::ALL.into_iter().filter_map(|kind| of_all(&page, kind)).collect();
    output::print(table(&rows, args.rows) + &of_all + "\n")?;
    Ok(ExitCode::SUCCESS)
}

/// A line about the settings of all locks of a kind, if there are any.
fn of_all(page: &Page, kind: Kind) -> Option<String> {
    let settings = page.of_all(kind)?;
    let name = match kind {
        Kind::Mutex => "Mutexes",
        Kind::ReadersWriter => "Readers-writer locks",
    };
    Some(format!("\n{name} without settings of their own, later ones included: {settings}"))
}

/// SETTINGS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    /// None: of each kind.
    kind: Option<Kind>,
    /// 0 undoes a change.
    word: u64,
}

impl Wish {
    fn is_for(self, kind: Kind) -> bool {
        self.kind.is_none_or(|own| own == kind)
    }
}

fn parse(settings: &str) -> Result<Wish, Failure> {
    match settings {
        DEFAULT => Ok(Wish { kind: None, word: 0 }),
        pairs if pairs.split(',').next().is_some_and(|first| first.contains('=')) => {
            let word = settings::word(&format!("{},{pairs}", Kind::Mutex.lock()));
            Ok(Wish { kind: None, word: word.map_err(Failure::ours)? })
        }
        spec => {
            let word = settings::word(spec).map_err(Failure::ours)?;
            Ok(Wish { kind: Kind::of(spec), word })
        }
    }
}

/// Changes those locks that `wish` is for and whose settings can change.
fn change(page: &Page, chosen: &[Item], wish: Wish) -> Result<(), Failure> {
    let changeable: Vec<&Item> =
        chosen.iter().filter(|item| wish.is_for(item.kind) && item.is_changeable()).collect();
    if changeable.is_empty() {
        let why = chosen.iter().find_map(|item| item.settings().err());
        let why = why.or_else(|| Some(format!("it has {}", chosen.first()?.lock)));
        return Err(Failure::ours(format!("it cannot be changed: {}", why.unwrap_or_default())));
    }
    let changed = changeable.iter().filter(|item| page.set(item, wish.word)).count();
    page.check()?;
    if changed == 0 {
        return Err(Failure::ours("the lock was destroyed meanwhile"));
    }
    Ok(())
}

/// The names of a process's locks.
struct Target {
    pid: u32,
    modules: Vec<Module>,
    names: Names,
    /// By the program, in its statistics.
    given: HashMap<u64, String>,
}

impl Target {
    fn of(pid: u32) -> Result<Target, Failure> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let modules = Files::default().modules(pid, &mappings(&text));
        let given = observed(pid)?.map(|observed| observed.given_names()).unwrap_or_default();
        Ok(Target { pid, modules, names: Names::default(), given })
    }

    /// The name that the program gave the lock, the symbol at its address, or the address.
    fn name(&mut self, item: &Item) -> String {
        self.given
            .get(&item.address)
            .cloned()
            .or_else(|| self.names.object(&self.modules, item.address))
            .unwrap_or_else(|| format!("{:#x}", item.address))
    }

    /// The functions that initialised it: the innermost inlined one first.
    fn sites(&mut self, item: &Item) -> Vec<String> {
        if item.site == 0 {
            return Vec::new();
        }
        self.names.functions(&self.modules, item.site)
    }

    /// The locks that `wanted` names, those with most waits first.
    fn chosen(&mut self, wanted: Option<&str>, all: Vec<Item>) -> Result<Vec<Item>, Failure> {
        let mut chosen: Vec<Item> = match wanted {
            None => all,
            Some(wanted) => all.into_iter().filter(|item| self.is(item, wanted)).collect(),
        };
        chosen.sort_by_key(|item| std::cmp::Reverse(item.waits));
        match wanted {
            Some(wanted) if chosen.is_empty() => Err(Failure::ours(format!(
                "no thread of process {0} has waited for a lock '{wanted}'; `poundlock control -p \
                 {0}` lists those that can be changed",
                self.pid
            ))),
            _ => Ok(chosen),
        }
    }

    /// Whether `wanted` names the lock: its address, its name, the object that contains it, or a
    /// function that initialised it.
    fn is(&mut self, item: &Item, wanted: &str) -> bool {
        if let Some(digits) = wanted.strip_prefix("0x") {
            return u64::from_str_radix(digits, 16) == Ok(item.address);
        }
        let name = self.name(item);
        let object = name.rsplit_once("+0x").map_or(name.as_str(), |(object, _)| object);
        name == wanted
            || object == wanted
            || self
                .sites(item)
                .iter()
                .any(|site| site == wanted || without_arguments(site) == wanted)
    }
}

/// The statistics of a process. None if it has none.
fn observed(pid: u32) -> Result<Option<Observed>, Failure> {
    file_of(pid).ok().map(|file| Observed::read(&file)).transpose()
}

/// The figures of the locks at some time, by address.
struct Figures {
    items: HashMap<u64, Item>,
    /// Of the statistics, if the process has any.
    observed: HashMap<u64, Counts>,
}

/// Counts of a lock in the statistics; of a readers-writer lock, of readers and writers together.
#[derive(Clone, Copy, Default)]
struct Counts {
    acquisitions: u64,
    contended: u64,
    wait_ns: u64,
}

impl Counts {
    fn add(&mut self, lock: &Lock) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.acquisitions, lock.acquisitions);
        add(&mut self.contended, lock.contended);
        add(&mut self.wait_ns, lock.wait_ns);
    }
}

impl Figures {
    fn now(pid: u32, page: &Page) -> Result<Figures, Failure> {
        let items = page.items()?.into_iter().map(|item| (item.address, item)).collect();
        let mut counts: HashMap<u64, Counts> = HashMap::new();
        let process = observed(pid)?.map(|all| Process::of(&all, &mut Names::default()));
        for lock in process.iter().flat_map(|process| &process.locks) {
            if let (Some(place), Some(_)) = (lock.place, lock.controlled()) {
                counts.entry(place).or_default().add(lock);
            }
        }
        Ok(Figures { items, observed: counts })
    }
}

const COLUMNS: usize = 15;

/// The columns; the last four are of the statistics.
const HEADER: [&str; COLUMNS] = [
    "lock",
    "algorithm",
    "patience",
    "policy",
    "batch",
    "spins",
    "set by",
    "waits",
    "waiting",
    "initialised in",
    "address",
    "acquired",
    "contended",
    "wait",
    "mean",
];

/// The columns that a narrow terminal omits, in this order.
const EXPENDABLE: [usize; 9] = [10, 9, 14, 12, 11, 13, 8, 7, 1];

/// A line per lock of `chosen` that still exists, under [`HEADER`].
fn rows(
    target: &mut Target,
    chosen: &[Item],
    before: Option<&Figures>,
    now: &Figures,
) -> Vec<[String; COLUMNS]> {
    let present = chosen.iter().filter_map(|item| now.items.get(&item.address));
    present
        .map(|item| {
            let earlier = before.and_then(|before| before.items.get(&item.address));
            let waits = item.waits.saturating_sub(earlier.map_or(0, |earlier| earlier.waits));
            let [patience, policy, batch, spins] = values(item);
            let [acquired, contended, wait, mean] = observed_cells(item.address, before, now);
            [
                shorten(&target.name(item), NAME),
                item.lock.clone(),
                patience,
                policy,
                batch,
                spins,
                item.set_by(),
                waits.to_string(),
                item.waiting.to_string(),
                target
                    .sites(item)
                    .first()
                    .map_or(ABSENT.to_owned(), |site| shorten(without_arguments(site), NAME)),
                format!("{:#x}", item.address),
                acquired,
                contended,
                wait,
                mean,
            ]
        })
        .collect()
}

/// The values of patience, policy, batch and spins that a thread would wait by now.
fn values(item: &Item) -> [String; 4] {
    match item.settings() {
        Ok(now) => {
            [now.patience.to_string(), now.policy, now.batch.to_string(), now.spins.to_string()]
        }
        Err(_) => [ABSENT; 4].map(str::to_owned),
    }
}

/// Acquisitions, the contended share, the total and the mean wait, since `before` or the start.
fn observed_cells(address: u64, before: Option<&Figures>, now: &Figures) -> [String; 4] {
    let Some(counts) = now.observed.get(&address) else {
        return [ABSENT; 4].map(str::to_owned);
    };
    let earlier = before.and_then(|before| before.observed.get(&address));
    let since =
        |figure: fn(&Counts) -> u64| figure(counts).saturating_sub(earlier.map_or(0, figure));
    let (acquired, contended, wait) =
        (since(|lock| lock.acquisitions), since(|lock| lock.contended), since(|lock| lock.wait_ns));
    [
        acquired.to_string(),
        percent((acquired > 0).then(|| contended as f64 / acquired as f64)),
        time((contended > 0).then_some(wait as f64)),
        time((contended > 0).then(|| wait as f64 / contended as f64)),
    ]
}

fn table(rows: &[[String; COLUMNS]], most: usize) -> String {
    if rows.is_empty() {
        return "No thread has waited for a lock yet: none can be changed.".to_owned();
    }
    let shown = &rows[..rows.len().min(most)];
    let mut text = fitted(&HEADER, shown, &EXPENDABLE, output::Page::Stdout.width());
    if rows.len() > most {
        text += &format!("\nand {} more: --rows", rows.len() - most);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Kind, parse};

    #[test]
    fn settings_are_those_of_rules() {
        let word = |text| parse(text).expect("right settings").word;
        assert_eq!(word("default"), 0);
        assert_eq!(word("patience=0,policy=fifo"), word("shfl_mutex,policy=fifo,patience=0"));
        assert_eq!(word("patience=4"), word("shfl_mutex"));
        assert_eq!(word("patience=5,spins=2"), word("shfl_rw,patience=5,spins=2"));
        assert_ne!(word("patience=4"), word("patience=5"));
        let kind = |text| parse(text).expect("right settings").kind;
        assert_eq!(kind("patience=4"), None);
        assert_eq!(kind("shfl_mutex,patience=4"), Some(Kind::Mutex));
        assert_eq!(kind("shfl_rw,patience=4"), Some(Kind::ReadersWriter));
        for wrong in
            ["", "patience", "patience=x", "batch=0", "spins=32", "policy=fair", "wait=spin"]
        {
            let message = parse(wrong).expect_err(wrong).message;
            assert!(!message.is_empty() && !message.contains('\n'), "{wrong}: {message}");
        }
    }
}
