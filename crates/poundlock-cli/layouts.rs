//! Part of build.rs: the layouts of the files that the preload library maps, and limits of its
//! texts, from its headers.

use super::c_numbers;
use std::fmt::Write as _;
use std::path::Path;

/// The layout of a kind of file, or only constants.
struct Layout {
    /// The generated file.
    name: &'static str,
    header: &'static str,
    /// Of the structures in C.
    prefix: &'static str,
    /// The structures without their prefix, each with the fields that are read.
    structures: &'static [(&'static str, &'static [&'static str])],
    /// Constants, and the expressions that they have in C.
    constants: &'static [(&'static str, &'static str)],
}

const LAYOUTS: [Layout; 4] = [STATISTICS, CONTROL, RULES, LIVE];

const RULES: Layout = Layout {
    name: "rules_numbers",
    header: "rule.h",
    prefix: "",
    structures: &[],
    constants: &[("LONGEST_FILE", "RULES_TEXT")],
};

const LIVE: Layout = Layout {
    name: "live_numbers",
    header: "live.h",
    prefix: "",
    structures: &[],
    constants: &[("LONGEST_TEXT", "LIVE_TEXT")],
};

const CONTROL: Layout = Layout {
    name: "control_layout",
    header: "control_page.h",
    prefix: "control_",
    structures: &[
        ("page", &["version", "pid", "wanted", "rw_wanted", "locks"]),
        (
            "lock",
            &["address", "site", "own", "wanted", "waits", "waiting", "rule", "lock", "is_rw"],
        ),
    ],
    constants: &[
        ("VERSION", "CONTROL_VERSION"),
        ("LOCKS", "CONTROL_LOCKS"),
        ("PAGE_SIZE", "sizeof(struct control_page)"),
        ("LOCK_SIZE", "sizeof(struct control_lock)"),
    ],
};

const STATISTICS: Layout = Layout {
    name: "stats_layout",
    header: "stats/file.h",
    prefix: "stats_",
    structures: &[
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
    ],
    constants: &[
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
        ("HOLDS_FIRST", "STATS_HOLDS_FIRST"),
        ("WAITER", "STATS_WAITER"),
        ("HOLDER", "STATS_HOLDER"),
        ("HEADER_SIZE", "sizeof(struct stats_header)"),
        ("AREA_SIZE", "sizeof(struct stats_area)"),
    ],
};

/// Writes a file for each layout to `out`: its constants, and a module for each structure with its
/// fields. `root` is the source tree.
pub fn write(root: &Path, out: &Path) {
    for layout in &LAYOUTS {
        write_one(layout, root, out);
    }
}

fn write_one(layout: &Layout, root: &Path, out: &Path) {
    let mut expressions: Vec<String> =
        layout.constants.iter().map(|(_, c)| (*c).to_owned()).collect();
    for (structure, fields) in layout.structures {
        let structure = format!("struct {}{structure}", layout.prefix);
        for field in *fields {
            expressions.push(format!("offsetof({structure}, {field})"));
            expressions.push(format!("sizeof((({structure} *)0)->{field})"));
        }
    }
    let mut build = cc::Build::new();
    build
        .std("gnu11")
        .includes(["preload", "world/user", "core", "lib"].map(|folder| root.join(folder)));
    let numbers = c_numbers::evaluate(&build, out, layout.name, layout.header, &expressions);
    let text = constants(layout, &mut numbers.into_iter());
    std::fs::write(out.join(layout.name).with_extension("rs"), text).expect("OUT_DIR is writable");
}

fn constants(layout: &Layout, numbers: &mut impl Iterator<Item = usize>) -> String {
    let mut next = || numbers.next().expect("there is a number for each expression");
    let mut text = String::new();
    for (name, _) in layout.constants {
        writeln!(text, "pub const {name}: usize = {};", next())
            .expect("writing to a string succeeds");
    }
    for (structure, fields) in layout.structures {
        writeln!(text, "pub mod {structure} {{\n    use super::Field;")
            .expect("writing to a string succeeds");
        for field in *fields {
            let (name, at, bytes) = (field.to_uppercase(), next(), next());
            writeln!(text, "    pub const {name}: Field = Field {{ at: {at}, bytes: {bytes} }};")
                .expect("writing to a string succeeds");
        }
        text += "}\n";
    }
    text
}
