//! Fuzzes every parser of files that others may have written with mutations of valid files. No
//! parser may panic, abort, or take unbounded time or memory, and an error is one line.
//! $POUNDLOCK_FUZZ sets the number of inputs per parser, 256 by default; docs/verification.md has
//! the command for millions.

use crate::commands::sim::figure;
use crate::control;
use crate::program::elf::Elf;
use crate::rules;
use crate::statistics::folded::folded;
use crate::statistics::layout::{self, Field, area, header};
use crate::statistics::table;
use crate::statistics::{Names, Observed, Process};
use poundlock_bench::Workload;
use poundlock_sim::Machine;
use poundlock_topology::latency::Measurements;
use poundlock_topology::matrix::Matrix;
use poundlock_topology::{cpus, saved};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Display;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The limits of CPU time and of memory, far above what any parser needs.
const MOST_TIME: Duration = Duration::from_secs(20);
const MOST_MEMORY: u64 = 8 << 30;

/// Values at which sizes and offsets overflow.
const EDGES: [u64; 14] = [
    0,
    1,
    2,
    7,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 20,
    4095,
    4096,
    u64::MAX,
    u64::MAX / 2,
    1 << 63,
];
const WORDS: [&str; 12] = [
    "-1",
    "0",
    "1e-320",
    "1e309",
    "nan",
    "4294967296",
    "18446744073709551616",
    "[[",
    "\"",
    "\u{0}",
    "0-4095",
    ",",
];

/// A change to a file. Positions are fractions of its length in units of 1/65,536.
#[derive(Clone, Debug)]
enum Mutation {
    Byte(u16, u8),
    Long(u16, usize),
    Word(u16, usize),
    Remove(u16, u16),
    Repeat(u16, u16, u8),
    Truncate(u16),
    Text(u16, usize),
    Number(u16, usize),
}

impl Mutation {
    fn any() -> impl Strategy<Value = Mutation> {
        prop_oneof![
            (any::<u16>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
            (any::<u16>(), 0..EDGES.len()).prop_map(|(at, edge)| Mutation::Long(at, edge)),
            (any::<u16>(), 0..EDGES.len()).prop_map(|(at, edge)| Mutation::Word(at, edge)),
            (any::<u16>(), any::<u16>()).prop_map(|(at, length)| Mutation::Remove(at, length)),
            (any::<u16>(), any::<u16>(), 1u8..4)
                .prop_map(|(at, length, times)| Mutation::Repeat(at, length, times)),
            any::<u16>().prop_map(Mutation::Truncate),
            (any::<u16>(), 0..WORDS.len()).prop_map(|(at, word)| Mutation::Text(at, word)),
            (any::<u16>(), 0..WORDS.len()).prop_map(|(at, word)| Mutation::Number(at, word)),
        ]
    }

    fn apply(&self, file: &mut Vec<u8>) {
        let place = |at: u16| usize::from(at) * file.len() / 65536;
        // Mostly short pieces, sometimes long ones.
        let end = |at: usize, length: u16| {
            (at + 1 + usize::from(length >> (length % 16))).min(file.len())
        };
        match *self {
            _ if file.is_empty() => {}
            Mutation::Byte(at, byte) => {
                let at = place(at);
                file[at] = byte;
            }
            Mutation::Long(at, edge) => {
                overwrite(place(at) / 8 * 8, &EDGES[edge].to_ne_bytes(), file)
            }
            Mutation::Word(at, edge) => {
                overwrite(place(at) / 4 * 4, &(EDGES[edge] as u32).to_ne_bytes(), file)
            }
            Mutation::Remove(at, length) => {
                let at = place(at);
                let end = end(at, length);
                file.drain(at..end);
            }
            Mutation::Repeat(at, length, times) => {
                let at = place(at);
                let piece = file[at..end(at, length)].repeat(times.into());
                file.splice(at..at, piece);
            }
            Mutation::Truncate(at) => file.truncate(place(at)),
            Mutation::Text(at, word) => {
                let at = place(at);
                file.splice(at..at, WORDS[word].bytes());
            }
            Mutation::Number(at, word) => {
                let start =
                    (place(at)..file.len()).find(|&at| file[at].is_ascii_digit()).unwrap_or(0);
                let length = file[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                file.splice(start..start + length, WORDS[word].bytes());
            }
        }
    }
}

fn overwrite(at: usize, bytes: &[u8], file: &mut [u8]) {
    for (byte, new) in file[at..].iter_mut().zip(bytes) {
        *byte = *new;
    }
}

/// Calls `parse` with the seeds, which must be valid, and with mutations of them.
fn fuzz<T>(seeds: &[Vec<u8>], parse: impl Fn(&[u8]) -> Result<T, String>) {
    limit_memory();
    for seed in seeds {
        assert_eq!(parse(seed).err(), None);
    }
    let cases = std::env::var("POUNDLOCK_FUZZ")
        .map_or(256, |count| count.parse().expect("POUNDLOCK_FUZZ is a number"));
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let inputs = (0..seeds.len(), prop::collection::vec(Mutation::any(), 1..10));
    let tried = runner.run(&inputs, |(seed, mutations)| {
        let mut file = seeds[seed].clone();
        mutations.iter().for_each(|mutation| mutation.apply(&mut file));
        let start = cpu_time();
        if let Err(error) = parse(&file) {
            prop_assert!(!error.is_empty() && !error.contains('\n'), "{error:?}");
        }
        prop_assert!(cpu_time() - start < MOST_TIME, "it takes {:?}", cpu_time() - start);
        Ok(())
    });
    tried.unwrap_or_else(|failure| panic!("{failure}"));
}

/// The same for parsers of text; other content is rejected before they are called.
fn fuzz_text<T, E: Display>(seeds: &[String], parse: impl Fn(&str) -> Result<T, E>) {
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.clone().into_bytes()).collect();
    fuzz(&seeds, |file| parse(&String::from_utf8_lossy(file)).map_err(|error| error.to_string()));
}

fn limit_memory() {
    let limit = libc::rlimit { rlim_cur: MOST_MEMORY, rlim_max: MOST_MEMORY };
    // SAFETY: reads the limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `time` only.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).expect("less than a second"),
    )
}

/// The contents of the files in a folder of the source tree.
fn texts(folder: &str, ending: &str) -> Vec<String> {
    let files = std::fs::read_dir(Path::new(ROOT).join(folder)).expect("the source tree").flatten();
    let paths = files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|end| end == ending));
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| std::fs::read_to_string(path).expect("a text")).collect()
}

const TABLE: &str = ",,,\n12.5,,,\n80,81.5,,\n79,80,13,\n";
const MEASUREMENTS: &str = r#"{"schema": "poundlock.latency/1", "present": "0-2", "cpus": [0, 1, 2],
    "settings": {"samples": 3, "round_trips": 100}, "complete": true, "pairs": [
    {"a": 0, "b": 1, "median": 12.5, "lower_quartile": 12.0, "upper_quartile": 13.0},
    {"a": 0, "b": 2, "median": 80.5, "lower_quartile": 80.0, "upper_quartile": 81.0},
    {"a": 1, "b": 2, "median": 81.5, "lower_quartile": 80.0, "upper_quartile": 82.0}]}"#;

#[test]
fn matrices() {
    fuzz_text(&[TABLE.to_owned(), MEASUREMENTS.to_owned()], |text| {
        Matrix::parse(text).map(|matrix| (matrix.distances(), matrix.contracted(&matrix.cpus)))
    });
}

#[test]
fn measurements() {
    fuzz_text(&[MEASUREMENTS.to_owned()], |text| {
        Measurements::parse(text).map(|found| (found.missing(), found.among_themselves().csv()))
    });
}

#[test]
fn lists_of_cpus() {
    fuzz_text(&["0-3,8,10-11".to_owned(), "0-4095".to_owned()], |text| {
        cpus::parse(text)
            .map(|found| cpus::format(&found))
            .map_err(|error| error.to_string().replace('\n', " "))
    });
}

#[test]
fn machines() {
    fuzz_text(&texts("machines", "toml"), |text| {
        Machine::from_toml(text, |name| {
            std::fs::read_to_string(Path::new(ROOT).join("machines").join(name))
                .map_err(|e| e.to_string())
        })
    });
}

#[test]
fn machines_of_tables() {
    fuzz_text(&[TABLE.to_owned()], |text| Machine::from_table("table", text));
}

#[test]
fn workloads() {
    fuzz_text(&texts("bench/workloads", "toml"), Workload::from_toml);
}

#[test]
fn figures() {
    fuzz_text(&texts("bench/figures", "toml"), figure::parse);
}

/// An accepted file is TOML with the same number of rules.
#[test]
fn rules() {
    let seeds = [
        "# All\n[[rule]]\nsymbol = \"cache*\" # each\nlock = \"shfl_mutex,patience=0\"\n",
        "[[ rule ]]\r\n\tlock=\"shfl_mutex\"\r\n\tsite=\"init_?\"\r\n\r\n[[rule]]\n\
         symbol = \"table+0x28\"\nlock = \"shfl_mutex,policy=fifo,batch=8\"",
    ];
    fuzz(&seeds.map(|seed| seed.as_bytes().to_vec()), |file| {
        rules::check(file, "shfl_mutex")?;
        let Ok(text) = std::str::from_utf8(file) else {
            return Ok(());
        };
        let table: toml::Table = text.parse().expect("an accepted file is TOML");
        let count = table.get("rule").map_or(0, |rules| rules.as_array().expect("tables").len());
        assert_eq!(count, text.lines().filter(|line| line.trim_start().starts_with('[')).count());
        Ok(())
    });
}

/// Words of any value have settings or none; tests/unit/untrusted.c checks which.
#[test]
fn control_pages() {
    let mut page = vec![0; 1 << 17];
    page[..control::MAGIC.len()].copy_from_slice(control::MAGIC);
    page[24] = u8::try_from(control::VERSION).expect("a small number");
    for (at, byte) in page.iter_mut().enumerate().skip(128) {
        *byte = (at * 37 / 32) as u8;
    }
    let word = control::settings::word("shfl_mutex").expect("the default");
    page[128 + 16..128 + 24].copy_from_slice(&word.to_ne_bytes());
    fuzz(&[page], |page| {
        for mutex in control::parse(page)? {
            assert!(mutex.lock.bytes().all(|byte| byte.is_ascii_graphic()), "{:?}", mutex.lock);
            for word in [mutex.own, mutex.wanted, mutex.of_all] {
                let text = control::settings::text(word).unwrap_or_default();
                assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text:?}");
            }
        }
        Ok(())
    });
}

#[test]
fn programs() {
    fuzz(&[std::fs::read("/bin/true").expect("it is there")], Elf::parse);
}

/// A file in memory, with a name.
struct MemoryFile(std::fs::File);

impl MemoryFile {
    fn new() -> MemoryFile {
        // SAFETY: creates a new descriptor.
        let descriptor = unsafe { libc::memfd_create(c"fuzz".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(descriptor >= 0);
        // SAFETY: the descriptor is open and has no other owner.
        MemoryFile(unsafe { std::os::fd::FromRawFd::from_raw_fd(descriptor) })
    }

    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    fn fill(&self, content: &[u8]) {
        self.0.set_len(0).expect("memory");
        std::os::unix::fs::FileExt::write_all_at(&self.0, content, 0).expect("memory");
    }
}

/// The profiled statistics of a process with a few locks, without the holes of the sparse file.
fn statistics_seed() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let source = folder.path().join("program.c");
    std::fs::write(&source, include_str!("../tests/observed.c")).expect("a file");
    let built =
        Command::new("cc").args(["-g", "-pthread", "-o"]).arg(&program).arg(&source).status();
    assert!(built.is_ok_and(|status| status.success()));
    let built = Path::new(ROOT).join("build/preload/libpoundlock-preload.so");
    let library = std::env::var_os("POUNDLOCK_PRELOAD").map_or(built, PathBuf::from);
    let mut run = Command::new(&program);
    run.arg("counts")
        .env("LD_PRELOAD", library)
        .env("POUNDLOCK_PROFILE", "1")
        .env("POUNDLOCK_STATS", folder.path());
    assert!(run.status().is_ok_and(|status| status.success()));
    let files =
        std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|file| file.path());
    let left = files.into_iter().find(|file| file.extension().is_some_and(|end| end == "stats"));
    compact(&std::fs::read(left.expect("the library is built, and leaves a file")).expect("a file"))
}

/// Moves the used items of each array next to each other.
fn compact(file: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_ne_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let mut small = file[..4096].to_vec();
    for index in 0..layout::AREAS {
        let at = |field: Field| header::AREAS.at + layout::AREA_SIZE * index + field.at;
        let start = at(area::OFFSET);
        let offset =
            u64::from_ne_bytes(file[start..start + 8].try_into().expect("eight bytes")) as usize;
        let used = word(at(area::MOST)).min(word(at(area::USED)));
        let length = word(at(area::BYTES)) as usize * used as usize;
        let place = small.len() as u64;
        small[start..start + 8].copy_from_slice(&place.to_ne_bytes());
        small[at(area::MOST)..at(area::MOST) + 4].copy_from_slice(&used.to_ne_bytes());
        small.extend_from_slice(&file[offset..offset + length]);
    }
    small
}

#[test]
fn statistics() {
    let names = std::cell::RefCell::new(Names::default());
    let file = MemoryFile::new();
    fuzz(&[statistics_seed()], |content| {
        file.fill(content);
        let observed = Observed::read(&file.path()).map_err(|failure| failure.message)?;
        let names = &mut *names.borrow_mut();
        let process = Process::of(&observed, names);
        let text = table::table(&process, 20, None);
        assert!(!text.contains('\u{1b}'), "{text}");
        Ok((folded(&observed, &process, true, names), text))
    });
}

const CPUS: usize = 4096;

unsafe extern "C" {
    /// Declared in world/user/route.h.
    fn w_route_read(
        path: *const c_char,
        root: *const c_char,
        usable: *const u64,
        positions: *mut u16,
        error: *mut c_char,
        size: usize,
    ) -> c_int;
}

#[test]
fn routes() {
    let order = [3, 1, 0, 2];
    let seed = saved::text(&saved::Route {
        cpus: &order,
        present: "0-3",
        machine: "of a test",
        length: 120.0,
    });
    let root = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(root.path().join("devices/system/cpu")).expect("a folder");
    std::fs::write(root.path().join("devices/system/cpu/present"), "0-3\n").expect("a file");
    let root = CString::new(root.path().as_os_str().as_encoded_bytes()).expect("no NUL");
    let mut usable = [0u64; CPUS / 64];
    usable[0] = 0b1111;
    let file = MemoryFile::new();
    let path = CString::new(file.path().as_os_str().as_encoded_bytes()).expect("no NUL");
    fuzz(&[seed.into_bytes()], |content| {
        file.fill(content);
        let (mut positions, mut error) = ([0u16; CPUS], [0 as c_char; 256]);
        // SAFETY: the arrays have the sizes that route.h and topology.h say; no other thread reads
        // a route.
        let result = unsafe {
            w_route_read(
                path.as_ptr(),
                root.as_ptr(),
                usable.as_ptr(),
                positions.as_mut_ptr(),
                error.as_mut_ptr(),
                256,
            )
        };
        if result == 1 {
            // SAFETY: the function ends the line with a NUL.
            return Err(unsafe { CStr::from_ptr(error.as_ptr()) }.to_string_lossy().into_owned());
        }
        assert_eq!(result, 2, "it is there");
        let mut places = positions[..4].to_vec();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 3]);
        assert!(positions.iter().all(|place| *place < 4));
        Ok(())
    });
}
