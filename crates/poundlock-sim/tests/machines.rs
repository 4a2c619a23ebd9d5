//! The machines of `machines/`: all files are valid, the model reproduces their latencies, and
//! errors in a file are reported.

use poundlock_sim::{Cpu, Machine, ping_pong};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines")
}

fn all() -> Vec<Machine> {
    let files = std::fs::read_dir(folder())
        .expect("machines/")
        .map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files.iter().map(|file| Machine::read(file).unwrap_or_else(|wrong| panic!("{wrong}"))).collect()
}

/// The topology derived from measured tables: cores and caches match the processors. Sockets may
/// not: a distant group is not always a socket, and in the table of the two EPYC 7742, the caches
/// of only one socket are near each other.
#[test]
fn a_table_of_latencies_makes_a_machine() {
    for (table, cpus, cores, caches, sockets) in [
        ("epyc-7742-2s-256", 256, 128, 32, 17),
        ("epyc-7773x-128", 128, 64, 8, 8),
        ("xeon-e5-2695v4-2s-72", 72, 36, 2, 2),
        ("xeon-gold-6242-2s-64", 64, 32, 2, 2),
        ("graviton3-64", 64, 64, 1, 1),
    ] {
        let file = folder().join(format!("matrices/{table}.csv"));
        let text = std::fs::read_to_string(file).expect("it is there");
        let machine =
            Machine::from_table(table, &text).unwrap_or_else(|wrong| panic!("{table}: {wrong}"));
        let most = |of: fn(&poundlock_sim::Cpu) -> usize| {
            1 + machine.cpus.iter().map(of).max().expect("some")
        };
        let found = (
            machine.cpus.len(),
            most(|cpu| cpu.core),
            most(|cpu| cpu.domain),
            most(|cpu| cpu.package),
        );
        assert_eq!(found, (cpus, cores, caches, sockets), "{table}");
        let (a, b) = (0, machine.cpus.len() - 1);
        let due = machine.published(a, b);
        let got = ping_pong(&machine, a, b, 200).expect("it runs");
        assert!((got / due - 1.0).abs() < 0.1, "{table}: {got} ns for {due}");
    }
}

#[test]
fn errors_in_a_table_are_one_line() {
    for (table, words) in [
        ("", "two CPUs"),
        ("1\n", "two CPUs"),
        (",\n,\n", "between CPUs 0 and 1"),
        (",5\nx,\n", "row 2"),
        (",-5\n,\n", "row 1, column 2"),
    ] {
        let wrong = Machine::from_table("table", table).expect_err(table).to_string();
        assert!(wrong.contains(words) && wrong.lines().count() == 1, "{table:?}: {wrong}");
    }
    let two = Machine::from_table("two", ",\n50,\n").expect("a machine");
    assert_eq!((two.cpus.len(), two.cpus[1].domain, two.published(0, 1)), (2, 0, 50.0));
}

#[test]
fn machines_have_their_described_size() {
    let sizes: Vec<(String, usize)> =
        all().into_iter().map(|machine| (machine.name, machine.cpus.len())).collect();
    let expected = [
        ("2990wx", 64),
        ("e5-2699v3", 72),
        ("e7-4890v2", 60),
        ("e7-8890v4", 192),
        ("e7-8895v3", 144),
        ("epyc-7742-2s", 256),
        ("epyc-7773x", 128),
        ("gold-6130", 128),
        ("graviton3", 64),
        ("i9-12900k", 24),
        ("synthetic-1024", 1024),
    ];
    assert_eq!(sizes, expected.map(|(name, cpus)| (name.to_owned(), cpus)));
}

/// The lowest level that two CPUs share.
fn relation(a: Cpu, b: Cpu) -> [bool; 5] {
    [
        a.core == b.core,
        a.domain == b.domain,
        a.node == b.node,
        a.package == b.package,
        a.sibling == b.sibling,
    ]
}

/// The mean latency between two cores: the model has one latency per pair of cores, and a table
/// with SMT has four.
fn between_cores(machine: &Machine, a: usize, b: usize) -> f64 {
    let of = |cpu: usize| {
        let same = move |other: &usize| machine.cpus[*other].core == machine.cpus[cpu].core;
        (0..machine.cpus.len()).filter(same)
    };
    let mut figures = vec![];
    for (a, b) in of(a).flat_map(|a| of(b).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        figures.push(machine.published(a, b));
    }
    figures.iter().sum::<f64>() / figures.len() as f64
}

#[test]
fn ping_pong_reproduces_the_latencies() {
    for machine in all() {
        let cpus = machine.cpus.len();
        // At least one pair of every relation, and others spread over the machine.
        let mut pairs = vec![];
        let mut relations = vec![];
        for b in 1..cpus {
            let relation = relation(machine.cpus[0], machine.cpus[b]);
            if !relations.contains(&relation) {
                relations.push(relation);
                pairs.push((0, b));
            }
        }
        pairs
            .extend((0..60).map(|i| (i * 7919 % cpus, i * 104_729 % cpus)).filter(|(a, b)| a != b));
        for (a, b) in pairs {
            let (published, found) =
                (between_cores(&machine, a, b), ping_pong(&machine, a, b, 50).expect("it ends"));
            let off = found / published - 1.0;
            assert!(
                off.abs() < 0.05,
                "{}: {a} and {b}: {found:.1} ns, not {published:.1}",
                machine.name
            );
        }
    }
}

#[test]
fn a_matrix_replaces_the_classes() {
    let machine = Machine::read(&folder().join("i9-12900k.toml")).expect("a machine");
    let table: String =
        (0..24).map(|row| format!("{}\n", vec!["100"; row].join(",") + ",")).collect();
    let machine = machine.with_matrix(&table).expect("a table");
    let found = ping_pong(&machine, 0, 16, 50).expect("it ends");
    assert!((found / 100.0 - 1.0).abs() < 0.05, "{found}");
}

#[track_caller]
fn wrong(text: &str) -> String {
    let read = Machine::from_toml(text, |name| Err(format!("'{name}' is not there")));
    let message = read.expect_err("it is wrong").to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// `text` without the part from `first` up to `next`.
fn without(text: &str, first: &str, next: &str) -> String {
    let (before, rest) = text.split_once(first).expect(first);
    let at = rest.find(next).expect(next);
    format!("{before}{}", &rest[at..])
}

#[test]
fn errors_in_a_file_name_the_key() {
    let good = std::fs::read_to_string(folder().join("e5-2699v3.toml")).expect("a file");
    for (from, to, words) in [
        ("packages = 2", "packages = 0", "topology.packages: 0"),
        ("packages = 2", "packages = 2000", "topology.packages: 2000"),
        ("packages = 2", "sockets = 2", "unknown field `sockets`"),
        ("packages = 2", "packages = \"two\"", "packages: invalid type"),
        ("count = 18", "count = 0", "topology.cores[0].count: 0"),
        ("value = 22.0", "value = -1", "latency.shared_cache.value: -1"),
        ("value = 22.0", "value = nan", "latency.shared_cache.value: NaN"),
        (
            "domain = {",
            "matrix = \"nowhere.csv\"\ndomain = {",
            "latency.matrix: 'nowhere.csv' is not there",
        ),
        ("numbering = \"last\"", "numbering = \"odd\"", "numbering"),
        ("[system]", "[sistem]", "sistem"),
        (
            "[latency]",
            "memory = { nodes = [0], source = \" \" }\n[latency]",
            "topology.memory.source: no source",
        ),
        (
            "[latency]",
            "memory = { nodes = [0, 2], source = \"x\" }\n[latency]",
            "there is no node 2",
        ),
        (
            "[latency]",
            "memory = { nodes = [1], source = \"x\" }\n[latency]",
            "topology.memory.nodes: node 0",
        ),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let message = wrong(&text);
        assert!(message.contains(words), "{to}: {message}");
    }
    let nameless = good.replacen("source = \"Intel ARK: 2.3 GHz\"", "source = \"\"", 1);
    assert!(wrong(&nameless).contains("core.cycle.source: no source"), "{}", wrong(&nameless));
    let missing = without(&good, "domain = {", "hops = [");
    assert!(wrong(&missing).contains("latency.domain: missing"), "{}", wrong(&missing));
    let missing = without(&good, "hops = [", "home = [");
    assert!(wrong(&missing).contains("latency.hops: none for 1 links"), "{}", wrong(&missing));
}

#[test]
fn errors_in_a_table_name_the_place() {
    let good = std::fs::read_to_string(folder().join("graviton3.toml")).expect("a file");
    let rows = |count: usize, field: &str| -> String {
        (0..count).map(|row| format!("{}\n", vec![field; row].join(",") + ",")).collect()
    };
    for (table, words) in [
        (rows(63, "50"), "63 rows for 64 CPUs"),
        (rows(64, "x"), "row 2: 'x' is not a number"),
        (rows(64, "-5"), "row 2, column 1: -5"),
        (rows(64, ""), "no latency between CPUs 0 and 1"),
    ] {
        let message = Machine::from_toml(&good, |_| Ok(table)).expect_err(words).to_string();
        assert!(
            message.contains(words)
                && message.contains("latency.matrix")
                && message.lines().count() == 1,
            "{message}"
        );
    }
}
