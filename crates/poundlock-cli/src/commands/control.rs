//! `poundlock control`: the settings of the mutexes of a running process, shown and changed.

use crate::control::{LOCK, Mutex, Page, settings};
use crate::failure::Failure;
use crate::options::duration;
use crate::output;
use crate::program::mapped::{Files, mappings};
use crate::statistics::table::{percent, time};
use crate::statistics::{Lock, Module, Names, Observed, Process, Side, file_of, without_arguments};
use crate::text_table::{ABSENT, fitted, shorten};
use clap::Args;
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

/// SETTINGS that undo a change.
const DEFAULT: &str = "default";
/// MUTEX: all mutexes without settings of their own.
const ALL: &str = "all";
const NAME: usize = 48;

#[derive(Args, Debug)]
pub(crate) struct ControlArgs {
    /// Process ID
    #[arg(short, long, value_name = "PID")]
    pub pid: u32,
    /// Number of mutexes to print
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
    /// Count waits, acquisitions and times for that time, such as 5s, after the change [default:
    /// since the start of the process]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Symbol (cache, cache+0x40), function that initialised them, or address (0x...). `all`: those
    /// that have no settings of their own, later ones included [default: list all mutexes]
    #[arg(value_name = "MUTEX")]
    pub mutex: Option<String>,
    /// KEY=VALUE[,...] of shfl_mutex: patience, policy, batch, spins; keys that are not given get
    /// their defaults. `default`: back to the settings of before
    #[arg(value_name = "SETTINGS")]
    pub settings: Option<String>,
}

/// Changes settings, if requested, and prints a table of the mutexes.
pub fn control(args: &ControlArgs) -> Result<ExitCode, Failure> {
    let word = args.settings.as_deref().map(parse).transpose()?;
    let page = Page::find(args.pid)?;
    let mut target = Target::of(args.pid)?;
    let wanted = args.mutex.as_deref().filter(|mutex| *mutex != ALL);
    let chosen = target.chosen(wanted, page.mutexes()?)?;
    match word {
        None => {}
        Some(word) if wanted.is_none() => {
            page.set_all(word);
            page.check()?;
        }
        Some(word) => change(&page, &chosen, word)?,
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
    let of_all = page.of_all().map(|settings| {
        format!("\nMutexes without settings of their own, later ones included: {settings}")
    });
    output::print(table(&rows, args.rows) + of_all.as_deref().unwrap_or_default() + "\n")?;
    Ok(ExitCode::SUCCESS)
}

/// The word of SETTINGS; 0 undoes a change.
fn parse(settings: &str) -> Result<u64, Failure> {
    match settings {
        DEFAULT => Ok(0),
        pairs if pairs.split(',').next().is_some_and(|first| first.contains('=')) => {
            settings::word(&format!("{LOCK},{pairs}")).map_err(Failure::ours)
        }
        spec => settings::word(spec).map_err(Failure::ours),
    }
}

/// Changes those mutexes that have the default lock.
fn change(page: &Page, chosen: &[Mutex], word: u64) -> Result<(), Failure> {
    let of_default: Vec<&Mutex> = chosen.iter().filter(|mutex| mutex.is_default()).collect();
    if of_default.is_empty() {
        let why = chosen.iter().find_map(|mutex| mutex.settings().err());
        return Err(Failure::ours(format!("it cannot be changed: {}", why.unwrap_or_default())));
    }
    let changed = of_default.iter().filter(|mutex| page.set(mutex, word)).count();
    page.check()?;
    if changed == 0 {
        return Err(Failure::ours("the mutex was destroyed meanwhile"));
    }
    Ok(())
}

/// The names of a process's mutexes.
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

    /// The name that the program gave the mutex, the symbol at its address, or the address.
    fn name(&mut self, mutex: &Mutex) -> String {
        self.given
            .get(&mutex.address)
            .cloned()
            .or_else(|| self.names.object(&self.modules, mutex.address))
            .unwrap_or_else(|| format!("{:#x}", mutex.address))
    }

    /// The functions that initialised it: the innermost inlined one first.
    fn sites(&mut self, mutex: &Mutex) -> Vec<String> {
        if mutex.site == 0 {
            return Vec::new();
        }
        self.names.functions(&self.modules, mutex.site)
    }

    /// The mutexes that `wanted` names, those with most waits first.
    fn chosen(&mut self, wanted: Option<&str>, all: Vec<Mutex>) -> Result<Vec<Mutex>, Failure> {
        let mut chosen: Vec<Mutex> = match wanted {
            None => all,
            Some(wanted) => all.into_iter().filter(|mutex| self.is(mutex, wanted)).collect(),
        };
        chosen.sort_by_key(|mutex| std::cmp::Reverse(mutex.waits));
        match wanted {
            Some(wanted) if chosen.is_empty() => Err(Failure::ours(format!(
                "no thread of process {0} has waited for a mutex '{wanted}'; `poundlock control -p \
                 {0}` lists those that can be changed",
                self.pid
            ))),
            _ => Ok(chosen),
        }
    }

    /// Whether `wanted` names the mutex: its address, its name, the object that contains it, or a
    /// function that initialised it.
    fn is(&mut self, mutex: &Mutex, wanted: &str) -> bool {
        if let Some(digits) = wanted.strip_prefix("0x") {
            return u64::from_str_radix(digits, 16) == Ok(mutex.address);
        }
        let name = self.name(mutex);
        let object = name.rsplit_once("+0x").map_or(name.as_str(), |(object, _)| object);
        name == wanted
            || object == wanted
            || self
                .sites(mutex)
                .iter()
                .any(|site| site == wanted || without_arguments(site) == wanted)
    }
}

/// The statistics of a process. None if it has none.
fn observed(pid: u32) -> Result<Option<Observed>, Failure> {
    file_of(pid).ok().map(|file| Observed::read(&file)).transpose()
}

/// The figures of the mutexes at some time, by address.
struct Figures {
    mutexes: HashMap<u64, Mutex>,
    /// Of the statistics, if the process has any.
    locks: HashMap<u64, Lock>,
}

impl Figures {
    fn now(pid: u32, page: &Page) -> Result<Figures, Failure> {
        let mutexes = page.mutexes()?.into_iter().map(|mutex| (mutex.address, mutex)).collect();
        let locks = match observed(pid)? {
            None => HashMap::new(),
            Some(observed) => Process::of(&observed, &mut Names::default())
                .locks
                .into_iter()
                .filter(|lock| lock.side == Side::Mutex && !lock.api)
                .filter_map(|lock| Some((lock.place?, lock)))
                .collect(),
        };
        Ok(Figures { mutexes, locks })
    }
}

const COLUMNS: usize = 15;

/// The columns; the last four are of the statistics.
const HEADER: [&str; COLUMNS] = [
    "mutex",
    "lock",
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

/// A line per mutex of `chosen` that still exists, under [`HEADER`].
fn rows(
    target: &mut Target,
    chosen: &[Mutex],
    before: Option<&Figures>,
    now: &Figures,
) -> Vec<[String; COLUMNS]> {
    let present = chosen.iter().filter_map(|mutex| now.mutexes.get(&mutex.address));
    present
        .map(|mutex| {
            let earlier = before.and_then(|before| before.mutexes.get(&mutex.address));
            let waits = mutex.waits.saturating_sub(earlier.map_or(0, |earlier| earlier.waits));
            let [patience, policy, batch, spins] = values(mutex);
            let [acquired, contended, wait, mean] = observed_cells(mutex.address, before, now);
            [
                shorten(&target.name(mutex), NAME),
                mutex.lock.clone(),
                patience,
                policy,
                batch,
                spins,
                mutex.set_by(),
                waits.to_string(),
                mutex.waiting.to_string(),
                target
                    .sites(mutex)
                    .first()
                    .map_or(ABSENT.to_owned(), |site| shorten(without_arguments(site), NAME)),
                format!("{:#x}", mutex.address),
                acquired,
                contended,
                wait,
                mean,
            ]
        })
        .collect()
}

/// The values of patience, policy, batch and spins that a thread would wait by now.
fn values(mutex: &Mutex) -> [String; 4] {
    match mutex.settings() {
        Ok(now) => {
            [now.patience.to_string(), now.policy, now.batch.to_string(), now.spins.to_string()]
        }
        Err(_) => [ABSENT; 4].map(str::to_owned),
    }
}

/// Acquisitions, the contended share, the total and the mean wait, since `before` or the start.
fn observed_cells(address: u64, before: Option<&Figures>, now: &Figures) -> [String; 4] {
    let Some(lock) = now.locks.get(&address) else {
        return [ABSENT; 4].map(str::to_owned);
    };
    let earlier = before.and_then(|before| before.locks.get(&address));
    let since = |figure: fn(&Lock) -> u64| figure(lock).saturating_sub(earlier.map_or(0, figure));
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
        return "No thread has waited for a mutex yet: none can be changed.".to_owned();
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
    use super::parse;

    #[test]
    fn settings_are_those_of_rules() {
        let word = |text| parse(text).expect("right settings");
        assert_eq!(word("default"), 0);
        assert_eq!(word("patience=0,policy=fifo"), word("shfl_mutex,policy=fifo,patience=0"));
        assert_eq!(word("patience=4"), word("shfl_mutex"));
        assert_ne!(word("patience=4"), word("patience=5"));
        for wrong in
            ["", "patience", "patience=x", "batch=0", "spins=32", "policy=fair", "wait=spin"]
        {
            let message = parse(wrong).expect_err(wrong).message;
            assert!(!message.is_empty() && !message.contains('\n'), "{wrong}: {message}");
        }
    }
}
