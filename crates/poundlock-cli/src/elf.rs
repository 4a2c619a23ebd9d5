//! What an ELF file says about itself. Only read, never run.

use object::elf::{DT_NEEDED, PT_INTERP};
use object::read::elf::{Dyn, ElfFile, FileHeader, ProgramHeader, Sym, VersionTable};
use object::{Endianness, FileKind, Object, ObjectSection, ReadCache};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A program or library.
#[derive(Debug)]
pub struct Elf {
    /// "64-bit X86_64".
    pub machine: String,
    /// The loader that it asks for. A program without one is static.
    pub loader: Option<PathBuf>,
    /// The libraries that it asks for by itself.
    pub needed: Vec<String>,
    /// The dynamic symbols that others must define.
    pub imports: Vec<Symbol>,
    /// The dynamic symbols that it defines.
    pub exports: Vec<Symbol>,
    /// The language's runtime that it carries.
    pub language: Language,
    /// What its compiler left in it.
    pub compiler: Option<String>,
}

/// Whether the file at `path` is a program that no loader prepares, and that so loads no library of ours. Reads no more of
/// it than its headers.
pub fn is_static(path: &Path) -> bool {
    fn of<E: FileHeader<Endian = Endianness>>(cache: &ReadCache<File>) -> object::Result<bool> {
        let header = E::parse(cache)?;
        let endian = header.endian()?;
        Ok(header.program_headers(endian, cache)?.iter().all(|segment| segment.p_type(endian) != PT_INTERP))
    }
    let Ok(cache) = File::open(path).map(ReadCache::new) else { return false };
    let found = match FileKind::parse(&cache) {
        Ok(FileKind::Elf32) => of::<object::elf::FileHeader32<Endianness>>(&cache),
        Ok(FileKind::Elf64) => of::<object::elf::FileHeader64<Endianness>>(&cache),
        _ => return false,
    };
    found.unwrap_or(false)
}

/// A dynamic symbol with the version that it is bound to or defined for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub version: Option<String>,
}

/// Languages whose standard libraries have locks that pthread knows nothing of.
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

    /// Reads a file's content.
    pub fn parse(data: &[u8]) -> Result<Elf, String> {
        let parsed = match FileKind::parse(data) {
            Ok(FileKind::Elf32) => parse_class::<object::elf::FileHeader32<Endianness>>(data),
            Ok(FileKind::Elf64) => parse_class::<object::elf::FileHeader64<Endianness>>(data),
            _ => return Err("not an ELF file".to_owned()),
        };
        parsed.map_err(|error| format!("a damaged ELF file: {error}"))
    }
}

fn parse_class<E: FileHeader<Endian = Endianness>>(data: &[u8]) -> object::Result<Elf> {
    let file = ElfFile::<E>::parse(data)?;
    let bits = if file.is_64() { 64 } else { 32 };
    let (imports, exports) = symbols(&file)?;
    let compiler = compiler(&file);
    Ok(Elf {
        machine: format!("{bits}-bit {:?}", file.architecture()),
        loader: loader(&file)?,
        needed: needed(&file)?,
        language: language(&file, compiler.as_deref()),
        imports,
        exports,
        compiler: compiler.and_then(|text| text.split('\0').find(|part| !part.is_empty()).map(str::to_owned)),
    })
}

fn loader<E: FileHeader<Endian = Endianness>>(file: &ElfFile<E>) -> object::Result<Option<PathBuf>> {
    let segments = file.elf_program_headers();
    let Some(segment) = segments.iter().find(|segment| segment.p_type(file.endian()) == PT_INTERP) else {
        return Ok(None);
    };
    Ok(segment.interpreter(file.endian(), file.data())?.map(|name| PathBuf::from(OsStr::from_bytes(name))))
}

fn needed<E: FileHeader<Endian = Endianness>>(file: &ElfFile<E>) -> object::Result<Vec<String>> {
    let table = file.elf_dynamic_table()?;
    let entries = table.dynamics().iter().filter(|entry| entry.d_tag(file.endian()) == DT_NEEDED);
    entries.map(|entry| entry.string(file.endian(), *table.strings()).map(text)).collect()
}

/// Imports and exports.
fn symbols<E: FileHeader<Endian = Endianness>>(file: &ElfFile<E>) -> object::Result<(Vec<Symbol>, Vec<Symbol>)> {
    let endian = file.endian();
    let versions = file.elf_section_table().versions(endian, file.data())?;
    let table = file.elf_dynamic_symbol_table();
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    for (index, symbol) in table.enumerate() {
        let name = text(table.symbol_name(endian, symbol)?);
        if name.is_empty() || symbol.is_local() {
            continue;
        }
        let version = versions.as_ref().map(|versions| version_of(versions, endian, index)).transpose()?.flatten();
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

/// Go leaves a section of its own; Rust signs in the compilers' section, and its standard library's panics name their
/// source files even in a stripped program.
fn language<E: FileHeader<Endian = Endianness>>(file: &ElfFile<E>, compiler: Option<&str>) -> Language {
    if [".go.buildinfo", ".note.go.buildid"].iter().any(|name| file.section_by_name(name).is_some()) {
        return Language::Go;
    }
    let names_std = || {
        let constants = file.section_by_name(".rodata").and_then(|section| section.data().ok()).unwrap_or_default();
        memchr::memmem::find(constants, b"library/std/src/").is_some()
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
