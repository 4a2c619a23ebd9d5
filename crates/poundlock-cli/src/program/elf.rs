//! Reads ELF files. Nothing is executed.

use object::elf::{
    DT_NEEDED, EM_386, EM_AARCH64, EM_ARM, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64, PT_INTERP,
};
use object::read::elf::{Dyn, ElfFile, FileHeader, ProgramHeader, Sym, VersionTable};
use object::{Endianness, FileKind, Object, ObjectSection, ReadCache, ReadRef};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A program or library.
#[derive(Debug)]
pub struct Elf {
    pub head: Head,
    /// The libraries that it names itself (DT_NEEDED).
    pub needed: Vec<String>,
    /// The undefined dynamic symbols.
    pub imports: Vec<Symbol>,
    /// The dynamic symbols that it defines.
    pub exports: Vec<Symbol>,
    /// Whether it uses Poundlock's API: imports it, or is statically linked with it.
    pub uses_api: bool,
    /// The language whose runtime it contains.
    pub language: Language,
    /// The name of its compiler, from .comment.
    pub compiler: Option<String>,
}

/// The facts in a program's headers.
#[derive(Debug)]
pub struct Head {
    /// "64-bit X86_64".
    pub machine: String,
    /// The loader that it names. None: a static program.
    pub loader: Option<PathBuf>,
}

/// A dynamic symbol with the version that it is bound to or defined for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub version: Option<String>,
}

/// Languages whose standard libraries have locks of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Go,
    Rust,
    Other,
}

impl Elf {
    /// Reads the file at `path`.
    pub fn read(path: &Path) -> Result<Elf, String> {
        let data = std::fs::read(path).map_err(|error| crate::failure::reason(&error))?;
        Elf::parse(&data)
    }

    /// Reads the headers of the file at `path`, and no more of it.
    pub fn head(path: &Path) -> Result<Head, String> {
        let cache =
            File::open(path).map(ReadCache::new).map_err(|error| crate::failure::reason(&error))?;
        let parsed = match FileKind::parse(&cache) {
            Ok(FileKind::Elf32) => head::<object::elf::FileHeader32<Endianness>, _>(&cache),
            Ok(FileKind::Elf64) => head::<object::elf::FileHeader64<Endianness>, _>(&cache),
            _ => return Err(NO_ELF.to_owned()),
        };
        parsed.map_err(damaged)
    }

    /// Reads a file's content.
    pub fn parse(data: &[u8]) -> Result<Elf, String> {
        let parsed = match FileKind::parse(data) {
            Ok(FileKind::Elf32) => parse_class::<object::elf::FileHeader32<Endianness>>(data),
            Ok(FileKind::Elf64) => parse_class::<object::elf::FileHeader64<Endianness>>(data),
            _ => return Err(NO_ELF.to_owned()),
        };
        parsed.map_err(damaged)
    }
}

fn parse_class<E: FileHeader<Endian = Endianness>>(data: &[u8]) -> object::Result<Elf> {
    let file = ElfFile::<E>::parse(data)?;
    let (imports, exports) = symbols(&file)?;
    let compiler = compiler(&file);
    Ok(Elf {
        head: head::<E, _>(data)?,
        needed: needed(&file)?,
        language: language(&file, compiler.as_deref()),
        uses_api: imports.iter().any(|symbol| is_api(&symbol.name)) || contains_api(&file),
        imports,
        exports,
        compiler: compiler
            .and_then(|text| text.split('\0').find(|part| !part.is_empty()).map(str::to_owned)),
    })
}

const NO_ELF: &str = "not an ELF file";

fn damaged(error: object::Error) -> String {
    format!("a damaged ELF file: {error}")
}

fn head<'data, E, R>(data: R) -> object::Result<Head>
where
    E: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = E::parse(data)?;
    let endian = header.endian()?;
    let segments = header.program_headers(endian, data)?;
    let interpreter = match segments.iter().find(|segment| segment.p_type(endian) == PT_INTERP) {
        Some(segment) => segment.interpreter(endian, data)?,
        None => None,
    };
    let bits = if header.is_class_64() { 64 } else { 32 };
    Ok(Head {
        machine: format!("{bits}-bit {}", machine(header.e_machine(endian))),
        loader: interpreter.map(|name| PathBuf::from(OsStr::from_bytes(name))),
    })
}

/// Names a machine type.
fn machine(number: object::elf::Machine) -> String {
    match number {
        EM_X86_64 => "X86_64".to_owned(),
        EM_AARCH64 => "Aarch64".to_owned(),
        EM_386 => "I386".to_owned(),
        EM_ARM => "Arm".to_owned(),
        EM_RISCV => "Riscv".to_owned(),
        EM_PPC64 => "PowerPc64".to_owned(),
        EM_S390 => "S390x".to_owned(),
        other => format!("ELF machine {}", other.0),
    }
}

fn needed<E: FileHeader<Endian = Endianness>>(file: &ElfFile<E>) -> object::Result<Vec<String>> {
    let table = file.elf_dynamic_table()?;
    let entries = table.dynamics().iter().filter(|entry| entry.d_tag(file.endian()) == DT_NEEDED);
    entries.map(|entry| entry.string(file.endian(), *table.strings()).map(text)).collect()
}

/// Returns imports and exports.
fn symbols<E: FileHeader<Endian = Endianness>>(
    file: &ElfFile<E>,
) -> object::Result<(Vec<Symbol>, Vec<Symbol>)> {
    let endian = file.endian();
    let versions = file.elf_section_table().versions(endian, file.data())?;
    let table = file.elf_dynamic_symbol_table();
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    for (index, symbol) in table.enumerate() {
        let name = text(table.symbol_name(endian, symbol)?);
        if name.is_empty() || symbol.is_local() {
            continue;
        }
        let version = versions
            .as_ref()
            .map(|versions| version_of(versions, endian, index))
            .transpose()?
            .flatten();
        let side = if symbol.is_undefined(endian) { &mut imports } else { &mut exports };
        side.push(Symbol { name, version });
    }
    Ok((imports, exports))
}

fn version_of<E: FileHeader<Endian = Endianness>>(
    versions: &VersionTable<E>,
    endian: Endianness,
    index: object::SymbolIndex,
) -> object::Result<Option<String>> {
    let version = versions.version(versions.version_index(endian, index).index())?;
    Ok(version.map(|version| text(version.name())))
}

fn compiler<E: FileHeader<Endian = Endianness>>(file: &ElfFile<E>) -> Option<String> {
    Some(text(file.section_by_name(".comment")?.data().ok()?))
}

/// Whether `name` is a function of poundlock.h.
fn is_api(name: &str) -> bool {
    name.starts_with("pound_mutex_")
        || name.starts_with("pound_lock_")
        || name.starts_with("pound_rwlock_")
}

/// Whether Poundlock is statically linked in: the name of its observer hook survives stripping.
fn contains_api<E: FileHeader<Endian = Endianness>>(file: &ElfFile<E>) -> bool {
    constants(file).is_some_and(|constants| {
        memchr::memmem::find(constants, b"\0poundlock_observer_").is_some()
    })
}

fn constants<'data, E: FileHeader<Endian = Endianness>>(
    file: &ElfFile<'data, E>,
) -> Option<&'data [u8]> {
    file.section_by_name(".rodata")?.data().ok()
}

/// Detects the language. Go has sections of its own. Rust signs .comment, and panics of its
/// standard library name source files even in a stripped program.
fn language<E: FileHeader<Endian = Endianness>>(
    file: &ElfFile<E>,
    compiler: Option<&str>,
) -> Language {
    if [".go.buildinfo", ".note.go.buildid"].iter().any(|name| file.section_by_name(name).is_some())
    {
        return Language::Go;
    }
    let names_std = || {
        constants(file)
            .is_some_and(|constants| memchr::memmem::find(constants, b"library/std/src/").is_some())
    };
    if compiler.is_some_and(|text| text.contains("rustc version")) || names_std() {
        Language::Rust
    } else {
        Language::Other
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
