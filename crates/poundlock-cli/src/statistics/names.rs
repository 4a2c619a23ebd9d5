//! Names addresses by the symbols of the files that a process had loaded.

use super::debug_file;
use super::file::{Module, open_regular};
use addr2line::Loader;
use object::{Object, ObjectSymbol, ReadCache, SymbolKind};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A cache of symbols. Each file is read when it is first needed.
#[derive(Default)]
pub struct Names {
    files: HashMap<PathBuf, Symbols>,
    /// Whether debug information that is kept apart is looked for.
    apart: bool,
    code: HashMap<(PathBuf, u64), Vec<String>>,
}

/// The maximum size of a file whose symbols are read: statistics may name any file.
const MOST_BYTES: u64 = 4 << 30;

/// The data objects and the code of a file.
struct Symbols {
    /// Address, size, linker's name; sorted.
    objects: Vec<(u64, u64, String)>,
    loader: Option<Loader>,
}

impl Symbols {
    fn read(path: &Path) -> Symbols {
        let file = open_regular(path)
            .ok()
            .filter(|file| file.metadata().is_ok_and(|file| file.len() <= MOST_BYTES));
        let Some(file) = file else {
            return Symbols { objects: Vec::new(), loader: None };
        };
        let mut objects = objects(&ReadCache::new(file)).unwrap_or_default();
        objects.sort();
        Symbols { objects, loader: Loader::new(path).ok() }
    }

    /// The symbols of a file's debug file.
    fn apart(path: &Path) -> Option<Symbols> {
        let apart = debug_file::of(path)?;
        let mut objects = objects(&ReadCache::new(File::open(&apart.path).ok()?))?;
        objects.sort();
        let loader = Loader::new_with_sup(&apart.path, apart.supplement.as_ref()).ok();
        Some(Symbols { objects, loader })
    }
}

fn objects(data: &ReadCache<File>) -> Option<Vec<(u64, u64, String)>> {
    let file = object::File::parse(data).ok()?;
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let data = symbols.filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0);
    Some(
        data.filter_map(|symbol| {
            Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned()))
        })
        .collect(),
    )
}

/// The module of an address. If several match, the one that was loaded last.
fn module(modules: &[Module], address: u64) -> Option<&Module> {
    modules.iter().rev().find(|module| (module.start..module.end).contains(&address))
}

impl Names {
    /// Also reads debug information that is kept apart from programs and libraries.
    pub fn with_debug_files() -> Names {
        Names { apart: true, ..Names::default() }
    }

    fn symbols(&mut self, path: &Path) -> &Symbols {
        let apart = self.apart;
        self.files.entry(path.to_path_buf()).or_insert_with_key(|path| {
            let symbols = if apart { Symbols::apart(path) } else { None };
            symbols.unwrap_or_else(|| Symbols::read(path))
        })
    }

    /// The static object at an address with the offset in it, such as "table+0x40"; without a
    /// symbol, the module with an offset. None outside of all modules.
    pub fn object(&mut self, modules: &[Module], address: u64) -> Option<String> {
        let module = module(modules, address)?;
        Some(match self.linked_object(modules, address) {
            Some((name, 0)) => demangle(&name),
            Some((name, offset)) => format!("{}+{offset:#x}", demangle(&name)),
            None => {
                format!("{}+{:#x}", file_name(&module.path), address.wrapping_sub(module.bias))
            }
        })
    }

    /// The linker's name of the static object at an address, and the offset in it.
    pub fn linked_object(&mut self, modules: &[Module], address: u64) -> Option<(String, u64)> {
        let module = module(modules, address)?;
        let at = address.wrapping_sub(module.bias);
        let objects = &self.symbols(&module.path).objects;
        let before = objects.partition_point(|(start, ..)| *start <= at);
        let mut near = objects[..before].iter().rev().take(16);
        let (start, _, name) = near.find(|(start, size, _)| at - start < *size)?;
        Some((name.clone(), at - start))
    }

    /// The linker's name of the function at a return address; inlined functions have none.
    pub fn linked_function(&mut self, modules: &[Module], address: u64) -> Option<String> {
        let module = module(modules, address)?;
        let at = address.wrapping_sub(module.bias).wrapping_sub(1);
        let loader = self.symbols(&module.path).loader.as_ref()?;
        loader.find_symbol(at).map(str::to_owned)
    }

    /// The functions at a return address, inlined ones first. Empty for the preload library.
    pub fn functions(&mut self, modules: &[Module], address: u64) -> Vec<String> {
        let Some(module) = module(modules, address) else {
            return vec![format!("{address:#x}")];
        };
        if crate::program::preload::is_ours(&module.path) {
            return Vec::new();
        }
        self.functions_in(module, address)
    }

    /// The functions at a return address in a module, inlined ones first.
    pub fn functions_in(&mut self, module: &Module, address: u64) -> Vec<String> {
        // The call instruction precedes the return address.
        let at = address.wrapping_sub(module.bias).wrapping_sub(1);
        let key = (module.path.clone(), at);
        if let Some(known) = self.code.get(&key) {
            return known.clone();
        }
        let mut found = self
            .symbols(&module.path)
            .loader
            .as_ref()
            .map(|loader| frames(loader, at))
            .unwrap_or_default();
        if found.is_empty() {
            found.push(format!("{}+{at:#x}", file_name(&module.path)));
        }
        self.code.insert(key, found.clone());
        found
    }

    /// The functions of a stack, innermost first, without the preload library.
    pub fn stack(&mut self, modules: &[Module], frames: &[u64]) -> Vec<String> {
        frames.iter().flat_map(|frame| self.functions(modules, *frame)).collect()
    }
}

fn frames(loader: &Loader, at: u64) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(mut frames) = loader.find_frames(at) {
        while let Ok(Some(frame)) = frames.next() {
            names.extend(
                frame.function.and_then(|function| Some(demangle(&function.raw_name().ok()?))),
            );
        }
    }
    if names.is_empty() {
        names.extend(loader.find_symbol(at).map(demangle));
    }
    names
}

/// Demangles C++ and Rust names. A C name stays: as a mangled type, `m` would be `unsigned long`.
pub fn demangle(name: &str) -> String {
    let is_mangled = name.starts_with("_Z") || name.starts_with("_R");
    if is_mangled {
        addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned()
    } else {
        name.to_owned()
    }
}

fn file_name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// Prefixes of functions of C++ that only wrap a lock operation.
pub const WRAPPERS_OF_CXX: [&str; 9] = [
    "__gthread_",
    "std::mutex::",
    "std::timed_mutex::",
    "std::recursive_mutex::",
    "std::shared_mutex::",
    "std::__",
    "std::lock_guard",
    "std::unique_lock",
    "std::scoped_lock",
];

fn is_wrapper(name: &str) -> bool {
    name.starts_with("pthread_") || WRAPPERS_OF_CXX.iter().any(|start| name.starts_with(start))
}

/// A short name of a stack: its three innermost functions that are no wrappers.
pub fn in_short(stack: &[String]) -> String {
    let telling = stack.iter().map(|name| without_arguments(name)).filter(|name| !is_wrapper(name));
    let names: Vec<&str> = telling.take(3).collect();
    names.join(" < ")
}

/// The name of a function of C++ without its arguments.
pub fn without_arguments(name: &str) -> &str {
    name.find('(').filter(|at| *at > 0).map_or(name, |at| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::{demangle, in_short};

    #[test]
    fn only_mangled_names_are_demangled() {
        for name in ["m", "i", "table", "_start", "__Z", "St", "pthread_mutex_lock"] {
            assert_eq!(demangle(name), name);
        }
        assert_eq!(demangle("_ZN5Cache3getEi"), "Cache::get(int)");
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
    }

    #[test]
    fn wrappers_do_not_name_a_stack() {
        let stack = [
            "__gthread_mutex_lock(pthread_mutex_t*)",
            "std::mutex::lock()",
            "Cache::get(int)",
            "serve()",
            "run",
            "main",
        ];
        assert_eq!(in_short(&stack.map(str::to_owned)), "Cache::get < serve < run");
    }
}
