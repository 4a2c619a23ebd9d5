//! Part of build.rs: the layout of statistics files, from preload/stats/file.h.

use super::c_numbers;
use std::fmt::Write as _;
use std::path::Path;

/// The structures without their prefix, each with the fields that are read.
const STRUCTURES: [(&str, &[&str]); 8] = [
    (
        "header",
        &[
            "version",
            "pid",
            "profile",
            "start_ns",
            "start_s",
            "hold_every",
            "rows",
            "areas",
            "threads",
            "threads_unobserved",
            "locks_unobserved",
            "stacks_unobserved",
            "shares_unobserved",
            "end_ns",
            "thread_ns",
            "lock",
            "rwlock",
            "program",
            "counters",
            "events",
        ],
    ),
    ("area", &["offset", "bytes", "most", "used"]),
    ("module", &["start", "end", "bias", "path"]),
    ("lock", &["address", "kind", "lives", "stack", "name", "waiting", "counts"]),
    ("stack", &["depth", "kind", "lock", "count", "ns", "frames"]),
    ("row", &["key", "lock", "counts"]),
    ("thread", &["serial", "start_ns", "seen_ns", "end_ns", "merges", "events"]),
    ("share", &["thread", "lock", "acquisitions"]),
];

/// Constants, and the expressions that they have in C.
const CONSTANTS: [(&str, &str); 15] = [
    ("VERSION", "STATS_VERSION"),
    ("MODULES", "STATS_MODULES"),
    ("LOCKS", "STATS_LOCKS"),
    ("STACKS", "STATS_STACKS"),
    ("THREADS", "STATS_THREADS"),
    ("SHARES", "STATS_SHARES"),
    ("AREAS", "STATS_AREAS"),
    ("READERS_WRITER", "STATS_READERS_WRITER"),
    ("API", "STATS_API"),
    ("SPIN", "STATS_SPIN"),
    ("FIRST", "STATS_FIRST"),
    ("WAITER", "STATS_WAITER"),
    ("HOLDER", "STATS_HOLDER"),
    ("HEADER_SIZE", "sizeof(struct stats_header)"),
    ("AREA_SIZE", "sizeof(struct stats_area)"),
];

/// Writes stats_layout.rs to `out`: each of [`CONSTANTS`], and a module for each structure with its
/// fields. `root` is the source tree.
pub fn write(root: &Path, out: &Path) {
    let mut expressions: Vec<String> = CONSTANTS.iter().map(|(_, c)| (*c).to_owned()).collect();
    for (structure, fields) in STRUCTURES {
        let structure = format!("struct stats_{structure}");
        for field in fields {
            expressions.push(format!("offsetof({structure}, {field})"));
            expressions.push(format!("sizeof((({structure} *)0)->{field})"));
        }
    }
    let mut build = cc::Build::new();
    build
        .std("gnu11")
        .includes(["preload", "world/user", "core", "lib"].map(|folder| root.join(folder)));
    let numbers = c_numbers::evaluate(&build, out, "stats_layout", "stats/file.h", &expressions);
    std::fs::write(out.join("stats_layout.rs"), constants(&mut numbers.into_iter()))
        .expect("OUT_DIR is writable");
}

fn constants(numbers: &mut impl Iterator<Item = usize>) -> String {
    let mut next = || numbers.next().expect("there is a number for each expression");
    let mut text = String::new();
    for (name, _) in CONSTANTS {
        writeln!(text, "pub const {name}: usize = {};", next())
            .expect("writing to a string succeeds");
    }
    for (structure, fields) in STRUCTURES {
        writeln!(text, "pub mod {structure} {{\n    use super::Field;")
            .expect("writing to a string succeeds");
        for field in fields {
            let (name, at, bytes) = (field.to_uppercase(), next(), next());
            writeln!(text, "    pub const {name}: Field = Field {{ at: {at}, bytes: {bytes} }};")
                .expect("writing to a string succeeds");
        }
        text += "}\n";
    }
    text
}
