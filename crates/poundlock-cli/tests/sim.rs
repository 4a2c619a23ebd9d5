//! `poundlock sim` runs locks on simulated machines, gives the same for the same seeds, and says what is wrong.

mod common;

use common::{assert_refused, output, poundlock, scratch, stderr, stdout};
use serde_json::{Value, json};
use std::path::Path;

const SMALL: [&str; 8] = ["-m", "i9-12900k", "-w", "cna-map", "-d", "100us", "--warmup", "10us"];

/// Runs sim, which succeeds; returns its JSON and its tables.
fn sim(options: &[&str]) -> (Value, String) {
    let output = output(poundlock(["sim"]).args(options).args(SMALL).args(["--json", "-"]));
    assert_eq!(output.status.code(), Some(0), "{options:?}: {}", stderr(&output));
    (serde_json::from_slice(&output.stdout).expect("stdout is JSON and nothing else"), stderr(&output))
}

fn array<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("no {name} in {value:#}"))
}

#[test]
fn a_sweep_has_every_point_with_medians_over_seeds() {
    let (report, tables) = sim(&["sweep", "-l", "mcs,wait=spin,shfl_mutex", "-t", "1..12", "-n", "3"]);
    assert_eq!(report["schema"], "poundlock.sim/1");
    assert_eq!(report["threads"], json!([1, 2, 4, 8, 12]));
    assert_eq!(array(&report, "points").len(), 2 * 5);
    assert_eq!(array(&report, "runs").len(), 2 * 5 * 3);
    for point in array(&report, "points") {
        assert_eq!((&point["succeeded"], &point["failed"]), (&json!(3), &json!(0)), "{point:#}");
        let rate = &point["figures"]["per_second"];
        assert!(rate["min"].as_f64() <= rate["median"].as_f64() && rate["min"].as_f64() > Some(1e4), "{point:#}");
        assert!(point["lock"] != "mcs,wait=spin" || point["ratio"]["median"] == 1.0, "{point:#}");
    }
    for words in ["cna-map, 12 threads", "shfl_mutex", "12900K", "3 seeds"] {
        assert!(tables.contains(words), "no {words:?} in {tables}");
    }
}

#[test]
fn the_same_seeds_give_the_same_bytes_however_many_at_a_time() {
    let bytes = |options: &[&str]| {
        let sweep = ["sim", "sweep", "-l", "mcs,ttas,shfl_spin", "-t", "2,20", "-n", "2", "--json", "-"];
        output(poundlock(sweep).args(SMALL).args(options)).stdout
    };
    let first = bytes(&["-j", "1"]);
    assert!(!first.is_empty());
    assert_eq!(first, bytes(&["-j", "3"]));
    assert_ne!(first, bytes(&["--seed", "7"]));
}

#[test]
fn a_run_has_each_thread_and_what_its_memory_did() {
    let (report, text) = sim(&["run", "-l", "ticket", "-t", "5", "-n", "1"]);
    assert_eq!(array(&report["runs"][0]["counts"], "threads").len(), 5);
    assert!(report["traffic"][0]["operations"].as_u64() > Some(1000), "{report:#}");
    assert!(text.contains("Memory operations") && text.contains("contended: "), "{text}");
    let (quick, _) = sim(&["run", "-l", "ticket", "-t", "1", "-n", "1", "--step", "0"]);
    let (slow, _) = sim(&["run", "-l", "ticket", "-t", "1", "-n", "1", "--step", "50"]);
    let rate = |report: &Value| report["points"][0]["figures"]["per_second"]["median"].as_f64().expect("a figure");
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
    let rate = |report: &Value| report["points"][0]["figures"]["per_second"]["median"].as_f64().expect("a figure");
    let (own, _) = sim(&options);
    let (slow, _) = sim(&[&options[..], &["--matrix", table.to_str().expect("UTF-8")]].concat());
    assert!(rate(&slow) < rate(&own) / 2.0, "{} and {}", rate(&slow), rate(&own));
}

#[test]
fn bad_input_is_one_line() {
    let folder = scratch();
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let good = std::fs::read_to_string(machines.join("e5-2699v3.toml")).expect("it is there");
    let bad = folder.path().join("bad.toml");
    std::fs::write(&bad, good.replacen("packages = 2", "packages = 0", 1)).expect("the test's directory takes files");
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
    for (threads, words) in [("0", "'0'"), ("2,2", "twice"), ("x", "'x'")] {
        assert_refused(poundlock(["sim", "sweep", "-t", threads]).args(SMALL), 125, &[words, "--threads"]);
    }
}
