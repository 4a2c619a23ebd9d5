//! The files that a process has mapped, as /proc shows them.

use crate::statistics::Module;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A line of /proc/PID/maps.
pub struct Mapping<'a> {
    pub start: u64,
    pub end: u64,
    pub executable: bool,
    offset: u64,
    device: &'a str,
    pub inode: u64,
    pub path: &'a str,
}

impl Mapping<'_> {
    fn parse(line: &str) -> Option<Mapping<'_>> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Mapping {
            start: number(start)?,
            end: number(end)?,
            executable: words.next()?.contains('x'),
            offset: number(words.next()?)?,
            device: words.next()?,
            inode: words.next()?.parse().ok()?,
            path: words.next().unwrap_or_default().trim_start(),
        })
    }

    fn is_file_of(&self, other: &Mapping<'_>) -> bool {
        self.inode == other.inode && self.device == other.device
    }
}

/// The mappings in the text of /proc/PID/maps.
pub fn mappings(text: &str) -> Vec<Mapping<'_>> {
    text.lines().filter_map(Mapping::parse).collect()
}

/// The mapped files: readable paths, and the addresses of their segments of code.
#[derive(Default)]
pub struct Files {
    known: HashMap<(u64, String), Option<Readable>>,
}

/// The path of a file, and its segments.
type Readable = (PathBuf, Vec<Segment>);

/// Offset in the file, size in the file, address.
type Segment = (u64, u64, u64);

impl Files {
    /// The files with code, in the order of their addresses.
    pub fn modules(&mut self, pid: u32, mappings: &[Mapping<'_>]) -> Vec<Module> {
        let code = mappings.iter().filter(|mapping| mapping.executable);
        code.filter_map(|mapping| self.module(pid, mapping, mappings)).collect()
    }

    fn module(&mut self, pid: u32, mapping: &Mapping<'_>, all: &[Mapping<'_>]) -> Option<Module> {
        if mapping.inode == 0 {
            return None;
        }
        let key = (mapping.inode, mapping.path.to_owned());
        let (path, segments) = self
            .known
            .entry(key)
            .or_insert_with(|| {
                let path = readable(pid, mapping);
                segments(&path).map(|segments| (path, segments))
            })
            .as_ref()?;
        let within = |segment: &&Segment| {
            (segment.0 & !0xfff..segment.0 + segment.1).contains(&mapping.offset)
        };
        let (offset, _, address) = segments.iter().find(within)?;
        let bias = mapping.start.wrapping_sub(address.wrapping_sub(*offset) + mapping.offset);
        // From the first mapping of the file to the one of zeroed data after the last.
        let its = all.iter().filter(|other| other.is_file_of(mapping));
        let start = its.clone().map(|other| other.start).min()?;
        let mut end = its.map(|other| other.end).max()?;
        let zeroed = all.iter().find(|other| other.start == end && other.inode == 0);
        if let Some(zeroed) = zeroed.filter(|zeroed| zeroed.path.is_empty()) {
            end = zeroed.end;
        }
        Some(Module { start, end, bias, path: path.clone() })
    }
}

/// A path by which we can read a mapped file: its own, or that in the mount namespace of the
/// process, or the mapping itself if the file was deleted.
pub fn readable(pid: u32, mapping: &Mapping<'_>) -> PathBuf {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let is_it = |path: &PathBuf| path.metadata().is_ok_and(|file| file.ino() == mapping.inode);
    let own = PathBuf::from(mapping.path);
    let theirs = process.join("root").join(mapping.path.strip_prefix('/').unwrap_or(mapping.path));
    let mapped = process.join("map_files").join(format!("{:x}-{:x}", mapping.start, mapping.end));
    [own, theirs].into_iter().find(is_it).unwrap_or(mapped)
}

fn segments(path: &Path) -> Option<Vec<Segment>> {
    let data = ReadCache::new(File::open(path).ok()?);
    let header = object::elf::FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let loaded = header.program_headers(endian, &data).ok()?.iter();
    // Neighbouring segments may share a page of the file: only code is looked for.
    let loaded = loaded.filter(|segment| {
        let is_code = segment.p_flags(endian).0 & object::elf::PF_X.0 != 0;
        segment.p_type(endian) == object::elf::PT_LOAD && is_code
    });
    Some(
        loaded
            .map(|segment| {
                (segment.p_offset(endian), segment.p_filesz(endian), segment.p_vaddr(endian))
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::Mapping;

    #[test]
    fn a_line_of_maps_is_read() {
        let line = "7f00-7fff r-xp 00001000 08:01 42                 /usr/lib/a b.so";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.start, mapping.end, mapping.offset), (0x7f00, 0x7fff, 0x1000));
        assert_eq!(
            (mapping.executable, mapping.inode, mapping.path),
            (true, 42, "/usr/lib/a b.so")
        );
        let anonymous = Mapping::parse("7f00-7fff rw-p 00000000 00:00 0").unwrap();
        assert_eq!((anonymous.inode, anonymous.path), (0, ""));
    }
}
