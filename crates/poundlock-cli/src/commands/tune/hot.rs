//! The mutexes for which threads wait, from statistics and control pages.

use super::setup::Use;
use crate::control;
use crate::statistics::{Names, Observed, Process, Side};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Mutexes of control pages by their process and address.
pub type Pages = HashMap<(u32, u64), control::Mutex>;

/// The mutexes of a process for which threads have waited.
pub fn uses(process: &Process, observed: &Observed, pages: &Pages, names: &mut Names) -> Vec<Use> {
    let mutexes = process.locks.iter().filter(|lock| lock.side == Side::Mutex && !lock.api);
    mutexes
        .filter(|lock| lock.wait_ns > 0)
        .filter_map(|lock| {
            let address = lock.place?;
            let page = pages.get(&(process.pid, address));
            let site = page.map_or(0, |mutex| mutex.site);
            let has_site = site != 0;
            Some(Use {
                address,
                label: lock.label(),
                wait_ns: lock.wait_ns,
                object: names.linked_object(&observed.modules, address),
                site: has_site.then(|| names.linked_function(&observed.modules, site)).flatten(),
                settings: page.and_then(|mutex| mutex.settings().ok()),
                is_controlled: page.is_some_and(|mutex| mutex.wanted != 0),
            })
        })
        .collect()
}

/// The same of several processes, in which a mutex of an object or a site counts once.
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
                })
                .or_insert(used);
        }
    }
    (processes, sums.into_values().collect())
}

/// Reads the control pages in `folder` until `work` returns: a mutex leaves its page when it is
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
    for (pid, mutexes) in files.filter_map(|path| control::read(&path)) {
        pages.extend(mutexes.into_iter().map(|mutex| ((pid, mutex.address), mutex)));
    }
}
