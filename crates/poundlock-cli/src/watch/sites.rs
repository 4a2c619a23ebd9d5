//! The purpose of waits, by the table `sites.toml`.

use regex::RegexSet;
use serde::{Deserialize, Serialize};

use crate::statistics::WRAPPERS_OF_CXX;

/// The purpose of a wait.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum What {
    Lock,
    /// A lock or a queue: programs use semaphores as both.
    Semaphore,
    Unknown,
    Idle,
}

/// An entry of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    functions: Vec<String>,
    pub what: What,
    pub name: String,
    pub remedy: Option<String>,
    #[serde(default)]
    calls: bool,
    /// Whether each waiter sleeps in a word of its own, which then does not identify the lock.
    #[serde(default)]
    pub own_words: bool,
}

#[derive(Deserialize)]
struct Table {
    site: Vec<Site>,
}

/// The table.
pub struct Sites {
    sites: Vec<Site>,
    /// All patterns, with the index of their entry.
    patterns: RegexSet,
    owners: Vec<usize>,
}

/// The number of functions that are matched, from the innermost one.
const NEAR: usize = 16;

/// The number of functions between those of an entry with `calls` and what they call.
const CALLERS: usize = 8;

impl Sites {
    pub fn read() -> Sites {
        let table: Table = toml::from_str(include_str!("sites.toml")).expect("the table is tested");
        let sites = table.site;
        let owners = sites
            .iter()
            .enumerate()
            .flat_map(|(index, site)| site.functions.iter().map(move |_| index))
            .collect();
        let patterns = sites.iter().flat_map(|site| &site.functions);
        let patterns = RegexSet::new(patterns.map(|pattern| format!("^(?:{pattern})")))
            .expect("the table is tested");
        Sites { sites, patterns, owners }
    }

    /// The entry of a stack, innermost function first. None: it is not classified.
    pub fn of(&self, stack: &[String]) -> Option<&Site> {
        self.find(stack).map(|(index, _)| &self.sites[index])
    }

    /// The index of the entry, and of the outermost function by which it was found.
    fn find(&self, stack: &[String]) -> Option<(usize, usize)> {
        let entries = stack.iter().take(NEAR).enumerate();
        let mut found = entries.filter_map(|(at, name)| Some((self.entry(name)?, at)));
        let (first, at) = found.next()?;
        let callers = found.take_while(|(_, caller)| caller - at <= CALLERS);
        let calling = callers.filter(|(index, _)| self.sites[*index].calls);
        Some(calling.last().unwrap_or((first, at)))
    }

    fn entry(&self, name: &str) -> Option<usize> {
        self.patterns.matches(name).into_iter().map(|pattern| self.owners[pattern]).min()
    }

    /// The function that takes the lock, outside of the lock's library. Empty: not known.
    pub fn user<'a>(&self, stack: &'a [String]) -> &'a str {
        let start = self.find(stack).map_or(0, |(_, at)| at + 1);
        let is_library = |name: &&String| {
            let mut glue = WRAPPERS_OF_CXX.iter().chain(&GLUE);
            self.entry(name).is_some() || glue.any(|start| name.starts_with(start))
        };
        let outside = stack[start..].iter().find(|name| !is_library(name));
        outside.or(stack.first()).map_or("", String::as_str)
    }
}

/// Prefixes of further functions between a lock and the code that takes it.
const GLUE: [&str; 30] = [
    // Code without a name.
    "0x",
    "std::shared_lock",
    "lock_api::",
    "<lock_api::",
    "core::",
    "rocksdb::port::",
    "rocksdb::MutexLock::",
    "rocksdb::InstrumentedMutex",
    "leveldb::port::",
    "leveldb::MutexLock::",
    "ngx_thread_mutex_",
    "ngx_thread_cond_",
    // The C library, with and without its debug information.
    "libc.so",
    "syscall",
    "futex_w",
    "lll_",
    "__lll_",
    "__GI___",
    "pthread_",
    "__pthread_",
    "___pthread_",
    // Java: the virtual machine, and the code that it generates.
    "SharedRuntime::",
    "InterpreterRuntime::",
    "Runtime1::",
    "ObjectSynchronizer::",
    "monitorenter",
    "RuntimeStub",
    "Interpreter",
    // Go.
    "runtime.",
    "sync.",
];

#[cfg(test)]
mod tests {
    use super::{Sites, What};

    fn kind(stack: &[&str]) -> Option<(What, String)> {
        let stack: Vec<String> = stack.iter().map(|name| (*name).to_owned()).collect();
        Sites::read().of(&stack).map(|site| (site.what, site.name.clone()))
    }

    #[test]
    fn locks_have_remedies() {
        for site in Sites::read().sites {
            assert_eq!(site.remedy.is_some(), site.what == What::Lock, "{}", site.name);
        }
    }

    #[test]
    fn a_condition_variable_waits_for_its_mutex_at_the_end() {
        let lock = Some((What::Lock, "pthread mutex".to_owned()));
        assert_eq!(kind(&["__lll_lock_wait", "pthread_mutex_lock", "main"]), lock);
        assert_eq!(
            kind(&["libc.so.6+0x123", "pthread_cond_wait", "worker"]).unwrap().0,
            What::Idle
        );
        assert_eq!(
            kind(&["__lll_lock_wait", "__pthread_mutex_cond_lock", "pthread_cond_wait"]),
            lock
        );
    }

    #[test]
    fn languages_have_their_own() {
        let name = |stack: &[&str]| kind(stack).map(|(_, name)| name);
        assert_eq!(
            name(&["syscall", "std::sys::sync::mutex::futex::Mutex::lock_contended", "work"]),
            Some("Mutex of Rust".to_owned())
        );
        assert_eq!(
            name(&["syscall", "parking_lot::raw_mutex::RawMutex::lock_slow", "work"]),
            Some("Mutex of parking_lot".to_owned())
        );
        assert_eq!(
            kind(&["runtime.futex", "runtime.futexsleep", "runtime.notesleep", "runtime.mPark"])
                .unwrap()
                .0,
            What::Idle
        );
        assert_eq!(
            name(&["runtime.futex", "runtime.futexsleep", "runtime.lock2", "runtime.mallocgc"]),
            Some("lock of Go's runtime".to_owned())
        );
        let go = ["runtime.semacquire1", "sync.runtime_SemacquireMutex"];
        let mutex = [&go[..], &["internal/sync.(*Mutex).lockSlow", "sync.(*Mutex).Lock"]].concat();
        assert_eq!(name(&mutex), Some("sync.Mutex of Go".to_owned()));
        let rwlock = [&mutex[..], &["sync.(*RWMutex).Lock", "main.work"]].concat();
        assert_eq!(name(&rwlock), Some("sync.RWMutex of Go".to_owned()));
        assert_eq!(
            name(&["pthread_cond_timedwait", "lock_wait(que_thr_t*)", "row_mysql_handle_errors"]),
            Some("lock of MariaDB's tables and rows".to_owned())
        );
        assert_eq!(kind(&["my_own_wait", "main"]), None);
        let ours = ["libpoundlock:w_futex_wait", "libpoundlock:sleep_once"];
        let wait = [&ours[..], &["libpoundlock:sleep_until_signalled", "libpoundlock:wait_for"]];
        assert_eq!(kind(&wait.concat()).unwrap().0, What::Idle);
        assert_eq!(kind(&ours).unwrap().0, What::Lock);
        assert_eq!(
            name(&["pthread_cond_wait", "os::PlatformEvent::park", "ObjectMonitor::EnterI"]),
            Some("Java monitor".to_owned())
        );
    }

    #[test]
    fn the_user_of_a_lock_is_outside_of_the_library() {
        let user = |stack: &[&str]| {
            let stack: Vec<String> = stack.iter().map(|name| (*name).to_owned()).collect();
            Sites::read().user(&stack).to_owned()
        };
        let stack = [
            "libc.so.6+0x1",
            "pthread_mutex_lock",
            "std::mutex::lock()",
            "Cache::get(int)",
            "main",
        ];
        assert_eq!(user(&stack), "Cache::get(int)");
        // With the debug information of the C library.
        let release = ["futex_wake", "__GI___lll_lock_wake", "lll_mutex_unlock_optimized", "put"];
        assert_eq!(user(&release), "put");
        assert_eq!(user(&["syscall"]), "syscall");
        assert_eq!(user(&[]), "");
    }
}
