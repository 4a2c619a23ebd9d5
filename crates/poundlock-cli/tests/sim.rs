//! `poundlock sim`: locks on simulated machines, reproducibly for equal seeds, and its errors.

mod common;

use common::{assert_refused, output, poundlock, scratch, stderr, stdout};
use serde_json::{Value, json};
use std::path::Path;

const SMALL: [&str; 8] = ["-m", "i9-12900k", "-w", "cna-map", "-d", "100us", "--warmup", "10us"];

/// Runs sim, which must succeed. Returns its JSON and its tables.
fn sim(options: &[&str]) -> (Value, String) {
    let output = output(poundlock(["sim"]).args(options).args(SMALL).args(["--json", "-"]));
    assert_eq!(output.status.code(), Some(0), "{options:?}: {}", stderr(&output));
    (
        serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else"),
        stderr(&output),
    )
}

fn array<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("no {name} in {value:#}"))
}

#[test]
fn a_sweep_has_every_point_with_medians_over_seeds() {
    let (report, tables) =
        sim(&["sweep", "-l", "mcs,wait=spin,shfl_mutex", "-t", "1..12", "-n", "3"]);
    assert_eq!(report["schema"], "poundlock.sim/1");
    assert_eq!(report["threads"], json!([1, 2, 4, 8, 12]));
    assert_eq!(array(&report, "points").len(), 2 * 5);
    assert_eq!(array(&report, "runs").len(), 2 * 5 * 3);
    for point in array(&report, "points") {
        assert_eq!((&point["succeeded"], &point["failed"]), (&json!(3), &json!(0)), "{point:#}");
        let rate = &point["figures"]["per_second"];
        assert!(
            rate["min"].as_f64() <= rate["median"].as_f64() && rate["min"].as_f64() > Some(1e4),
            "{point:#}"
        );
        assert!(point["lock"] != "mcs,wait=spin" || point["ratio"]["median"] == 1.0, "{point:#}");
    }
    for words in ["cna-map, 12 threads", "shfl_mutex", "12900K", "3 seeds"] {
        assert!(tables.contains(words), "no {words:?} in {tables}");
    }
}

#[test]
fn a_workload_may_set_threads_per_cpu() {
    let folder = scratch();
    let file = folder.path().join("crowd.toml");
    let text = "name = \"crowd\"\nsource = \"a test\"\nsection = { kind = \"none\" }\nclasses = [{}]\n\
                threads_per_cpu = [1, 4]\ntimed = 1\n";
    std::fs::write(&file, text).expect("the test's directory takes files");
    let file = file.to_str().expect("UTF-8");
    let threads = |options: &[&str]| {
        let sweep = [
            "sim",
            "sweep",
            "-m",
            "i9-12900k",
            "-w",
            file,
            "-d",
            "100us",
            "-l",
            "shfl_mutex",
            "-n",
            "1",
        ];
        let output = output(poundlock(sweep).args(options).args(["--json", "-"]));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["threads"].clone()
    };
    assert_eq!(threads(&[]), json!([24, 96]));
    assert_eq!(threads(&["-t", "3,2x"]), json!([3, 48]), "what is asked for goes first");
}

#[test]
fn the_same_seeds_give_the_same_bytes_at_any_parallelism() {
    let bytes = |options: &[&str]| {
        let sweep =
            ["sim", "sweep", "-l", "mcs,ttas,shfl_spin", "-t", "2,20", "-n", "2", "--json", "-"];
        output(poundlock(sweep).args(SMALL).args(options)).stdout
    };
    let first = bytes(&["-j", "1"]);
    assert!(!first.is_empty());
    assert_eq!(first, bytes(&["-j", "3"]));
    assert_ne!(first, bytes(&["--seed", "7"]));
}

#[test]
fn a_run_reports_each_thread_and_its_memory_traffic() {
    let (report, text) = sim(&["run", "-l", "ticket", "-t", "5", "-n", "1"]);
    assert_eq!(array(&report["runs"][0]["counts"], "threads").len(), 5);
    assert!(report["traffic"][0]["operations"].as_u64() > Some(1000), "{report:#}");
    assert!(text.contains("Memory operations") && text.contains("contended: "), "{text}");
    let (quick, _) = sim(&["run", "-l", "ticket", "-t", "1", "-n", "1", "--step", "0"]);
    let (slow, _) = sim(&["run", "-l", "ticket", "-t", "1", "-n", "1", "--step", "50"]);
    let rate = |report: &Value| {
        report["points"][0]["figures"]["per_second"]["median"].as_f64().expect("a figure")
    };
    assert!(rate(&quick) > 2.0 * rate(&slow), "steps take time");
}

#[test]
fn figures_go_to_files() {
    let folder = scratch();
    let (svg, csv) = (folder.path().join("plot.svg"), folder.path().join("figures.csv"));
    let sweep = ["sim", "sweep", "-l", "mcs,ticket", "-t", "1,3", "-n", "2"];
    let output = output(poundlock(sweep).args(SMALL).arg("--svg").arg(&svg).arg("--csv").arg(&csv));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("ticket"), "{}", stdout(&output));
    let plot = std::fs::read_to_string(&svg).expect("sim wrote it");
    assert!(plot.starts_with("<svg") && plot.contains("simulated: "), "{plot}");
    let table = std::fs::read_to_string(&csv).expect("sim wrote it");
    assert_eq!(table.lines().count(), 1 + 4, "{table}");
    assert!(table.starts_with("lock,threads,per_second,per_second_min,per_second_max,"), "{table}");
}

#[test]
fn a_machine_takes_other_latencies_from_a_table() {
    let folder = scratch();
    let table = folder.path().join("slow.csv");
    let rows: String = (0..24).map(|_| format!("{}\n", ["900"; 24].join(","))).collect();
    std::fs::write(&table, rows).expect("the test's directory takes files");
    let options = ["run", "-l", "mcs", "-t", "8", "-n", "1"];
    let rate = |report: &Value| {
        report["points"][0]["figures"]["per_second"]["median"].as_f64().expect("a figure")
    };
    let (own, _) = sim(&options);
    let (slow, _) = sim(&[&options[..], &["--matrix", table.to_str().expect("UTF-8")]].concat());
    assert!(rate(&slow) < rate(&own) / 2.0, "{} and {}", rate(&slow), rate(&own));
}

#[test]
fn a_table_of_latencies_is_a_machine() {
    let folder = scratch();
    let (table, kept) = (folder.path().join("four.csv"), folder.path().join("four.json"));
    // Two sockets of two cores, as a table and in the format of `poundlock latency` for CPUs 2 to
    // 5.
    std::fs::write(&table, ",\n40,\n120,120,\n120,120,40,\n")
        .expect("the test's directory takes files");
    let pairs = [(2, 3, 40), (2, 4, 120), (2, 5, 120), (3, 4, 120), (3, 5, 120), (4, 5, 40)];
    let pairs: Vec<Value> = pairs
        .map(|(a, b, ns)| {
            json!({"a": a, "b": b,
                "median": ns, "lower_quartile": ns, "upper_quartile": ns})
        })
        .to_vec();
    let mut measured = json!({"schema": "poundlock.latency/1", "present": "0-5",
        "cpus": [2, 3, 4, 5],
        "settings": {"samples": 1, "round_trips": 1}, "complete": true, "pairs": pairs});
    std::fs::write(&kept, measured.to_string()).expect("the test's directory takes files");
    let figures = |file: &Path| {
        let sweep = [
            "sim", "sweep", "-w", "cna-map", "-d", "100us", "-l", "mcs", "-t", "1x", "-n", "1",
            "--json", "-",
        ];
        let output = output(poundlock(sweep).arg("-m").arg(file));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("4 cores, 2 last-level caches"), "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["threads"], json!([4]));
        report["points"].clone()
    };
    assert_eq!(figures(&table), figures(&kept));
    measured["complete"] = json!(false);
    std::fs::write(&kept, measured.to_string()).expect("the test's directory takes files");
    std::fs::write(folder.path().join("bad.csv"), ",\nx,\n")
        .expect("the test's directory takes files");
    for (file, words) in [
        ("four.json", "the measurement is incomplete"),
        ("bad.csv", "row 2"),
        ("none.csv", "none.csv"),
    ] {
        let sweep = ["sim", "sweep", "-w", "cna-map", "-t", "2", "-m"];
        assert_refused(poundlock(sweep).arg(folder.path().join(file)), 125, &[file, words]);
    }
}

#[test]
fn a_trace_is_a_timeline_with_one_holder_at_a_time() {
    let folder = scratch();
    let file = folder.path().join("trace.json");
    let run = ["sim", "trace", "-l", "shfl_mutex", "-t", "30"];
    let output = output(poundlock(run).args(SMALL).arg("-o").arg(&file));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let timeline: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("it is there")).expect("JSON");
    let of = |name: &str| {
        array(&timeline, "traceEvents")
            .iter()
            .filter(|event| event["name"] == name)
            .collect::<Vec<_>>()
    };
    let number = |value: &Value| value.as_f64().expect("a number");
    let mut holds: Vec<(f64, f64)> =
        of("holds").iter().map(|hold| (number(&hold["ts"]), number(&hold["dur"]))).collect();
    holds.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(holds.len() > 20 && !of("waits").is_empty(), "{} holds", holds.len());
    assert!(holds.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 + 1e-6), "{holds:?}");
    assert!(stdout(&output).contains("30 threads"), "{}", stdout(&output));
    assert_refused(
        poundlock(["sim", "trace", "-t", "2", "-o", "/nowhere/trace.json"]).args(SMALL),
        125,
        &["/nowhere"],
    );
}

const FIGURE: &str = r#"
name = "small"
about = "A small figure"
source = "a test"
machine = "i9-12900k"
workload = "cna-map"
domain = "l3"
warmup_us = 10
measured_us = 1000
threads = [1, 8]
locks = ["mcs,wait=spin", "ticket,wait=spin"]
fit = { lock = "mcs,wait=spin", workload = "cna-map", per_second = 4e6 }

[[check]]
what = "the fitted one"
of = { lock = "mcs,wait=spin", threads = 1 }
published = 4e6
within = 0.05
gate = true

[[check]]
what = "a figure that cannot be"
of = { lock = "mcs,wait=spin", threads = 8 }
over = { lock = "ticket,wait=spin", threads = 8 }
least = 1000
why = "It was made up."

[[published]]
what = "throughput"
source = "a table"
values = [
    { lock = "mcs,wait=spin", threads = 1, value = 10.0 },
    { lock = "mcs,wait=spin", threads = 8, value = 1.0 },
    { lock = "ticket,wait=spin", threads = 1, value = 10.5 },
]

[[published]]
what = "what cannot be"
source = "nowhere"
values = [{ lock = "ticket,wait=spin", threads = 1, value = 1.0 }, { lock = "ticket,wait=spin", threads = 8, value = 2.0 }]

[[absent]]
what = "what no lock does"
published = 2.0
gate = true
why = "There is none."
"#;

#[test]
fn a_figure_is_fitted_to_a_single_thread_and_missed_checks_are_named() {
    let folder = scratch();
    let (file, page) = (folder.path().join("small.toml"), folder.path().join("page.md"));
    std::fs::write(&file, FIGURE).expect("the test's directory takes files");
    let mut command = poundlock(["sim", "figure", "-n", "2", "--json", "-", "--markdown"]);
    let output = output(command.arg(&page).arg(&file));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value =
        serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else");
    let results = array(&report["figures"][0], "results");
    assert_eq!(
        (&results[0]["met"], &results[1]["met"]),
        (&json!(true), &json!(false)),
        "{results:#?}"
    );
    // The ratio of one pair of the first three values is too small to be compared.
    let orders = array(&report["figures"][0], "orders");
    let kept: Vec<&Value> = orders.iter().map(|order| &order["kept"]).collect();
    assert_eq!(json!(kept), json!([true, true, false]), "{orders:#?}");
    assert_eq!((&orders[2]["of"]["threads"], &orders[2]["published"]), (&json!(8), &json!(2.0)));
    let tables = stderr(&output);
    for words in [
        "* the fitted one",
        "MISSED",
        "1 of 2 reference ratios",
        "0 of 1 other",
        "2 of 3 pairs",
        "(67 %)",
        "what cannot be: ",
    ] {
        assert!(tables.contains(words), "no {words:?} in {tables}");
    }
    let page = std::fs::read_to_string(page).expect("sim wrote it");
    for words in [
        "**1 of 2**",
        "## Order",
        "| REVERSED |",
        "- small, a figure that cannot be",
        "It was made up.",
        "There is none.",
        "| 8 |",
    ] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
}

#[test]
fn errors_in_a_figure_are_one_line() {
    let folder = scratch();
    let file = folder.path().join("bad.toml");
    for (from, to, words) in [
        ("threads = [1, 8]", "threads = [1, 7]", &["bad.toml", "8 threads"][..]),
        ("machine = \"i9-12900k\"", "machine = \"eniac\"", &["eniac"]),
        ("value = 1.0", "value = -1.0", &["bad.toml", "throughput"]),
        (
            "threads = 8, value = 1.0",
            "threads = 7, value = 1.0",
            &["bad.toml", "throughput", "7 threads"],
        ),
        ("gate = true", "gait = true", &["bad.toml", "gait"]),
        ("least = 1000", "figure = \"colour\"\nleast = 1000", &["colour"]),
    ] {
        let text = FIGURE.replacen(from, to, 1);
        assert_ne!(text, FIGURE, "{from}");
        std::fs::write(&file, text).expect("the test's directory takes files");
        assert_refused(poundlock(["sim", "figure"]).arg(&file), 125, words);
    }
    assert_refused(&mut poundlock(["sim", "figure", "cna-7"]), 125, &["cna-7", "cna-6"]);
    assert_refused(&mut poundlock(["sim", "figure"]), 125, &["NAME"]);
}

/// The file of each published figure is valid, and its first point can be simulated.
#[test]
fn the_published_figures_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/figures");
    let files = std::fs::read_dir(folder)
        .expect("it is there")
        .map(|entry| entry.expect("readable").path());
    let mut names: Vec<String> = vec![];
    let scratch = scratch();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("it is there");
        // One point, as short as possible: this tests the file, not the result.
        let mut figure: toml::Table = text.parse().expect("it is TOML");
        names.push(figure["name"].as_str().expect("a name").to_owned());
        figure["measured_us"] = 50.into();
        figure["warmup_us"] = 0.into();
        let short = scratch.path().join("short.toml");
        std::fs::write(&short, figure.to_string()).expect("the test's directory takes files");
        let output = output(poundlock(["sim", "figure", "-n", "1"]).arg(&short));
        assert_eq!(output.status.code(), Some(0), "{}: {}", file.display(), stderr(&output));
    }
    assert!(names.len() > 5, "{names:?}");
}

/// Runs advise, which must succeed. Returns its JSON and its tables.
fn advise(options: &[&str]) -> (Value, String) {
    let short =
        ["sim", "advise", "-m", "i9-12900k", "-d", "100us", "--warmup", "10us", "--json", "-"];
    let output = output(poundlock(short).args(options));
    assert_eq!(output.status.code(), Some(0), "{options:?}: {}", stderr(&output));
    (
        serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else"),
        stderr(&output),
    )
}

/// The median throughput of a lock at a load.
fn rate_at(load: &Value, lock: &str) -> f64 {
    let point = array(load, "points").iter().find(|point| point["lock"] == lock);
    let point = point.unwrap_or_else(|| panic!("no {lock} in {load:#}"));
    point["figures"]["per_second"]["median"].as_f64().expect("a figure")
}

/// Whether the numbers are equal except for the last digit, which JSON may lose.
fn same(found: &Value, due: f64) -> bool {
    found.as_f64().is_some_and(|found| (found - due).abs() <= due.abs() * 1e-12)
}

#[test]
fn advice_names_the_best_of_each_usual_load_and_the_least_regret() {
    let locks = ["shfl_mutex", "cna,wait=spin"];
    let (report, tables) = advise(&["-l", &locks.join(","), "-n", "1"]);
    assert_eq!(report["schema"], "poundlock.sim-advise/1");
    let loads = array(&report, "loads");
    let named: Vec<Value> = loads
        .iter()
        .map(|load| json!([load["kind"], load["workload"]["name"], load["threads"]]))
        .collect();
    assert_eq!(
        json!(named),
        json!([
            ["uncontended", "cna-map", 1],
            ["contended", "cna-map", 24],
            ["contended", "cna-map-work", 24],
            ["over-subscribed", "cna-map", 48],
        ])
    );
    assert!(
        loads[3]["measured"].as_f64() >= Some(0.01),
        "slices are milliseconds: {}",
        loads[3]["measured"]
    );
    let worst = |lock: &str| {
        let regrets = loads.iter().map(|load| {
            let best = locks.iter().map(|lock| rate_at(load, lock)).fold(0.0, f64::max);
            1.0 - rate_at(load, lock) / best
        });
        regrets.fold(0.0, f64::max)
    };
    for load in loads {
        let best =
            locks.iter().max_by(|a, b| rate_at(load, a).total_cmp(&rate_at(load, b))).expect("two");
        assert_eq!(load["best"], *best, "{load:#}");
        let next =
            rate_at(load, best) / rate_at(load, load["next"]["lock"].as_str().expect("a name"));
        assert!(same(&load["next"]["ratio"]["median"], next), "{load:#}");
        for (over, name) in array(load, "references").iter().zip(["mcs", "ttas"]) {
            assert_eq!(over["lock"], name);
            assert!(
                same(&over["ratio"]["median"], rate_at(load, best) / rate_at(load, name)),
                "{load:#}"
            );
        }
    }
    let least = locks.iter().min_by(|a, b| worst(a).total_cmp(&worst(b))).expect("two");
    assert_eq!((&report["choice"], array(&report, "regrets").len()), (&json!(least), 2));
    assert!(same(&report["regrets"][0]["worst"], worst(least)), "{}", report["regrets"]);
    for words in [
        "over-subscribed: cna-map, 48 threads",
        "over ttas",
        &format!("Best for all loads: {least}"),
    ] {
        assert!(tables.contains(words), "no {words:?} in {tables}");
    }
}

#[test]
fn advice_reports_ties() {
    // One lock under two names, and a lock that spins where the others sleep.
    let (report, tables) =
        advise(&["-l", "mcs,mcs,wait=park", "-w", "cna-map", "-t", "8", "-n", "3"]);
    let load = &report["loads"][0];
    assert_eq!(
        (&load["best"], &load["ties"]),
        (&json!("mcs"), &json!(["mcs,wait=park"])),
        "{load:#}"
    );
    assert_eq!(
        (&load["next"]["tie"], &load["next"]["ratio"]["median"]),
        (&json!(true), &json!(1.0)),
        "{load:#}"
    );
    assert!(tables.contains("mcs ties with mcs,wait=park"), "{tables}");
    let (report, tables) = advise(&["-l", "mcs,ttas", "-w", "cna-map", "-t", "8", "-n", "3"]);
    assert_eq!(
        (&report["loads"][0]["ties"], &report["loads"][0]["next"]["tie"]),
        (&json!([]), &json!(false))
    );
    assert!(!tables.contains(" ties with "), "{tables}");
}

#[test]
fn advice_excludes_locks_below_the_requested_fairness() {
    // With ttas, the last holder often acquires the lock again, which is unfair.
    let options = ["-l", "mcs,wait=spin,ttas,wait=spin", "-w", "cna-map", "-t", "1,8", "-n", "1"];
    let (any, _) = advise(&options);
    let (fair, tables) = advise(&[&options[..], &["--fairness", "0.7"]].concat());
    assert_eq!((&any["fairness"], &fair["fairness"]), (&Value::Null, &json!(0.7)));
    assert_eq!(any["choice"], "ttas,wait=spin", "{}", any["regrets"]);
    assert_eq!((&fair["choice"], array(&fair, "regrets").len()), (&json!("mcs,wait=spin"), 1));
    let unfair: Vec<&Value> = array(&fair, "loads").iter().map(|load| &load["unfair"]).collect();
    assert_eq!(json!(unfair), json!([[], ["ttas,wait=spin"]]), "a single thread has no factor");
    assert!(tables.contains("excluded as less fair than requested: ttas,wait=spin"), "{tables}");
    for wrong in ["0.4", "1.1", "x"] {
        let refused = ["sim", "advise", "-m", "2990wx", "--fairness", wrong];
        assert_refused(&mut poundlock(refused), 125, &["--fairness", wrong]);
    }
}

#[test]
fn the_same_seeds_give_the_same_advice() {
    let bytes = |options: &[&str]| {
        let advise = [
            "sim",
            "advise",
            "-m",
            "i9-12900k",
            "-d",
            "100us",
            "-l",
            "mcs,shfl_spin",
            "-t",
            "1,8",
            "-n",
            "2",
        ];
        output(poundlock(advise).args(["--json", "-"]).args(options)).stdout
    };
    let first = bytes(&["-j", "1"]);
    assert!(!first.is_empty());
    assert_eq!(first, bytes(&["-j", "3"]));
    assert_ne!(first, bytes(&["--seed", "7"]));
}

#[test]
fn readers_are_a_load_if_a_readers_writer_lock_is_a_candidate() {
    let names = |report: &Value| {
        let loads = array(report, "loads").iter().map(|load| load["workload"]["name"].clone());
        loads.collect::<Vec<_>>()
    };
    let (report, _) = advise(&["-l", "shfl_mutex,shfl_rw", "-t", "6", "-n", "1"]);
    assert_eq!(json!(names(&report)), json!(["cna-map", "cna-map-work", "shfl-hash-rw-1"]));
    let readers = &report["loads"][2];
    assert!(
        rate_at(readers, "shfl_rw") > 0.0 && rate_at(readers, "shfl_mutex") > 0.0,
        "both run it"
    );
    assert_eq!(report["choice"], "shfl_mutex", "the other one does not serve all loads");
    let (report, _) = advise(&["-l", "shfl_rw", "-t", "6", "-n", "1"]);
    assert_eq!(
        (json!(names(&report)), &report["choice"]),
        (json!(["shfl-hash-rw-1"]), &json!("shfl_rw"))
    );
}

#[test]
fn impossible_advice_is_one_line() {
    for (options, words) in [
        (&["-m", "pdp-11"][..], &["pdp-11", "e5-2699v3"][..]),
        (&["-m", "2990wx", "-w", "nothing"], &["nothing", "cna-map"]),
        (&["-m", "2990wx", "-w", "cna-map", "-w", "cna-map"], &["cna-map", "twice"]),
        (&["-m", "2990wx", "-l", "mcs,nosuch"], &["nosuch"]),
        (&["-m", "2990wx", "-l", "mcs,mcs"], &["mcs", "twice"]),
        (&["-m", "2990wx", "-l", "native"], &["native"]),
        (&["-m", "2990wx", "-w", "cna-map", "-l", "shfl_rw"], &["shfl_rw", "readers-writer"]),
        (&["-m", "2990wx", "-t", "0"], &["'0'", "--threads"]),
        (&["-m", "2990wx", "-n", "0"], &["--seeds"]),
        (&["-m", "2990wx", "-l", "mcs", "--json", "/nowhere/a.json"], &["/nowhere/a.json"]),
    ] {
        assert_refused(poundlock(["sim", "advise"]).args(options), 125, words);
    }
}

#[test]
fn bad_input_is_one_line() {
    let folder = scratch();
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let good = std::fs::read_to_string(machines.join("e5-2699v3.toml")).expect("it is there");
    let bad = folder.path().join("bad.toml");
    std::fs::write(&bad, good.replacen("packages = 2", "packages = 0", 1))
        .expect("the test's directory takes files");
    let bad = bad.to_str().expect("UTF-8");
    for (options, words) in [
        (&["-m", "pdp-11", "-w", "cna-map"][..], &["pdp-11", "e5-2699v3"][..]),
        (&["-m", "nowhere.toml", "-w", "cna-map"], &["nowhere.toml"]),
        (&["-m", bad, "-w", "cna-map"], &["bad.toml", "topology.packages: 0"]),
        (&["-m", "2990wx", "-w", "nothing"], &["nothing", "cna-map"]),
        (&["-m", "2990wx", "-w", "cna-map", "-l", "mcs,nosuch"], &["nosuch"]),
        (&["-m", "2990wx", "-w", "cna-map", "-l", "native"], &["native"]),
        (&["-m", "2990wx", "-w", "shfl-hash-rw-1", "-l", "mcs"], &["mcs"]),
        (&["-m", "2990wx", "-w", "cna-map", "-d", "5"], &["'5'", "--measured"]),
        (&["-m", "2990wx", "-w", "cna-map", "--matrix", "/nowhere.csv"], &["/nowhere.csv"]),
    ] {
        assert_refused(poundlock(["sim", "sweep", "-t", "2"]).args(options), 125, words);
    }
    assert_refused(
        poundlock(["sim", "sweep", "-l", "mcs"]).args(SMALL),
        125,
        &["--threads", "cna-map"],
    );
    for (threads, words) in
        [("0", "'0'"), ("2,2", "twice"), ("x", "'x'"), ("24,1x", "twice"), ("1..2x", "1..2x")]
    {
        assert_refused(
            poundlock(["sim", "sweep", "-t", threads]).args(SMALL),
            125,
            &[words, "--threads"],
        );
    }
}

/// Tests that the results are complete and stored, not the speed itself.
#[test]
fn the_benchmark_of_the_simulators_speed_keeps_its_results() {
    let folder = scratch();
    let results = folder.path().join("speed");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/simulator.py");
    let bench = |options: &[&str]| {
        let mut command = std::process::Command::new(&script);
        output(
            command
                .args(options)
                .arg("--poundlock")
                .arg(env!("CARGO_BIN_EXE_poundlock"))
                .arg("--output")
                .arg(&results),
        )
    };
    let found = bench(&["e7-8890v4", "--milliseconds", "0.05", "--repeats", "1"]);
    assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
    let report = std::fs::read_to_string(results.with_extension("json")).expect("it wrote it");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let measured = array(&report, "measurements");
    for lock in ["mcs,wait=spin", "ttas", "shfl_mutex"] {
        let one = measured.iter().find(|one| one["lock"] == lock && one["threads"] == 192);
        let repeat = &one.unwrap_or_else(|| panic!("no {lock} in {report:#}"))["repeats"][0];
        assert!(
            repeat["operations"].as_u64() > Some(192) && repeat["cpu_seconds"].as_f64() > Some(0.0),
            "{repeat:#}"
        );
        assert!(stdout(&found).contains(&format!("| {lock}")), "{}", stdout(&found));
    }
    assert_eq!(
        std::fs::read_to_string(results.with_extension("md"))
            .ok()
            .map(|text| stdout(&found).contains(&text)),
        Some(true)
    );
    for (options, words) in [(&["pdp-11"][..], "pdp-11"), (&["--repeats", "0"], "'0'")] {
        let refused = bench(options);
        assert!(
            refused.status.code() == Some(2) && stderr(&refused).lines().count() == 1,
            "{}",
            stderr(&refused)
        );
        assert!(stderr(&refused).contains(words), "{}", stderr(&refused));
    }
}

/// Runs regret at two points, with results in `cache`. Returns its JSON and its table.
fn regret(cache: &Path, options: &[&str]) -> (Value, String) {
    let few = ["sim", "regret", "-m", "i9-12900k", "-w", "ron-empty", "-t", "2,8", "--json", "-"];
    let rivals = ["--rivals", "mcs,wait=spin,ttas,mcs"];
    let run = output(poundlock(few).args(rivals).arg("--cache").arg(cache).args(options));
    assert_eq!(run.status.code(), Some(0), "{options:?}: {}", stderr(&run));
    (serde_json::from_slice(&run.stdout).expect("stdout is JSON and nothing else"), stderr(&run))
}

#[test]
fn regret_is_the_share_that_the_best_fair_rival_has_more() {
    let folder = scratch();
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let cache = folder.path().join("cache");
    let (csv, svg, page) = (file("r.csv"), file("r.svg"), file("r.md"));
    let files = ["--csv", &csv, "--svg", &svg, "--markdown", &page];
    let (report, table) = regret(&cache, &files);
    assert_eq!(report["schema"], "poundlock.sim-regret/1");
    assert_eq!(report["rivals"], json!(["mcs,wait=spin", "ttas", "mcs"]));
    let points = array(&report, "points");
    let threads: Vec<&Value> = points.iter().map(|point| &point["threads"]).collect();
    assert_eq!(json!(threads), json!([2, 8]));
    let mut worst = 0.0f64;
    for point in points {
        let locks = array(point, "locks");
        let figure = |lock: &Value, name: &str| lock[name].as_f64().expect("a figure");
        assert_eq!((locks.len(), &locks[0]["lock"]), (4, &json!("shfl_ron")), "{point:#}");
        let fair = locks.iter().filter(|lock| figure(lock, "fairness_factor") <= 0.75);
        let best = fair.map(|lock| figure(lock, "per_second")).fold(0.0, f64::max);
        let due = (1.0 - figure(&locks[0], "per_second") / best).max(0.0);
        let found = figure(point, "regret");
        assert!((found - due).abs() < 1e-9, "{found}, not {due}: {point:#}");
        assert!(locks.iter().all(|lock| figure(lock, "per_cpu_second") > 0.0), "{point:#}");
        worst = worst.max(due);
    }
    assert_eq!(report["summary"]["points"], 2);
    assert!((report["summary"]["worst"].as_f64().expect("a regret") - worst).abs() < 1e-9);
    assert!(table.contains("Regret of shfl_ron at 2 points"), "{table}");
    let text = |path: &str| std::fs::read_to_string(path).expect("the file was written");
    assert_eq!(text(&csv).lines().count(), 1 + 2 * 4);
    assert!(text(&svg).contains("ron-empty") && text(&page).contains("| i9-12900k | ron-empty |"));
}

#[test]
fn regret_simulates_only_what_is_not_in_its_cache() {
    let folder = scratch();
    let (first, _) = regret(folder.path(), &[]);
    let kept = || {
        let files = std::fs::read_dir(folder.path()).expect("the cache").map(|file| {
            let path = file.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("a result");
            (path, text)
        });
        files.collect::<Vec<_>>()
    };
    assert_eq!(kept().len(), 2 * 4);
    assert_eq!(first, regret(folder.path(), &[]).0);
    // A changed result is used; one that cannot be read is simulated again.
    for (path, text) in kept() {
        let doubled = text.replacen("\"elapsed_ns\":", "\"elapsed_ns\":1", 1);
        std::fs::write(path, doubled).expect("it can be written");
    }
    assert_ne!(first["points"], regret(folder.path(), &[]).0["points"]);
    for (path, _) in kept() {
        std::fs::write(path, "{").expect("it can be written");
    }
    assert_eq!(first, regret(folder.path(), &[]).0);
}

#[test]
fn a_simulation_lasts_until_its_throughput_is_steady() {
    // Its throughput rises for milliseconds, while waiters stop sleeping. A lock that tries other
    // ways of handing over from time to time would never be steady for certain.
    let run = |options: &[&str]| {
        let run = ["sim", "run", "-m", "2990wx", "-w", "cna-map-work", "-t", "32"];
        let mut run = poundlock(run);
        run.args(["-l", "shfl_mutex", "-n", "1", "--seed", "2", "--json", "-"]);
        let output = output(run.args(options));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rate = report["runs"][0]["figures"]["per_second"].as_f64().expect("a figure");
        (rate, report["unsteady"].clone())
    };
    let (long, _) = run(&["-d", "20ms", "--warmup", "20ms"]);
    let (steady, unsteady) = run(&[]);
    assert_eq!(unsteady, 0);
    assert!((steady / long - 1.0).abs() < 0.1, "{steady} and {long}");
}

#[test]
fn a_placement_replaces_that_of_the_workload() {
    let over_subscribed = |options: &[&str]| -> Value {
        let points = ["sim", "regret", "-m", "i9-12900k", "-w", "ron-10us", "-t", "2x"];
        let few = ["--rivals", "ttas", "--json", "-"];
        let run = output(poundlock(points).args(few).args(options));
        assert_eq!(stderr(&run).contains("Placement of the threads: free."), !options.is_empty());
        serde_json::from_slice(&run.stdout).expect("JSON")
    };
    let (bound, free) = (over_subscribed(&[]), over_subscribed(&["--placement", "free"]));
    assert_eq!((&bound["placement"], &free["placement"]), (&Value::Null, &json!("free")));
    assert_ne!(bound["points"], free["points"], "ron-10us binds its threads");
    let run = ["sim", "run", "-m", "i9-12900k", "-w", "ron-empty", "-t", "2", "-n", "1"];
    let mut command = poundlock(run);
    command.args(["-d", "100us", "--placement", "round-robin", "--json", "-"]);
    let report: Value = serde_json::from_slice(&output(&mut command).stdout).expect("JSON");
    assert_eq!(report["workload"]["placement"], "round-robin");
    let mut wrong = poundlock(run);
    assert_refused(wrong.args(["--placement", "near"]), 125, &["near", "--placement"]);
}
