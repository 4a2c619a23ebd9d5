//! The lock functions that a program imports, and which of them the preload library takes over.

use crate::program::elf::{Elf, Symbol};
use serde::Serialize;
use std::path::Path;

/// The kind of lock that a function belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Mutex,
    Cond,
    Rwlock,
    Spin,
    C11,
}

impl Family {
    pub const ALL: [Family; 5] =
        [Family::Mutex, Family::Cond, Family::Rwlock, Family::Spin, Family::C11];

    /// The family of the function `name`, which may have the leading underscores of an old glibc
    /// name.
    fn of(name: &str) -> Option<Family> {
        let name = name.trim_start_matches('_');
        let prefixes = [
            ("pthread_mutex_", Family::Mutex),
            ("pthread_cond_", Family::Cond),
            ("pthread_rwlock_", Family::Rwlock),
            ("pthread_spin_", Family::Spin),
        ];
        let by_prefix =
            prefixes.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, family)| *family);
        by_prefix.or_else(|| C11.contains(&name).then_some(Family::C11))
    }
}

/// The C11 functions by full name: other libraries use the prefixes mtx_ and cnd_.
const C11: [&str; 12] = [
    "mtx_init",
    "mtx_lock",
    "mtx_trylock",
    "mtx_timedlock",
    "mtx_unlock",
    "mtx_destroy",
    "cnd_init",
    "cnd_signal",
    "cnd_broadcast",
    "cnd_wait",
    "cnd_timedwait",
    "cnd_destroy",
];

/// The libraries of the C library and the compilers: every program has them, and they lock almost
/// nothing for it.
const RUNTIME: [&str; 6] =
    ["libc.so.", "libm.so.", "ld-linux", "libgcc_s.so.", "libstdc++.so.", "libpthread.so."];

/// The lock functions that one file imports.
#[derive(Debug, Serialize)]
pub struct Imports {
    pub file: String,
    /// Whether the file is a runtime library, whose locks do not count.
    pub runtime: bool,
    pub functions: Vec<Function>,
}

#[derive(Debug, Serialize)]
pub struct Function {
    pub name: String,
    pub version: Option<String>,
    pub family: Family,
    pub interposed: bool,
}

impl Function {
    /// Whether the function acquires a lock. A program that only initialises or destroys locks uses
    /// none.
    fn locks(&self) -> bool {
        self.name.ends_with("lock") && !self.name.ends_with("unlock")
    }
}

impl Imports {
    /// The imports of `elf` at `path`, matched with the exports of `preload`.
    pub fn of(path: &Path, elf: &Elf, preload: Option<&Elf>) -> Imports {
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        let function = |symbol: &Symbol| {
            Some(Function {
                family: Family::of(&symbol.name)?,
                interposed: preload.is_some_and(|preload| {
                    preload.exports.iter().any(|export| binds(symbol, export))
                }),
                name: symbol.name.clone(),
                version: symbol.version.clone(),
            })
        };
        Imports {
            file: path.display().to_string(),
            runtime: RUNTIME.iter().any(|name| file_name.starts_with(name)),
            functions: elf.imports.iter().filter_map(function).collect(),
        }
    }

    /// The number of interposed functions that acquire locks; 0 for a runtime library. Also 0 for a
    /// file that never releases a lock: Poundlock's own code takes one mutex per thread, for life.
    pub fn interposed(&self) -> usize {
        let releases = self.functions.iter().any(|function| function.name.ends_with("unlock"));
        if self.runtime || !releases {
            0
        } else {
            self.functions.iter().filter(|function| function.interposed && function.locks()).count()
        }
    }

    pub fn count(&self, family: Family) -> usize {
        self.functions.iter().filter(|function| function.family == family).count()
    }

    /// The functions that the preload library does not interpose.
    pub fn missed(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| !function.interposed)
    }
}

/// Whether the loader binds the reference `import` to the definition `export`. A definition without
/// a version serves any reference, one with a version only references to that version.
fn binds(import: &Symbol, export: &Symbol) -> bool {
    import.name == export.name
        && (export.version.is_none()
            || import.version.is_none()
            || import.version == export.version)
}

#[cfg(test)]
mod tests {
    use super::{Family, binds};
    use crate::program::elf::Symbol;

    fn symbol(name: &str, version: Option<&str>) -> Symbol {
        Symbol { name: name.to_owned(), version: version.map(str::to_owned) }
    }

    #[test]
    fn functions_have_families() {
        assert_eq!(Family::of("pthread_mutex_clocklock"), Some(Family::Mutex));
        assert_eq!(Family::of("__pthread_mutex_lock"), Some(Family::Mutex));
        assert_eq!(Family::of("pthread_mutexattr_init"), None);
        assert_eq!(Family::of("pthread_cond_wait"), Some(Family::Cond));
        assert_eq!(Family::of("pthread_rwlock_rdlock"), Some(Family::Rwlock));
        assert_eq!(Family::of("pthread_spin_lock"), Some(Family::Spin));
        assert_eq!(Family::of("mtx_lock"), Some(Family::C11));
        assert_eq!(Family::of("mtx_of_somebody_else"), None);
    }

    #[test]
    fn a_versioned_definition_serves_its_version_only() {
        let import = symbol("pthread_mutex_trylock", Some("GLIBC_2.34"));
        assert!(binds(&import, &symbol("pthread_mutex_trylock", None)));
        assert!(binds(&import, &symbol("pthread_mutex_trylock", Some("GLIBC_2.34"))));
        assert!(!binds(&import, &symbol("pthread_mutex_trylock", Some("GLIBC_2.2.5"))));
        assert!(!binds(&import, &symbol("pthread_mutex_lock", None)));
    }
}
