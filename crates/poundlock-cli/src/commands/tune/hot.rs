//! The locks for which threads wait, from statistics and control pages.

use super::setup::Use;
use crate::control;
use crate::statistics::{Names, Observed, Process};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Locks of control pages by their process and address.
pub type Pages = HashMap<(u32, u64), control::Item>;

/// The locks of a process for which threads have waited. Readers and writers wait for one lock.
pub fn uses(process: &Process, observed: &Observed, pages: &Pages, names: &mut Names) -> Vec<Use> {
    let mut uses: Vec<Use> = Vec::new();
    for lock in process.locks.iter().filter(|lock| lock.wait_ns > 0) {
        let (Some(kind), Some(address)) = (lock.controlled(), lock.place) else {
            continue;
        };
        if let Some(known) = uses.iter_mut().find(|known| known.address == address) {
            known.wait_ns = known.wait_ns.saturating_add(lock.wait_ns);
            known.indexes.push(lock.index);
            continue;
        }
        let item = pages.get(&(process.pid, address));
        let site = item.map_or(0, |item| item.site);
        let has_site = site != 0;
        uses.push(Use {
            kind,
            address,
            indexes: vec![lock.index],
            label: lock.name.clone(),
            wait_ns: lock.wait_ns,
            object: names.linked_object(&observed.modules, address),
            site: has_site.then(|| names.linked_function(&observed.modules, site)).flatten(),
            lock: item.map(|item| item.lock.clone()),
            settings: item.and_then(|item| item.settings().ok()),
            is_controlled: item.is_some_and(|item| item.wanted != 0),
        });
    }
    uses
}

/// The same of several processes, in which a lock of an object or a site counts once.
pub fn uses_of_all(observed: &[Observed], pages: &Pages) -> (Vec<Process>, Vec<Use>) {
    let mut names = Names::default();
    let processes: Vec<Process> =
        observed.iter().map(|observed| Process::of(observed, &mut names)).collect();
    let mut sums: BTreeMap<_, Use> = BTreeMap::new();
    for (process, observed) in processes.iter().zip(observed) {
        for used in uses(process, observed, pages, &mut names) {
            let same = match &used.object {
                Some(object) => (Some(object.clone()), 0, 0),
                None => (None, process.pid, used.address),
            };
            sums.entry(same)
                .and_modify(|sum| {
                    sum.wait_ns = sum.wait_ns.saturating_add(used.wait_ns);
                    sum.settings = sum.settings.take().or_else(|| used.settings.clone());
                    sum.lock = sum.lock.take().or_else(|| used.lock.clone());
                })
                .or_insert(used);
        }
    }
    (processes, sums.into_values().collect())
}

/// Reads the control pages in `folder` until `work` returns: a lock leaves its page when it is
/// destroyed.
pub fn with_pages<T>(folder: &Path, work: impl FnOnce() -> T) -> (T, Pages) {
    const PAUSE: Duration = Duration::from_millis(10);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut pages = Pages::new();
            while !ended.load(Ordering::Relaxed) {
                read_pages(folder, &mut pages);
                thread::sleep(PAUSE);
            }
            read_pages(folder, &mut pages);
            pages
        });
        let result = work();
        ended.store(true, Ordering::Relaxed);
        (result, reader.join().expect("reading does not panic"))
    })
}

fn read_pages(folder: &Path, pages: &mut Pages) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = files.map(|file| file.path()).filter(|path| control::is_file_of_page(path));
    for (pid, items) in files.filter_map(|path| control::read(&path)) {
        pages.extend(items.into_iter().map(|item| ((pid, item.address), item)));
    }
}
